"""Dual feasibility: restored in floats, exact on the grid."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mklopt.formulations import losses_by_name
from mklopt.formulations.losses.domains import Box, Simplex, project_simplex

SEEDS = st.integers(0, 10_000)


def exact_sum(alpha: np.ndarray) -> list[Fraction]:
    columns = alpha.reshape(len(alpha), -1).T
    return [
        sum((Fraction(float(x)) for x in column), Fraction(0)) for column in columns
    ]


@pytest.mark.parametrize("name", ["hinge", "quantile", "eps_insensitive", "squared"])
@given(seed=SEEDS)
def test_box_restores_and_is_exact_on_the_grid(name, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    C = (
        10.0 ** rng.uniform(-6, 6, size=n)
        if seed % 2
        else np.full(n, 10.0 ** (seed % 7))
    )
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    domain = losses_by_name()[name]().domain(y)
    assert isinstance(domain, Box)
    low, high = domain.ends(C)
    alpha = rng.normal(size=n) * C * 10.0 ** rng.integers(-3, 2)
    near = domain.restore(alpha, C, bias=True)
    assert np.all(near >= low) and np.all(near <= high)
    assert abs(np.sum(near)) <= 1e-9 * np.sum(np.abs(near))
    exact = domain.exact(alpha, C, bias=True)
    assert exact_sum(exact) == [0]
    for value, bound_low, bound_high, cost in zip(exact, domain.low, domain.high, C):
        if np.isfinite(bound_low):
            assert Fraction(float(value)) >= -Fraction(float(cost)) * Fraction(
                bound_high
            )
            assert Fraction(float(value)) <= -Fraction(float(cost)) * Fraction(
                bound_low
            )
    np.testing.assert_allclose(exact, near, atol=1e-9 * np.max(np.abs(near)))


def test_a_feasible_point_is_left_alone():
    domain = losses_by_name()["hinge"]().domain(np.array([1.0, -1.0, 1.0]))
    alpha = np.array([0.25, -0.75, 0.5])
    np.testing.assert_array_equal(domain.restore(alpha, np.ones(3), bias=True), alpha)
    np.testing.assert_array_equal(domain.exact(alpha, np.ones(3), bias=True), alpha)


def test_one_sided_candidates_become_zero_rather_than_infeasible():
    domain = Box(np.array([-1.0, -1.0]), np.zeros(2))  # both α ≥ 0: only 0 sums to 0
    np.testing.assert_allclose(
        domain.restore(np.array([0.3, 0.4]), np.ones(2), True), 0, atol=1e-15
    )
    assert exact_sum(domain.exact(np.array([0.3, 0.4]), np.ones(2), True)) == [0]


@given(seed=SEEDS)
def test_simplex_restores_and_is_exact_on_the_grid(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(4, 40)), int(rng.integers(2, 6))
    y = np.r_[np.arange(k), rng.integers(0, k, size=max(0, n - k))]
    C = 10.0 ** rng.uniform(-3, 3, size=len(y))
    domain = Simplex(y, k)
    alpha = rng.normal(size=(len(y), k)) * C[:, None]
    near = domain.restore(alpha, C, bias=True)
    mass = domain.mass(near, C)
    assert np.all(mass >= -1e-9 * C[:, None])
    np.testing.assert_allclose(np.sum(near, axis=1), 0, atol=1e-9 * np.max(C))
    exact = domain.exact(alpha, C, bias=True)
    assert exact_sum(exact) == [0] * k
    for row, label, cost in zip(exact, y, C):
        parts = [Fraction(float(x)) for x in row]
        assert sum(parts) == 0 and parts[label] <= Fraction(float(cost))
        assert all(p <= 0 for j, p in enumerate(parts) if j != label)


def test_nearly_balanced_classes_lose_little():
    """Repair is proportional to the imbalance, as the gap needs it to be."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 4, size=60)
    domain, C = Simplex(y, 4), np.ones(60)
    feasible = domain.restore(rng.normal(size=(60, 4)), C, bias=True)
    for size in (1e-3, 1e-6, 1e-9):
        disturbed = feasible * (1 + size * rng.normal(size=feasible.shape))
        repaired = domain.restore(disturbed, C, bias=True)
        assert np.max(np.abs(repaired - feasible)) <= 100 * size


@given(seed=SEEDS)
def test_simplex_projection_is_the_nearest_point(seed):
    rng = np.random.default_rng(seed)
    rows, total = rng.normal(size=(5, 4)), rng.uniform(0.1, 3, size=5)
    found = project_simplex(rows, total)
    np.testing.assert_allclose(np.sum(found, axis=1), total)
    assert np.all(found >= 0)
    other = rng.dirichlet(np.ones(4), size=5) * total[:, None]
    slack = np.sum((rows - found) * (other - found), axis=1)
    assert np.all(slack <= 1e-12)  # the obtuse angle that characterizes projections


def test_the_grid_leaves_room_for_moving_the_surplus():
    """Integers beyond 2^53 would be rounded and the sum no longer exactly 0."""
    y = np.array([-1.0, 1.0, -1.0, 1.0])
    domain = losses_by_name()["hinge"]().domain(y)
    for seed in range(300):
        tiny = np.random.default_rng(seed).integers(1, 6, size=4) * 2.0**-53
        exact = domain.exact(y * (1 - tiny), np.full(4, 10.0), bias=True)
        assert exact_sum(exact) == [0]


def test_the_ends_of_the_quantile_interval_hold_as_real_numbers():
    rng = np.random.default_rng(0)
    for _ in range(300):
        tau, C = float(rng.uniform()), float(rng.uniform(0.1, 10))
        domain = losses_by_name()["quantile"](tau).domain(np.zeros(2))  # type: ignore[call-arg]
        exact = domain.exact(np.array([-99.0, 99.0]), np.full(2, C), bias=False)
        assert Fraction(float(exact[0])) >= -Fraction(C) * (1 - Fraction(tau))
        assert Fraction(float(exact[1])) <= Fraction(C) * Fraction(tau)


def test_flows_of_any_size_between_classes_are_balanced_or_0():
    """C of samples may differ by more than the range of exp."""
    rng = np.random.default_rng(0)
    for spread in (50, 300, 600):
        for _ in range(50):
            y = np.r_[np.arange(4), rng.integers(0, 4, 4)]
            C = 10.0 ** rng.uniform(-min(spread, 320), spread / 2, 8)
            domain = Simplex(y, 4)
            alpha = domain.restore(C[:, None] * rng.normal(size=(8, 4)), C, bias=True)
            assert np.all(np.isfinite(alpha))
            off = np.abs(np.sum(alpha, axis=0))
            assert np.all(off <= 1e-9 * np.max(np.abs(alpha), initial=0.0))
            assert exact_sum(domain.exact(alpha, C, bias=True)) == [0] * 4
