"""Newton's method in the kernel weights, on a product of simplices or the orthant.

Step. The oracle (simplex_oracle.py, orthant_oracle.py) gives value, gradient and
Hessian of J, G or F. The step is the minimum of the quadratic model (pivoting.py),
shortened until the value falls enough. Kernels of weight 0 with a slope that is not
steep enough are left out of the model. J is as 1/θ, and Newton's method on 1/θ + θ
needs five steps from half of the solution: so the model knows how the curvature falls
with the size of the weights, and needs two.

Guarantee. The value falls in every step, up to the gap of the oracle.

Reference: Chapelle and Rakotomamonjy (2008).
"""

import numpy as np

from ..base import Array, Steps
from .orthant_oracle import Orthant
from .pivoting import minimum
from .simplex_oracle import Oracle

ZERO_WEIGHT = 1e-10  # relative to the largest weight or the sum in its simplex
RIDGE = 1e-9  # added to the model, relative to its mean diagonal entry
# Of the growth of all kernels in one step: bounds, and when it is found.
LEAST_GROWTH, LARGEST_GROWTH, SAME_GROWTH, MAX_GROWTH_ROUNDS = -0.5, 2.0, 0.02, 4
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
        target = np.zeros_like(theta)
        target[which] = _target(model, slope[which], theta[which], oracle, which)
        step = target - theta
        t = _first_length(theta, step, oracle)
        falls = float(slope @ step)
        oracle.extrapolate(which, t * step[which])
        for _ in range(MAX_TRIALS):
            trial = _clean(theta + t * step, oracle)
            yield from oracle.solve(trial)
            # the true value lies between value and value + gap
            if oracle.value <= value + gap + ENOUGH_DECREASE * t * falls:
                break
            oracle.set_tolerance((yield oracle.iterate()))
            t *= SHORTER
        theta = trial


def grown_minimum(
    model: Array, slope: Array, theta: Array, pull: Array, owner: Array | None = None
) -> Array:
    """The minimum of the model with a curvature that falls as the kernels grow.

    Along θ(1 + τ) J is as 1/(1 + τ): its second-order term is ½δᵀHδ/(1 + τ) with the
    growth τ = ⟨δ, v²⟩/⟨θ, v²⟩, and its slope that of a quadratic model with
    H (1 + τ/2)/(1 + τ)². A few rounds find τ. `pull` is −∂J/∂θ = ½v².
    """
    found, tau, size = minimum(model, slope, theta, owner), 0.0, float(pull @ theta)
    for _ in range(MAX_GROWTH_ROUNDS):
        grown = float(pull @ (found - theta)) / max(size, 1e-300)
        last, tau = tau, min(max(grown, LEAST_GROWTH), LARGEST_GROWTH)
        if abs(tau - last) <= SAME_GROWTH:
            break
        found = minimum(model * (1 + tau / 2) / (1 + tau) ** 2, slope, theta, owner)
    return found


def rational(model, slope, theta, pull, owner=None):
    s = np.maximum(2 * pull, 1e-12 * np.max(2 * pull))
    fixed = slope + pull
    eye = np.eye(len(s))

    def at(z):
        D = (z - theta) / s
        A = eye + model * D
        x = np.linalg.solve(A, s)
        return float(fixed @ z) - 0.5 * float((s * D) @ x), x, A

    z = theta.copy()
    value, x, A = at(z)
    for k in range(12):
        inner = np.linalg.solve(A, model)
        inner = 0.5 * (inner + inner.T)
        w = x / s
        B = inner * np.outer(w, w)
        B[np.diag_indices_from(B)] += 1e-9 * np.trace(B) / len(B)
        g = fixed - 0.5 * x * w
        new = minimum(B, g, z, owner)
        step, t = new - z, 1.0
        falls = float(g @ step)
        if falls > -1e-6 * abs(float(slope @ (z - theta))) - 1e-300:
            break
        for _ in range(10):
            trial = at(z + t * step)
            if trial[0] <= value + 0.1 * t * falls:
                break
            t *= 0.4
        z = z + t * step
        value, x, A = trial
    import os
    if os.environ.get("SHOW"): print("       rounds", k)
    return np.maximum(z, 0.0)


def _target(
    model: Array, slope: Array, theta: Array, oracle: Oracle | Orthant, which: Array
) -> Array:
    """The minimum of the model; G of several simplices knows their growth already."""
    if isinstance(oracle, Orthant):
        return rational(model, slope, theta, oracle.c - slope)
    owner = oracle.owner[which]
    if len(oracle.theta) == 1:
        return rational(model, slope, theta, -slope, owner)
    return minimum(model, slope, theta, owner)


def _first_length(theta: Array, step: Array, oracle: Oracle | Orthant) -> float:
    """1; on the orthant Σθ falls at most by half, because J behaves like 1/θ."""
    if oracle.owner is None and (falls := -float(np.sum(step))) > 0:
        return min(1.0, 0.5 * float(np.sum(theta)) / falls)
    return 1.0


def _promising(slope: Array, theta: Array, oracle: Oracle | Orthant) -> Array:
    """The kernels whose slope is nearly as steep as that of the kernels in use."""
    if oracle.owner is None:
        return slope < 0.1 * oracle.c
    mean = oracle.sums(theta * slope)
    return np.asarray(slope < 0.9 * mean[oracle.owner])


def _clean(theta: Array, oracle: Oracle | Orthant) -> Array:
    """θ with tiny weights set to 0; the weights of every simplex sum to 1."""
    if oracle.owner is None:
        return np.where(theta < ZERO_WEIGHT * np.max(theta, initial=0.0), 0.0, theta)
    theta = theta / oracle.sums(theta)[oracle.owner]
    theta = np.where(theta < ZERO_WEIGHT, 0.0, theta)
    return np.asarray(theta / oracle.sums(theta)[oracle.owner])
