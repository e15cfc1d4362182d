"""The choice of C: no solution along the path is better by more than δ."""

from __future__ import annotations

import numpy as np
import pytest

import mklopt
from mklopt import Problem
from mklopt import formulations as F
from mklopt.tasks.epsilon_path import at_C


def task(loss="logistic", formulation=None, bias=True, n=60):
    """Two Gaussian kernels of noisy points; half of the samples are held out."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2 * n, 2))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=2 * n) > 0, 1.0, -1.0)
    squares = (X[:, None] - X[None]) ** 2
    K = np.exp(-np.stack([squares.sum(axis=2), squares[:, :, 0]]) / 2)
    inside, held = slice(0, n), slice(n, None)
    p = Problem(
        K[:, inside, inside], y[inside], loss, formulation or F.LpNorm(2), bias=bias
    )
    return p, K[:, held, inside], y[held], np.ones((2, n))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_no_solution_is_better_by_more_than_delta(loss, bias):
    p, cross, y, diagonals = task(loss, bias=bias)
    path = mklopt.path(p, [0.05, 2.0], everywhere=1e-4)
    found = path.choose(cross, y, diagonals)
    assert found.error == np.mean(y * found.result.decision(cross) <= 0)
    assert 0 <= found.delta < found.error  # something is proved
    assert path.C[0] <= found.C <= path.C[-1]
    start = None
    for C in np.geomspace(0.05, 2.0, 20):
        start = mklopt.solve(at_C(p, C), tol=1e-9, start=start)
        error = np.mean(y * start.decision(cross) <= 0)
        [(_, _, least)] = [b for b in found.bounds if b[0] <= C <= b[1]][:1]
        assert least <= error and found.error - found.delta <= error


def test_a_smaller_epsilon_proves_more():
    p, cross, y, diagonals = task("squared")
    p = p.with_(loss="logistic")
    deltas = [
        mklopt.path(p, [0.1, 0.5], everywhere=e).choose(cross, y, diagonals).delta
        for e in (1e-2, 1e-4)
    ]
    assert deltas[1] < deltas[0]


def test_without_strong_convexity_delta_is_the_error():
    p, cross, y, diagonals = task(formulation=F.GroupLasso())
    found = mklopt.path(p, span=3.0, everywhere=1e-2).choose(cross, y, diagonals)
    assert found.delta == found.error > 0


def test_wrong_samples_give_a_sentence():
    p, cross, y, diagonals = task()
    path = mklopt.path(p, [0.1, 0.2], everywhere=1e-2)
    with pytest.raises(ValueError, match="diagonals has shape"):
        path.choose(cross, y, diagonals[:, :3])
    with pytest.raises(ValueError, match=r"labels −1/\+1"):
        path.choose(cross, 0 * y, diagonals)
