"""Solvers of one's own: every form is run and certified; bad answers are named."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem
from mklopt.formulations import LpNorm
from mklopt.run.own_solver import BadAnswer, as_solver, point_of
from mklopt.solvers import Iterate

RNG = np.random.default_rng(2)
L = RNG.normal(size=(3, 20, 4))
Y = np.sign(L[0, :, 0] + 0.3 * RNG.normal(size=20))
PROBLEM = Problem(GramStack(L @ L.transpose(0, 2, 1)), Y, "hinge", LpNorm(p=2), C=2.0)


def pair(problem, tol=1e-9):
    found = mklopt.solve(problem, "analytic", tol=tol)
    return found.weights, found.dual


def alone(problem):
    return pair(problem)[0]


def walks(problem):
    weights, dual = pair(problem)
    certificate = yield Iterate(dual=0.5 * dual, weights=weights)
    assert certificate.relative_gap > 1e-3
    yield Iterate(dual=dual, weights=weights)


class Fits:
    """Like an estimator of scikit-learn, with the kernels in place of X."""

    def fit(self, K, y, sample_weight=None):
        problem = PROBLEM.with_(grams=GramStack(np.asarray(K)), y=y)
        self.weights_, dual = pair(problem)
        self.support_ = np.flatnonzero(dual)
        self.dual_coef_ = dual[None, self.support_]
        return self


class FitsProblem:
    def fit(self, problem):
        self.weights, self.dual = pair(problem)


FORMS: list[Any] = [pair, alone, walks, Fits(), Fits, FitsProblem()]
NAMES = ["pair", "alone", "walks", "object", "class", "object of a problem"]


@pytest.mark.parametrize("given", FORMS, ids=NAMES)
def test_every_form_is_solved_and_certified(given):
    result = mklopt.solve(PROBLEM, given, tol=1e-6)
    assert result.converged and result.relative_gap < 1e-6
    again = mklopt.certify(PROBLEM, dual=result.dual, weights=result.weights)
    assert again.relative_gap == result.relative_gap


def test_options_go_to_the_function():
    assert mklopt.solve(PROBLEM, pair, tol=1e-6, max_iter=3).solver == "pair"
    assert as_solver(pair).options() == {"tol": 1e-9}
    with pytest.raises(ValueError, match="pair has no option step; it has: tol"):
        mklopt.solve(PROBLEM, pair, step=1)


def test_a_module_and_a_name_are_imported(tmp_path, monkeypatch):
    (tmp_path / "my_own_solver.py").write_text(
        "import mklopt\n"
        "def solve(problem):\n"
        "    found = mklopt.solve(problem, tol=1e-9)\n"
        "    return found.weights, found.dual\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    result = mklopt.solve(PROBLEM, "my_own_solver:solve")
    assert result.converged and result.solver == "my_own_solver:solve"
    with pytest.raises(ValueError, match="has no 'other'"):
        mklopt.solve(PROBLEM, "my_own_solver:other")


@pytest.mark.parametrize(
    "returned, words",
    [
        ((np.zeros(20), np.ones(3)), r"return \(weights, dual\)"),
        (np.ones(4), r"an array \(4,\); expected \(3,\)"),
        ("nothing", "it returned a str"),
    ],
)
def test_what_is_no_answer_is_named(returned, words):
    with pytest.raises(BadAnswer, match=words):
        mklopt.solve(PROBLEM, lambda problem: returned)
    with pytest.raises(BadAnswer, match=words):
        point_of(returned, PROBLEM)


@pytest.mark.parametrize("part", [lambda found: found, lambda found: found[0]])
def test_a_generator_may_yield_what_a_function_returns(part):
    """A pair (weights, dual), or weights alone."""

    def pairs(problem):
        yield np.ones(3), problem.y * 1e-3  # not good enough
        yield part(pair(problem))

    result = mklopt.solve(PROBLEM, pairs, tol=1e-6)
    assert result.converged and len(result.trace) == 2


def test_a_generator_has_to_yield_points():
    def numbers(problem):
        yield 3

    with pytest.raises(BadAnswer, match="yielded a int; yield"):
        mklopt.solve(PROBLEM, numbers)


def test_what_is_no_solver_is_refused():
    with pytest.raises(ValueError, match="is not known"):
        mklopt.solve(PROBLEM, 3.0)
    with pytest.raises(ValueError, match="cannot be called with a problem alone"):
        mklopt.solve(PROBLEM, lambda: None)


def test_a_race_takes_them_by_name_and_leaves_out_what_they_refuse():
    def picky(problem):
        raise NotImplementedError("only the squared loss")

    found = mklopt.race(PROBLEM, {"mine": pair, "other": picky, "silp": "silp"})
    assert found.solvers == ["mine", "silp"]
    assert found.left_out == {"other on problem": "only the squared loss"}
    assert all(run.result.converged for run in found.runs)
    with pytest.raises(ValueError, match="same name"):
        mklopt.race(PROBLEM, [pair, pair])
    with pytest.raises(BadAnswer):
        mklopt.race(PROBLEM, {"bad": lambda problem: "nothing"})
