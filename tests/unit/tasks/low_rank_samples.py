"""Small problems with low-rank kernels, and the exact problems behind them."""

from __future__ import annotations

import numpy as np

from mklopt import Problem, kernels, solve
from mklopt.formulations import LpNorm

FAMILY = kernels.gaussians([0.8, 2, 5])


def points(n=160, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sign(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n))


def solved(way, n=160, loss="hinge", formulation=None, C=1.0, bias=True, **how):
    """Features, the result with them, and the problem with exact kernels."""
    X, y = points(n)
    y = {"squared": X[:, 0], "multiclass_hinge": (y + 1) + (X[:, 2] > 0)}.get(loss, y)
    y = y.astype(int) if loss == "multiclass_hinge" else y
    fitted = way.fit(X, **how)
    formulation = LpNorm(p=2) if formulation is None else formulation
    problem = Problem(fitted.grams(), y, loss, formulation, C, bias)
    exact = problem.with_(grams=fitted.exact.grams())
    return fitted, solve(problem, tol=1e-5), exact
