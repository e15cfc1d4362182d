"""The inner problem at fixed kernel weights: J(θ), its gradient and its Hessian.

    J(θ) = max over α   −C Σ V*(−α_i/C) − ½ Σ_m θ_m αᵀK_mα

is convex in θ ≥ 0 with ∂J/∂θ_m = −½ v_m², v_m² = αᵀK_mα at the optimal α, and, where
the free coordinates F of α do not change, ∂²J/∂θ_m∂θ_l = (K_mα)_Fᵀ H (K_lα)_F with H
the inverse of Σθ_mK_m + ridge on F, bordered when there is a bias. `sensitivity` is H.

A machine solves this problem, warm-started from one θ to the next. There are three:
svm.py for losses with a quadratic dual, crammer.py for several classes (traces instead
of αᵀKα; predictions and α are then flat, (nk,)), smooth.py for losses that are twice
differentiable; factory.py picks one.

One product K_mα with every kernel gives v and all that the Hessian needs: where it is
wanted (`keep_products`), v costs that product and the Hessian nothing more.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...certificates.certificate import Certificate
from ...problem import Problem
from ..base import Iterate
from .linear import bordered

Array = np.ndarray
IDLE_ROUNDS = 10  # rounds without progress on a small gap: what is left is rounding
MAX_FREE = 3000  # free coordinates for which a Newton step is tried


class Solution(NamedTuple):
    """α of the inner problem, and how good it is."""

    alpha: Array
    bias: Any  # a number, or one per output
    gap: float  # primal − dual of the inner problem
    moves: int

    @property
    def work(self) -> float:
        """1 is what a solver does between two iterates: 8 solves or 0.3 s of one.

        Counted in moves, not by the clock: iterates are the same on every computer.
        """
        return 0.125 + 3 * self.moves / most_moves(len(self.alpha))


def most_moves(n: int) -> int:
    """The moves of one solve: less than a second."""
    return max(10_000, 100_000_000 // n)


class Free(Protocol):
    """The coordinates in which α can move."""

    def __len__(self) -> int: ...
    def reduced(self, slopes: Array) -> Array:
        """Slopes of all coordinates, as slopes along the free ones."""

    def lifted(self, step: Array, n: int) -> Array:
        """A step in the free coordinates, as a change of α."""

    def system(self, K: Array) -> Array:
        """The curvature along the free coordinates."""

    @property
    def border(self) -> Array | None:
        """What each of them adds to Σα; None without a bias."""


class Ascent(Protocol):
    """Cheap moves on the dual of the inner problem, and Newton steps now and then."""

    turn: int  # moves between two Newton steps
    patient: bool  # a turn without a move need not be the end

    def climb(self, tol: float, most: int) -> tuple[int, float]:
        """So many moves at most; their number and the gap."""

    def newton(self, most: int) -> int:
        """Newton steps; their cost in moves."""

    @property
    def noise(self) -> float:
        """A gap that rounding may leave."""

    def point(self) -> tuple[Array, Any, float]:
        """α, bias and gap."""


def ascend(ascent: Ascent, n: int, tol: float, budget: int | None) -> Solution:
    """Moves and Newton steps in turn, until gap ≤ tol, rounding, or out of moves."""
    budget = budget or most_moves(n)
    moves, best, idle, pause, cost = 0, math.inf, 0, 0, 0
    while True:
        most = min(budget - moves, ascent.turn)
        done, gap = ascent.climb(tol, most)
        moves += done
        if cost > done and gap > 0.9 * best:  # a dear Newton step that did not pay
            pause = 2
        idle = 0 if gap < 0.99 * best else idle + 1
        stuck = done == 0 and not (ascent.patient and idle <= IDLE_ROUNDS)
        rounding = idle > IDLE_ROUNDS and gap <= ascent.noise
        if gap <= tol or moves >= budget or stuck or rounding:
            return Solution(*ascent.point(), moves)
        best = min(best, gap)
        pause -= pause > 0
        cost = 0 if pause else ascent.newton(most)
        moves += cost


class Machine:
    """The inner problem at given kernel weights, warm-started from one to the next.

    Its tolerance follows the certificate: a blind schedule stalls when C is large, and
    with a loose one the warm start is already good enough and α never moves.
    """

    kernels: Array | None = None  # which of a larger stack these are
    _v: Array | None  # these two belong to one α
    _products: Array | None

    def __init__(
        self,
        problem: Problem,
        alpha: Array | None = None,
        sharpness: float = 1e-5,
        keep_products: bool = False,
    ):
        self.problem, self.sharpness, self.alpha = problem, sharpness, alpha
        self.keep_products = keep_products and problem.grams.storage != "factors"
        zero = np.zeros(problem.shape)
        worst = float(problem.costs @ problem.loss.value(zero, problem.y))
        self.tol, self.gap = 1e-3 * worst, np.inf
        self.solves, self.work = 0, 0.0
        self._forget()

    # ---- what each kind of machine does in its own way -----------------------------

    def solve_on(self, K: Array, budget: int | None = None) -> Solution:
        """α on one kernel matrix, from the last α, to the tolerance."""
        raise TypeError(f"{type(self).__name__} solves nothing: see factory.py")

    @property
    def free(self) -> Free:
        """The coordinates in which α can move."""
        raise TypeError(f"{type(self).__name__} has no free coordinates")

    # ---- solving -------------------------------------------------------------------

    def solve(self, theta: Array, K: Array | None = None) -> Array:
        """α at θ: one combine, unless Σθ_mK_m is known, and no other pass."""
        self.theta = theta
        self.K = self.problem.grams.combine(theta) if K is None else K
        found = self.solve_on(self.K)
        return self._solved(found.alpha, found.gap, found.work)

    def _solved(self, alpha: Array, gap: float, work: float) -> Array:
        self.gap, self.solves, self.work = gap, self.solves + 1, self.work + work
        return self._moved(self.problem.feasible(alpha))

    def adopt(self, alpha: Array, theta: Array) -> Array:
        """Go on from an α that was found elsewhere."""
        self.theta, self.K = theta, self.problem.grams.combine(theta)
        return self._moved(alpha)

    def extrapolate(self, move: Array) -> None:
        """Begin the next solve at α + move."""
        self.alpha = self.point + move.reshape(self.problem.shape)
        self._forget()

    def set_tolerance(self, certificate: Certificate) -> None:
        """Tie the tolerance to the true gap."""
        self.tol = self.sharpness * max(certificate.gap, 0.0)

    def iterate(self) -> Iterate:
        """α and θ as a candidate."""
        if self.keep_products:
            self._make_products()  # before the loop asks for quad(α), and pays for it
        return Iterate(self.point, self.theta, info={"svm_solves": self.solves})

    def enter(self, problem: Problem, kernels: Array) -> None:
        """Go on with other kernels of the same problem, by number, from α as it is."""
        known, before = self._products, self.kernels
        self.problem, self.kernels = problem, kernels
        self._forget()
        if known is not None and before is not None:
            self._products = self._carried(known, before)

    def _carried(self, known: Array, before: Array) -> Array:
        """K_mα of kernels that were there before, and of the new ones."""
        assert self.kernels is not None
        products = np.empty((len(self.kernels), *self.problem.shape))
        places = {m: i for i, m in enumerate(before.tolist())}
        old = np.array([places.get(m, -1) for m in self.kernels.tolist()])
        products[old >= 0] = known[old[old >= 0]]
        if np.any(old < 0):
            new = self.problem.grams.subset(old < 0)
            products[old < 0] = new.matvec(self.point)
        return products

    def _moved(self, alpha: Array) -> Array:
        if self.alpha is None or not np.array_equal(alpha, self.alpha):
            self._forget()
        self.alpha = alpha
        return self.alpha

    def _forget(self) -> None:
        self._v = self._products = None

    # ---- J and its derivatives -----------------------------------------------------

    @property
    def point(self) -> Array:
        """α; there must be one."""
        assert self.alpha is not None, "solve first"
        return self.alpha

    @property
    def J(self) -> float:
        """J(θ) from below, at α."""
        alpha = self.point
        square = float(np.sum(alpha * (self.K @ alpha)))
        return self.problem.dual_loss(alpha) - 0.5 * square

    @property
    def v(self) -> Array:
        """‖α‖_{K_m}: half a pass, or what the products give."""
        if self._v is None:
            if self.keep_products:
                self._make_products()
            square = self.problem.grams.quad(self.point)
            self._v = np.sqrt(np.maximum(square, 0.0))
        return self._v

    def _make_products(self) -> Array:
        """(M, n): K_mα, after which the stack knows quad(α)."""
        if self._products is None:
            self._products = self.problem.grams.matvec(self.point)
        return self._products

    def products_of(self, which: Array) -> Array:
        """(nk, which): K_mα of some kernels, from what is kept where it is kept."""
        if self.keep_products:
            products = self._make_products()[which]
        else:
            products = self.problem.grams.subset(which).matvec(self.point)
        return np.ascontiguousarray(products.reshape(len(which), self.point.size).T)

    def sensitivity(self, force: Array) -> Array:
        """−∂α/∂f: by how much α gives way when predictions are pushed, per column."""
        free, shape = self.free, self.problem.shape
        if len(free) == 0:
            return np.zeros_like(force)
        B = free.reduced(force.T.reshape(-1, *shape))
        found = bordered(free.system(self.K), B, free.border)
        if found is None:  # no curvature to be had: a linear model
            return np.zeros_like(force)
        return free.lifted(found, shape[0]).reshape(force.shape)

    def hessian(self, which: Array) -> Array:
        """∂²J/∂θ² for some kernels."""
        B = self.products_of(which)
        H = B.T @ self.sensitivity(B)
        return np.asarray(0.5 * (H + H.T))
