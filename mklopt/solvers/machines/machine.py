"""The inner problem at fixed kernel weights: J(θ), its gradient and its Hessian.

    J(θ) = max over α   −C Σ V*(−α_i/C) − ½ Σ_m θ_m αᵀK_mα

is convex in θ ≥ 0 with ∂J/∂θ_m = −½ v_m², v_m² = αᵀK_mα at the optimal α, and, where
the free coordinates F of α do not change, ∂²J/∂θ_m∂θ_l = (K_mα)_Fᵀ H (K_lα)_F with H
the inverse of Σθ_mK_m + ridge on F, bordered when there is a bias. `sensitivity` is H.

A `Machine` is an inner solver: it solves this problem for a sequence of θ, each time
from the last α. With the matrix Σθ_mK_m there are three: svm.py for
losses with a quadratic dual, crammer.py for several classes (with traces instead of
αᵀKα), smooth.py for losses that are twice differentiable. Without the matrix there are
two: factored.py for kernels that are given as factors with few columns, by_rows.py for
many samples. factory.py chooses one.

One product K_mα with every kernel gives v and everything that the Hessian needs. With
`keep_products` v costs this product, and the Hessian no further one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...certificates.certificate import Certificate
from ...certificates.enclosure import exact_point
from ...grams.stack import GramStack
from ...problem import Problem
from ..base import Array, Iterate
from .linear import Bordered

IDLE_ROUNDS = 10  # after so many rounds without progress a small gap is rounding
MAX_FREE = 3000  # Newton steps are made on at most so many free coordinates
# The moves of one solve, and the numbers that they may read: less than a second.
FEWEST_MOVES, NUMBERS_AT_ONCE = 10_000, 100_000_000
SHORTEST = 100  # a move takes as long as one that reads so many numbers
NUMBERS_PER_STEP = 100_000  # as long as a Newton step takes on any few coordinates
FIRST_TOLERANCE = 1e-3  # relative to ΣC V(0), before the first certificate


class Solution(NamedTuple):
    """α of the inner problem, with its gap."""

    alpha: Array
    bias: Any  # a number, or one per output
    gap: float  # primal − dual of the inner problem
    moves: int

    @property
    def work(self) -> float:
        """The work, in a unit after which a solver should yield: 8 solves, or 0.3 s.

        It is counted in moves and not by a clock, so that runs can be repeated.
        """
        return 0.125 + 3 * self.moves / most_moves(len(self.alpha))


def most_moves(n: int) -> int:
    """The largest number of moves of one solve with n samples."""
    return max(FEWEST_MOVES, NUMBERS_AT_ONCE // max(n, SHORTEST))


def start_of_step(n: int) -> int:
    """The moves that take as long as a Newton step on a few coordinates."""
    return 1 + NUMBERS_PER_STEP // max(n, SHORTEST)


@dataclass(frozen=True)
class Free:
    """N coordinates in which α can move: coordinate c changes α_i by `moves[c]`.

    i: (N,), the sample of each coordinate
    moves: (N, k), for k outputs; ones if there is one output
    ridge: (N,), the curvature of the loss
    """

    i: Array
    moves: Array
    ridge: Array
    bias: bool

    def __len__(self) -> int:
        return len(self.i)

    def reduced(self, slopes: Array) -> Array:
        """(N, ·): the slopes along the free coordinates, from slopes (·, n[, k])."""
        if slopes.ndim == 2:
            return slopes[:, self.i].T
        return np.einsum("mck,ck->cm", slopes[:, self.i], self.moves)

    def lifted(self, step: Array, n: int) -> Array:
        """(n[, k], …): the change of α, from a step (N, …) in the free coordinates."""
        k = self.moves.shape[1]
        if k == 1:
            out = np.zeros((n, *step.shape[1:]))
            out[self.i] = step
            return out
        out = np.zeros((n, k, *step.shape[1:]))
        np.add.at(out, self.i, np.einsum("ck,c...->ck...", self.moves, step))
        return out

    def system(self, K: Array) -> Array:
        """The curvature along the free coordinates."""
        part = _between(K, self.i)
        part = part if self.moves.shape[1] == 1 else part * (self.moves @ self.moves.T)
        part[np.diag_indices_from(part)] += self.ridge
        return np.asarray(part)

    @property
    def border(self) -> Array | None:
        """What each coordinate adds to Σα; of k > 1 outputs the last one follows."""
        if not self.bias:
            return None
        return self.moves[:, : max(self.moves.shape[1] - 1, 1)]


def _between(K: Any, i: Array) -> Array:
    """K between these samples; a matrix in a third of the time of K[np.ix_(i, i)]."""
    return K[i].take(i, axis=1) if isinstance(K, np.ndarray) else K[np.ix_(i, i)]


class Ascent(Protocol):
    """Cheap moves on the dual of the inner problem, and Newton steps between them."""

    turn: int  # moves between two Newton steps
    overhead: int  # moves that take as long as all else in a turn
    patient: bool  # whether it continues after a turn without a move

    def climb(self, tol: float, most: int) -> tuple[int, float]:
        """Make at most so many moves; returns their number and the gap."""

    def newton(self, most: int) -> int:
        """Make Newton steps; returns their cost in moves."""

    @property
    def noise(self) -> float:
        """A gap that rounding may leave."""

    def point(self) -> tuple[Array, Any, float]:
        """α, bias and gap."""


def ascend(ascent: Ascent, n: int, tol: float, budget: int | None) -> Solution:
    """Moves and Newton steps in turn, until gap ≤ tol, rounding, or out of moves."""
    budget = budget or most_moves(n)
    moves, best, idle, pause, cost = 0, np.inf, 0, 0, 0
    while True:
        most = min(budget - moves, ascent.turn)
        done, gap = ascent.climb(tol, most)
        moves += done + ascent.overhead
        if cost > done and gap > 0.9 * best:  # an expensive Newton step gained little
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


def carried(
    grams: GramStack,
    alpha: Array,
    kernels: Array,
    before: Array,
    known: Array,
    multiplied: Callable[[GramStack], Array] | None = None,
) -> Array:
    """K_mα of the kernels of a stack: known if they were there before, else computed.

    kernels, before: their numbers in a larger stack, and those of `known`, sorted
    multiplied: computes K_mα of a stack
    """
    products = np.empty((len(kernels), *alpha.shape))
    old = np.isin(kernels, before)
    products[old] = known[np.searchsorted(before, kernels[old])]
    if not np.all(old):
        new = grams.subset(~old)
        products[~old] = new.matvec(alpha) if multiplied is None else multiplied(new)
    return products


@dataclass(frozen=True)
class Combined:
    """K(θ) = Σθ_mK_m as an operator: products and parts of it, without the matrix."""

    grams: GramStack
    theta: Array

    def __len__(self) -> int:
        return self.grams.n

    def __matmul__(self, alpha: Array) -> Array:
        """K(θ) α."""
        return self.grams.product(self.theta, alpha)

    def __rmul__(self, factor: float) -> "Combined":
        """A multiple of it."""
        return Combined(self.grams, factor * self.theta)

    def __getitem__(self, mesh: tuple[Array, ...]) -> Array:
        """K(θ) between some samples, K[np.ix_(rows, columns)]; by rows alone."""
        rows, columns = map(np.ravel, mesh)
        return self.grams.between(self.theta, rows, columns)


class Machine:
    """An inner solver: solves for one θ after another, each time from the last α.

    Its tolerance is a part of the certified gap. A fixed sequence of tolerances fails
    when C is large; and if the tolerance is too loose, the last α always satisfies it
    and never moves.
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
        self._keep = keep_products
        zero = np.zeros(problem.shape)
        worst = float(problem.costs @ problem.loss.value(zero, problem.y))
        self.tol, self.gap = FIRST_TOLERANCE * worst, np.inf
        self.solves, self.work = 0, 0.0
        self._forget()

    @property
    def keep_products(self) -> bool:
        """Whether K_mα is kept: not of factors, and not if it is too large."""
        grams = self.problem.grams
        return self._keep and grams.storage != "factors" and not grams.is_large

    # ---- what each inner solver does in its own way --------------------------------

    def solve_on(self, K: Array, budget: int | None = None) -> Solution:
        """Solve with one kernel matrix, from the last α, to the tolerance."""
        raise TypeError(f"{type(self).__name__} solves nothing: see factory.py")

    @property
    def free(self) -> Free:
        """The coordinates in which α can move."""
        raise TypeError(f"{type(self).__name__} has no free coordinates")

    # ---- solving -------------------------------------------------------------------

    def combined(self, theta: Array) -> Any:
        """Σθ_mK_m as an operator K @ α; here a matrix."""
        return self.problem.grams.combine(theta)

    def solve(self, theta: Array, K: Any = None) -> Array:
        """Solve at θ; the only pass is the combine, unless Σθ_mK_m is given as K."""
        self.theta = theta
        self.K = self.problem.grams.combine(theta) if K is None else K
        found = self.solve_on(self.K)
        return self._solved(found.alpha, found.gap, found.work)

    def _solved(self, alpha: Array, gap: float, work: float) -> Array:
        self.gap, self.solves, self.work = gap, self.solves + 1, self.work + work
        return self._moved(exact_point(self.problem, alpha))

    def adopt(self, alpha: Array, theta: Array) -> Array:
        """Continue from an α that was found in another way."""
        self.theta, self.K = theta, self.problem.grams.combine(theta)
        return self._moved(alpha)

    def extrapolate(self, move: Array) -> None:
        """Begin the next solve at α + move."""
        self.alpha = self.point + move.reshape(self.problem.shape)
        self._forget()

    def set_tolerance(self, certificate: Certificate) -> None:
        """Set the tolerance to a part of the certified gap."""
        self.tol = self.sharpness * max(certificate.gap, 0.0)

    def primal_point(self) -> dict[str, Array]:
        """The primal point of the last solution, as a part of an `Iterate`."""
        return {"weights": self.theta}

    def iterate(self) -> Iterate:
        """α and θ as a candidate."""
        if self.keep_products:
            self._make_products()  # these give quad(α), which the loop asks for next
        return Iterate(self.point, self.theta, info={"svm_solves": self.solves})

    def enter(self, problem: Problem, kernels: Array) -> None:
        """Continue from the same α with other kernels, given by their numbers."""
        known, before = self._products, self.kernels
        self.problem, self.kernels = problem, kernels
        self._forget()
        if known is not None and before is not None:
            given = (self.point, kernels, before, known)
            self._products = carried(problem.grams, *given, self._multiplied)

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
        """The last α."""
        assert self.alpha is not None, "solve first"
        return self.alpha

    @property
    def J(self) -> float:
        """A lower bound of J(θ): the dual value at α."""
        alpha = self.point
        square = float(np.sum(alpha * (self.K @ alpha)))
        return self.problem.dual_loss(alpha) - 0.5 * square

    @property
    def v(self) -> Array:
        """‖α‖_{K_m}, from the products if they are kept, else by half a pass."""
        if self._v is None:
            products = self._make_products() if self.keep_products else None
            self._v = self.problem.grams.norms(self.point, products)
        return self._v

    def _make_products(self) -> Array:
        """(M, n): K_mα. After this the stack remembers quad(α), too."""
        if self._products is None:
            self._products = self._multiplied(self.problem.grams)
        return self._products

    def _multiplied(self, grams: GramStack) -> Array:
        """K_mα of the kernels of a stack, at free coordinates at least."""
        return grams.matvec(self.point)

    def products_of(self, which: Array) -> Array:
        """(nk, which): K_mα of some kernels, at free coordinates at least."""
        if self.keep_products:
            products = self._make_products()[which]
        else:
            products = self._multiplied(self.problem.grams.subset(which))
        return np.ascontiguousarray(products.reshape(len(which), self.point.size).T)

    def sensitivity(self, force: Array) -> Array:
        """H applied to each column: −∂α for a change of the predictions."""
        free, shape = self.free, self.problem.shape
        if len(free) == 0:
            return np.zeros_like(force)
        B = free.reduced(force.T.reshape(-1, *shape))
        found = self._factorized(free).solve(B)
        if found is None:  # the Hessian is unknown: use a linear model
            return np.zeros_like(force)
        return free.lifted(found, shape[0]).reshape(force.shape)

    def _factorized(self, free: Free) -> Bordered:
        """The curvature along the free coordinates, factorized."""
        return Bordered(free.system(self.K), free.border)

    def hessian(self, which: Array) -> Array:
        """∂²J/∂θ² for some kernels."""
        B = self.products_of(which)
        H = B.T @ self.sensitivity(B)
        return np.asarray(0.5 * (H + H.T))
