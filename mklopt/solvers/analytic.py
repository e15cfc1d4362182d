"""The SVM wrapper with an analytic step in the kernel weights.

Problem. Any formulation that ½Σu²/θ majorizes (ℓp for all p in [1, ∞], group lasso,
Tikhonov, elastic net, …), any loss with a quadratic dual.

Algorithm (Kloft et al. 2011, algorithm 1). Repeat: solve the machine on Σθ_mK_m for α;
u_m = θ_m ‖α‖_{K_m}; θ ← u / ∂Ω(u), for ℓp θ_m = u_m^{2/(p+1)} / (Σ u^{2p/(p+1)})^{1/p}.
For block norms q > 2 no such θ majorizes Ω, and the paper's eq. 31, even rightly
normalized, diverges for q > 3; there the step comes from the dual, θ = ∂Ω*(v)/v (Aflalo
et al. 2011, proposition 3.3), which ascends.

Guarantee. Both steps are majorize–minimize: with exact machines the objective never
rises. Accelerated, a step that makes it rise is taken back and the plain one taken.
Cost per iterate: one combine and one quad, together one pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Problem
from .anderson import Anderson
from .base import Steps, beginning, solver
from .wrapper import Machine

Array = np.ndarray
TINY = 1e-300


@solver(
    "analytic",
    needs={"reweighted"},
    losses={"quadratic"},
    accuracy=1e-6,
    reference="kloft2011",
    guarantee="the objective never rises; limit points are optimal for p > 1",
)
def analytic(problem: Problem, *, start: Any = None, accelerate: bool = True) -> Steps:
    theta, alpha = beginning(problem, start)
    machine = Machine(problem, alpha)
    ahead, best, plain = Ahead(), np.inf, theta
    while True:
        machine.solve(theta)
        certificate = yield machine.iterate()
        machine.heed(certificate)
        if certificate.primal > best * (1 + 1e-12):
            ahead.retreat()
            theta, best = plain, np.inf
            continue
        best = certificate.primal
        plain = problem.formulation.reweight(theta, machine.v)
        theta = ahead.step(theta, plain, machine.v) if accelerate else plain


class Ahead:
    """Anderson acceleration of log θ inside a region that grows with success.

    Kernels count by their share √θ_m v_m of the prediction; one that hardly takes part
    moves at most by a factor of e³ at a time, so that it can come back.
    """

    def __init__(self) -> None:
        self.anderson, self.trust, self.length = Anderson(memory=5), 1.0, 0.0

    def step(self, theta: Array, plain: Array, v: Array) -> Array:
        x, image = (np.log(np.maximum(t, TINY)) for t in (theta, plain))
        share = np.sqrt(theta) * v
        share = share / max(float(np.linalg.norm(share)), TINY)
        extra = np.clip(self.anderson.next(x, image, share) - image, -3.0, 3.0)
        self.length = float(np.linalg.norm(share * extra))
        self.trust *= 2
        if self.length > self.trust:
            extra *= self.trust / self.length
            self.length = self.trust
        return np.asarray(np.exp(np.maximum(image + extra, np.log(TINY))))

    def retreat(self) -> None:
        self.trust = 0.25 * self.length
