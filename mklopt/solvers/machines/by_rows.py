"""The SVM solver for many samples: blocks of coordinates, no n × n matrix.

The problem is that of svm.py. The gradient g = K(θ)α + rα − ℓ is kept for all samples.

Algorithm. Repeat: take the BLOCK coordinates that violate the optimality conditions
most, half of them upwards and half downwards where there is a bias; solve the problem
in these coordinates, all others fixed, by svm.py on their own matrix; add to g the rows
of K(θ) of the coordinates that changed. Between the blocks Newton steps on all free
coordinates, on their matrix, if there are at most MOST_FREE: near the solution they
replace hundreds of blocks. A coordinate that stays at its bound is never read.

Guarantee. The objective falls with every block, and `gap` is that of svm.py, from g.

Reference: Joachims (1999) for the choice of blocks.
"""

from typing import Any

import numpy as np

from ...certificates.certificate import Certificate
from ...formulations.losses.base import Quadratic
from ...problem import Problem, quadratic_dual
from .machine import Array, Combined, Free, Solution, ascend
from .smo import inner_gap
from .svm import SMO, SVMMachine

BLOCK = 512  # coordinates
TURN = 8 * BLOCK  # rows between two Newton steps
MOST_FREE = 6000  # coordinates of a Newton step: a matrix of 288 MB
INSIDE, MOVES = 0.03, 20  # of a block: its gap relative to the first; moves/coordinate
PASSES = 2  # rows of one solve, relative to n; at least FEWEST_ROWS
FEWEST_ROWS = 20_000
TOLERANCE = 1e-3  # the gap relative to the certified gap, at least


class RowsMachine(SVMMachine):
    """The inner solver by rows, for losses with a quadratic dual."""

    keep_products = False  # v needs the rows of support vectors alone

    def combined(self, theta: Array) -> Combined:
        """Σθ_mK_m as an operator."""
        return Combined(self.problem.grams, theta)

    def solve(self, theta: Array, K: Any = None) -> Array:
        """Solve at θ, from the last α. K(θ) is never formed."""
        self.theta, self.K = theta, self.combined(theta)
        n = self.problem.grams.n
        budget = max(PASSES * n, FEWEST_ROWS)
        found = solve(self.problem, self.K, self.alpha, self.tol, budget)
        return self._solved(found.alpha, found.gap, 0.125 + found.moves / budget)

    def adopt(self, alpha: Array, theta: Array) -> Array:
        """Continue from an α that was found in another way."""
        self.theta, self.K = theta, self.combined(theta)
        return self._moved(alpha)

    def extrapolate(self, move: Array) -> None:
        """Begin the next solve at α + move; what is not free stays where it is."""
        super().extrapolate(move)
        self.alpha = self.problem.feasible(self.alpha)

    def set_tolerance(self, certificate: Certificate) -> None:
        """Set the tolerance to a part of the certified gap."""
        share = max(self.sharpness, TOLERANCE)
        self.tol = share * max(certificate.gap, 0.0)

    @property
    def bends(self) -> bool:
        """Whether the Hessian of J is known: there are not too many free coordinates."""
        return len(self.free) <= MOST_FREE

    def products_of(self, which: Array) -> Array:
        """(n, which): K_mα of some kernels at free coordinates, and 0 elsewhere.

        Whatever `sensitivity` returns is 0 there.
        """
        free, out = self.free.i, np.zeros((self.problem.grams.n, len(which)))
        part = self.problem.grams.subset(which)
        out[free] = part.products_at(self.point, free).T
        return out

    def sensitivity(self, force: Array) -> Array:
        """H applied to each column; 0 where H is not known: a linear model."""
        return super().sensitivity(force) if self.bends else np.zeros_like(force)


def solve(
    problem: Problem, K: Combined, start: Array | None, tol: float, budget: int
) -> Solution:
    """Solve the SVM of `problem` with K(θ), to a gap of tol or within so many rows."""
    alpha = np.zeros(len(K)) if start is None else np.array(start)
    domain = problem.loss.domain(problem.y)
    alpha = np.array(domain.restore(alpha, problem.costs, problem.bias))
    blocks = Blocks(K, quadratic_dual(problem), problem.bias, alpha)
    return ascend(blocks, len(K), tol, budget)


class Blocks(SMO):
    """Blocks of coordinates and Newton steps, in place. A move is a row of K(θ)."""

    most_free = MOST_FREE

    def __init__(self, K: Any, dual: Quadratic, bias: bool, alpha: Array):
        self.K, self.dual, self.has_bias, self.alpha = K, dual, bias, alpha
        self.turn, self.gap, self.bias = TURN, np.inf, 0.0
        self.gradient = K @ alpha + dual.ridge * alpha - dual.linear

    def climb(self, tol: float, most: int) -> tuple[int, float]:
        """Solve blocks until so many rows were read; their number, and the gap."""
        rows, state = 0, (*self.dual, self.has_bias)
        while True:
            self.gap, self.bias = inner_gap(*state, self.alpha, self.gradient)
            if self.gap <= tol or rows >= most:
                return rows, self.gap
            chosen = self._chosen()
            changed = self._solve_block(chosen, tol) if len(chosen) else 0
            if changed == 0:
                return rows, self.gap
            rows += changed

    def _chosen(self) -> Array:
        """The coordinates that violate most, in both directions if there is a bias."""
        _, kink, _, low, high = self.dual
        alpha, g = self.alpha, self.gradient + self.bias
        up = np.where(alpha < high, -(g + np.where(alpha >= 0, kink, -kink)), -np.inf)
        down = np.where(alpha > low, g + np.where(alpha > 0, kink, -kink), -np.inf)
        if not self.has_bias:
            return _largest(np.maximum(up, down), BLOCK)
        rising, falling = _largest(up, BLOCK // 2), _largest(down, BLOCK // 2)
        return np.union1d(rising, falling)

    def _solve_block(self, chosen: Array, tol: float) -> int:
        """Solve the problem in some coordinates; the number of those that changed."""
        K, before = self.K[np.ix_(chosen, chosen)], self.alpha[chosen]
        parts = [part[chosen] for part in self.dual]
        parts[0] = K @ before + parts[2] * before - self.gradient[chosen]
        dual = Quadratic(*parts)
        state = (*dual, self.has_bias)
        gap = inner_gap(*state, before, self.gradient[chosen])[0]
        goal, inside = max(INSIDE * gap, 0.01 * tol), SMO(K, dual, self.has_bias, before)
        inside.alpha = before.copy()
        found = ascend(inside, len(chosen), goal, MOVES * len(chosen))
        step = np.zeros(len(self.alpha))
        step[chosen] = found.alpha - before
        self.alpha[chosen] = found.alpha
        return self._add(step)

    def _add(self, step: Array) -> int:
        """Add the rows of a step to the gradient; their number."""
        self.gradient += self.K @ step + self.dual.ridge * step
        return int(np.count_nonzero(step))

    def _newton_step(self, which: Free) -> bool:
        before = self.alpha.copy()
        again = super()._newton_step(which)
        self._add(self.alpha - before)
        return again

    def _slope(self, free: Array) -> Array:
        return self.gradient[free]


def _largest(values: Array, count: int) -> Array:
    """The places of the largest positive values, at most so many."""
    found = np.flatnonzero(values > 0)
    if len(found) > count:
        found = found[np.argpartition(-values[found], count)[:count]]
    return found
