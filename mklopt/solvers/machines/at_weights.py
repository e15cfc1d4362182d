"""The SVM at fixed kernel weights, once: α for weights that came without one.

    max over α    −C Σ_i V*(−α_i/C, y_i) − ½ Σ_m θ_m αᵀK_mα,    Σα = 0 for a bias

Guarantee. None is needed: whatever α comes out, a certificate makes bounds of it.
"""

from __future__ import annotations

import numpy as np

from ...problem import Problem
from .factory import dual_machine, machine_for

Array = np.ndarray
TOLERANCE = 1e-13  # relative: as exact as float64 allows


def has_inner_solver(problem: Problem) -> bool:
    """Whether the SVM at fixed weights can be solved directly."""
    smooth = problem.loss.twice_differentiable and len(problem.shape) == 1
    return "features" in problem.kinds or smooth or dual_machine(problem) is not None


def dual_at_weights(problem: Problem, weights: Array) -> Array:
    """α of the SVM at these weights, θ ≥ 0, as exact as it can be.

    ValueError if the loss has no inner solver.
    """
    if not has_inner_solver(problem):
        raise ValueError(
            f"there is no SVM solver at fixed weights for the {problem.loss.name} "
            "loss; give α as well"
        )
    if not np.any(weights):
        return np.zeros(problem.shape)
    zero = np.zeros(problem.shape)
    machine = machine_for(problem, zero)
    worst = float(problem.costs @ problem.loss.value(zero, problem.y))
    machine.tol = TOLERANCE * worst
    return problem.feasible(machine.solve(weights))
