"""α of the SVM at fixed weights is certified for these weights, for every loss."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import certify, kernels
from mklopt.formulations import LpNorm
from mklopt.formulations.fixed_weights import FixedWeights
from mklopt.problem import Problem
from mklopt.solvers.machines.at_weights import dual_at_weights

THETA = np.array([0.3, 0.0, 0.5])


def problem(loss: str) -> Problem:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3))
    y = np.sign(X[:, 0] + 0.2 * rng.normal(size=30))
    y = (y > 0).astype(int) if loss.startswith("multi") else y
    grams = kernels.gaussians([0.5, 1, 3]).fit(X).grams()
    return Problem(grams, y, loss, LpNorm(p=2), C=2.0)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared", "multiclass_hinge"])
def test_it_solves_the_svm_at_these_weights(loss):
    given = problem(loss)
    fixed = given.with_(formulation=FixedWeights(THETA))
    alpha = dual_at_weights(given, THETA)
    assert certify(fixed, dual=alpha, weights=THETA).relative_gap < 1e-10


def test_a_loss_without_an_inner_solver_is_refused():
    with pytest.raises(ValueError, match="give α as well"):
        dual_at_weights(problem("multinomial"), THETA)


def test_without_weights_alpha_is_zero():
    assert not np.any(dual_at_weights(problem("hinge"), np.zeros(3)))
