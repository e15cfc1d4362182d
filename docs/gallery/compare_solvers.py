"""
Comparing solvers
=================

All solvers run on the same problem with the same clock, and the time for certificates
is included. f* comes from a reference solution, not from the best run. A grey band
shows how accurately f* is known, where the gaps are that small.
"""

import mklopt
from mklopt import data, kernels
from mklopt.formulations import LpNorm

train, _ = data.load("twonorm").standardized().split(120, seed=0)
grams = kernels.gaussians([1, 3, 10], on="both").fit(train.X).grams()
problem = mklopt.Problem(grams, train.y, "hinge", LpNorm(p=2), C=1.0)
race = mklopt.race(problem, ["analytic", "interleaved", "smo_mkl", "spicy"], tol=1e-6)
print(race)
race.draw("race.png")
