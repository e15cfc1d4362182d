"""
A path along C
==============

Up to ``C_zero`` all kernel weights are zero. From there C grows; each problem is
warm-started from the one before, and each has a certificate of its own.
"""

import mklopt
from mklopt import data, kernels, plots
from mklopt.formulations import ElasticNet

train, _ = data.load("wdbc").standardized().split(100, seed=0)
family = kernels.gaussians([1, 4, 16]) + kernels.linear()
fitted = family.fit(train.X, "multiplicative")
problem = mklopt.Problem(fitted.grams(), train.y, "logistic", ElasticNet(0.8))
path = mklopt.path(problem, points=12, span=100.0)
print(f"largest gap on the path: {max(r.relative_gap for r in path):.1e}")
plots.weight_path(path, fitted.names, path="path.png")
