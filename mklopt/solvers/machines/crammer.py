"""The multi-class SVM: one kernel matrix, the dual of Crammer and Singer.

    max over α   −⟨Δ, α⟩ − ½ tr αᵀKα    subject to   α_i = C_i e_{y_i} − m_i,
                 m_i ≥ 0, Σ_j m_ij = C_i, and Σ_i α_i = 0 when there is a bias

for the losses V = max_j (f_j + Δ_j) − f_y, with one C or one per sample. m_i is the
mass that sample i gives to each class; with the scores s = Kα + Δ, at the optimum it
lies where s_ij is largest.

Algorithm. Block-coordinate ascent, one sample at a time. With the others fixed, the
best m_i is the point of its simplex nearest to m_i + s_i/K_ii; a fixed-point iteration
of at most k rounds finds it exactly (Michelot 1986). In each round, the samples move
that would gain at least a tenth of the largest gain. Scores are stored class by class;
only those of classes whose mass changes are updated. Between rounds there are Newton
steps on the free coordinates; where K is singular, such a step ends where the next mass
becomes 0.

A bias is the multiplier b of Σα = 0. A move of one sample cannot preserve this sum, so
the ascent runs on the augmented Lagrangian, that is on the kernel K + ρ with the scores
s + b, followed by b ← b + ρΣα. A Newton step restores Σα = 0 and finds its own b.

Guarantee. `gap` bounds the distance to the optimum: Σ_i C_i max_j (s + b)_ij −
⟨m_i, (s + b)_i⟩, each term ≥ 0 by Fenchel and Young, computed at the returned α, which
is feasible. Without a bias the dual value never falls, except by rounding.

Reference: Crammer and Singer (2001), section 5 for the block; the rest derived anew.
"""

import numpy as np

from ...formulations.losses.class_terms import ascent
from ...problem import Problem
from ...util.compiled import compiled, read_only
from .linear import bordered
from .machine import MAX_FREE, Array, Free, Machine, Solution, ascend

WORTHWHILE = 0.1  # a sample moves if it gains at least this part of the largest gain
BALANCING = 5000  # moves that take as long as it takes to restore Σα = 0
POSITIVE_MASS = 1e-13  # relative to C; a smaller mass is rounding
STEP_COST = 200  # N³/(STEP_COST n): the cost of a Newton step, in moves of one sample
EPS = 2.0**-52


def free_coordinates(problem: Problem, alpha: Array) -> Free:
    """Mass of sample i from one class to another, up to rounding.

    It comes from the class with the largest mass, and goes to any other with a mass.
    """
    mass = problem.loss.domain(problem.y).mass(alpha, problem.costs)
    positive = mass > POSITIVE_MASS * problem.costs[:, None]
    top = np.argmax(mass, axis=1)
    positive[np.arange(len(mass)), top] = False
    i, j = np.nonzero(positive)
    unit = np.eye(mass.shape[1])
    return Free(i, unit[j] - unit[top[i]], np.zeros(len(i)), problem.bias)


class CrammerMachine(Machine):
    """The inner solver of a loss with k outputs that states its margins."""

    def solve_on(self, K: Array, budget: int | None = None) -> Solution:
        """α on one kernel matrix: block-coordinate ascent and Newton steps."""
        return ascend(Ascent(self.problem, K, self.alpha), len(K), self.tol, budget)

    @property
    def free(self) -> Free:
        """Masses strictly between 0 and C."""
        return free_coordinates(self.problem, self.point)


