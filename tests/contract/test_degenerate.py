"""Inputs at the edge: a right answer or a clear error, never a hang, never a lie."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem, solve
from mklopt.formulations import GroupLasso, LpNorm
from mklopt.solvers import solvers, that_can
from tests.stopwatch import stopwatch

rng = np.random.default_rng(11)
X = rng.normal(size=(40, 4))
Y = np.where(X[:, 0] + 0.3 * rng.normal(size=40) > 0, 1.0, -1.0)


def gaussian(X, width=1.0):
    return np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / (2 * width**2))


K = np.stack([gaussian(X, w) for w in (0.5, 1.0, 2.0, 5.0)])
TWICE = np.concatenate([X[:20], X[:20]])
FLIPPED = np.concatenate([Y[:20], -Y[:20]])
CASES = {
    "p-1": (K, Y, LpNorm(1.0), 1.0),
    "p-1.01": (K, Y, LpNorm(1.01), 1.0),
    "p-64": (K, Y, LpNorm(64.0), 1.0),
    "p-inf": (K, Y, LpNorm(np.inf), 1.0),
    "group-lasso": (K, Y, GroupLasso(), 1.0),
    "one-kernel": (K[:1], Y, LpNorm(2.0), 1.0),
    "one-kernel-sparse": (K[:1], Y, LpNorm(1.0), 1.0),
    "identical-kernels": (np.stack([K[1]] * 4), Y, LpNorm(2.0), 1.0),
    "identical-kernels-sparse": (np.stack([K[1]] * 4), Y, LpNorm(1.0), 1.0),
    "a-zero-kernel": (np.concatenate([K, 0 * K[:1]]), Y, LpNorm(2.0), 1.0),
    "a-zero-kernel-sparse": (np.concatenate([K, 0 * K[:1]]), Y, LpNorm(1.0), 1.0),
    "only-zero-kernels": (0 * K, Y, LpNorm(2.0), 1.0),
    "only-zero-kernels-sparse": (0 * K, Y, LpNorm(1.0), 1.0),
    "duplicated-points": (gaussian(TWICE)[None], FLIPPED, LpNorm(2.0), 1.0),
    "n-2": (K[:, :2, :2], np.array([1.0, -1.0]), LpNorm(2.0), 1.0),
    "n-2-sparse": (K[:, :2, :2], np.array([1.0, -1.0]), LpNorm(1.0), 1.0),
    "C-1e-6": (K, Y, LpNorm(2.0), 1e-6),
    "C-1e-6-sparse": (K, Y, LpNorm(1.0), 1e-6),
    "C-1e6": (K, Y, LpNorm(2.0), 1e6),
    "C-1e6-sparse": (K, Y, LpNorm(1.0), 1e6),
    "kernels-of-size-1e8": (1e8 * K, Y, LpNorm(2.0), 1.0),
    "kernels-of-size-1e-8": (1e-8 * K, Y, LpNorm(2.0), 1.0),
}


def pairs():
    for name, (kernels, y, formulation, C) in CASES.items():
        problem = Problem(GramStack(kernels), y, "hinge", formulation, C)
        for solver in that_can(problem):
            yield pytest.param(problem, solver, id=f"{name}-{solver}")


@pytest.mark.parametrize("problem, solver", list(pairs()))
def test_a_right_answer_in_time(problem, solver):
    tol = max(1e-6, solvers()[solver].promise(problem))
    solve(problem, solver, tol=tol, time_limit=15.0)  # compiles
    seconds = stopwatch()
    result = solve(problem, solver, tol=tol, time_limit=1.0)
    assert seconds() < 2.0
    assert result.relative_gap >= 0
    assert result.certificate.lower <= result.certificate.upper
    if result.status == "time_limit":  # a busy machine: it may go on, but must arrive
        result = solve(problem, solver, tol=tol, start=result, time_limit=15.0)
    if result.status == "rounding":  # the computed gap is small, but not proved to be
        assert result.relative_gap <= tol < result.certificate.width, result
    else:
        assert result.status == "converged", result


@pytest.mark.parametrize(
    "kernels, y, words",
    [
        (K, np.ones(40), "only the label"),
        (K, (Y + 1) / 2, "pass 2"),
        (np.where(K[1, 2, 3] == K, np.nan, K), Y, "kernel 1 has NaN"),
        (K, np.where(np.arange(40) == 3, np.nan, Y), "label|NaN"),
    ],
)
def test_a_clear_error(kernels, y, words):
    with pytest.raises(ValueError, match=words):
        Problem(kernels, y, "hinge", LpNorm(2.0))


def test_regression_at_its_edges():
    """Constant targets, and a tube wide enough for all of them."""
    for y in (np.zeros(40), np.full(40, 3.0), 0.01 * X[:, 0]):
        problem = Problem(K, y, "eps_insensitive", LpNorm(2.0), 1.0)
        for solver in that_can(problem):
            found = solve(problem, solver, tol=1e-6, time_limit=1.0)
            assert found.certificate.primal <= 1e-9, solver
