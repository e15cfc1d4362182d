"""
A performance profile
=====================

The share of problems that a solver solves within ρ times the time of the fastest one.
"""

import mklopt
from mklopt import data, kernels
from mklopt.formulations import LpNorm

problems = {}
for name in ("twonorm", "ringnorm"):
    some, _ = data.load(name).standardized().split(60, seed=0)
    grams = kernels.gaussians([1, 3, 10], on="both").fit(some.X).grams()
    for C in (0.1, 1.0):
        problem = mklopt.Problem(grams, some.y, "hinge", LpNorm(p=2), C=C)
        problems[f"{name}, C = {C}"] = problem
race = mklopt.race(problems, ["auto", "interleaved", "smo_mkl"], time_limit=0.5)
race.profile_figure(venue="siam-2col", height=2.0, path="profile.png")
