"""The SVM solver for many samples: blocks of coordinates, no n × n matrix.

The problem is that of svm.py. The gradient g = K(θ)α + rα − ℓ is kept for all samples.

Algorithm. Repeat: take a block of coordinates, those that are free and those that
violate the optimality conditions most, as many upwards as downwards where there is a
bias; solve the problem in these coordinates, all others fixed, by svm.py (SMO and
Newton steps) on their own matrix; add to g the rows of K(θ) of the coordinates that
changed. If too many are free, a block has only those that violate most. A coordinate
that stays at its bound is never read.

The Hessian of J needs the inverse of K(θ) on the free coordinates F. Up to LARGEST of
them it is factorized. Of more, conjugate gradients need products with K(θ) on F, a few
rows at a time. Their steps are the same for all right sides, so that BᵀHB is symmetric.
There are at most ITERATIONS of them: what they have not found yet are directions of
small curvature. Then the model is only nearly that of J, and its steps are still tried
before they are taken.

Guarantee. The objective falls with every block, and `gap` is that of svm.py, from g.

Reference: Joachims (1999) for the choice of blocks.
"""

from typing import Any

import numpy as np

from ...certificates.certificate import Certificate
from ...formulations.losses.base import Quadratic
from ...problem import Problem, quadratic_dual
from .linear import conjugate_gradients
from .machine import Array, Combined, Free, Solution, ascend
from .smo import inner_gap
from .svm import SMO, SVMMachine

NEW = 2000  # coordinates of a block that violate most
LARGEST = 6000  # coordinates of a block with those that are free: 288 MB
ROWS = 1000  # of K(θ) on more free coordinates, at a time
ITERATIONS, ACCURATE = 60, 1e-3  # of conjugate gradients; the residual where they end
INSIDE = 0.1  # the gap of a block relative to the first one there, and …
SHARE = 0.1  # … to the tolerance; the smaller reduction ends it
MOVES = 40  # of SMO in a block, per coordinate
PASSES = 2  # rows of one solve, relative to n; at least FEWEST_ROWS
FEWEST_ROWS = 20_000
ROUNDED = 1e-10  # how far rounding moves α from its bounds, relative to the largest
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
        self.alpha = self.problem.feasible(self.point)

    def set_tolerance(self, certificate: Certificate) -> None:
        """Set the tolerance to a part of the certified gap."""
        share = max(self.sharpness, TOLERANCE)
        self.tol = share * max(certificate.gap, 0.0)

    def products_of(self, which: Array) -> Array:
        """(n, which): K_mα of some kernels at free coordinates, and 0 elsewhere.

        Whatever `sensitivity` returns is 0 there.
        """
        free, out = self.free.i, np.zeros((self.problem.grams.n, len(which)))
        part = self.problem.grams.subset(which)
        out[free] = part.products_at(self.point, free).T
        return out

    def sensitivity(self, force: Array) -> Array:
        """H applied to each column."""
        free = self.free
        if len(free) <= LARGEST:
            return super().sensitivity(force)
        right = force[free.i]
        if free.bias:
            right = right - np.mean(right, axis=0)
        found = conjugate_gradients(
            lambda X: self._curved(free, X), right, ACCURATE, ITERATIONS
        )
        return free.lifted(found, len(force))

    def _curved(self, free: Free, X: Array) -> Array:
        """(K(θ) + ridge) X on the free coordinates; with a bias columns sum to 0."""
        out = free.ridge[:, None] * X
        for some in np.array_split(np.arange(len(X)), -(-len(X) // ROWS)):
            out[some] += self.K[np.ix_(free.i[some], free.i)] @ X
        return out - np.mean(out, axis=0) if free.bias else out


def solve(
    problem: Problem, K: Combined, start: Array | None, tol: float, budget: int
) -> Solution:
    """Solve the SVM of `problem` with K(θ), to a gap of tol or within so many rows."""
    alpha = np.zeros(len(K)) if start is None else np.array(start)
    domain = problem.loss.domain(problem.y)
    alpha = np.array(domain.restore(alpha, problem.costs, problem.bias))
    dual = quadratic_dual(problem)
    blocks = Blocks(K, dual, problem.bias, on_bounds(dual, alpha))
    return ascend(blocks, len(K), tol, budget)


def on_bounds(dual: Quadratic, alpha: Array) -> Array:
    """α, on the bounds and kinks from which rounding to a grid has taken it.

    Such coordinates would count as free, and the gap would be that of wrong signs.
    """
    room = ROUNDED * float(np.max(np.abs(alpha), initial=0.0))
    for place, there in ((dual.low, True), (dual.high, True), (0.0, dual.kink > 0)):
        alpha = np.where((np.abs(alpha - place) <= room) & there, place, alpha)
    return alpha


class Blocks:
    """Blocks of coordinates, solved one after the other. A move is a row of K(θ)."""

    patient, overhead = False, 0

    def __init__(self, K: Combined, dual: Quadratic, bias: bool, alpha: Array):
        self.K, self.dual, self.has_bias, self.alpha = K, dual, bias, alpha
        self.turn, self.gap, self.bias = len(K), np.inf, 0.0
        self.gradient = K @ alpha + dual.ridge * alpha - dual.linear

    @property
    def noise(self) -> float:
        """A gap that rounding may leave."""
        return 1e-8 * float(np.abs(self.dual.linear) @ np.abs(self.alpha))

    def point(self) -> tuple[Array, float, float]:
        """α, the bias, and the gap."""
        return self.alpha, self.bias, self.gap

    def newton(self, most: int) -> int:
        """Nothing: there are Newton steps inside the blocks."""
        return 0

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
        """The free coordinates, and those that violate most, in both directions."""
        _, kink, _, low, high = self.dual
        alpha, g = self.alpha, self.gradient + self.bias
        up = np.where(alpha < high, -(g + np.where(alpha >= 0, kink, -kink)), 0.0)
        down = np.where(alpha > low, g + np.where(alpha > 0, kink, -kink), 0.0)
        if self.has_bias:
            some = np.union1d(_largest(up, NEW // 2), _largest(down, NEW // 2))
        else:
            some = _largest(np.maximum(up, down), NEW)
        both = np.union1d(some, self.dual.free(alpha))
        return both if len(both) <= LARGEST else some

    def _solve_block(self, chosen: Array, tol: float) -> int:
        """Solve the problem in some coordinates; the number of those that changed."""
        K, before = self.K[np.ix_(chosen, chosen)], self.alpha[chosen]
        slope = self.gradient[chosen]
        dual = Quadratic(*(part[chosen] for part in self.dual))
        dual = dual._replace(linear=K @ before + dual.ridge * before - slope)
        gap = inner_gap(*dual, self.has_bias, before, slope)[0]
        goal = max(INSIDE * gap, SHARE * tol)
        inside = SMO(K, dual, self.has_bias, before.copy())
        found = ascend(inside, len(chosen), goal, MOVES * len(chosen))
        step = np.zeros(len(self.alpha))
        step[chosen] = found.alpha - before
        self.alpha[chosen] = found.alpha
        self.gradient += self.K @ step + self.dual.ridge * step
        return int(np.count_nonzero(step))


def _largest(values: Array, count: int) -> Array:
    """The places of the largest positive values, at most so many."""
    found = np.flatnonzero(values > 0)
    if len(found) > count:
        found = found[np.argpartition(-values[found], count)[:count]]
    return found
