"""A verdict must fail for each of its reasons, and say which."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from mklopt import solve
from mklopt.formulations import LpNorm
from mklopt.judge.verdict import judge_run
from mklopt.reference.contract_problems import STORE, cells

TOL = 1e-6


@pytest.fixture(scope="module")
def pair():
    cell = next(
        c for c in cells() if c.loss.name == "hinge" and c.formulation == LpNorm(2.0)
    )
    problem = cell.problem()
    return solve(problem, "analytic", tol=TOL), STORE.load(problem)


def moved(reference, **changes):
    """A reference with other numbers."""
    names = ("lower", "upper", "relative_gap")
    return SimpleNamespace(**{k: getattr(reference, k) for k in names} | changes)


def test_an_honest_run_holds_and_the_numbers_are_said(pair):
    result, reference = pair
    verdict = judge_run(result, reference, TOL)
    assert verdict.holds and "meets the reference" in verdict.reason
    assert f"gap {result.relative_gap:.1e}" in verdict.reason
    assert 0 <= verdict.above <= TOL and 0 <= verdict.below <= TOL


@pytest.mark.parametrize(
    "factor, words",
    [
        (1.001, "the primal value lies below the reference interval"),
        (0.999, "the dual value lies above the reference interval"),
    ],
)
def test_bounds_that_contradict_the_reference_fail(pair, factor, words):
    result, reference = pair
    ends = {"lower": factor * reference.lower, "upper": factor * reference.upper}
    verdict = judge_run(result, moved(reference, **ends), TOL)
    assert not verdict.holds and words in verdict.reason
    assert "do not meet" in verdict.reason


def test_a_promise_that_is_not_kept_fails(pair):
    result, reference = pair
    verdict = judge_run(result, reference, result.relative_gap / 2)
    assert not verdict.holds and "the certified gap is" in verdict.reason


def test_a_run_that_did_not_converge_fails_whatever_its_gap(pair):
    result, reference = pair
    late = replace(result, status="time_limit", message="")
    verdict = judge_run(late, reference, TOL)
    assert not verdict.holds and "the limit on time came first" in verdict.reason


def test_a_poor_reference_is_no_judge(pair):
    result, reference = pair
    verdict = judge_run(result, moved(reference, relative_gap=1e-3), TOL)
    assert not verdict.holds and "known to 1.0e-03 only" in verdict.reason


def test_bounds_farther_off_than_their_gap_fail(pair):
    """A gap that is smaller than the distance to the reference must be wrong."""
    result, reference = pair
    found = result.certificate
    primal = found.primal * (1 + 1e-3)
    wrong = replace(found, primal=primal, dual=primal * (1 - 1e-9))
    verdict = judge_run(replace(result, certificate=wrong), reference, TOL)
    assert not verdict.holds and "farther above the reference" in verdict.reason
