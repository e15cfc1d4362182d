"""The SVM solver: one kernel matrix, any loss whose dual is a quadratic with a kink.

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
from dataclasses import dataclass

import numpy as np

from ...formulations.losses.base import Quadratic
from ...problem import Problem
from .linear import bordered
from .machine import MAX_FREE, Machine, Solution, ascend
from .smo import smo

Array = np.ndarray
ON_BOUND = 1e-7  # of the largest |α_i|: so far off a bound counts as on it


class SVMMachine(Machine):
    """The inner problem of a loss with a quadratic dual."""

    def solve_on(self, K: Array, budget: int | None = None) -> Solution:
        """α on one kernel matrix: SMO and Newton steps."""
        return solve(self.problem, K, self.alpha, tol=self.tol, budget=budget)

    @property
    def free(self) -> Free:
        """Coordinates off bounds and kinks."""
        dual = self.problem.loss.quadratic(self.problem.y, self.problem.costs)
        assert dual is not None
        room = ON_BOUND * float(np.max(np.abs(self.point), initial=0.0))
        return Free.under(dual, self.problem.bias, self.point, room)


@dataclass(frozen=True)
class Free:
    """The coordinates of α off bounds and kinks, in which it can move."""

    index: Array
    ridge: Array
    bias: bool

    @classmethod
    def under(
        cls, dual: Quadratic, bias: bool, alpha: Array, room: float = 0.0
    ) -> Free:
        """Those that are off by more than the room."""
        index = dual.free(alpha, room)
        return cls(index, dual.ridge[index], bias)

    def __len__(self) -> int:
        return len(self.index)

    def reduced(self, slopes: Array) -> Array:
        """(N, ·): the slopes along the free coordinates from (·, n) of them."""
        return slopes[:, self.index].T

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
    """The SVM of `problem` on the kernel K, until gap ≤ tol or out of moves."""
    dual = problem.loss.quadratic(problem.y, problem.costs)
    if dual is None:
        raise ValueError(f"the dual of {problem.loss.name} is not quadratic")
    if np.all(np.isinf(dual.low)) and not np.any(dual.kink):
        return _ridge(K, dual, problem.bias)
    alpha = np.zeros(len(K)) if start is None else np.array(start)
    domain = problem.loss.domain(problem.y)
    alpha = np.array(domain.restore(alpha, problem.costs, problem.bias))
    return ascend(SMO(K, dual, problem.bias, alpha), len(K), tol, budget)


class SMO:
    """Moves of SMO on one kernel matrix, in place."""

    patient = False

    def __init__(self, K: Array, dual: Quadratic, bias: bool, alpha: Array):
        self.K, self.dual = np.ascontiguousarray(K), dual
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
        """So many moves at most; their number and the gap."""
        K, dual, alpha = self.K, self.dual, self.alpha
        gradient = K @ alpha + dual.ridge * alpha - dual.linear
        done, self.gap, self.bias = smo(
            K, *dual, self.has_bias, alpha, gradient, tol, most
        )
        return done, self.gap

    def newton(self, most: int) -> int:
        """Exact steps on the coordinates off bounds and kinks, each to the next end.

        Three at least, more while they cost no more than a turn of moves: a kernel of
        low rank has many to end on. Returns their cost, in moves that take as long.
        """
        n, alpha, cost = len(self.K), self.alpha, 0
        for done in itertools.count():
            which = Free.under(self.dual, self.has_bias, alpha)
            dear = done >= 3 and cost > self.turn
            if dear or not 0 < len(which) <= MAX_FREE:
                break
            cost += 1 + len(which) ** 3 // (200 * n)
            if not self._newton_step(which):
                break
        return cost

    def _newton_step(self, which: Free) -> bool:
        """One of them; whether it was cut short, so that another may help."""
        linear, kink, ridge, low, high = self.dual
        free, alpha = which.index, self.alpha
        slope = self.K[free] @ alpha + ridge[free] * alpha[free] - linear[free]
        slope += kink[free] * np.sign(alpha[free])
        found = bordered(which.system(self.K), -slope[:, None], which.border)
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


def _ridge(K: Array, dual: Quadratic, bias: bool) -> Solution:
    """Squared loss: (K + 1/C) α + b = y, Σα = 0."""
    border = np.ones((len(K), 1)) if bias else None
    found = bordered(K + np.diag(dual.ridge), dual.linear[:, None], border)
    if found is None:
        raise ArithmeticError("the kernel is too far from positive semi-definite")
    alpha = found[:, 0]
    rest = dual.linear - K @ alpha - dual.ridge * alpha
    b = float(np.mean(rest)) if bias else 0.0
    gap = float(np.sum((b - rest) ** 2 / (2 * dual.ridge)))
    return Solution(alpha, b, gap, 0)
