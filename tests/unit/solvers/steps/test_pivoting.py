"""Quadratic programs in the weights, against an interior-point method and by KKT."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.solvers.steps import pivoting
from mklopt.solvers.steps.pivoting import _by_cones, minimum


@pytest.mark.parametrize("groups", [0, 1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_pivoting_finds_what_the_interior_point_method_finds(groups, seed):
    rng = np.random.default_rng(seed)
    M = 30
    B = rng.normal(size=(M, 12 if seed % 2 else 40))
    H = B @ B.T + 1e-6 * np.eye(M)
    slope, theta = rng.normal(size=M), rng.uniform(size=M) * (rng.uniform(size=M) > 0.5)
    owner = np.arange(M) % groups if groups else None
    z = minimum(H, slope, theta, owner)
    E = np.zeros((0, M)) if owner is None else np.eye(groups)[:, owner]
    other = _by_cones(H, slope - H @ theta, E, theta)
    value = [
        slope @ (x - theta) + 0.5 * (x - theta) @ H @ (x - theta) for x in (z, other)
    ]
    assert np.all(z >= 0) and np.allclose(E @ z, 1)
    assert value[0] <= value[1] + 1e-8 * (1 + abs(value[1]))
    multipliers = slope + H @ (z - theta)
    if owner is None:  # KKT, exactly: zeros are zeros
        assert np.all(multipliers[z == 0] >= -1e-8)
        assert np.allclose(multipliers[z > 0], 0, atol=1e-7)
    else:
        for j in range(groups):
            mine = multipliers[owner == j]
            assert np.ptp(mine[z[owner == j] > 0]) <= 1e-7
            assert np.min(mine) >= np.max(mine[z[owner == j] > 0]) - 1e-7


def test_where_pivoting_fails_the_interior_point_method_takes_over(monkeypatch):
    H, slope, theta = np.eye(3), np.array([-1.0, 2.0, -3.0]), np.ones(3)
    expected = minimum(H, slope, theta)
    np.testing.assert_allclose(expected, [2.0, 0.0, 4.0], atol=1e-12)
    monkeypatch.setattr(pivoting, "MAX_ROUNDS", 0)
    np.testing.assert_allclose(minimum(H, slope, theta), expected, atol=1e-6)


def test_no_simplex_loses_all_of_its_weights():
    owner = np.array([0, 0, 1, 1])
    z = minimum(np.eye(4), np.array([5.0, 9.0, -1.0, 0.0]), np.zeros(4), owner)
    np.testing.assert_allclose(z, [1.0, 0.0, 1.0, 0.0], atol=1e-12)
