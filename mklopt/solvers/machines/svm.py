"""The SVM solver: one kernel matrix, any loss with a quadratic dual, kinks allowed.

    min over α   ½ αᵀKα + Σ_i ½ r_i α_i² − ℓ_i α_i + κ_i |α_i|
    subject to   low_i ≤ α_i ≤ high_i,  and Σ α_i = 0 when there is a bias

Hinge, one-class, ε-insensitive (κ = ε), quantile and Huber (r = 1/C) are of this kind,
with one C or one per sample. Without bounds and kinks (squared loss) one Cholesky
factorization solves it.

Algorithm. SMO with second-order choice of the working set (smo.py), and between the
moves Newton steps on the free coordinates: near the solution they replace thousands of
small moves. A solve starts from any α, and a budget of moves limits its time.

Guarantee. `gap` bounds the distance to the optimum: Σ_i C V(f_i + b) + C V*(−α_i/C) +
α_i (f_i + b), each term ≥ 0 by Fenchel and Young, computed at the returned α.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from ...formulations.losses.base import Quadratic
from ...grams.stack import GramStack
from ...problem import Problem, quadratic_dual
from ...util.compiled import read_only
from .linear import Bordered, bordered
from .machine import MAX_FREE, Array, Free, Machine, Solution, ascend, start_of_step
from .smo import smo

ON_BOUND = 1e-7  # α_i this near to a bound counts as on it; relative to the largest |α|
FEWEST_STEPS = 3  # Newton steps that are made whatever they cost
STEP_COST = 200  # N³/(STEP_COST n): the cost of a Newton step, in moves


class SVMMachine(Machine):
    """The inner solver of a loss with a quadratic dual."""

    _newton: Newton | None = None  # the last step of the last solution

    def solve_on(self, K: Array, budget: int | None = None) -> Solution:
        """Solve with one kernel matrix: SMO and Newton steps."""
        found, self._newton = _solved(self.problem, K, self.alpha, self.tol, budget)
        return found

    def _factorized(self, free: Free) -> Bordered:
        """That of the last Newton step, if it had the same free coordinates."""
        last = self._newton
        if last is not None and last.K is self.K and np.array_equal(last.i, free.i):
            return last.system
        return super()._factorized(free)

    def _multiplied(self, grams: GramStack) -> Array:
        """K_mα of the kernels of a stack; of a large one at support vectors alone.

        Products with a small one are needed once more, for the last certificate.
        """
        alone = grams.bounds_norms and np.all(self.point[self.free.i])
        return grams.inside(self.point) if alone else grams.matvec(self.point)

    @property
    def free(self) -> Free:
        """The coordinates away from bounds and kinks."""
        room = ON_BOUND * float(np.max(np.abs(self.point), initial=0.0))
        dual = quadratic_dual(self.problem)
        return free_coordinates(dual, self.problem.bias, self.point, room)


def free_coordinates(
    dual: Quadratic, bias: bool, alpha: Array, room: float = 0.0
) -> Free:
    """The coordinates whose distance from bounds and kinks exceeds the room."""
    i = dual.free(alpha, room)
    return Free(i, np.ones((len(i), 1)), dual.ridge[i], bias)


def solve(
    problem: Problem,
    K: Array,
    start: Array | None = None,
    *,
    tol: float = 0.0,
    budget: int | None = None,
) -> Solution:
    """Solve the SVM of `problem` with the kernel K, to a gap of tol.

    budget: the largest number of moves; None: what `most_moves` says
    """
    return _solved(problem, K, start, tol, budget)[0]


def _solved(
    problem: Problem, K: Array, start: Array | None, tol: float, budget: int | None
) -> tuple[Solution, Newton | None]:
    """The solution, and the last Newton step."""
    dual = quadratic_dual(problem)
    if np.all(np.isinf(dual.low)) and not np.any(dual.kink):
        return _ridge(K, dual, problem.bias), None
    alpha = np.zeros(len(K)) if start is None else np.array(start)
    domain = problem.loss.domain(problem.y)
    alpha = np.array(domain.restore(alpha, problem.costs, problem.bias))
    moves = SMO(K, dual, problem.bias, alpha)
    return ascend(moves, len(K), tol, budget), moves.last


class Newton(NamedTuple):
    """The system of a Newton step: its kernel, free coordinates, and factors."""

    K: Array
    i: Array
    system: Bordered


class SMO:
    """Moves of SMO with one kernel matrix, in place."""

    patient, overhead, most_free = False, 0, MAX_FREE
    last: Newton | None = None

    def __init__(self, K: Array, dual: Quadratic, bias: bool, alpha: Array):
        self.K, self.dual, self._given = read_only(K), dual, K
        self.has_bias, self.alpha = bias, alpha
        self.turn = max(2 * len(K), 1000)
        self.gap, self.bias = np.inf, 0.0

    @property
    def noise(self) -> float:
        """A gap that rounding may leave."""
        return 1e-8 * float(np.abs(self.dual.linear) @ np.abs(self.alpha))

    def point(self) -> tuple[Array, float, float]:
        """α, the bias, and the gap."""
        return self.alpha, self.bias, self.gap

    def climb(self, tol: float, most: int) -> tuple[int, float]:
        """Make at most so many moves; returns their number and the gap."""
        K, dual, alpha = self.K, self.dual, self.alpha
        gradient = K @ alpha + dual.ridge * alpha - dual.linear
        state = (*dual, self.has_bias, alpha, gradient)
        done, self.gap, self.bias = smo(K, *state, tol, most)
        return done, self.gap

    def newton(self, most: int) -> int:
        """Newton steps on the free coordinates, each up to the next bound or kink.

        At least FEWEST_STEPS, and more while they cost no more than a turn of moves: a
        kernel of low rank needs many. Returns the number of moves that take as long.
        """
        n, alpha, cost = len(self.K), self.alpha, 0
        for done in itertools.count():
            which = free_coordinates(self.dual, self.has_bias, alpha)
            expensive = done >= FEWEST_STEPS and cost > self.turn
            if expensive or not 0 < len(which) <= self.most_free:
                break
            cost += start_of_step(n) + len(which) ** 3 // (STEP_COST * n)
            if not self._newton_step(which):
                break
        return cost

    def _newton_step(self, which: Free) -> bool:
        """One Newton step; whether it was shortened, so that another may help."""
        _, kink, _, low, high = self.dual
        free, alpha = which.i, self.alpha
        slope = self._slope(free) + kink[free] * np.sign(alpha[free])
        system = Bordered(which.system(self.K), which.border)
        self.last = Newton(self._given, free, system)
        found = system.solve(-slope[:, None])
        if found is None:
            return False
        step = found[:, 0]
        end = np.where(step > 0, high[free], low[free])
        crossing = (kink[free] > 0) & (np.sign(step) == -np.sign(alpha[free]))
        end = np.where(crossing, 0.0, end)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step != 0, (end - alpha[free]) / step, np.inf)
        t = min(1.0, float(np.min(room)))
        alpha[free] = np.where(room <= t, end, alpha[free] + t * step)
        return t < 1

    def _slope(self, free: Array) -> Array:
        """The gradient of the smooth part at some coordinates."""
        linear, _, ridge, _, _ = self.dual
        alpha = self.alpha
        return self.K[free] @ alpha + ridge[free] * alpha[free] - linear[free]


def _ridge(K: Array, dual: Quadratic, bias: bool) -> Solution:
    """The squared loss: solve (K + 1/C) α + b = y, Σα = 0."""
    border = np.ones((len(K), 1)) if bias else None
    found = bordered(K + np.diag(dual.ridge), dual.linear[:, None], border)
    if found is None:
        raise FloatingPointError("the kernel is too far from positive semi-definite")
    alpha = found[:, 0]
    rest = dual.linear - K @ alpha - dual.ridge * alpha
    b = float(np.mean(rest)) if bias else 0.0
    gap = float(np.sum((b - rest) ** 2 / (2 * dual.ridge)))
    return Solution(alpha, b, gap, 0)