class Ascent:
    """Masses (k, n) and their scores Kα + Δ + b."""

    def __init__(self, problem: Problem, K: Array, start: Array | None):
        self.problem, self.C = problem, np.array(problem.costs)
        self.fixed, self.b = problem.loss.margins(problem.y), np.zeros(problem.shape[1])
        self.turn, self.patient = max(5 * len(K), 1000), problem.bias
        self.overhead = BALANCING if problem.bias else 0
        self.domain = problem.loss.domain(problem.y)
        alpha = np.zeros(problem.shape) if start is None else np.array(start)
        self.place(self.domain.restore(alpha, self.C, False))
        self.K, self.rho, self.gap = read_only(K), 0.0, np.inf
        if problem.bias:
            self.rho = max(float(np.mean(np.diag(K))), 1 / float(np.sum(self.C)))
            self.K = read_only(self.K + self.rho)
        self.score()
        if problem.bias:
            self.raise_bias(self._multipliers())

    def place(self, alpha: Array) -> None:
        """Take the masses of α, without those that rounding made negative."""
        self.mass = np.ascontiguousarray(self.domain.mass(alpha, self.C).T)
        self.mass[self.mass < 0] = 0.0

    @property
    def alpha(self) -> Array:
        """C e_y − m. The entry of the own class is minus the sum of the others."""
        y, rows = self.problem.y, np.arange(len(self.C))
        alpha = -self.mass.T
        alpha[rows, y] = 0.0
        alpha[rows, y] = -np.sum(alpha, axis=1)
        return alpha

    @property
    def noise(self) -> float:
        """A gap that rounding may leave: of the dual, and of the scores times C."""
        linear = float(np.sum(np.abs(self.fixed * self.alpha)))
        return 1e-8 * linear + 8 * EPS * float(self.C @ np.max(np.abs(self.S), axis=0))

    def score(self) -> None:
        """Compute the scores at α anew."""
        self.S = np.ascontiguousarray((self.K @ self.alpha + self.fixed + self.b).T)

    @property
    def value(self) -> float:
        """The (augmented) dual value: −⟨Δ + b, α⟩ − ½⟨Kα, α⟩."""
        return -0.5 * float(np.sum(self.alpha * (self.S.T + self.fixed + self.b)))

    def raise_bias(self, by: Array) -> None:
        """Add to b and to the scores."""
        self.b = self.b + by
        self.S += by[:, None]

    def climb(self, tol: float, most: int) -> tuple[int, float]:
        """Make at most so many moves; returns their number and the gap."""
        if not self.problem.bias:
            return _climb(self.K, self.S, self.mass, tol, most)
        tight = min(tol, 0.1 * self.gap)
        done, _ = _climb(self.K, self.S, self.mass, tight, most)
        self.raise_bias(self.rho * np.sum(self.alpha, axis=0))
        self.gap = self.point()[2]
        return done, self.gap

    def point(self) -> tuple[Array, Array, float]:
        """A feasible α, the bias, and the gap there."""
        alpha, b = self.problem.feasible(self.alpha), self.b
        scores = self.K @ alpha + self.fixed + b  # ρΣα = 0 here
        mass = self.domain.mass(alpha, self.C)
        below = np.max(scores, axis=1, keepdims=True) - scores
        return alpha, b, float(np.sum(np.maximum(mass, 0.0) * below))

    def _multipliers(self) -> Array:
        """The b for which the slopes of free coordinates are nearest to 0."""
        b, free = np.zeros(len(self.b)), free_coordinates(self.problem, self.alpha)
        if free.border is not None and len(free):
            slope = free.reduced(self.S.T[None])[:, 0]
            b[:-1] = np.linalg.lstsq(free.border, -slope)[0]
        return b

    def newton(self, most: int) -> int:
        """Newton steps on the free coordinates, until one has its full length.

        Returns their cost: the number of moves that take as long, about `most` at most.
        """
        cost, short, n = 0, True, len(self.C)
        while short and cost < most:
            free = free_coordinates(self.problem, self.alpha)
            if not 0 < len(free) <= MAX_FREE:
                break
            cost += 1 + len(free) ** 3 // (STEP_COST * n) + n
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
        """Make the full step, projected, or the part of it up to which the value rises.

        The value rises until the first mass becomes 0. Where K is singular this is a
        tiny part of a huge step, so that longer parts are tried from there. Returns
        whether the step was shortened and the value rose.
        """
        alpha, before = self.alpha, self.value
        best = before, self.mass, self.S
        rounding = 16 * EPS * float(np.sum(np.abs(self.fixed * alpha)))
        if self._at(alpha + step) >= before - rounding:
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
        """Move to the feasible point next to α; returns the value there."""
        self.place(self.domain.restore(alpha, self.C, False))
        self.score()
        return self.value


@compiled()
def _gains(K, S, mass, gain):
    """The gap and the best gain; `gain` gets what each sample gains by its best pair.

    A mass t moves from the lowest score of a class with mass to the highest score; it
    gains t·(difference) − t²K_ii.
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


@compiled()
def _move(K, S, mass, i, s, m, d):
    """Give sample i its best masses, and update the scores."""
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


@compiled()
def _climb(K, S, mass, tol, most):
    """Move the samples that gain most, in place; their number and the gap."""
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
