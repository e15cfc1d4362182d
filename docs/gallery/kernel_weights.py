"""
Kernel weights
==============

Three views of the same samples, one of them noise, with two Gaussians each. ℓ1 sets
some weights to zero; ℓ2 gives every kernel some weight.
"""

import numpy as np

import mklopt
from mklopt import kernels, plots
from mklopt.formulations import LpNorm

rng = np.random.default_rng(0)
y = np.sign(rng.normal(size=120))
views = {
    "shape": y[:, None] + 1.2 * rng.normal(size=(120, 2)),
    "colour": np.abs(y[:, None] + 1) + rng.normal(size=(120, 2)),
    "noise": rng.normal(size=(120, 2)),
}
fitted = kernels.views(kernels.gaussians([1, 3]), views).fit(views, "multiplicative")
for p in (1, 2):
    problem = mklopt.Problem(fitted.grams(), y, "hinge", LpNorm(p=p))
    result = mklopt.solve(problem, tol=1e-6)
    print(f"p = {p}: {result.certificate}")
    plots.weights(result.weights, fitted.names, path=f"weights-{p}.png")
