"""Small problems that tests of several rooms share."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from mklopt import GramStack, Problem
from mklopt.formulations import VSKL, BlockNorm
from mklopt.grams.psd import root


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


def silent_groups(bias=False, C=1.0, seed=0, stored=False) -> Problem:
    """VSKL with q = ∞, where groups 1 and 2 are silent: K_jα = 0, but w_j ≠ 0.

    Group 1 is one strong direction and group 2 a strong constant. If they are stored
    as matrices and not as factors, K_jα = 0 is known up to √u only.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    y = np.sign(X[:, 0] + 0.7 * rng.normal(size=40) + 0.3)
    apart = [np.sum((X[:, None, :k] - X[None, :, :k]) ** 2, axis=2) for k in (1, 2)]
    L = [root(0.1 * np.exp(-square / 2)) for square in apart]
    L += [np.sqrt(5) * X[:, 2:], np.full((40, 1), np.sqrt(20))]
    grams = GramStack([F @ F.T for F in L]) if stored else GramStack.from_factors(L)
    return Problem(grams, y, "hinge", VSKL(((0, 1), (2,), (3,)), np.inf), C, bias)
