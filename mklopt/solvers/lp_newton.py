"""The SVM wrapper with a Newton step in the kernel weights instead of the exact one.

Problem. ℓp-norm MKL with 1 < p < ∞.

Algorithm (Kloft et al. 2009, the rival of the analytic step in Kloft et al. 2011,
section 4.4.1). At fixed w the weights minimize ½Σ‖w_m‖²/θ_m on the ball ‖θ‖_p ≤ 1. With
the multiplier λ that balances the Lagrangian at θ, one Newton step with its diagonal
Hessian,

    θ_m += (½‖w_m‖²/θ_m² − λθ_m^{p−1}) / (‖w_m‖²/θ_m³ + (p−1)λθ_m^{p−2}),

shortened until the sum falls, and scaled back to the ball; a few of them per SVM.

Guarantee. The sum never rises, so with exact SVM solutions the objective never rises.
Near p = 1 the model is good only close to θ; the paper reports problems there.
"""

import numpy as np

from ..formulations.norms import norm
from ..problem import Problem
from .base import Array, Steps, solver
from .machines.factory import machine_for
from .start import first_weights

MAX_HALVINGS = 40  # of one Newton step
LARGEST_FALL = 0.1  # a step leaves at least this part of every weight


@solver(
    "lp_newton",
    needs={"ball", "smooth_dual"},
    losses={"machine"},
    reference="kloft2011",
    guarantee="the objective never rises",
)
def lp_newton(problem: Problem, *, start: object = None, steps: int = 10) -> Steps:
    """Inner problem and Newton steps in θ in turn; steps: Newton steps per SVM."""
    p = problem.formulation.ball
    theta, alpha = first_weights(problem, start)
    machine = machine_for(problem, alpha)
    while True:
        machine.solve(theta)
        machine.set_tolerance((yield machine.iterate()))
        w = theta * machine.v
        for _ in range(steps):
            theta = newton_step(theta, w, p)


def newton_step(theta: Array, w: Array, p: float) -> Array:
    """θ after one step for fixed ‖w_m‖, on the unit ball of the p-norm."""
    if p == np.inf:  # the ball is a box: the largest weights are the best
        return np.ones_like(theta)
    used = w**2 > 0
    if not np.any(used):
        return theta
    t, w2 = theta[used] / norm(theta[used], p), w[used] ** 2
    value = lambda t: float(np.sum(w2 / t))  # noqa: E731
    multiplier = 0.5 * value(t) / float(np.sum(t**p))
    force = multiplier * t ** (p + 1)
    step = t * (0.5 * w2 - force) / (w2 + (p - 1) * force)  # both sides times θ³
    scale = 1.0
    for _ in range(MAX_HALVINGS):
        trial = np.maximum(t + scale * step, LARGEST_FALL * t)
        trial /= norm(trial, p)
        if value(trial) <= value(t):
            t = trial
            break
        scale *= 0.5
    new = np.zeros_like(theta)
    new[used] = t
    return new
