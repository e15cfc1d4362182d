"""The SVM at fixed kernel weights: α for weights that came without one.

    max over α    −C Σ_i V*(−α_i/C, y_i) − ½ Σ_m θ_m αᵀK_mα,    Σα = 0 for a bias

Guarantee. None is needed: whatever α comes out, a certificate makes bounds of it.
"""

from __future__ import annotations

import numpy as np

from ..formulations.fixed_weights import FixedWeights
from ..problem import Problem
from ..solvers import that_can
from ..solvers.machines import svm
from .loop import solve

Array = np.ndarray
TOLERANCE = 1e-13  # relative: as exact as float64 allows
ALTERNATES = "analytic"  # its α is that of an SVM at the weights, to rounding
MAX_SECONDS = 60.0  # for losses and storages that need the loop


def dual_at_weights(problem: Problem, weights: Array) -> Array:
    """α of the SVM at these weights, θ ≥ 0, as exact as it can be."""
    if not np.any(weights):
        return np.zeros(problem.shape)
    grams = problem.grams
    stored = not grams.by_rows and not grams.in_feature_space
    if stored and problem.loss.quadratic(problem.y, problem.costs) is not None:
        zero = np.zeros(problem.shape)
        tol = TOLERANCE * float(problem.costs @ problem.loss.value(zero, problem.y))
        found = svm.solve(problem, grams.combine(weights), tol=tol)
        return problem.feasible(found.alpha)
    fixed = problem.with_(formulation=FixedWeights(weights))
    name = ALTERNATES if ALTERNATES in that_can(fixed) else "auto"
    return solve(fixed, name, tol=TOLERANCE, time_limit=MAX_SECONDS).dual
