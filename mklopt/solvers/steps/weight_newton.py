"""Newton's method in the kernel weights, on a product of simplices or the orthant.

Step. The oracle (simplex_oracle.py, orthant_oracle.py) gives value, gradient and
Hessian of J, G or F. The step is the minimum of the quadratic model (pivoting.py), or
of one that is as 1/θ like J itself (rational_model.py), shortened until the value falls
enough. Kernels of weight 0 with a slope that is not steep enough are left out of it.

Guarantee. The value falls in every step, up to the gap of the oracle.

Reference: Chapelle and Rakotomamonjy (2008).
"""

import numpy as np

from ..base import Array, Steps
from .orthant_oracle import Orthant
from .pivoting import minimum
from .rational_model import rational_minimum
from .simplex_oracle import Oracle

ZERO_WEIGHT = 1e-10  # relative to the largest weight or the sum in its simplex
RIDGE = 1e-9  # added to the model, relative to its mean diagonal entry
PROMISING = 0.9  # of the slope of the kernels in use: others are left out of the model
MAX_TRIALS, SHORTER, ENOUGH_DECREASE = 30, 0.3, 1e-4  # of one line search


def newton(oracle: Oracle | Orthant, theta: Array, solved: bool = False) -> Steps:
    """Newton steps from θ, on a product of simplices or the orthant.

    solved: the inner solver has solved its problem at θ
    """
    theta = _clean(theta, oracle)
    if solved:
        oracle.enter(theta)
    else:
        yield from oracle.solve(theta)
    while True:
        if not solved:
            oracle.set_tolerance((yield oracle.iterate()))
        solved = False
        value, slope, gap = oracle.value, oracle.slope, oracle.gap
        which = np.flatnonzero((theta > 0) | _promising(slope, theta, oracle))
        which = which if len(which) else np.array([np.argmin(slope)])
        model = oracle.hessian(which)
        model[np.diag_indices_from(model)] += RIDGE * np.trace(model) / len(which)
        target, own = np.zeros_like(theta), (slope[which], theta[which])
        target[which], share = _target(model, *own, oracle, which)
        step = target - theta
        t = _first_length(theta, step, oracle)
        falls = float(slope @ step)
        oracle.extrapolate(which, t * step[which], share)
        for _ in range(MAX_TRIALS):
            trial = _clean(theta + t * step, oracle)
            yield from oracle.solve(trial)
            # the true value lies between value and value + gap
            if oracle.value <= value + gap + ENOUGH_DECREASE * t * falls:
                break
            oracle.set_tolerance((yield oracle.iterate()))
            t *= SHORTER
        theta = trial


def _target(
    model: Array, slope: Array, theta: Array, oracle: Oracle | Orthant, which: Array
) -> tuple[Array, Array]:
    """The minimum of the model, and what is left of the response of α to the step.

    G of several simplices knows its growth already: there it is the quadratic model.
    """
    if isinstance(oracle, Orthant):
        return rational_minimum(model, slope, theta, oracle.c - slope)
    owner = oracle.owner[which]
    if len(oracle.theta) == 1:
        return rational_minimum(model, slope, theta, -slope, owner)
    return minimum(model, slope, theta, owner), np.ones(len(which))


def _first_length(theta: Array, step: Array, oracle: Oracle | Orthant) -> float:
    """1; on the orthant Σθ falls at most by half, because J behaves like 1/θ."""
    if oracle.owner is None and (falls := -float(np.sum(step))) > 0:
        return min(1.0, 0.5 * float(np.sum(theta)) / falls)
    return 1.0


def _promising(slope: Array, theta: Array, oracle: Oracle | Orthant) -> Array:
    """The kernels whose slope is nearly as steep as that of the kernels in use."""
    if oracle.owner is None:
        return oracle.c - slope > PROMISING * oracle.c
    mean = oracle.sums(theta * slope)
    return np.asarray(slope < PROMISING * mean[oracle.owner])


def _clean(theta: Array, oracle: Oracle | Orthant) -> Array:
    """θ with tiny weights set to 0; the weights of every simplex sum to 1."""
    if oracle.owner is None:
        return np.where(theta < ZERO_WEIGHT * np.max(theta, initial=0.0), 0.0, theta)
    theta = theta / oracle.sums(theta)[oracle.owner]
    theta = np.where(theta < ZERO_WEIGHT, 0.0, theta)
    return np.asarray(theta / oracle.sums(theta)[oracle.owner])
