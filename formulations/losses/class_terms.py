"""How a loss of k classes enters an augmented Lagrangian: α(g), its slope, a bias.

At predictions g (n, k), with multipliers a and a penalty σ,

    α(g) = argmax over α of  −Σ C V*(−α/C) − ⟨α, g⟩ − ‖α − a‖²/(2σ)

is minus the gradient of a smooth function E(g), whose Hessian has a block per sample:

    D_i = diag(s_i) − s_i s_iᵀ/Σ_j s_ij,      s_i ≥ 0,      D_i 1 = 0

    Margins    V = max_j (g_j + Δ_j) − g_y. The masses m = C e_y − α of a sample are the
               point of its simplex nearest to m(a) + σ(g + Δ); s is σ for classes with
               a mass, and D_i = 0 if there is only one.
    Softmax    V = log Σ_j exp g_j − g_y: σ = ∞, α = C(e_y − p), s = C p.

`fenchel` is Σ C V(g) + C V*(−α/C) + ⟨α, g⟩ ≥ 0: the part of a duality gap that these
samples have.

Reference: Michelot (1986) for the nearest point of a simplex.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax, xlogy

from ...util.compiled import compiled
from ..norms import line_minimum
from .domains import Array

FIRST_SIGMA = 0.3  # times C: α moves through its simplex while g moves by about 3
BALANCED = 1e-14  # |Σα| relative to ΣC: as exact as floats
MAX_BIAS_STEPS, IDLE = 60, 4  # Newton steps; those without progress: rounding
RANK = 1e-12  # smaller eigenvalues of a k × k matrix are 0, relative to the largest
FLATTEST = 1e-3  # the curvature in b is at least this part of |Σα|: steps stay bounded
# Of `least_bias`: its rounds, the growth of σ, and the relative gap where it ends.
MAX_ROUNDS, GROWTH, BIAS_GAP = 60, 5.0, 1e-10
SMALLEST, LARGEST = 1e-290, 1e290  # σ; its inverse is a number


def limited(sigma: float) -> float:
    """σ as far as σ and 1/σ are numbers: C and y may be as large as floats go."""
    return min(max(sigma, SMALLEST), LARGEST)


class ClassTerms:
    """The loss of some samples; a subclass has `respond`, `fenchel` and `slopes`."""

    first_sigma = 1.0

    def __init__(self, y: Array, costs: Array, k: int):
        self.y, self.costs = np.ascontiguousarray(y), np.array(costs, float)
        self.alpha, self.sigma = np.zeros((len(y), k)), self.first_sigma

    def respond(self, g: Array) -> tuple[Array, Array]:
        """α(g) and s(g)."""
        raise NotImplementedError

    def slopes(self, g: Array, dg: Array, t: float) -> tuple[float, float]:
        """⟨α(g + t dg), dg⟩ and ⟨dg, D dg⟩ there."""
        raise NotImplementedError

    def length(self, g: Array, dg: Array, along: float, bend: float) -> float:
        """The t with the least E(g + t dg) + along·t + ½ bend·t²."""

        def slopes(t: float) -> tuple[float, float]:
            first, second = self.slopes(g, dg, t)
            return along + t * bend - first, bend + second

        return line_minimum(slopes)

    def best_bias(self, g: Array, b: Array) -> Array:
        """The b (k,) with Σα(g + b) = 0, from a guess: Newton's method.

        Its components sum to 0, because a constant for all classes changes nothing.
        """
        tiny, best, idle = BALANCED * float(np.sum(self.costs)), np.inf, 0
        for _ in range(MAX_BIAS_STEPS):
            alpha, s = self.respond(g + b)
            surplus = np.sum(alpha, axis=0)
            off = float(np.max(np.abs(surplus)))
            best, idle = (off, 0) if off < 0.5 * best else (best, idle + 1)
            if off <= tiny or idle > IDLE:
                break
            flat = FLATTEST * float(np.linalg.norm(surplus))
            step = pseudo_inverse(total_bend(s), flat) @ surplus
            moves = np.broadcast_to(step, g.shape).copy()
            t = self.length(g + b, moves, 0.0, 0.0)
            if not np.any(b + t * step != b):
                break
            b = b + t * step
        return b - np.mean(b)


def bend(s: Array, T: Array) -> Array:
    """(D_iT_i)_i."""
    out = np.empty_like(T)
    _bend(s, np.ascontiguousarray(T), out)
    return out


def total_bend(s: Array) -> Array:
    """Σ_i D_i, (k, k)."""
    sums = np.sum(s, axis=1)
    used = sums > 0
    parts = s[used]
    return np.diag(np.sum(parts, axis=0)) - parts.T @ (parts / sums[used, None])


def pseudo_inverse(N: Array, least: float = 0.0) -> Array:
    """The inverse of N ⪰ 0 on vectors that sum to 0, where its eigenvalues count.

    least: smaller eigenvalues are raised to this; if 0, tiny ones have inverse 0
    """
    values, V = np.linalg.eigh(N)
    values = np.maximum(values, least)
    small = values <= RANK * max(float(values[-1]), 1e-300)
    inverse = np.where(small, 0.0, 1 / np.where(small, 1.0, values))
    centre = np.eye(len(N)) - 1 / len(N)
    return np.asarray(centre @ (V * inverse) @ V.T @ centre)


class Margins(ClassTerms):
    """V = max_j (g_j + Δ_j) − g_y: the multi-class hinge."""

    def __init__(self, y: Array, costs: Array, margins: Array):
        self.margins = np.ascontiguousarray(margins, float)
        self.first_sigma = limited(FIRST_SIGMA * float(np.mean(costs)))
        super().__init__(y, costs, margins.shape[1])

    @property
    def _at(self) -> tuple:
        return self.y, self.costs, self.margins, self.alpha, 1 / limited(self.sigma)

    def respond(self, g: Array) -> tuple[Array, Array]:
        """α(g) and s(g)."""
        alpha, s = np.empty(g.shape), np.empty(g.shape)
        _respond(*self._at, np.ascontiguousarray(g), alpha, s)
        return alpha, s

    def slopes(self, g: Array, dg: Array, t: float) -> tuple[float, float]:
        """⟨α(g + t dg), dg⟩ and ⟨dg, D dg⟩ there."""
        first, second = _slopes(*self._at, g, dg, t)
        return float(first), float(second)

    def fenchel(self, g: Array, alpha: Array) -> float:
        """The part of the gap that these samples have."""
        return float(_fenchel(self.y, self.costs, self.margins, g, alpha))

    def support(self, alpha: Array, room: float) -> Array:
        """(n, k): 1 where the mass is larger than room·C; 0 if there is only one."""
        mass = -alpha
        mass[np.arange(len(mass)), self.y] += self.costs
        held = mass > room * self.costs[:, None]
        return 1.0 * (held & (np.count_nonzero(held, axis=1) > 1)[:, None])

    def part(self, rows: Array) -> Margins:
        """Those of some of the samples."""
        return Margins(self.y[rows], self.costs[rows], self.margins[rows])

    def times(self, factor: float) -> Margins:
        """The same with a C that is larger by a factor."""
        return Margins(self.y, factor * self.costs, self.margins)

    @property
    def curved(self) -> bool:
        """Whether σ = ∞."""
        return False


class Softmax(ClassTerms):
    """V = log Σ_j exp g_j − g_y: the multinomial loss."""

    def __init__(self, y: Array, costs: Array, k: int):
        self.k = k
        super().__init__(y, costs, k)

    def respond(self, g: Array) -> tuple[Array, Array]:
        """α(g) and s(g)."""
        s = self.costs[:, None] * np.exp(log_softmax(g, axis=1))
        alpha, rows = -s, np.arange(len(g))
        alpha[rows, self.y] = 0.0
        alpha[rows, self.y] = -np.sum(alpha, axis=1)
        return alpha, s

    def slopes(self, g: Array, dg: Array, t: float) -> tuple[float, float]:
        """⟨α(g + t dg), dg⟩ and ⟨dg, D dg⟩ there."""
        alpha, s = self.respond(g + t * dg)
        return float(np.sum(alpha * dg)), float(np.sum(dg * bend(s, dg)))

    def fenchel(self, g: Array, alpha: Array) -> float:
        """The part of the gap that these samples have: C times a divergence."""
        p = -alpha
        p[np.arange(len(g)), self.y] += self.costs
        p = np.maximum(p, 0.0) / self.costs[:, None]
        apart = np.sum(xlogy(p, p) - p * log_softmax(g, axis=1), axis=1)
        return float(self.costs @ np.maximum(apart, 0.0))

    def part(self, rows: Array) -> Softmax:
        """Those of some of the samples."""
        return Softmax(self.y[rows], self.costs[rows], self.k)

    def times(self, factor: float) -> Softmax:
        """The same with a C that is larger by a factor."""
        return Softmax(self.y, factor * self.costs, self.k)

    @property
    def curved(self) -> bool:
        """Whether σ = ∞."""
        return True


def least_bias(terms: Margins, f: Array) -> Array:
    """The b that minimizes Σ C V(f + b): by proximal steps on its dual."""
    b, size = np.zeros(f.shape[1]), terms.fenchel(f, np.zeros(f.shape))
    for _ in range(MAX_ROUNDS):
        b = terms.best_bias(f, b)
        terms.alpha = terms.respond(f + b)[0]
        if terms.fenchel(f + b, terms.alpha) <= BIAS_GAP * size:
            break
        terms.sigma *= GROWTH
    return b


# ---- the compiled loops ----------------------------------------------------------


@compiled()
def ascent(a, s, m, d):
    """d = argmax ⟨s, d⟩ − ½a‖d‖² over d ≥ −m, Σd = 0: max((s − τ)/a, −m).

    τ rises from round to round as classes drop out, at most k times. d is the change
    of the masses, because a mass may be millions of times larger than its change.
    """
    k, first = len(s), np.argmax(s)
    count, tau = k + 1, -np.inf
    while True:
        total, number = 0.0, 0
        for j in range(k):
            if s[j] - tau > -a * m[j]:
                total += s[j] - s[first]
                number += 1
            else:
                total -= a * m[j]
        if number >= count or number == 0:  # no class has dropped out: τ is exact
            break
        count, tau = number, s[first] + total / number
    left = 0.0
    for j in range(k):
        d[j] = -m[j]
        if s[j] - tau > -a * m[j]:
            d[j] = max((s[j] - tau) / max(a, 1e-300), -m[j])
        left += d[j]
    d[first] -= left  # rounding; if a = 0, the whole mass


@compiled()
def _masses(y, C, a, i, m):
    """The masses m = C e_y − a of sample i."""
    for j in range(len(m)):
        m[j] = max(-a[i, j], 0.0)
    m[y[i]] = max(C[i] - a[i, y[i]], 0.0)


@compiled()
def _respond(y, C, margins, a, inverse, g, alpha, s):
    n, k = g.shape
    x, m, d = np.empty(k), np.empty(k), np.empty(k)
    for i in range(n):
        _masses(y, C, a, i, m)
        for j in range(k):
            x[j] = g[i, j] + margins[i, j]
        ascent(inverse, x, m, d)
        count, rest = 0, 0.0
        for j in range(k):
            mass = max(m[j] + d[j], 0.0)
            count += mass > 0
            s[i, j] = 1 / inverse if mass > 0 else 0.0
            if j != y[i]:
                alpha[i, j] = -mass
                rest += mass
        alpha[i, y[i]] = rest
        if count < 2:
            s[i] = 0.0


@compiled()
def _slopes(y, C, margins, a, inverse, g, dg, t):
    n, k = g.shape
    x, m, d = np.empty(k), np.empty(k), np.empty(k)
    first = second = 0.0
    for i in range(n):
        _masses(y, C, a, i, m)
        for j in range(k):
            x[j] = g[i, j] + t * dg[i, j] + margins[i, j]
        ascent(inverse, x, m, d)
        count, total, squares, own = 0, 0.0, 0.0, dg[i, y[i]]
        for j in range(k):
            mass = max(m[j] + d[j], 0.0)
            move = dg[i, j] - own  # rows of α sum to 0
            first -= mass * move
            if mass > 0:
                count += 1
                total += move
                squares += move * move
        if count > 1:
            second += (squares - total * total / count) / inverse
    return first, max(second, 0.0)


@compiled()
def _fenchel(y, C, margins, g, alpha):
    """Σ_i Σ_j m_ij (max_l (g + Δ)_il − (g + Δ)_ij)."""
    n, k = g.shape
    m, total = np.empty(k), 0.0
    for i in range(n):
        _masses(y, C, alpha, i, m)
        top = -np.inf
        for j in range(k):
            top = max(top, g[i, j] + margins[i, j])
        for j in range(k):
            total += m[j] * (top - g[i, j] - margins[i, j])
    return total


@compiled()
def _bend(s, T, out):
    n, k = s.shape
    for i in range(n):
        total = mean = 0.0
        for j in range(k):
            total += s[i, j]
            mean += s[i, j] * T[i, j]
        mean = mean / total if total > 0 else 0.0
        for j in range(k):
            out[i, j] = s[i, j] * (T[i, j] - mean)
