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
import scipy.linalg
from numba import boolean, float64, int64, types

from ..formulations.losses import Quadratic
from ..problem import Problem
from ..storage import READ_ONLY, compiled

Array = np.ndarray
VECTOR = types.Array(float64, 1, "C", readonly=True)
FIVE = [VECTOR] * 5
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
        done, gap, bias = _smo(K, *dual, problem.bias, alpha, gradient, tol, most)
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
def _smo(K, linear, kink, ridge, low, high, bias, alpha, g, tol, most):
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


def bordered(
    system: Array, right: Array, border: Array | None, sums: Array | None = None
) -> Array | None:
    """The minimizers of ½dᵀSd − rᵀd, a column each, with borderᵀd = sums (or 0).

    None when rounding has made S indefinite beyond repair.
    """
    if border is not None:  # changes nothing where borderᵀd is given
        size = float(np.trace(system)) / len(system)
        system = system + size * (border @ border.T)
    factor = _factored(system)
    if factor is None:
        return None
    known = right if border is None else np.column_stack([right, border])
    found = scipy.linalg.cho_solve(factor, known)
    if not np.all(np.isfinite(found)):
        return None
    if border is None:
        return np.asarray(found)
    step, across = found[:, : right.shape[1]], found[:, right.shape[1] :]
    surplus = border.T @ step - (0.0 if sums is None else sums[:, None])
    return np.asarray(step - across @ np.linalg.lstsq(border.T @ across, surplus)[0])


def _factored(system: Array) -> tuple[Array, bool] | None:
    """A Cholesky factor of a matrix that rounding may have made indefinite."""
    size = float(np.trace(system)) / len(system)
    for jitter in (1e-14, 1e-12, 1e-10, 1e-8, 1e-6):
        shifted = system.copy()
        shifted[np.diag_indices_from(shifted)] += jitter * size
        try:
            return scipy.linalg.cho_factor(shifted, lower=True, overwrite_a=True)
        except np.linalg.LinAlgError:
            continue
    return None


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
