"""The model of a proximal Newton step: its derivatives, and its minimum."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import formulations as F
from mklopt.solvers.steps.feature_model import Model, minimum, penalty_gap

rng = np.random.default_rng(3)
RANKS = (2, 3, 1, 4)
OWNER = np.repeat(np.arange(4), RANKS)
A = rng.normal(size=(14, 10))
H = A.T @ A / 14
W, SLOPE = rng.normal(size=10), rng.normal(size=10)
THETA = np.array([0.5, 0.2, 1.0, 0.3])
EVERY = [F.LpNorm(1.0), F.LpNorm(2.0), F.LpNorm(4 / 3), F.VSKL(((0, 1), (2, 3)), 2.0)]


def model(formulation: F.Formulation, w=W) -> Model:
    return Model(formulation, OWNER, H, w, SLOPE)


def value(formulation: F.Formulation, d) -> float:
    """Ω(‖w + d‖) − hᵀd + ½dᵀHd, with nothing but the definition."""
    u = np.sqrt(np.bincount(OWNER, (W + d) ** 2))
    return float(formulation.value(u) - SLOPE @ d + 0.5 * d @ H @ d)


def J(theta) -> float:
    found = model(EVERY[0])
    found.solve(theta)
    return found.J


def test_the_solution_at_given_weights():
    """It solves the linear system, and J is its value up to ½Σu²/θ at d."""
    found = model(EVERY[0])
    found.solve(THETA)
    pull = 1 / THETA[OWNER]
    d = np.linalg.solve(H + np.diag(pull), SLOPE - pull * W)
    np.testing.assert_allclose(found.d, d, rtol=1e-9)
    w = W + d
    expected = 0.5 * np.sum(pull * w**2) - SLOPE @ d + 0.5 * d @ H @ d
    assert pytest.approx(expected, rel=1e-10) == found.J


def test_derivatives_agree_with_differences():
    found, e, eye = model(EVERY[0]), 1e-5, np.eye(4)
    found.solve(THETA)
    slope, hessian = -0.5 * found.v**2, found.hessian(np.arange(4))
    for m in range(4):
        ahead, back = J(THETA + e * eye[m]), J(THETA - e * eye[m])
        assert (ahead - back) / (2 * e) == pytest.approx(slope[m], rel=1e-6)
        found.solve(THETA + e * eye[m])
        up = -0.5 * found.v**2
        found.solve(THETA - e * eye[m])
        change = (up + 0.5 * found.v**2) / (2 * e)
        np.testing.assert_allclose(hessian[m], change, rtol=1e-5, atol=1e-8)


def test_a_kernel_of_weight_0_leaves():
    found = model(EVERY[0])
    found.solve(np.array([0.5, 0.0, 1.0, 0.0]))
    np.testing.assert_array_equal(found.w[np.isin(OWNER, [1, 3])], 0.0)
    pull = 1 / np.array([0.5, 1.0])[np.repeat([0, 1], [2, 1])]
    used = np.flatnonzero(np.isin(OWNER, [0, 2]))
    np.testing.assert_allclose(found.w[used] * pull, found.g[used], rtol=1e-9)


@pytest.mark.parametrize("formulation", EVERY, ids=repr)
def test_the_minimum(formulation):
    """No neighbour is better, and the decrease is what it says."""
    d, falls = minimum(model(formulation), np.full(4, 0.25), 1e-9)
    least = value(formulation, d)
    assert value(formulation, np.zeros(10)) - least == pytest.approx(falls, rel=1e-9)
    for size in (1e-1, 1e-3):
        for _ in range(20):
            assert value(formulation, d + size * rng.normal(size=10)) > least - 1e-8


def test_the_gap_of_a_penalty():
    """0 for weights and slopes that belong together; s makes the conjugate finite."""
    u = np.array([1.0, 2.0])
    assert penalty_gap(F.LpNorm(2.0), u, np.zeros(2), 0.0)[0] > 0
    lasso = F.GroupLasso()
    gap, s = penalty_gap(lasso, u, np.array([2.0, 1.0]), 4.0)
    assert s == pytest.approx(0.5) and gap == pytest.approx(lasso.value(u) - 2.0)
    assert penalty_gap(lasso, u, np.ones(2), 3.0)[0] == pytest.approx(0.0)
