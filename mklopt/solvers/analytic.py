"""The SVM wrapper with an analytic step in the kernel weights.

Problem. Any formulation that ½Σu²/θ majorizes (ℓp for all p in [1, ∞], group lasso,
Tikhonov, elastic net, …), any loss with a quadratic dual, and the logistic loss.

Algorithm (Kloft et al. 2011, algorithm 1). Repeat: solve the SVM with the kernel
Σθ_mK_m for α; u_m = θ_m ‖α‖_{K_m}; θ ← u / ∂Ω(u), for ℓp
θ_m = u_m^{2/(p+1)} / (Σ u^{2p/(p+1)})^{1/p}. For block norms with q > 2 no such θ
majorizes Ω; the paper's eq. 31 diverges for q > 3, even when it is normalized rightly.
There the step comes from the dual: θ = ∂Ω*(v)/v (Aflalo et al. 2011, proposition 3.3)
never lowers the dual value. At q = ∞ some kernels become silent: K_mα = 0, and their
weights have no bound. The weights are then bounded such that this costs at most half of
the gap; larger ones would make the SVM ill-conditioned.

Guarantee. Both steps are majorize–minimize: with exact SVM solutions the objective
never rises. If an accelerated step (acceleration.py) raises it, the plain step is taken
instead. Cost per iterate: one combine and one product K_mα with each kernel, together
one pass of packed storage; the Newton step needs no more.
"""

import numpy as np

from ..problem import Problem
from .base import Steps, solver
from .machines.factory import machine_for
from .start import first_weights
from .steps.acceleration import Ahead


@solver(
    "analytic",
    needs={"reweighted"},
    losses={"machine", "twice_differentiable"},
    reference="kloft2011",
    guarantee="the objective never rises; limit points are optimal for p > 1",
)
def analytic(
    problem: Problem, *, start: object = None, accelerate: str | None = "newton"
) -> Steps:
    """Inner problem and analytic step in turn.

    accelerate: "newton" or "anderson" extrapolate the plain steps; None: the plain
        steps of Algorithm 1
    """
    theta, alpha = first_weights(problem, start)
    machine = machine_for(problem, alpha, second_order=True)
    ahead, best, plain, slack = Ahead(machine, accelerate), np.inf, theta, 1.0
    while True:
        machine.solve(theta)
        certificate = yield machine.iterate()
        machine.set_tolerance(certificate)
        if certificate.primal > best * (1 + 1e-12):
            ahead.retreat()
            theta, best = plain, np.inf
            continue
        best = certificate.primal
        slack = min(slack, 0.5 * certificate.relative_gap)
        plain = problem.formulation.reweight(theta, machine.v, slack)
        theta = ahead.step(theta, plain, certificate.relative_gap)
