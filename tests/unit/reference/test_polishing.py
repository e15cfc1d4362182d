"""Polishing: Newton's method brings a good reference to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import Problem, reference
from mklopt.formulations import FixedWeights, GroupLasso, LpNorm
from mklopt.reference.contract_problems import load
from mklopt.reference.polishing import newton, newton_svm

GRAMS, TARGETS = load("small")


def test_newton_squares_the_error():
    x = newton(lambda x: x**2 - np.array([4.0, 9.0]), np.array([2.1, 2.8]))
    np.testing.assert_allclose(x, [2.0, 3.0], rtol=1e-14)
    with pytest.raises(FloatingPointError, match="range"):
        newton(lambda x: np.full(1, np.nan), np.ones(1))


def test_the_svm_of_the_squared_loss_is_a_linear_system():
    """f = Kα + b, α = C (y − f), Σα = 0."""
    K, y = GRAMS.combine(np.ones(6)), TARGETS["real"]
    problem = Problem(GRAMS, y, "squared", FixedWeights(np.ones(6)), C=2.0)
    system = np.block([[K + 0.5 * np.eye(40), np.ones((40, 1))],
                       [np.ones((1, 40)), np.zeros((1, 1))]])  # fmt: skip
    exact = np.linalg.solve(system, np.append(y, 0.0))[:40]
    found = newton_svm(problem, K, np.zeros(40))
    np.testing.assert_allclose(found, exact, atol=1e-10)


@pytest.mark.parametrize("formulation", [LpNorm(4 / 3), GroupLasso()], ids=repr)
def test_polishing_narrows_the_interval(formulation):
    problem = Problem(GRAMS, TARGETS["binary"], "hinge", formulation)
    rough = reference.solve(problem, solver="CLARABEL", options={"tol_gap_rel": 1e-6})
    sharp = reference.polish(problem, rough)
    assert sharp.relative_gap <= 1e-11 < 1e-9 < rough.relative_gap
    assert rough.lower <= sharp.lower <= sharp.upper <= rough.upper
    again = reference.solve_sharply(problem)
    np.testing.assert_allclose(again.predictions, sharp.predictions, atol=1e-8)
    np.testing.assert_allclose(again.weights, sharp.weights, atol=1e-8)


def test_what_cannot_be_polished_comes_back_as_it_was():
    several = Problem(GRAMS, TARGETS["classes"], "multinomial", LpNorm(2.0))
    found = reference.solve(several, tol=1e-6)
    assert reference.polish(several, found) is found
    nothing = reference.Reference(found.certificate, np.zeros(6), found.dual)
    one = Problem(GRAMS, TARGETS["binary"], "hinge", LpNorm(2.0))
    assert reference.polish(one, nothing) is nothing
