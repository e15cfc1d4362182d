"""
Alignment of kernels
====================

Centred alignment of each pair of kernels, and of each kernel with the labels.
"""

import numpy as np

from mklopt import kernels, plots

rng = np.random.default_rng(0)
y = np.sign(rng.normal(size=120))
views = {
    "shape": y[:, None] + 1.2 * rng.normal(size=(120, 2)),
    "noise": rng.normal(size=(120, 2)),
}
fitted = kernels.views(kernels.gaussians([1, 3]), views).fit(views, "multiplicative")
plots.alignment(fitted.grams(), y, fitted.names, path="alignment.png")
