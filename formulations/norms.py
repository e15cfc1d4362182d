"""Block norms of non-negative vectors: value, dual exponent, gradient weights, prox.

Every norm here is monotone and taken over u ≥ 0, so no absolute values appear.
‖u‖_q is computed relative to max u: no overflow for large q, no underflow for small u.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
INF = float("inf")


def dual_exponent(q: float) -> float:
    """q* with 1/q + 1/q* = 1."""
    if q == INF:
        return 1.0
    return INF if q == 1 else q / (q - 1)


def block_exponent(p: float) -> float:
    """q = 2p/(p+1): minimizing ½Σu²/θ over ‖θ‖_p ≤ 1 leaves ½‖u‖_q² (Kloft, eq. 10)."""
    return 2.0 if p == INF else 2 * p / (p + 1)


def norm(u: Array, q: float) -> float:
    top = float(np.max(u, initial=0.0))
    if top == 0 or q == INF:
        return top
    if q == 1:
        return float(np.sum(u))
    return top * float(np.sum((u / top) ** q)) ** (1 / q)


def norm_gradient(u: Array, q: float) -> Array:
    """The gradient of ‖·‖_q at u ≠ 0 (q = ∞: shared equally among the largest)."""
    if q == INF:
        largest = u == np.max(u)
        return largest / np.sum(largest)
    return np.asarray((u / norm(u, q)) ** (q - 1))


def declared_norm(u: Any, q: float) -> Any:
    """‖u‖_q for the modeller: exact cones, also for irrational q."""
    import cvxpy as cp

    if q in (1, INF):
        return cp.sum(u) if q == 1 else cp.max(u)
    exact: Any = cp.pnorm  # its annotations know whole exponents only
    return cp.norm(u, 2) if q == 2 else exact(u, q, approx=False)


def declared_quadratic(u: Any, theta: Any) -> tuple[Any, list]:
    """½ Σ u_m²/θ_m, θ ≥ 0, for the modeller: one rotated cone per kernel."""
    import cvxpy as cp

    s = cp.Variable(u.shape)
    cones = cp.SOC(s + theta, cp.vstack([2 * u, s - theta]), axis=0)
    return 0.5 * cp.sum(s), [cones]


def ratio(u: Array, slope: Array) -> Array:
    """u/slope, the weights that majorize; where both vanish, the limit 0 (or inf)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        theta = np.asarray(u / slope)
    return np.where((u == 0) & ~np.isfinite(theta), 0.0, theta)


def increasing_root(
    function: Callable[[Array], Array], low: Array, high: Array
) -> Array:
    """Where increasing functions vanish, elementwise, by bisection to the last bit."""
    low, high = np.array(low, float), np.array(high, float)
    for _ in range(200):
        middle = 0.5 * (low + high)
        if np.all((middle == low) | (middle == high)):
            break
        above = function(middle) > 0
        high = np.where(above, middle, high)
        low = np.where(above, low, middle)
    return 0.5 * (low + high)


def power_step(u: Array, weight: Array, q: float) -> Array:
    """z ≥ 0 with z + weight z^(q−1) = u, elementwise (q = 1: soft threshold)."""
    if q == 1:
        return np.maximum(u - weight, 0.0)
    if q == 2:
        return np.asarray(u / (1 + weight))
    return increasing_root(lambda z: z + weight * z ** (q - 1) - u, np.zeros_like(u), u)


def prox_norm(
    u: Array, step: Array, q: float, slope: Callable[[float], float]
) -> Array:
    """argmin φ(‖z‖_q) + Σ (z − u)²/(2 step), where slope = φ'.

    Stationarity is z + step λ z^(q−1) = u with λ = φ'(N) N^(1−q), N = ‖z‖_q. Where
    φ'(N) N^(1−q) does not decrease, ‖z(λ(N))‖_q − N decreases and has one root. That
    is q ≤ 2 for squares; elsewhere Moreau's identity leads to the dual exponent.
    """
    top = norm(u, q)
    if top == 0:
        return np.zeros_like(u)

    def at(N: float) -> Array:
        return power_step(u, step * slope(N) * N ** (1 - q), q)

    excess = np.vectorize(lambda N: N - norm(at(N), q) if N > 0 else -1.0)
    N = float(increasing_root(excess, np.zeros(()), np.asarray(top)))
    return at(N) if N > 0 else np.zeros_like(u)
