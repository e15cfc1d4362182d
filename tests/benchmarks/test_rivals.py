"""Other people's solvers: at the gap they reach, in a process of their own."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import rivals
from benchmarks.harness import subset_gaussians
from benchmarks.rivals import EVERYONE, Arena, Attempt, Competitor
from mklopt import GramStack, Problem, solve
from mklopt.formulations import BlockL1, GroupLasso, LpNorm

K, Y = subset_gaussians(30, 4)
GRAMS = GramStack(K)
BY_NAME = {rival.name: rival for rival in EVERYONE}


def arena(loss, formulation, bias, C=1.0):
    problem = Problem(GRAMS, Y, loss, formulation, C, bias)
    return Arena(problem, K, solve(problem, tol=1e-8).certificate.dual)


@pytest.mark.parametrize(
    "name, loss, formulation, bias",
    [
        ("SVC analytic", "hinge", LpNorm(2.0), True),
        ("SVC analytic", "hinge", GroupLasso(), True),
        ("SVC SILP", "hinge", BlockL1(), True),
        ("CLARABEL", "logistic", GroupLasso(), True),
        ("SCS", "hinge", BlockL1(), True),
        ("skglm", "squared", GroupLasso(), False),
        ("skglm", "logistic", GroupLasso(), False),
        ("celer", "squared", GroupLasso(), False),
    ],
)
def test_a_competitor_solves_our_problem(name, loss, formulation, bias):
    """Its candidates, mapped to our problem, have a small certified gap."""
    rival, here = BY_NAME[name], arena(loss, formulation, bias)
    if not rival.installed:
        pytest.skip(f"{rival.package} is not installed; `make bench` installs it")
    assert rival.why_not(here.problem) == ""
    found = rivals.measure(rival, here, 60.0)
    assert 0 <= found.gap <= rivals.GOOD
    assert found.seconds > 0


def test_easymkl_is_above_the_optimum():
    rival, here = BY_NAME["EasyMKL"], arena("hinge", BlockL1(), True)
    if not rival.installed:
        pytest.skip("MKLpy is not installed; `make bench` installs it")
    found = rivals.measure(rival, here, 60.0)
    assert 1e-6 < found.gap < 1
    assert "another problem" in found.note


def test_a_competitor_says_what_it_does_not_take():
    lasso = Problem(GRAMS, Y, "squared", GroupLasso(), bias=False)
    taken = {r.name for r in EVERYONE if not r.why_not(lasso)}
    assert taken == {"CLARABEL", "ECOS", "SCS", "skglm", "celer"}
    logistic = lasso.with_(loss="logistic")
    assert "logistic" in BY_NAME["celer"].why_not(logistic)
    assert "bias" in BY_NAME["skglm"].why_not(logistic.with_(bias=True))
    assert "simplex" in BY_NAME["SVC SILP"].why_not(
        lasso.with_(loss="hinge", bias=True)
    )


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_group_lasso_in_the_coordinates_of_factors(loss):
    """The solution mapped to w_m = L_mᵀβ_m and back keeps its gap; another does not."""
    problem = Problem(GRAMS, Y, loss, GroupLasso(), 10.0, bias=False)
    best = solve(problem, tol=1e-9).certificate
    X = rivals.design(K)
    L = X.T.reshape(4, 30, 30)
    w = np.einsum("mji,mi->mj", L, best.expansion).ravel()
    found = rivals.lasso_certificate(problem, X, w)
    assert 0 <= found.relative_gap <= 1e-6
    np.testing.assert_allclose(found.primal, best.primal, rtol=1e-6)
    assert rivals.lasso_certificate(problem, X, 0.8 * w).relative_gap > 1e-3


def test_a_child_is_ended_at_its_limit():
    def endless():
        yield 1
        time.sleep(60)
        yield 2

    def broken():
        yield 1
        raise ValueError("no such kernel")

    begun = time.perf_counter()
    seen: list[int] = []
    with pytest.raises(TimeoutError, match="ended after"):
        for item in rivals.in_a_child(endless, 1.0):
            seen.append(item)
    assert seen == [1] and time.perf_counter() - begun < 30
    with pytest.raises(RuntimeError, match="no such kernel"):
        list(rivals.in_a_child(broken, 20.0))
    assert list(rivals.in_a_child(lambda: iter([1, 2]), 20.0)) == [1, 2]


def test_the_first_good_attempt_counts():
    def attempts(arena):
        yield Attempt(1.0, 1e-2)
        yield Attempt(2.0, 1e-4)
        yield Attempt(3.0, 1e-6)

    def poor(arena):
        yield Attempt(1.0, 1e-2)
        raise ArithmeticError("lost")

    here = Arena(Problem(GRAMS, Y, "hinge", BlockL1()), K, 0.0)
    rival = Competitor("rival", "numpy", lambda problem: "", attempts)
    assert rivals.measure(rival, here, 20.0) == Attempt(2.0, 1e-4)
    weak = replace(rival, attempts=poor, why_not=lambda p: "" if p.grams.n > 6 else "-")
    found = rivals.measure(weak, here, 20.0)
    assert found.gap == 1e-2 and "lost" in found.note
