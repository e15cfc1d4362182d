"""The inner machine: one kernel matrix, any loss whose dual is a quadratic with a kink.

    min over α   ½ αᵀKα + Σ_i ½ r_i α_i² − ℓ_i α_i + κ_i |α_i|
    subject to   low_i ≤ α_i ≤ high_i,  and Σ α_i = 0 when there is a bias

Hinge, one-class, ε-insensitive (κ = ε), quantile and Huber (r = 1/C) are of this kind,
with one C or one per sample. Without bounds and kinks (squared loss) it is one
Cholesky factorization.

Algorithm. SMO with second-order choice of the working set (Fan, Chen and Lin 2005): the
coordinate that wants to move most, and the partner that gains most from it; one
coordinate alone when there is no bias. A kink is an end of a step, like a bound. Now
and then a Newton step on the free coordinates: near the solution it replaces thousands
of small moves. Warm start, and a budget of moves so that it can always be interrupted.

Guarantee. `gap` bounds the distance to the optimum: Σ_i C V(f_i + b) + C V*(−α_i/C) +
α_i (f_i + b), each term ≥ 0 by Fenchel and Young, computed at the returned α.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...formulations.losses.base import Quadratic
from ...problem import Problem
from .linear import bordered
from .smo import smo

Array = np.ndarray
PATIENCE = 10  # rounds without progress on a small gap: what is left is rounding
NEAR = 1e-7  # of the largest |α_i|: so far off a bound is on it


class Solution(NamedTuple):
    alpha: Array
    bias: Any  # a number, or one per output
    gap: float  # primal − dual of this machine
    moves: int

    @property
    def work(self) -> float:
        """1 is what a solver does between two iterates: 8 machines or 0.3 s of one.

        Counted in moves, not by the clock: iterates are the same on every machine.
        """
        return 0.125 + 3 * self.moves / longest(len(self.alpha))


@dataclass(frozen=True)
class Free:
    """The coordinates of α off bounds and kinks, in which it can move."""

    index: Array
    ridge: Array
    bias: bool

    @classmethod
    def of(cls, problem: Problem, alpha: Array) -> Free:
        dual = problem.loss.quadratic(problem.y, problem.costs)
        assert dual is not None
        room = NEAR * float(np.max(np.abs(alpha), initial=0.0))
        return cls.under(dual, problem.bias, alpha, room)

    @classmethod
    def under(
        cls, dual: Quadratic, bias: bool, alpha: Array, room: float = 0.0
    ) -> Free:
        index = dual.free(alpha, room)
        return cls(index, dual.ridge[index], bias)

    def __len__(self) -> int:
        return len(self.index)

    def reduced(self, images: Array) -> Array:
        """(N, ·): the slopes along the free coordinates from (·, n) of them."""
        return images[:, self.index].T

    def lifted(self, step: Array, n: int) -> Array:
        """(n, …): the change of α that a step in the free coordinates is."""
        out = np.zeros((n, *step.shape[1:]))
        out[self.index] = step
        return out

    def system(self, K: Array) -> Array:
        """K + ridge on the free coordinates."""
        return K[np.ix_(self.index, self.index)] + np.diag(self.ridge)

    @property
    def border(self) -> Array | None:
        """What each coordinate adds to Σα, which a bias fixes."""
        return np.ones((len(self.index), 1)) if self.bias else None


def solve(
    problem: Problem,
    K: Array,
    start: Array | None = None,
    *,
    tol: float = 0.0,
    budget: int | None = None,
) -> Solution:
    """The machine of `problem` on the kernel K, until gap ≤ tol or out of moves."""
    dual = problem.loss.quadratic(problem.y, problem.costs)
    if dual is None:
        raise ValueError(f"the dual of {problem.loss.name} is not quadratic")
    if np.all(np.isinf(dual.low)) and not np.any(dual.kink):
        return _ridge(K, dual, problem.bias)
    n, K = len(K), np.ascontiguousarray(K)
    alpha = np.zeros(n) if start is None else np.array(start)
    domain = problem.loss.domain(problem.y)
    alpha = np.array(domain.restore(alpha, problem.costs, problem.bias))
    budget = budget or longest(n)
    moves, best, idle, pause, cost = 0, math.inf, 0, 0, 0
    while True:
        gradient = K @ alpha + dual.ridge * alpha - dual.linear
        most = min(budget - moves, turn(n))
        done, gap, bias = smo(K, *dual, problem.bias, alpha, gradient, tol, most)
        moves += done
        if cost > done and gap > 0.9 * best:  # a dear Newton step that did not pay
            pause = 2
        idle = 0 if gap < 0.99 * best else idle + 1
        size = float(np.abs(dual.linear) @ np.abs(alpha))
        rounding = idle > PATIENCE and gap <= 1e-8 * size
        if gap <= tol or moves >= budget or done == 0 or rounding:
            return Solution(alpha, bias, gap, moves)
        best = min(best, gap)
        pause -= pause > 0
        cost = 0 if pause else _newton(K, dual, problem.bias, alpha)
        moves += cost


def turn(n: int) -> int:
    """The moves between two Newton steps."""
    return max(2 * n, 1000)


def longest(n: int) -> int:
    """The moves of one machine: less than a second."""
    return max(10_000, 100_000_000 // n)


def _newton(K: Array, dual: Quadratic, bias: bool, alpha: Array) -> int:
    """Exact steps on the coordinates off bounds and kinks, each up to the next end.

    Three at least, more while they cost no more than a turn of moves: a kernel of low
    rank has many to end on. Returns their cost, in moves that would have taken as long.
    """
    linear, kink, ridge, low, high = dual
    cost = 0
    for done in itertools.count():
        which = Free.under(dual, bias, alpha)
        dear = done >= 3 and cost > turn(len(K))
        if dear or not 0 < len(which) <= 3000:
            break
        cost += 1 + len(which) ** 3 // (200 * len(K))
        free = which.index
        slope = K[free] @ alpha + ridge[free] * alpha[free] - linear[free]
        slope += kink[free] * np.sign(alpha[free])
        found = bordered(which.system(K), -slope[:, None], which.border)
        if found is None:
            break
        step = found[:, 0]
        end = np.where(step > 0, high[free], low[free])
        crossing = (kink[free] > 0) & (np.sign(step) == -np.sign(alpha[free]))
        end = np.where(crossing, 0.0, end)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(step != 0, (end - alpha[free]) / step, np.inf)
        t = min(1.0, float(np.min(reach)))
        alpha[free] = np.where(reach <= t, end, alpha[free] + t * step)
        if t == 1.0:
            break
    return cost


def _ridge(K: Array, dual: Quadratic, bias: bool) -> Solution:
    """Squared loss: (K + 1/C) α + b = y, Σα = 0."""
    border = np.ones((len(K), 1)) if bias else None
    found = bordered(K + np.diag(dual.ridge), dual.linear[:, None], border)
    if found is None:
        raise ArithmeticError("the kernel is too far from positive semi-definite")
    alpha = found[:, 0]
    rest = dual.linear - K @ alpha - dual.ridge * alpha
    b = float(np.mean(rest)) if bias else 0.0
    g = K @ alpha + dual.ridge * alpha - dual.linear
    gap = float(np.sum((g + b) ** 2 / (2 * dual.ridge)))
    return Solution(alpha, b, gap, 0)
