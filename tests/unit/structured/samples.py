"""Sequences that the tests of structured outputs share."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from mklopt import StructuredProblem, kernels
from mklopt.structured.chains import Chain


def sequences(count, lengths, labels, seed, noise=1.0):
    """A Markov chain that mostly counts up, seen through noise in one of three views"""
    rng = np.random.default_rng(seed)
    y: list[int] = []
    parts = []
    for T in rng.integers(lengths[0], lengths[1] + 1, size=count):
        state = int(rng.integers(labels))
        parts.append(np.arange(len(y), len(y) + T))
        for _ in range(T):
            y.append(state)
            state = (state + 1 if rng.random() < 0.8 else rng.integers(labels)) % labels
    views = {
        "signal": 2 * np.eye(labels)[y] + noise * rng.normal(size=(len(y), labels)),
        "noise": rng.normal(size=(len(y), 3)),
        "more noise": rng.normal(size=(len(y), 3)),
    }
    return views, np.array(y), parts


@lru_cache
def small(q=1.5):
    """Four sequences of three parts, two labels: eight outputs each."""
    views, y, parts = sequences(4, (3, 3), 2, seed=0)
    grams = kernels.views(kernels.gaussians("mean"), views).fit(views).grams()
    return StructuredProblem(grams, y, parts, Chain(2), q=q, C=0.7)


@lru_cache
def optimum(q=1.5) -> float:
    """The same problem as one conic program with a constraint for each output."""
    import cvxpy as cp

    problem = small(q)
    n, M, slack = problem.grams.n, problem.grams.M, cp.Variable(len(problem.parts))
    factors = [np.linalg.cholesky(problem.grams.kernel(m)) for m in range(M)]
    W, w = [cp.Variable((n, 2)) for _ in range(M)], cp.Variable(4)
    F = sum(L @ V for L, V in zip(factors, W))
    constraints = []
    for i, part in enumerate(problem.parts):
        truth = problem.truth(i)
        for y in np.ndindex(2, 2, 2):
            f = sum(F[t, a] - F[t, b] for t, a, b in zip(part, y, truth))
            for z, sign in ((y, 1), (truth, -1)):
                f = f + sum(sign * w[2 * a + b] for a, b in pairwise(z))
            wrong = sum(a != b for a, b in zip(y, truth))
            constraints.append(slack[i] >= wrong + f)
    u = cp.hstack([*(cp.norm(V, "fro") for V in W), cp.norm(w)])
    penalty = 0.5 * cp.square(cp.pnorm(u, q, approx=False))
    objective = cp.Minimize(problem.C * cp.sum(slack) + penalty)
    return float(cp.Problem(objective, constraints).solve(solver="CLARABEL"))
