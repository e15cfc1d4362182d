"""V and a subgradient of it at one sample, compiled, for solvers that go by samples.

    value = function(f, y, parameter, g)        f and g of length 1, or k; g is written

One signature for all, so that one compiled loop serves every loss; `at_a_sample`
compiles one of them, when it is used. Classes arrive as y = 0.0 … k − 1. The contract
suite checks each against the loss that states it.
"""

from __future__ import annotations

from functools import cache
from math import exp, log, log1p

from numba import float64

from ...util.compiled import compiled

SIGNATURE = float64(float64[::1], float64, float64, float64[::1])
at_a_sample = cache(compiled(SIGNATURE))


def hinge(f, y, _, g):
    """max(0, 1 − y f)."""
    short = 1 - y * f[0]
    g[0] = -y if short > 0 else 0.0
    return max(short, 0.0)


def logistic(f, y, _, g):
    """log(1 + exp(−y f))."""
    margin = y * f[0]
    small = exp(-abs(margin))
    g[0] = -y * (small if margin > 0 else 1.0) / (1 + small)
    return max(-margin, 0.0) + log1p(small)


def eps_insensitive(f, y, eps, g):
    """max(0, |f − y| − ε)."""
    off = f[0] - y
    g[0] = 0.0 if abs(off) <= eps else (1.0 if off > 0 else -1.0)
    return max(abs(off) - eps, 0.0)


def huber(f, y, delta, g):
    """½r² up to |r| = δ, then δ|r| − ½δ²."""
    off = f[0] - y
    g[0] = min(max(off, -delta), delta)
    inner = min(abs(off), delta)
    return inner * (abs(off) - 0.5 * inner)


def quantile(f, y, tau, g):
    """max(τ r, (τ − 1) r), r = y − f."""
    off = f[0] - y
    g[0] = 0.0 if off == 0 else (1 - tau if off > 0 else -tau)
    return g[0] * off


def multiclass_hinge(f, y, _, g):
    """max_j (f_j + [j ≠ y]) − f_y."""
    own = int(y)
    best, top = own, f[own]
    for j in range(len(f)):
        g[j] = 0.0
        if j != own and f[j] + 1 > top:
            best, top = j, f[j] + 1
    if best != own:
        g[best], g[own] = 1.0, -1.0
    return top - f[own]


def multinomial(f, y, _, g):
    """log Σ_j exp f_j − f_y."""
    top, total = f.max(), 0.0
    for j in range(len(f)):
        g[j] = exp(f[j] - top)
        total += g[j]
    for j in range(len(f)):
        g[j] /= total
    g[int(y)] -= 1
    return top + log(total) - f[int(y)]
