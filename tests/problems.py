"""Small problems that tests of several rooms share."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from mklopt import GramStack, Problem
from mklopt.formulations import BlockNorm


def subset_gaussians(n: int, M: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(M, n, n) Gaussian kernels on random subsets of 20 features, and noisy labels."""
    rng = np.random.default_rng(seed)
    X, K = rng.normal(size=(n, 20)), []
    for _ in range(M):
        Z = X[:, rng.choice(20, size=5, replace=False)]
        width = rng.uniform(0.5, 3.0)
        K.append(np.exp(-cdist(Z, Z, "sqeuclidean") / (2 * width**2)))
    return np.array(K), np.sign(X[:, 0] + 0.3 * rng.normal(size=n))


def separable(k: int, n: int = 30, seed: int = 0) -> Problem:
    """k classes that one of three kernels separates."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n) % k
    factors = [rng.normal(size=(n, 4)) for _ in range(3)]
    factors[0] += 4 * np.eye(k, 4)[classes]
    loss, y = ("hinge", 2.0 * classes - 1) if k == 2 else ("multiclass_hinge", classes)
    grams = GramStack.from_factors(factors)
    return Problem(grams, y, loss, BlockNorm(1.25), 1.0, bias=False)
