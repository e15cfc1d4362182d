"""The move of SMO, part by part, and its sum: the solution of a quadratic program."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem
from mklopt.formulations import LpNorm
from mklopt.formulations.losses.residual import EpsInsensitive
from mklopt.problem import quadratic_dual
from mklopt.solvers.machines import smo

rng = np.random.default_rng(1)
X = rng.normal(size=(20, 2))
K = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2))
Y = np.where(X[:, 0] + 0.3 * rng.normal(size=20) > 0, 1.0, -1.0)


def problem(loss="hinge", bias=True, C=1.0) -> Problem:
    y = Y if loss == "hinge" else X[:, 0] ** 2
    return Problem(GramStack(K[None]), y, loss, LpNorm(2.0), C, bias)


def gradient(p: Problem, alpha: np.ndarray) -> np.ndarray:
    dual = quadratic_dual(p)
    return K @ alpha + dual.ridge * alpha - dual.linear


def objective(p: Problem, alpha: np.ndarray) -> float:
    return 0.5 * float(alpha @ K @ alpha) - p.dual_loss(alpha)


LOSSES = ["hinge", "squared", "huber", "quantile", EpsInsensitive(0.1)]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_gap_is_the_sum_of_fenchel_and_young(loss, bias):
    p = problem(loss, bias)
    alpha = p.feasible(0.3 * rng.normal(size=20))
    found, b = smo.inner_gap(*quadratic_dual(p), bias, alpha, gradient(p, alpha))
    f = K @ alpha + b
    primal = float(p.costs @ p.loss.value(f, p.y)) + 0.5 * float(alpha @ K @ alpha)
    assert found == pytest.approx(primal + objective(p, alpha), rel=1e-9)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_move_is_the_best_step_of_its_pair(loss, bias):
    """Its length is where the objective is lowest, or where the pair must end."""
    p = problem(loss, bias)
    _, kink, ridge, low, high = dual = quadratic_dual(p)
    alpha, diag = p.feasible(0.3 * rng.normal(size=20)), np.diag(K).copy()
    alpha = np.array(alpha)
    g = gradient(p, alpha)
    i, way, slope = smo.pick(g, kink, ridge, alpha, low, high, diag, bias)
    found = smo.mate(i, slope, g, kink, ridge, alpha, low, K[i], diag, bias)
    j, fall, bend = found
    assert (j == i) == (not bias)
    move = np.eye(20)[i] - (np.eye(20)[j] if bias else 0.0)
    assert bend == pytest.approx(float(move @ (K + np.diag(ridge)) @ move))
    reach = smo.longest(i, j, way, kink, low, high, alpha)
    step = min(fall / bend, reach)

    def moved(t):
        new = alpha.copy()
        smo.shift(i, j, way * t, low, high, new)
        return new

    best = objective(p, moved(step))
    assert best < objective(p, alpha)
    for t in (0.5 * step, 0.9 * step, min(1.1 * step, reach)):
        assert best <= objective(p, moved(t)) + 1e-12
    assert abs(np.sum(moved(step) - alpha)) <= (1e-12 if bias else np.inf)
    ends = np.maximum(dual.low, -1e9), np.minimum(dual.high, 1e9)
    assert np.all(moved(step) >= ends[0]) and np.all(moved(step) <= ends[1])


def test_the_bias_is_the_middle_of_what_the_free_slopes_allow():
    p = problem()
    dual = quadratic_dual(p)
    alpha = np.where(np.arange(20) % 3 == 0, 0.0, 0.5 * Y)
    g = gradient(p, alpha)
    up, down = -g[alpha < dual.high], -g[alpha > dual.low]
    _, b = smo.inner_gap(*dual, True, alpha, g)
    assert b == pytest.approx(0.5 * (np.max(up) + np.min(down)))


def test_a_step_ends_at_a_bound_or_at_a_kink():
    alpha, high = np.array([-0.3, 0.2, 0.5]), np.ones(3)
    kinks = np.array([0.1, 0.0, 0.1])
    reach = lambda i, way: smo.longest(i, i, way, kinks, -high, high, alpha)  # noqa: E731
    assert reach(0, 1.0) == 0.3 and reach(0, -1.0) == 0.7  # its kink is at 0
    assert reach(1, 1.0) == 0.8 and reach(1, -1.0) == 1.2  # no kink
    assert reach(2, 1.0) == 0.5 and reach(2, -1.0) == 0.5
    assert smo.longest(0, 1, 1.0, kinks, -high, high, alpha) == 0.3
    assert smo.longest(1, 2, 1.0, kinks, -high, high, alpha) == 0.5
    smo.shift(0, 2, 0.3, -high, high, alpha)
    np.testing.assert_array_equal(alpha, [0.0, 0.2, 0.2])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_moves_solve_the_program(loss, bias):
    p = problem(loss, bias)
    alpha = np.zeros(20)
    g = gradient(p, alpha)
    moves, gap, b = smo.smo(K, *quadratic_dual(p), bias, alpha, g, 1e-8, 100_000)
    assert 0 < moves < 100_000 and gap <= 1e-8
    np.testing.assert_allclose(g, gradient(p, alpha), atol=1e-9)
    assert (b == 0.0) == (not bias)
    few = smo.smo(K, *quadratic_dual(p), bias, np.zeros(20), gradient(p, 0 * alpha),
                  0.0, 3)  # fmt: skip
    assert few[0] == 3


@pytest.mark.parametrize("bias", [True, False])
def test_rows_of_all_kernels_keep_the_products(bias):
    stack, theta = np.stack([K, 0.5 * np.eye(20)]), np.array([0.7, 0.4])
    alpha, read = rng.normal(size=20), np.zeros(1)
    images = stack @ alpha
    g, row = theta @ images, np.empty(20)
    smo.combined_row(stack, read, theta, 3, row)
    np.testing.assert_allclose(row, theta @ stack[:, 3])
    j = 5 if bias else 3
    smo.add_rows(stack, read, theta, 3, j, 0.25, images, g)
    alpha[3] += 0.25
    if bias:
        alpha[5] -= 0.25
    np.testing.assert_allclose(images, stack @ alpha, atol=1e-12)
    np.testing.assert_allclose(g, theta @ images, atol=1e-12)
    assert read[0] == (3 if bias else 2)
