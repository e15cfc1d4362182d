"""
Intervals of kernel weights
===========================

Where the problem is strongly convex, a certificate bounds the weights of every
minimizer, too. Whiskers are these bounds, with all rounding errors counted.
"""

import mklopt
from mklopt import data, kernels, plots
from mklopt.formulations import ElasticNet

train, _ = data.load("wdbc").standardized().split(100, seed=0)
family = kernels.gaussians([1, 3, 10]) + kernels.linear()
fitted = family.fit(train.X, normalize="spherical")
problem = mklopt.Problem(fitted.grams(), train.y, "logistic", ElasticNet(0.5))
result = mklopt.solve(problem, tol=1e-5)
print(result.intervals())
plots.weights(result, fitted.names, intervals=True, path="intervals.png")
