"""Newton's method in the kernel weights, on a product of simplices or the orthant.

Step. The oracle (simplex_oracle.py, orthant_oracle.py) has value, gradient and Hessian
of J, G or F; the step is the minimum of the quadratic model (pivoting.py), shortened
until the value falls enough. Kernels of weight 0 whose slope is not steep enough are
left out of the model.

Reference: Chapelle and Rakotomamonjy (2008).
"""

from __future__ import annotations

import numpy as np

from ..base import Steps
from .orthant_oracle import Orthant
from .pivoting import minimum
from .simplex_oracle import Oracle

Array = np.ndarray
ZERO_WEIGHT = 1e-10  # of the largest weight, or of those in its simplex together


def newton(oracle: Oracle | Orthant, theta: Array) -> Steps:
    """Newton steps on a product of simplices or the orthant, from θ on."""
    theta = _clean(theta, oracle)
    yield from oracle.solve(theta)
    while True:
        certificate = yield oracle.iterate()
        oracle.set_tolerance(certificate)
        value, slope, gap = oracle.value, oracle.slope, oracle.gap
        which = np.flatnonzero((theta > 0) | _promising(slope, oracle))
        which = which if len(which) else np.array([np.argmin(slope)])
        model = oracle.hessian(which)
        model[np.diag_indices_from(model)] += 1e-9 * np.trace(model) / len(which)
        target = np.zeros_like(theta)
        owner = None if oracle.owner is None else oracle.owner[which]
        target[which] = minimum(model, slope[which], theta[which], owner)
        step = target - theta
        t = _first_length(theta, step, oracle)
        falls = float(slope @ step)
        oracle.extrapolate(which, t * step[which])
        for _ in range(30):
            trial = _clean(theta + t * step, oracle)
            yield from oracle.solve(trial)
            # value ≤ F ≤ value + gap, here and there
            if oracle.value <= value + gap + 1e-4 * t * falls:
                break
            certificate = yield oracle.iterate()
            oracle.set_tolerance(certificate)
            t *= 0.3
        theta = trial


def _first_length(theta: Array, step: Array, oracle: Oracle | Orthant) -> float:
    """On the orthant J falls like 1/θ: beyond half of Σθ its model is worth nothing."""
    if oracle.owner is None and (falls := -float(np.sum(step))) > 0:
        return min(1.0, 0.5 * float(np.sum(theta)) / falls)
    return 1.0


def _promising(slope: Array, oracle: Oracle | Orthant) -> Array:
    """Kernels of weight 0 that are nearly as steep as those in use should be."""
    if oracle.owner is None:
        return slope < 0.1 * oracle.c
    steepest = np.zeros(len(oracle.theta))
    np.minimum.at(steepest, oracle.owner, slope)
    return np.asarray(slope < 0.9 * steepest[oracle.owner])


def _clean(theta: Array, oracle: Oracle | Orthant) -> Array:
    """What is next to nothing is nothing, and every simplex sums to 1."""
    if oracle.owner is None:
        return np.where(theta < ZERO_WEIGHT * np.max(theta), 0.0, theta)
    theta = theta / oracle.sums(theta)[oracle.owner]
    theta = np.where(theta < ZERO_WEIGHT, 0.0, theta)
    return np.asarray(theta / oracle.sums(theta)[oracle.owner])
