"""What solvers state, and how they are registered."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem, certify
from mklopt.formulations import GroupLasso, LpNorm
from mklopt.solvers import Iterate, find, solver, solvers, that_can
from mklopt.solvers.base import (
    KEEPS,
    REGISTRY,
    Solver,
    certify_iterate,
    up_to_C,
)
from tests.problems import subset_gaussians

K, Y = subset_gaussians(30, 3)


def problem(loss="hinge", formulation=None, C=1.0, bias=True) -> Problem:
    return Problem(GramStack(K), Y, loss, formulation or LpNorm(2.0), C, bias)


@pytest.fixture
def registered():
    """A solver that exists for one test only."""

    @solver("temporary", needs={"simplex or orthant"}, losses={"hinge"}, bias={True},
            accuracy=up_to_C(10.0, 1e-3), about="One line.\nAnother.")  # fmt: skip
    def temporary(problem, *, rng, start=None, speed=3):
        yield Iterate(np.zeros(problem.shape), np.zeros(problem.grams.M))

    yield temporary
    REGISTRY.pop("temporary")


def test_a_registered_solver_says_what_it_is(registered):
    assert isinstance(registered, Solver) and solvers()["temporary"] is registered
    assert registered.about == "One line." and registered.draws
    assert registered.options() == {"speed": 3}
    assert not find("hessian", problem(formulation=LpNorm(1.0))).draws
    assert registered.promise(problem(C=10.0)) == 1e-3
    assert registered.promise(problem(C=11.0)) == math.inf


def test_it_says_why_it_cannot_solve_a_problem(registered):
    lasso = GroupLasso()
    assert registered.why_not(problem(formulation=lasso)) == ""
    assert "temporary" in that_can(problem(formulation=lasso))
    why = registered.why_not(problem())
    assert why.startswith("LpNorm does not state a simplex") and " or " in why
    other = problem("logistic", lasso)
    assert registered.why_not(other) == "it has no step for the logistic loss"
    without = problem(formulation=lasso, bias=False)
    assert registered.why_not(without) == "it needs bias=True"
    with pytest.raises(ValueError, match="did you mean 'hessian'"):
        find("hesian", problem())


def test_the_defaults_of_a_registration():
    @solver("plain")
    def plain(problem):
        yield

    try:
        assert plain.bias == {True, False} and plain.losses == {"quadratic"}
        assert plain.needs == frozenset() and plain.promise(problem()) == 1e-6
        assert plain.about == __doc__.split("\n")[0]
    finally:
        REGISTRY.pop("plain")


def test_iterates_may_be_functions_and_are_certified_the_same():
    p, theta = problem(), np.array([0.5, 0.2, 0.1])
    alpha = p.feasible(0.1 * Y)
    B = np.multiply.outer(theta, alpha)
    plain = certify(p, dual=alpha, weights=theta)
    for iterate in (
        Iterate(alpha, theta),
        Iterate(lambda: alpha, coefficients=lambda: B),
        Iterate(alpha, coefficients=B, bias=99.0),
    ):
        found = certify_iterate(p, iterate)
        assert found.primal == pytest.approx(plain.primal, rel=1e-12)
        assert found.dual == pytest.approx(plain.dual, rel=1e-12)


def test_a_solver_that_keeps_too_much_says_so(monkeypatch):
    p = Problem(GramStack(np.stack([np.eye(4)] * 3)), [1, -1, 1, -1], "hinge", LpNorm())
    for keeps, numbers in (("blocks", 12), ("squares", 9), ("full", 48)):
        able: Any = replace(REGISTRY["analytic"], keeps=keeps)
        kept = KEEPS[keeps]
        assert kept.numbers(p.grams) == numbers and able._too_large(p) == ""
        monkeypatch.setitem(KEEPS, keeps, kept._replace(most=numbers - 1))
        assert able._too_large(p).startswith(f"it keeps {kept.words}, here ")
    with pytest.raises(
        ValueError, match=r"it keeps arrays of M × n.*these can: .*active"
    ):
        find("spicy", p.with_(formulation=GroupLasso()))
    with pytest.raises(ValueError, match="it keeps all kernels in full"):
        find("interleaved", p)
    assert "analytic" in that_can(p) and "spicy" not in that_can(p)
