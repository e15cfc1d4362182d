"""The prox of ½‖(‖z_j‖_r)_j‖_s² over z ≥ 0, squared norms of norms of groups, compiled.

    argmin over z ≥ 0 of ½‖R‖_s² + Σ_k (z_k − u_k)²/(2 step_k),   R_j = ‖z_j‖_r

With N = ‖R‖_s, the multiplier of the norm of group j is λ_j = N^{2−s} R_j^{s−1}:

    r = 1    z_k = (u_k − step_k λ_j)₊
    r > 1    z_k + step_k μ_j z_k^{r−1} = u_k,   μ_j = λ_j R_j^{1−r}

For given N each group has one root (in λ_j by Newton from below, or in R_j), then there
is a root in N. For s = ∞ the groups above N are cut down to it, and Σλ = N. The
objective is strictly convex: there is one such point, however it is found.
"""

from __future__ import annotations

import math

import numpy as np

from ..util.compiled import compiled


@compiled()
def multiplier(u, step, s, N, top):
    """r = 1: λ = N^{2−s} T(λ)^{s−1}, T(λ) = Σ (u − step λ)₊; it is at most top.

    For s = ∞, T(λ) = N, or λ = 0 where T(0) ≤ N. Newton from below: the root of a
    concave function, or by halving where a step leaves the bracket.
    """
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


@compiled()
def power(u, weight, r):
    """z with z + weight z^{r−1} = u: Newton in log z, from above."""
    if u <= 0:
        return 0.0
    if weight <= 0:
        return u
    top, scale = math.log(u), math.log(weight)
    t = min(top, (top - scale) / (r - 1))
    for _ in range(100):
        plain, bent = math.exp(t - top), math.exp(scale + (r - 1) * t - top)
        step = (plain + bent) * math.log(plain + bent) / (plain + (r - 1) * bent)
        if not step > 4e-16 * (1 + abs(t)):
            break
        t -= step
    return math.exp(t)


@compiled()
def norm_at(u, step, r, mu, z):
    """‖z‖_r for the multiplier μ; z is written in place."""
    top = total = 0.0
    for k in range(len(u)):
        z[k] = power(u[k], step[k] * mu, r)
        top = max(top, z[k])
    if top == 0:
        return 0.0
    for k in range(len(u)):
        total += (z[k] / top) ** r
    return top * total ** (1 / r)


@compiled()
def next_point(bracket):
    """The next x inside (low, high, below, above, …): regula falsi, or the middle."""
    low, high, below, above = bracket[0], bracket[1], bracket[2], bracket[3]
    x = (low * above - high * below) / (above - below)
    return x if low < x < high else 0.5 * (low + high)


@compiled()
def update_bracket(bracket, x, value):
    """Move the end that x replaces; the other is halved when it stays (Illinois)."""
    if value == 0 or bracket[1] - bracket[0] <= 1e-15 * bracket[1]:
        return False
    end, other = (1, 0) if value > 0 else (0, 1)
    bracket[end], bracket[2 + end] = x, value
    if bracket[4] == end:
        bracket[2 + other] *= 0.5
    bracket[4] = end
    return True


@compiled()
def solve_group(u, step, r, s, N, z):
    """r > 1: the group's z, and R with R = ‖z(N^{2−s} R^{s−r})‖_r; 0: there is none."""
    high = norm_at(u, step, r, 0.0, z)
    if high == 0:
        return 0.0
    low = high
    above = high - norm_at(u, step, r, N ** (2 - s) * high ** (s - r), z)
    below = above
    while below >= 0:
        high, above = low, below
        low *= 0.01
        if low < 1e-200:
            z[:] = 0.0
            return 0.0
        below = low - norm_at(u, step, r, N ** (2 - s) * low ** (s - r), z)
    bracket = np.array([low, high, below, above, -1.0])
    for _ in range(200):
        R = next_point(bracket)
        value = R - norm_at(u, step, r, N ** (2 - s) * R ** (s - r), z)
        if not update_bracket(bracket, R, value):
            break
    return R


@compiled()
def excess(u, step, ends, tops, r, s, N, z):
    """N minus the norm that N leaves; z is written in place."""
    total = largest = 0.0
    for j in range(len(tops)):
        a, b = ends[j], ends[j + 1]
        if r == 1:
            lam, R = multiplier(u[a:b], step[a:b], s, N, tops[j]), 0.0
            for k in range(a, b):
                z[k] = max(u[k] - step[k] * lam, 0.0)
                R += z[k]
            if np.isinf(s):
                total += lam
                continue
        else:
            R = solve_group(u[a:b], step[a:b], r, s, N, z[a:b])
        if largest < R:  # ‖R‖_s relative to its largest entry: no overflow
            total = total * (largest / R) ** s + 1 if largest > 0 else 1.0
            largest = R
        elif largest > 0:
            total += (R / largest) ** s
    return N - (total if np.isinf(s) else largest * total ** (1 / s))


@compiled()
def prox_of_groups(u, step, ends, r, s, z):
    """z in place; kernels come sorted, group j at ends[j]:ends[j + 1]. s = ∞: r = 1."""
    tops, top = np.zeros(len(ends) - 1), 0.0
    for j in range(len(tops)):
        for k in range(ends[j], ends[j + 1]):
            tops[j] = max(tops[j], u[k] / step[k])
            top += u[k]
        top += tops[j] if np.isinf(s) else 0.0
    if s == 2 or top == 0:  # the groups do not see each other
        excess(u, step, ends, tops, r, s, 1.0, z)
        return
    high, above = top, excess(u, step, ends, tops, r, s, top, z)
    low, below = high, above
    while below >= 0 and low > 1e-290:
        high, above = low, below
        low *= 0.1
        below = excess(u, step, ends, tops, r, s, low, z)
    bracket = np.array([low, high, below, above, -1.0])
    for _ in range(200):
        N = next_point(bracket)
        if not update_bracket(bracket, N, excess(u, step, ends, tops, r, s, N, z)):
            break
