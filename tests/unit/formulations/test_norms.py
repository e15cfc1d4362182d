"""Block norms: values, gradients, roots, and prox by stationarity."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import expit

from mklopt.formulations.norms import (
    block_exponent,
    declared_norm,
    declared_quadratic,
    dual_exponent,
    increasing_root,
    line_minimum,
    newton_root,
    norm,
    norm_gradient,
    positive_root,
    power_step,
    prox_norm,
    prox_power,
    prox_power_slope,
    ratio,
)

INF = math.inf
RNG = np.random.default_rng(0)
U = RNG.uniform(0.2, 3.0, 5)
STEP = RNG.uniform(0.1, 1.0, 5)


def test_exponents():
    assert [dual_exponent(q) for q in (1, 4 / 3, 2, INF)] == [
        INF,
        pytest.approx(4),
        2,
        1,
    ]
    assert [block_exponent(p) for p in (1, 2, INF)] == [1, pytest.approx(4 / 3), 2]


@pytest.mark.parametrize("q", [1, 1.3, 2, 7.0, INF])
def test_norms_and_their_gradients(q):
    assert norm(U, q) == pytest.approx(np.linalg.norm(U, q))
    assert norm(np.zeros(3), q) == 0
    assert norm(1e-200 * U, q) == pytest.approx(1e-200 * norm(U, q))
    g = norm_gradient(U, q)
    assert g @ U == pytest.approx(norm(U, q))  # Euler, of degree 1
    assert norm(g, dual_exponent(q)) == pytest.approx(1)
    variable = cp.Variable(5, nonneg=True)
    variable.value = U
    assert declared_norm(variable, q).value == pytest.approx(norm(U, q))


def test_the_declared_quadratic_is_half_the_sum_of_ratios():
    u, theta = cp.Variable(5), cp.Variable(5)
    half, cones = declared_quadratic(u, theta)
    given = [u == U, theta == STEP]
    found = cp.Problem(cp.Minimize(half), [*cones, *given]).solve(solver=cp.CLARABEL)
    assert found == pytest.approx(0.5 * np.sum(U**2 / STEP), rel=1e-6)


def test_ratios_at_zero_are_limits():
    u, slope = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 2.0, 0.0, 4.0])
    assert list(ratio(u, slope)) == [0.0, 0.0, INF, 0.25]


def test_roots():
    target = np.array([0.3, 5.0])
    low, high = np.zeros(2), np.full(2, 10.0)
    cubic = lambda x: x**3 - target  # noqa: E731
    assert increasing_root(cubic, low, high) == pytest.approx(np.cbrt(target))
    both = lambda x: (cubic(x), 3 * x**2)  # noqa: E731
    assert newton_root(both, low, high) == pytest.approx(np.cbrt(target), rel=1e-14)
    assert positive_root(lambda x: x - 1e-9, 1.0) == pytest.approx(1e-9)
    assert positive_root(lambda x: x, 1.0) == 0.0


def test_newton_does_not_run_in_cycles():
    """x − 30 expit(−x) from −15: plain Newton steps from −15 to 15 and back."""

    def function(x):
        s = expit(-x)
        return x + 15 - 30 * s, 1 + 30 * s * (1 - s)

    found = newton_root(function, np.array([-15.0]), np.array([15.0]))
    assert abs(function(found)[0][0]) < 1e-12


@pytest.mark.parametrize("q", [1.0, 1.001, 1.5, 2.0, 5.0])
def test_power_steps_solve_their_equation(q):
    u, weight = np.array([0.0, 1e-8, 0.7, 40.0]), np.array([0.3, 0.2, 0.1, 5.0])
    z = power_step(u, weight, q)
    assert np.all(z >= 0) and z[0] == 0
    if q > 1:
        back = z + weight * z ** (q - 1)
        used = z > 1e-300  # with q next to 1 small u gives less than floats hold
        assert back[used] == pytest.approx(u[used], rel=1e-12)
    else:
        assert z == pytest.approx(np.maximum(u - weight, 0))


@pytest.mark.parametrize("k, c", [(2.0, 1.0), (4 / 3, 1.7)])
@pytest.mark.parametrize("q", [1.0, 1.2, 4 / 3, 1.7, 2.0, 3.0])
def test_prox_of_a_power_is_stationary_and_its_slope_is_its_slope(q, k, c):
    z = prox_power(U, STEP, q, k, c)
    N, used = norm(z, q), z > 0
    slope = c * N ** (k - 1) * norm_gradient(z, q)
    assert (U - z)[used] / STEP[used] == pytest.approx(slope[used], rel=1e-10)
    assert np.all(U[~used] <= (STEP * slope)[~used] * (1 + 1e-12))
    h, J = 1e-6, prox_power_slope(z, STEP, q, k, c)
    for column, m in enumerate(np.flatnonzero(used)):
        move = h * np.eye(5)[m]
        ahead, back = (prox_power(U + s * move, STEP, q, k, c) for s in (1, -1))
        assert J[:, column] == pytest.approx((ahead - back)[used] / (2 * h), abs=1e-6)


def test_prox_takes_one_step_for_all_and_starts_at_zero():
    same = prox_power(U, np.full(5, 0.4), 1.5)
    assert prox_power(U, 0.4, 1.5) == pytest.approx(same, rel=1e-15)
    assert not np.any(prox_norm(np.zeros(5), 0.4, 1.5, lambda N: N))
    assert prox_power_slope(np.zeros(5), 0.4, 1.5).shape == (0, 0)


@pytest.mark.parametrize("far", [1e-3, 0.7, 40.0, 1e6])
def test_the_minimum_on_a_line(far):
    """Also far beyond the first step, where no upper end is known yet."""
    slopes = lambda t: (np.arctan(t - far), 1 / (1 + (t - far) ** 2))  # noqa: E731
    first = abs(np.arctan(-far))
    assert abs(np.arctan(line_minimum(slopes) - far)) <= 1e-3 * first
