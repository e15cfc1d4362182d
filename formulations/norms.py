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
MAX_EVALUATIONS = 60  # of a search on a line
FLAT_SLOPE = 1e-3  # a line search ends at this part of the first slope …
CLOSE = 1e-10  # … or where its bracket is this narrow


def dual_exponent(q: float) -> float:
    """q* with 1/q + 1/q* = 1."""
    if q == INF:
        return 1.0
    return INF if q == 1 else q / (q - 1)


def block_exponent(p: float) -> float:
    """q = 2p/(p+1): minimizing ½Σu²/θ over ‖θ‖_p ≤ 1 leaves ½‖u‖_q² (Kloft, eq. 10)."""
    return 2.0 if p == INF else 2 * p / (p + 1)


def norm(u: Array, q: float) -> float:
    """‖u‖_q for u ≥ 0."""
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
    """‖u‖_q as a CVXPY expression: exact cones, also for irrational q."""
    import cvxpy as cp

    if q in (1, INF):
        return cp.sum(u) if q == 1 else cp.max(u)
    exact: Any = cp.pnorm  # its annotations know whole exponents only
    return cp.norm(u, 2) if q == 2 else exact(u, q, approx=False)


def declared_quadratic(u: Any, theta: Any) -> tuple[Any, list]:
    """½ Σ u_m²/θ_m, θ ≥ 0, in CVXPY: (expression, [one rotated cone per kernel])."""
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


def newton_root(
    function: Callable[[Array], tuple[Array, Array]], low: Array, high: Array
) -> Array:
    """The same from values and slopes: Newton, safeguarded by halving the bracket.

    It starts from below. It halves where a Newton step would leave the bracket, or is
    more than half as long as the last step but one: Newton alone may run in cycles.
    """
    low, high = np.array(low, float), np.array(high, float)
    x, before, last = low, np.asarray(INF), np.asarray(INF)
    for _ in range(200):
        value, slope = function(x)
        high, low = np.where(value > 0, x, high), np.where(value > 0, low, x)
        close = 1e-13 * np.abs(x)
        with np.errstate(all="ignore"):
            new = x - value / slope
        good = (new >= low) & (new <= high)
        good &= 2 * np.abs(new - x) <= np.maximum(before, close)
        new = np.where(good, new, 0.5 * (low + high))
        before, last = last, np.abs(new - x)
        still = (last > close) & (low < high) & (value != 0)
        x = new
        if not np.any(still):
            break
    return x


def line_minimum(slopes: Callable[[float], tuple[float, float]]) -> float:
    """Where an increasing slope that is negative at 0 nearly vanishes, t > 0.

    slopes: the slope at t, and its own slope: Newton's method in a bracket
    """
    first = abs(slopes(0.0)[0])
    low, high, t = 0.0, INF, 1.0
    for _ in range(MAX_EVALUATIONS):
        slope, curve = slopes(t)
        if abs(slope) <= FLAT_SLOPE * first:
            break
        low, high = (t, high) if slope < 0 else (low, t)
        if high < INF and high - low <= CLOSE * high:  # the slope is rounding
            break
        t = t - slope / max(curve, 1e-300)
        if not low < t < high:
            t = 0.5 * (low + high) if high < INF else 2 * low + 1
    return t


def power_step(u: Array, weight: Array, q: float) -> Array:
    """z ≥ 0 with z + weight z^(q−1) = u, elementwise (q = 1: soft threshold).

    In t = log z the logarithm of the left side is convex with slopes between 1 and
    q − 1, and either term alone gives a start above the root: Newton descends to it.
    """
    if q == 1:
        return np.maximum(u - weight, 0.0)
    if q == 2:
        return np.asarray(u / (1 + weight))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        top, scale = np.log(u), np.broadcast_to(np.log(weight), np.shape(u))
        t = np.minimum(top, (top - scale) / (q - 1))
        for _ in range(100):
            plain, power = np.exp(t - top), np.exp(scale + (q - 1) * t - top)
            both = plain + power
            step = both * np.log(both) / (plain + (q - 1) * power)
            t = t - np.where(np.isfinite(step), np.maximum(step, 0.0), 0.0)
            if not np.any(step > 4e-16 * (1 + np.abs(t))):
                break
        return np.where(u > 0, np.exp(t), 0.0)


def positive_root(function: Callable[[float], float], top: float) -> float:
    """Where a function that is ≥ 0 at the top and < 0 near 0 vanishes (Brent)."""
    from scipy.optimize import brentq

    if not top < INF:
        return np.nan
    low = 1e-3 * top
    while function(low) >= 0:
        top, low = low, 1e-3 * low
        if low < 1e-290:
            return 0.0
    found = brentq(function, low, top, xtol=1e-300, rtol=1e-15)
    return float(found)


def prox_norm(
    u: Array, step: Array | float, q: float, slope: Callable[[float], float]
) -> Array:
    """argmin φ(‖z‖_q) + Σ (z − u)²/(2 step), where slope = φ'.

    Stationarity is z + step λ z^(q−1) = u with λ = φ'(N) N^(1−q), N = ‖z‖_q. Where
    φ'(N) N^(1−q) does not decrease, ‖z(λ(N))‖_q − N decreases and has one root.
    """
    step = np.broadcast_to(np.asarray(step, float), u.shape)
    top = norm(u, q)
    if top == 0:
        return np.zeros_like(u)

    def at(N: float) -> Array:
        return power_step(u, step * slope(N) * N ** (1 - q), q)

    N = positive_root(lambda N: N - norm(at(N), q), top)
    return at(N) if N > 0 else np.zeros_like(u)


def prox_power(
    u: Array, step: Array | float, q: float, k: float = 2.0, c: float = 1.0
) -> Array:
    """argmin (c/k)‖z‖_q^k + Σ (z − u)²/(2 step).

    For q ≤ k by `prox_norm`. Else by Moreau's identity in the metric of the steps,
    u − step · prox of the dual at u/step: the dual has q* < k*.
    """
    if q == k == 2:
        return np.asarray(u / (1 + c * np.asarray(step)))
    if q <= k:
        return prox_norm(u, step, q, lambda N: c * N ** (k - 1))
    step, dual = np.asarray(step, float), dual_exponent(q)
    slope = lambda N: (N / c) ** (1 / (k - 1))  # noqa: E731  # of the dual
    return u - step * prox_norm(u / step, 1 / step, dual, slope)


def prox_power_slope(
    z: Array, step: Array | float, q: float, k: float = 2.0, c: float = 1.0
) -> Array:
    """∂z/∂u over z > 0, from z = prox_power(u) itself: (I + step ∇²(c/k)‖z‖_q^k)⁻¹.

    The Hessian is a diagonal and a rank-one term.
    """
    used = z > 0
    if not np.any(used):
        return np.zeros((0, 0))
    N = norm(z, q)
    x = np.maximum(z[used] / N, 1e-100)  # x^(q−2) stays finite
    step = np.broadcast_to(np.asarray(step, float), z.shape)[used]
    first, second = c * N ** (k - 1), c * (k - 1) * N ** (k - 2)  # derivatives in N
    bend = first * (q - 1) / N
    outer, inverse = x ** (q - 1), 1 / (1 + step * bend * x ** (q - 2))
    left = inverse * step * outer
    rank = (second - bend) / (1 + (second - bend) * float(outer @ left))
    return np.diag(inverse) - rank * np.outer(left, inverse * outer)
