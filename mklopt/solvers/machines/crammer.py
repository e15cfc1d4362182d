"""The multi-class SVM: one kernel matrix, the dual of Crammer and Singer.

    max over α   −⟨Δ, α⟩ − ½ tr αᵀKα    subject to   α_i = C_i e_{y_i} − m_i,
                 m_i ≥ 0, Σ_j m_ij = C_i, and Σ_i α_i = 0 when there is a bias

for the losses V = max_j (f_j + Δ_j) − f_y, with one C or one per sample. m_i is the
mass that sample i gives to each class; with the scores s = Kα + Δ, at the optimum it
lies where s_ij is largest.

Algorithm. Block-coordinate ascent, one sample at a time: at fixed others the best m_i
is the point of its simplex nearest to m_i + s_i/K_ii, which a fixed-point iteration of
at most k rounds finds exactly (Michelot 1986). Samples that would gain at least a tenth
as much as the best of them move, in turn; only classes whose mass has changed touch the
scores, which are kept class by class. Now and then Newton's step on the free
coordinates; where K is singular it leads from one end of a mass to the next.

A bias is the multiplier b of Σα = 0, which no move of one sample preserves: the ascent
runs on the augmented Lagrangian, that is on the kernel K + ρ with the scores s + b,
followed by b ← b + ρΣα, while Newton's step restores Σα = 0 and finds its own b.

Guarantee. `gap` bounds the distance to the optimum: Σ_i C_i max_j (s + b)_ij −
⟨m_i, (s + b)_i⟩, each term ≥ 0 by Fenchel and Young, computed at the returned α, which
is feasible. Without a bias the dual value never falls, but for rounding.

Reference: Crammer and Singer (2001), section 5 for the block; the rest derived anew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import float64, int64, types

from ...problem import Problem
from ...util.compiled import READ_ONLY, compiled
from .linear import bordered
from .machine import MAX_FREE, Machine, Solution, ascend

Array = np.ndarray
WORTHWHILE = 0.1  # the part of the best gain for which a sample is moved
TABLE = float64[:, ::1]
EPS = 2.0**-52


@dataclass(frozen=True)
class Free:
    """The coordinates in which α can move: mass to class j of sample i, from base.

    Every class of a sample that has mass, but the one that has most: its base.
    """

    i: Array
    j: Array
    base: Array
    outputs: int
    bias: bool

    @classmethod
    def of(cls, problem: Problem, alpha: Array) -> Free:
        """Those of α, up to rounding."""
        domain = problem.loss.domain(problem.y)
        mass = domain.mass(alpha, problem.costs)
        positive = mass > 1e-13 * problem.costs[:, None]  # less is rounding
        top = np.argmax(mass, axis=1)
        positive[np.arange(len(mass)), top] = False
        i, j = np.nonzero(positive)
        return cls(i, j, top[i], mass.shape[1], problem.bias)

    def __len__(self) -> int:
        return len(self.i)

    def reduced(self, slopes: Array) -> Array:
        """(N, ·): the slopes along the free coordinates from (·, n, k) of them."""
        return (slopes[:, self.i, self.j] - slopes[:, self.i, self.base]).T

    def lifted(self, step: Array, n: int) -> Array:
        """(n, k, …): the change of α that a step in the free coordinates is."""
        out = np.zeros((n, self.outputs, *step.shape[1:]))
        out[self.i, self.j] = step
        np.subtract.at(out, (self.i, self.base), step)
        return out

    def system(self, K: Array) -> Array:
        """The A with dᵀA d = tr DᵀKD for the change D of α along d."""
        pairs = [np.eye(self.outputs)[j] for j in (self.j, self.base)]
        moves = pairs[0] - pairs[1]
        return K[np.ix_(self.i, self.i)] * (moves @ moves.T)

    @property
    def border(self) -> Array | None:
        """What each coordinate adds to Σα, class by class; the last one follows."""
        if not self.bias:
            return None
        unit = np.eye(self.outputs)
        return (unit[self.j] - unit[self.base])[:, :-1]


class CrammerMachine(Machine):
    """The inner problem of a loss with k outputs that states its margins."""

    def solve_on(self, K: Array, budget: int | None = None) -> Solution:
        """α on one kernel matrix: block-coordinate ascent and Newton steps."""
        return solve(self.problem, K, self.alpha, tol=self.tol, budget=budget)

    @property
    def free(self) -> Free:
        """Masses between 0 and C."""
        return Free.of(self.problem, self.point)


def solve(
    problem: Problem,
    K: Array,
    start: Array | None = None,
    *,
    tol: float = 0.0,
    budget: int | None = None,
) -> Solution:
    """The SVM of `problem` on the kernel K, until gap ≤ tol or out of moves."""
    margins = problem.loss.margins(problem.y)
    if margins is None:
        raise ValueError(f"the dual of {problem.loss.name} is not linear on simplices")
    return ascend(Ascent(problem, K, margins, start), len(K), tol, budget)


class Ascent:
    """Masses (k, n) and the scores Kα + Δ + b that belong to them."""

    def __init__(self, problem: Problem, K: Array, fixed: Array, start: Array | None):
        self.problem, self.fixed, self.C = problem, fixed, np.array(problem.costs)
        self.turn, self.patient = max(5 * len(K), 1000), problem.bias
        self.domain, self.b = problem.loss.domain(problem.y), np.zeros(fixed.shape[1])
        alpha = np.zeros(problem.shape) if start is None else np.array(start)
        self.place(self.domain.restore(alpha, self.C, False))
        self.K, self.rho, self.gap = np.ascontiguousarray(K), 0.0, math.inf
        if problem.bias:
            self.rho = max(float(np.mean(np.diag(K))), 1 / float(np.sum(self.C)))
            self.K = self.K + self.rho
        self.score()
        if problem.bias:
            self.raise_bias(self._multipliers(self._free(), self.S.T[None]))

    def place(self, alpha: Array) -> None:
        """Take the masses of α."""
        self.mass = np.ascontiguousarray(self.domain.mass(alpha, self.C).T)
        self.mass[self.mass < 0] = 0.0  # rounding

    @property
    def alpha(self) -> Array:
        """C e_y − m; the own class gets what the others give, to the last bit."""
        y, rows = self.problem.y, np.arange(len(self.C))
        alpha = -self.mass.T
        alpha[rows, y] = 0.0
        alpha[rows, y] = -np.sum(alpha, axis=1)
        return alpha

    @property
    def noise(self) -> float:
        """A gap that rounding may leave: 1e-8 of the dual, C times that of scores."""
        linear = float(np.sum(np.abs(self.fixed * self.alpha)))
        return 1e-8 * linear + 8 * EPS * float(self.C @ np.max(np.abs(self.S), axis=0))

    def score(self) -> None:
        """The scores at α, from scratch."""
        self.S = np.ascontiguousarray((self.K @ self.alpha + self.fixed + self.b).T)

    @property
    def value(self) -> float:
        """The (augmented) dual value: −⟨Δ + b, α⟩ − ½⟨Kα, α⟩."""
        return -0.5 * float(np.sum(self.alpha * (self.S.T + self.fixed + self.b)))

    def raise_bias(self, by: Array) -> None:
        """Another b, and the scores with it."""
        self.b = self.b + by
        self.S += by[:, None]

    def climb(self, tol: float, most: int) -> tuple[int, float]:
        """So many moves at most; their number and the gap."""
        if not self.problem.bias:
            return _climb(self.K, self.S, self.mass, tol, most)
        tight = min(tol, 0.1 * self.gap)
        done, _ = _climb(self.K, self.S, self.mass, tight, most)
        self.raise_bias(self.rho * np.sum(self.alpha, axis=0))
        self.gap = self.point()[2]
        return done, self.gap

    def point(self) -> tuple[Array, Array, float]:
        """α, feasible; the bias; and the gap there."""
        alpha, b = self.problem.feasible(self.alpha), self.b
        scores = self.K @ alpha + self.fixed + b  # ρΣα is nothing here
        mass = self.domain.mass(alpha, self.C)
        below = np.max(scores, axis=1, keepdims=True) - scores
        return alpha, b, float(np.sum(np.maximum(mass, 0.0) * below))

    def _free(self) -> Free:
        return Free.of(self.problem, self.alpha)

    def _multipliers(self, free: Free, slopes: Array) -> Array:
        """The b that evens out the slopes of free coordinates."""
        b = np.zeros(len(self.b))
        if free.border is not None and len(free):
            slope = free.reduced(slopes)[:, 0]
            b[:-1] = np.linalg.lstsq(free.border, -slope)[0]
        return b

    def newton(self, most: int) -> int:
        """Exact steps on the free coordinates, until one is not cut short.

        Returns what they cost, in moves that would have taken as long; not many more
        than so many.
        """
        cost, short = 0, True
        while short and cost < most:
            free, n = self._free(), len(self.C)
            if not 0 < len(free) <= MAX_FREE:
                break
            cost += 1 + len(free) ** 3 // (200 * n) + n
            short = self._step(free)
        return cost

    def _step(self, free: Free) -> bool:
        slope = free.reduced(self.S.T[None])
        surplus = None if free.border is None else -np.sum(self.alpha, axis=0)[:-1]
        system = free.system(self.K)
        found = bordered(system, -slope, free.border, surplus)
        if found is None:
            return False
        step = free.lifted(found[:, 0], len(self.C))
        if free.border is not None:
            rest = slope[:, 0] + system @ found[:, 0]
            self.raise_bias(np.append(-np.linalg.lstsq(free.border, rest)[0], 0.0))
        return self._follow(step)

    def _follow(self, step: Array) -> bool:
        """Along a step, projected: all of it, or as far as the value rises.

        Up to the first end of a mass it does; where K is singular that is next to
        nothing of a huge step, so that t grows from there. Returns whether it was cut
        short and yet led somewhere.
        """
        alpha, before = self.alpha, self.value
        best = before, self.mass, self.S
        rounding = 16 * EPS * float(np.sum(np.abs(self.fixed * alpha)))
        if self._at(alpha + step) >= before - rounding:  # near the end, slopes matter
            return False
        t = self.domain.room(alpha, step, self.C)
        while t <= 1:
            value = self._at(alpha + t * step)
            if value <= best[0]:
                break
            best = value, self.mass, self.S
            t = 4 * t
        _, self.mass, self.S = best
        return best[0] > before

    def _at(self, alpha: Array) -> float:
        """The value at the feasible point next to α, where the ascent goes on."""
        self.place(self.domain.restore(alpha, self.C, False))
        self.score()
        return self.value


@compiled(types.UniTuple(float64, 2)(READ_ONLY, TABLE, TABLE, float64[::1]))
def _gains(K, S, mass, gain):
    """The gap, the best gain, and what each sample gains by its best pair of classes.

    Mass moved from the lowest score where there is some to the highest: t of it wins
    t·(difference) − t²K_ii.
    """
    k, n = S.shape
    gap = best = 0.0
    for i in range(n):
        top = -np.inf
        for j in range(k):
            top = max(top, S[j, i])
        most, room = 0.0, 0.0
        for j in range(k):
            below, m = top - S[j, i], mass[j, i]
            gap += m * below  # Σ_j m_ij = C_i
            if m > 0 and below > most:
                most, room = below, m
        t = min(most / max(2 * K[i, i], 1e-300), room)
        gain[i] = t * (most - K[i, i] * t)
        best = max(best, gain[i])
    return gap, best


@compiled(types.void(float64, *[float64[::1]] * 3))
def ascent(a, s, m, d):
    """d = argmax ⟨s, d⟩ − ½a‖d‖² over d ≥ −m, Σd = 0: max((s − τ)/a, −m).

    τ rises from round to round as classes drop out, at most k times. Changes, not new
    masses: what a sample keeps may be millions of times what it moves.
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
        if number >= count or number == 0:  # none has dropped out: exact
            break
        count, tau = number, s[first] + total / number
    left = 0.0
    for j in range(k):
        d[j] = -m[j]
        if s[j] - tau > -a * m[j]:
            d[j] = max((s[j] - tau) / max(a, 1e-300), -m[j])
        left += d[j]
    d[first] -= left  # rounding; everything, where a = 0


@compiled(types.void(READ_ONLY, TABLE, TABLE, int64, *[float64[::1]] * 3))
def _move(K, S, mass, i, s, m, d):
    """The best masses of sample i, and the scores after that."""
    k, n = S.shape
    row = K[i]
    for j in range(k):
        s[j], m[j] = S[j, i], mass[j, i]
    ascent(K[i, i], s, m, d)
    for j in range(k):
        change = d[j]
        if change != 0.0:
            mass[j, i] = max(m[j] + change, 0.0)
            scores = S[j]
            for l in range(n):
                scores[l] -= change * row[l]


@compiled(types.Tuple((int64, float64))(READ_ONLY, TABLE, TABLE, float64, int64))
def _climb(K, S, mass, tol, most):
    """Moves in place, the samples in turn that gain most; their number and the gap."""
    k, n = S.shape
    gain, s, m, d = np.empty(n), np.empty(k), np.empty(k), np.empty(k)
    moves = 0
    while True:
        gap, best = _gains(K, S, mass, gain)
        if gap <= tol or moves >= most or best <= 0:
            return moves, gap
        for i in range(n):
            if gain[i] >= WORTHWHILE * best:
                _move(K, S, mass, i, s, m, d)
                moves += 1
