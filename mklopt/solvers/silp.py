"""Cutting planes on the semi-infinite linear program of MKL.

Problem. ℓp-norm MKL with p in [1, ∞]: min over θ, t of t subject to
t ≥ linear(α) − ½Σθ_m αᵀK_mα for all feasible α, ‖θ‖_p ≤ 1.

Algorithm (Sonnenburg et al. 2006; p > 1: Kloft et al. 2011, section 4.4.1). Solve the
SVM at θ; its α is the most violated cut; minimize over all cuts so far
(cutting_planes.py). The dual point is the mixture of all α with the multipliers of
their cuts: each α alone is optimal only for its own θ, and its bound on f* is poor.

Guarantee. Finite convergence to any accuracy. In practice the weights jump between
corners for a long time; it is made for an accuracy of 1e-4.
"""

import numpy as np

from ..problem import Problem
from .base import Iterate, Steps, solver
from .machines.factory import machine_for
from .start import first_weights
from .steps.cutting_planes import Cuts


@solver(
    "silp",
    needs={"ball"},
    losses={"machine"},
    accuracy=1e-4,
    reference="kloft2011",
    uses="highspy",
    guarantee="finite convergence to any accuracy",
)
def silp(problem: Problem, *, start: object = None) -> Steps:
    """Inner problem and master program in turn."""
    theta, alpha = first_weights(problem, start)
    machine = machine_for(problem, alpha, sharpness=1e-4)
    cuts = Cuts(problem.grams.M, problem.formulation.ball)
    while True:
        machine.solve(theta)
        own = yield machine.iterate()
        machine.set_tolerance(own)
        if not np.any(machine.point):
            continue  # the first tolerance was too loose: α = 0 is no cut
        cuts.add(machine.point, problem.dual_loss(machine.point), machine.v)
        theta = cuts.minimum()
        alpha = problem.feasible(cuts.mixture())
        mixed = yield Iterate(alpha, theta, info={"svm_solves": machine.solves})
        machine.tol = machine.sharpness * max(own.primal - mixed.dual, 0.0)
