"""L-BFGS on the smooth dual of ℓp-norm MKL with the squared loss and no bias.

Problem. max over α of ⟨y, α⟩ − ‖α‖²/(2C) − ½‖v(α)‖²_{q*}, v_m = ‖α‖_{K_m}: without
constraints and differentiable for 1 < p < ∞, and for every other smooth Ω*.

Algorithm (Kloft et al. 2011, section 3.4). The gradient is y − α/C − Σθ_m(α)K_mα with
θ = ∂Ω*(v)/v: one quad and one combine, a full pass. L-BFGS with the diagonal C as the
first metric and a line search for the Wolfe conditions.

Guarantee. The dual rises in every step; the function is strongly concave, so the
sequence converges to the solution.
"""

from collections import deque

import numpy as np

from ..problem import Problem
from .base import Array, Iterate, Steps, solver
from .start import first_dual, first_weights

MAX_BISECTIONS = 40  # of one line search
ENOUGH_DECREASE, ENOUGH_FLATNESS = 1e-4, 0.9  # the weak Wolfe conditions


@solver(
    "lbfgs",
    needs={"smooth_dual"},
    losses={"squared"},
    bias={False},
    reference="kloft2011",
    guarantee="the dual rises in every step",
)
def lbfgs(problem: Problem, *, start: object = None, memory: int = 20) -> Steps:
    """L-BFGS on the dual; memory: the number of steps that are kept."""
    grams, formulation = problem.grams, problem.formulation
    y, C = problem.y, problem.costs

    def at(alpha: Array) -> tuple[float, Array, Array]:
        """−dual, its gradient, and θ."""
        v = grams.norms(alpha)
        floor = 1e-12 * np.max(v, initial=0.0)
        theta = formulation.dual_weights(np.maximum(v, floor))
        value = -y @ alpha + 0.5 * alpha @ (alpha / C) + formulation.conjugate(v)
        slope = alpha / C - y + grams.product(theta, alpha)
        return float(value), slope, theta

    _, alpha = first_weights(problem, start)
    if alpha is None:
        alpha = first_dual(problem)
    pairs: deque[tuple[Array, Array]] = deque(maxlen=memory)
    value, slope, theta = at(alpha)
    while True:
        yield Iterate(alpha, theta)
        direction = -_metric(pairs, slope, C)
        falls, t, low, high = float(slope @ direction), 1.0, 0.0, np.inf
        for _ in range(MAX_BISECTIONS):
            trial = alpha + t * direction
            new, new_slope, theta = at(trial)
            if new > value + ENOUGH_DECREASE * t * falls:
                high = t
            elif new_slope @ direction < ENOUGH_FLATNESS * falls:
                low = t
            else:
                break
            t = 2 * low if high == np.inf else 0.5 * (low + high)
        step, bend = trial - alpha, new_slope - slope
        if step @ bend > 1e-14 * np.linalg.norm(step) * np.linalg.norm(bend):
            pairs.append((step, bend))
        elif not pairs:
            return  # no progress is possible in float64
        else:
            pairs.clear()
        alpha, value, slope = trial, new, new_slope


def _metric(pairs: deque[tuple[Array, Array]], slope: Array, C: Array) -> Array:
    """The two loops of L-BFGS: the inverse Hessian of the pairs times the slope."""
    q, used = slope.copy(), []
    for step, bend in reversed(pairs):
        a = (step @ q) / (step @ bend)
        q -= a * bend
        used.append(a)
    if pairs:
        step, bend = pairs[-1]
        q *= (step @ bend) / (bend @ bend)
    else:
        q *= C / (1 + float(np.linalg.norm(C * slope)))
    for (step, bend), a in zip(pairs, reversed(used)):
        q += (a - (bend @ q) / (step @ bend)) * step
    return np.asarray(q)
