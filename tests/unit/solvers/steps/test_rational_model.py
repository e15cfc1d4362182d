"""The model of J that is as 1/θ: its derivatives, and where it is exact."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.solvers.steps.pivoting import minimum
from mklopt.solvers.steps.rational_model import Rational, rational_minimum


def ridge(rank: int, count: int = 5, n: int = 12, seed: int = 0):
    """J(θ) = ½yᵀ(I + Σθ_mK_m)⁻¹y for kernels of a rank, with two derivatives."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(count, n, rank))
    K, y = L @ L.transpose(0, 2, 1), rng.normal(size=n)

    def at(theta):
        S = np.eye(n) + np.tensordot(theta, K, axes=1)
        alpha = np.linalg.solve(S, y)
        G = (K @ alpha).T
        H = G.T @ np.linalg.solve(S, G)
        return 0.5 * float(y @ alpha), 0.5 * alpha @ G, H, alpha, G, S

    return at


def test_it_is_exact_for_kernels_of_rank_one():
    """Also far away, also α: it is not a model then."""
    at, theta = ridge(1), np.full(5, 0.3)
    J, pull, H, alpha, G, S = at(theta)
    model = Rational(H, -pull, theta, pull)
    z = np.array([0.0, 3.0, 0.3, 7.0, 0.1])
    new, there, bend, moved, *_ = at(z)
    assert J + model.move(z) == pytest.approx(new, rel=1e-10)
    np.testing.assert_allclose(model.slope, -there, rtol=1e-8)
    np.testing.assert_allclose(model.bend, bend, rtol=1e-6, atol=1e-9 * np.trace(bend))
    predicted = alpha - np.linalg.solve(S, G) @ (model.share * (z - theta))
    np.testing.assert_allclose(predicted, moved, rtol=1e-8)


def test_slope_and_curvature_are_derivatives_of_the_value():
    at, theta = ridge(4), np.full(5, 0.3)
    _, pull, H, *_ = at(theta)
    model, c = Rational(H, 0.2 - pull, theta, pull), np.full(5, 0.2)
    z, h = np.array([0.5, 0.1, 0.0, 0.4, 1.0]), 1e-5
    base = model.move(theta)
    assert base == pytest.approx(float(c @ theta))
    model.move(z)
    slope, bend = model.slope, model.bend
    for m in range(5):
        step = h * np.eye(5)[m]
        up, more = model.move(z + step), model.slope
        down, less = model.move(z - step), model.slope
        assert (up - down) / (2 * h) == pytest.approx(slope[m], rel=1e-5, abs=1e-8)
        np.testing.assert_allclose((more - less) / (2 * h), bend[m], rtol=1e-4)


def test_of_kernels_of_any_rank_it_bounds_larger_weights_from_above():
    """K_m is at least its part of rank one, and J falls as K grows."""
    at, theta = ridge(6), np.full(5, 0.3)
    J, pull, H, *_ = at(theta)
    model = Rational(H, -pull, theta, pull)
    for seed in range(5):
        z = theta + np.random.default_rng(seed).exponential(size=5)
        assert at(z)[0] <= J + model.move(z) * (1 - 1e-12)


def test_where_j_is_as_one_over_theta_one_step_ends_at_the_minimum():
    b, c, theta = 1.0, 1.0, np.array([0.2])
    slope, curve = c - b / theta**2, np.array([[2 * b / theta[0] ** 3]])
    plain = minimum(curve, slope, theta)
    found, share = rational_minimum(curve, slope, theta, c - slope)
    assert plain[0] < 0.3 and found[0] == pytest.approx(1.0, rel=1e-3)
    assert share[0] == pytest.approx(0.2, rel=1e-3)


def test_on_simplices_the_sums_stay():
    at, theta = ridge(3), np.array([0.5, 0.5, 0.2, 0.2, 0.6])
    owner = np.array([0, 0, 1, 1, 1])
    _, pull, H, *_ = at(theta)
    found, _ = rational_minimum(H, -pull, theta, pull, owner)
    np.testing.assert_allclose(np.bincount(owner, found), 1.0, rtol=1e-12)
    assert np.all(found >= 0)


def test_kernels_without_any_pull_are_no_error():
    found, share = rational_minimum(
        np.diag([1.0, 0.0]), np.array([-0.5, 0.1]), np.zeros(2), np.array([0.6, 0.0])
    )
    assert found[0] > 0 and found[1] == 0 and np.all(np.isfinite(share))


def test_far_beyond_the_range_of_float64_the_value_is_not_finite_without_a_warning():
    model = Rational(np.eye(2), np.zeros(2), np.zeros(2), np.array([0.5, 1e-320]))
    assert np.isfinite(model.move(np.array([1.0, 1e290])))
    assert not np.isfinite(model.move(np.array([1.0, 1e305])))
