"""The move of SMO, compiled: which coordinates move, how far, and the gap they leave.

    min over α   ½ αᵀKα + Σ_i ½ r_i α_i² − ℓ_i α_i + κ_i |α_i|
    subject to   low_i ≤ α_i ≤ high_i,  and Σ α_i = 0 when there is a bias

Step. Second-order choice of the working set (Fan, Chen and Lin 2005): the coordinate
that wants to move most, and the partner that gains most from it; one coordinate alone
when there is no bias. A kink is an end of a step, like a bound.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, types

from ...util.compiled import READ_ONLY, STACK, VECTOR, compiled

FIVE = [VECTOR] * 5


@compiled(float64(float64, float64, float64, float64))
def moved(x, step, low, high):
    """x + step, landing exactly on bounds and on 0."""
    y = min(max(x + step, low), high)
    if abs(y) < 1e-15 * abs(x):
        return 0.0
    return y


@compiled(types.UniTuple(float64, 2)(*FIVE, boolean, float64[::1], float64[::1]))
def machine_gap(linear, kink, ridge, low, high, bias, alpha, g):
    """Σ of Fenchel–Young terms, with the bias half-way between what is allowed."""
    n = len(alpha)
    b = 0.0
    if bias:
        top, bottom = -np.inf, np.inf
        for k in range(n):
            if alpha[k] < high[k]:
                top = max(top, -(g[k] + (kink[k] if alpha[k] >= 0 else -kink[k])))
            if alpha[k] > low[k]:
                bottom = min(bottom, -(g[k] + (kink[k] if alpha[k] > 0 else -kink[k])))
        if np.isfinite(top) and np.isfinite(bottom):
            b = 0.5 * (top + bottom)
        elif np.isfinite(top):
            b = top
        elif np.isfinite(bottom):
            b = bottom
    total = 0.0
    for k in range(n):
        a = alpha[k]
        pull = -(g[k] - ridge[k] * a) - b  # ℓ − f − b: how far the sample is off
        here = 0.5 * ridge[k] * a * a + kink[k] * abs(a) - pull * a
        if pull > kink[k]:
            t = high[k] if ridge[k] == 0 else min(high[k], (pull - kink[k]) / ridge[k])
            here += t * (pull - kink[k]) - 0.5 * ridge[k] * t * t
        elif pull < -kink[k]:
            t = low[k] if ridge[k] == 0 else max(low[k], (pull + kink[k]) / ridge[k])
            here += t * (pull + kink[k]) - 0.5 * ridge[k] * t * t
        total += max(here, 0.0)
    return total, b


@compiled(types.Tuple((int64, float64))(float64[::1], VECTOR, float64[::1], VECTOR))
def mover(g, kink, alpha, high):
    """The coordinate that wants up most, and how much."""
    best, i = -np.inf, -1
    for k in range(len(alpha)):
        if alpha[k] < high[k]:
            rate = -(g[k] + (kink[k] if alpha[k] >= 0 else -kink[k]))
            if rate > best:
                best, i = rate, k
    return i, best


@compiled(
    types.Tuple((int64, float64, float64))(
        int64, float64, float64[::1], *[VECTOR] * 2, float64[::1], *[VECTOR] * 3
    )
)
def partner(i, best, g, kink, ridge, alpha, low, row, diag):
    """The coordinate whose way down gains most with i up; slope and curvature of both.

    row is row i of the kernel, diag its diagonal.
    """
    gain, j, fall, curve = 0.0, -1, 0.0, 1.0
    own = diag[i] + ridge[i]
    for k in range(len(alpha)):
        if alpha[k] > low[k] and k != i:
            slope = best + g[k] + (kink[k] if alpha[k] > 0 else -kink[k])
            if slope > 0:
                bend = own + diag[k] + ridge[k] - 2 * row[k]
                bend = max(bend, 1e-12 * (own + 1e-300))
                if slope * slope > gain * bend:
                    gain, j, fall, curve = slope * slope / bend, k, slope, bend
    return j, fall, curve


@compiled(
    types.Tuple((int64, float64, float64))(
        float64[::1], *[VECTOR] * 2, float64[::1], *[VECTOR] * 3
    )
)
def single(g, kink, ridge, alpha, low, high, diag):
    """Without a bias: the coordinate that gains most, its direction and its slope."""
    gain, i, way, fall = 0.0, -1, 1.0, 0.0
    for k in range(len(alpha)):
        bend = max(diag[k] + ridge[k], 1e-300)
        up = -(g[k] + (kink[k] if alpha[k] >= 0 else -kink[k]))
        down = g[k] + (kink[k] if alpha[k] > 0 else -kink[k])
        slope, room, side = 0.0, 0.0, 1.0
        if up > 0 and alpha[k] < high[k]:
            slope, room = up, high[k] - alpha[k]
        elif down > 0 and alpha[k] > low[k]:
            slope, room, side = down, alpha[k] - low[k], -1.0
        if slope > 0:
            t = min(slope / bend, room)
            won = t * (slope - 0.5 * t * bend)
            if won > gain:
                gain, i, way, fall = won, k, side, slope
    return i, way, fall


@compiled(float64(float64, float64, float64, float64, float64))
def room(a, way, kink, low, high):
    """How far a coordinate can move up (way = 1) or down to a bound or its kink."""
    if way > 0:
        return -a if kink > 0 and a < 0 else high - a
    return a if kink > 0 and a > 0 else a - low


@compiled(
    types.Tuple((int64, float64, float64))(
        READ_ONLY, *FIVE, boolean, float64[::1], float64[::1], float64, int64
    )
)
def smo(K, linear, kink, ridge, low, high, bias, alpha, g, tol, most):
    """At most so many moves, in place; returns their number, the gap and the bias.

    g is the gradient of the smooth part. Moving i up changes the objective at the rate
    g_i ± κ_i, moving it down at minus that; which sign depends on the side of 0.
    """
    n = len(alpha)
    diag = np.diag(K).copy()
    moves, stuck = 0, False
    while True:
        if moves % n == 0 or moves >= most or stuck:
            gap, b = machine_gap(linear, kink, ridge, low, high, bias, alpha, g)
            if gap <= tol or moves >= most or stuck:
                return moves, gap, b
        if bias:
            i, best = mover(g, kink, alpha, high)
            j = -1
            if i >= 0:
                j, fall, bend = partner(i, best, g, kink, ridge, alpha, low, K[i], diag)
            if j < 0:
                stuck = True
                continue
            step = fall / bend
            step = min(step, room(alpha[i], 1.0, kink[i], low[i], high[i]))
            step = min(step, room(alpha[j], -1.0, kink[j], low[j], high[j]))
            alpha[i] = moved(alpha[i], step, low[i], high[i])
            alpha[j] = moved(alpha[j], -step, low[j], high[j])
            first, second = K[i], K[j]
            for k in range(n):
                g[k] += step * (first[k] - second[k])
            g[i] += step * ridge[i]
            g[j] -= step * ridge[j]
        else:
            i, way, fall = single(g, kink, ridge, alpha, low, high, diag)
            if i < 0:
                stuck = True
                continue
            step = fall / max(diag[i] + ridge[i], 1e-300)
            step = way * min(step, room(alpha[i], way, kink[i], low[i], high[i]))
            alpha[i] = moved(alpha[i], step, low[i], high[i])
            row = K[i]
            for k in range(n):
                g[k] += step * row[k]
            g[i] += step * ridge[i]
        moves += 1


@compiled(
    types.Tuple((int64, int64, float64, float64))(
        STACK, VECTOR, float64[::1], *[VECTOR] * 2, float64[::1], *[VECTOR] * 2,
        float64[::1], VECTOR,
    )
)  # fmt: skip
def pair(K, theta, g, kink, ridge, alpha, low, high, row, diag):
    """The pair (i up, j down) for the kernel Σθ_mK_m, its slope and curvature.

    `row` becomes row i of that kernel; j = −1 says that nothing is left to gain.
    """
    i, best = mover(g, kink, alpha, high)
    if i < 0:
        return i, -1, 0.0, 1.0
    row[:] = 0.0
    for m in range(len(theta)):
        t, own = theta[m], K[m, i]
        if t > 0:
            for k in range(len(row)):
                row[k] += t * own[k]
    j, fall, bend = partner(i, best, g, kink, ridge, alpha, low, row, diag)
    return i, j, fall, bend
