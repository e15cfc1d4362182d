"""The SVM wrapper with an analytic step in the kernel weights.

Problem. Any formulation that ½Σu²/θ majorizes (ℓp for all p in [1, ∞], group lasso,
Tikhonov, elastic net, …), any loss with a quadratic dual, and the logistic loss.

Algorithm (Kloft et al. 2011, algorithm 1). Repeat: solve the machine on Σθ_mK_m for α;
u_m = θ_m ‖α‖_{K_m}; θ ← u / ∂Ω(u), for ℓp θ_m = u_m^{2/(p+1)} / (Σ u^{2p/(p+1)})^{1/p}.
For block norms q > 2 no such θ majorizes Ω, and the paper's eq. 31, even rightly
normalized, diverges for q > 3; there the step comes from the dual, θ = ∂Ω*(v)/v (Aflalo
et al. 2011, proposition 3.3), which ascends. At q = ∞ it makes some kernels silent,
K_mα = 0 with a weight that has no bound; the weights keep to a bound that costs half of
the gap, or the machine has to be solved with the condition of their square.

Guarantee. Both steps are majorize–minimize: with exact machines the objective never
rises. Accelerated (acceleration.py), a step that makes it rise is taken back and the
plain one taken. Cost per iterate: one combine and one product K_mα with each kernel,
together one pass of packed storage; the Newton step needs no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..problem import Problem
from .base import Steps, solver
from .machines.factory import machine_for
from .start import first_weights
from .steps.acceleration import Ahead

Array = np.ndarray


@solver(
    "analytic",
    needs={"reweighted"},
    losses={"machine", "twice_differentiable"},
    accuracy=1e-6,
    reference="kloft2011",
    guarantee="the objective never rises; limit points are optimal for p > 1",
)
def analytic(
    problem: Problem, *, start: Any = None, accelerate: str | None = "newton"
) -> Steps:
    """Inner problem and analytic step in turn.

    accelerate: "newton" or "anderson" go ahead of the plain steps; None: the plain
        steps of Algorithm 1
    """
    yield from alternate(problem, problem.formulation.reweight, start, accelerate)


def alternate(
    problem: Problem,
    reweight: Callable[[Array, Array, float], Array],
    start: Any,
    accelerate: str | None,
) -> Steps:
    """Machine and reweighting in turn, `accelerate` going ahead of them."""
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
        plain = reweight(theta, machine.v, slack)
        theta = ahead.step(theta, plain, certificate.relative_gap)
