"""Problems of Aflalo et al. (2011): for the race of section 4.2 and the theorems."""

from __future__ import annotations

import numpy as np

from mklopt import GramStack, Problem, data, kernels
from mklopt.formulations import VSKL, LpNorm

Array = np.ndarray
C = 1000.0


def problems(
    name: str, count: int, seed: int, share: float = 0.7
) -> dict[str, Problem]:
    """Sparse MKL as each solver of figures 1 and 2 takes it: one group, or the simplex.

    Gaussian kernels on single features, unit trace, so many widths for each; `share` of
    the data, standardized.
    """
    train, _ = data.load(name).split(share, seed=seed)
    family = kernels.gaussians(np.logspace(-1, 1.3, count), "single")
    grams = family.fit(train.standardized().X, normalize="unit_trace").grams()
    simplex = Problem(grams, train.y, "hinge", LpNorm(1.0), C)
    group = simplex.with_(formulation=VSKL((tuple(range(grams.M)),), 1.0))
    return {"mirror": group, "simple": simplex, "hessian": simplex}


def full_rank(n: int, M: int) -> tuple[GramStack, Array]:
    """Gaussian kernels with eigenvalues between ¼ and about 10, balanced labels."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, M)), np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X[:, 0] += y
    apart = (X.T[:, :, None] - X.T[:, None, :]) ** 2
    return GramStack((np.exp(-apart) + 0.5 * np.eye(n)) / 2), y
