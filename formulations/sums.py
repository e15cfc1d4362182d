"""The prox of ½‖T‖_s², T_j = Σ_{k∈j} z_k: squared norms of sums over groups, compiled.

    argmin over z ≥ 0 of ½‖T‖_s² + Σ_k (z_k − u_k)²/(2 step_k)

z_k = (u_k − step_k λ_j)₊ with a price λ_j = N^{2−s} T_j^{s−1} per group, N = ‖T‖_s. For
given N each group has one root, found by Newton from below; then a root in N. For s = ∞
the groups above N are cut down to it, and Σλ = N. The objective is strictly convex:
there is one such point, however it is found.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, njit

Array = np.ndarray


@njit(float64(float64[::1], float64[::1], float64, float64, float64), cache=True)
def price(u, step, s, N, top):
    """λ of one group: λ = N^{2−s} T(λ)^{s−1}, or T(λ) = N for s = ∞ (if T(0) > N)."""
    if s == 1:
        return N
    low, high, x = 0.0, top, 0.0
    for _ in range(200):
        T = fall = 0.0
        for k in range(len(u)):
            z = u[k] - step[k] * x
            if z > 0:
                T += z
                fall += step[k]
        if np.isinf(s):
            value, slope = N - T, fall
        else:
            scale = N ** (2 - s) * max(T, 1e-300) ** (s - 2)
            value, slope = x - scale * T, 1 + (s - 1) * scale * fall
        if value > 0:
            high = x
        else:
            low = x
        new = x - value / slope if slope > 0 else high
        if not low <= new <= high:
            new = 0.5 * (low + high)
        done = abs(new - x) <= 1e-15 * abs(x) or value == 0
        x = new
        if done or low == high:
            break
    return x


@njit(
    float64(
        float64[::1], float64[::1], int64[::1], float64[::1], float64, float64,
        float64[::1],
    ),
    cache=True,
)  # fmt: skip
def excess(u, step, ends, tops, s, N, prices):
    """N minus the norm that N's prices leave; prices are written in place."""
    total = largest = 0.0
    for j in range(len(tops)):
        a, b = ends[j], ends[j + 1]
        prices[j] = price(u[a:b], step[a:b], s, N, tops[j])
        if np.isinf(s):
            total += prices[j]
            continue
        T = 0.0
        for k in range(a, b):
            T += max(u[k] - step[k] * prices[j], 0.0)
        if largest < T:  # ‖T‖_s relative to its largest entry: no overflow
            total = total * (largest / T) ** s + 1 if largest > 0 else 1.0
            largest = T
        elif largest > 0:
            total += (T / largest) ** s
    if np.isinf(s):
        return N - total
    return N - largest * total ** (1 / s)


@njit(float64[::1](float64[::1], float64[::1], int64[::1], float64), cache=True)
def prices(u, step, ends, s):
    """λ for all groups; kernels come sorted, group j at ends[j]:ends[j + 1]."""
    count = len(ends) - 1
    out, tops, top = np.zeros(count), np.zeros(count), 0.0
    for j in range(count):
        for k in range(ends[j], ends[j + 1]):
            tops[j] = max(tops[j], u[k] / step[k])
            top += u[k]
        top += tops[j]
    if s == 2 or top == 0:
        excess(u, step, ends, tops, s, 1.0, out)
        return out
    high, above = top, excess(u, step, ends, tops, s, top, out)
    low, below = high, above
    while below >= 0 and low > 1e-290:
        high, above = low, below
        low *= 0.1
        below = excess(u, step, ends, tops, s, low, out)
    side = 0
    for _ in range(200):  # regula falsi, each end halved when it stays (Illinois)
        N = (low * above - high * below) / (above - below)
        if not low < N < high:
            N = 0.5 * (low + high)
        value = excess(u, step, ends, tops, s, N, out)
        if value == 0 or high - low <= 1e-15 * high:
            break
        if value > 0:
            high, above = N, value
            below = 0.5 * below if side == 1 else below
            side = 1
        else:
            low, below = N, value
            above = 0.5 * above if side == -1 else above
            side = -1
    return out
