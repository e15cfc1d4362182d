"""What all wrappers around the machine share: J(θ), its gradient and its Hessian.

    J(θ) = max over α   −C Σ V*(−α_i/C) − ½ Σ_m θ_m αᵀK_mα

is convex in θ ≥ 0 with ∂J/∂θ_m = −½ v_m², v_m² = αᵀK_mα at the optimal α, and, where
the free coordinates F of α do not change, ∂²J/∂θ_m∂θ_l = (K_mα)_Fᵀ H (K_lα)_F with H
the inverse of Σθ_mK_m + ridge on F, bordered when there is a bias. `respond` is H.
There are two machines: svm.py for one output, crammer.py for k of them (traces instead
of αᵀKα); predictions and α are then flat, (nk,).

One product K_mα with every kernel gives v and all that the Hessian needs: where it is
wanted (`curved`), v costs that product and the Hessian nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ..certificate import Certificate, best_shrink
from ..problem import Problem
from . import crammer, svm
from .base import Iterate

Array = np.ndarray


class Machine:
    """The machine at given kernel weights, warm-started from one to the next.

    Its tolerance follows the certificate: a blind schedule stalls when C is large, and
    with a loose one the warm start is already good enough and α never moves.
    """

    kernels: Array | None = None  # which of a larger stack these are
    steps = 30  # of Newton's method, at most, where the machine is solved by it

    def __init__(
        self,
        problem: Problem,
        alpha: Array | None,
        sharpness: float = 1e-5,
        curved: bool = False,
    ):
        self.problem, self.sharpness, self.alpha = problem, sharpness, alpha
        self.curved = curved and problem.grams.storage != "factors"
        zero = np.zeros(problem.shape)
        worst = float(problem.costs @ problem.loss.value(zero, problem.y))
        self.tol, self.gap = 1e-3 * worst, np.inf
        self.solves, self.work = 0, 0.0
        self.kind = kind_of(problem)

    def solve(self, theta: Array, K: Array | None = None) -> Array:
        """α at θ: one combine, unless Σθ_mK_m is known, and no other pass."""
        self.theta = theta
        self.K = self.problem.grams.combine(theta) if K is None else K
        found = self.kind.solve(self.problem, self.K, self.alpha, tol=self.tol)
        return self._solved(found.alpha, found.gap, found.work)

    def _solved(self, alpha: Array, gap: float, work: float) -> Array:
        self.gap, self.solves, self.work = gap, self.solves + 1, self.work + work
        return self._moved(self.problem.feasible(alpha))

    def adopt(self, alpha: Array, theta: Array) -> Array:
        """Go on from an α that was found elsewhere."""
        self.theta, self.K = theta, self.problem.grams.combine(theta)
        return self._moved(alpha)

    def enter(self, problem: Problem, kernels: Array) -> None:
        """Go on with other kernels of the same problem, by number, from α as it is."""
        known = self.__dict__.get("images")
        before, self.kernels = self.kernels, kernels
        self.problem = problem
        self._forget()
        if known is not None and before is not None:
            self.images = self._carried(known, before)

    def _carried(self, known: Array, before: Array) -> Array:
        """K_mα of kernels that were there before, and of the new ones."""
        assert self.kernels is not None
        images = np.empty((len(self.kernels), *self.problem.shape))
        places = {m: i for i, m in enumerate(before.tolist())}
        old = np.array([places.get(m, -1) for m in self.kernels.tolist()])
        images[old >= 0] = known[old[old >= 0]]
        if np.any(old < 0):
            new = self.problem.grams.subset(old < 0)
            images[old < 0] = new.matvec(self.point)
        return images

    def _moved(self, alpha: Array) -> Array:
        if self.alpha is None or not np.array_equal(alpha, self.alpha):
            self._forget()
        self.alpha = alpha
        return self.alpha

    def _forget(self) -> None:
        for name in ("v", "images"):
            self.__dict__.pop(name, None)

    @cached_property
    def images(self) -> Array:
        """(M, n): K_mα, after which the stack knows quad(α)."""
        return self.problem.grams.matvec(self.point)

    @cached_property
    def v(self) -> Array:
        """‖α‖_{K_m}: half a pass."""
        if self.curved:
            self.images  # noqa: B018
        return np.sqrt(np.maximum(self.problem.grams.quad(self.point), 0.0))

    @property
    def point(self) -> Array:
        assert self.alpha is not None, "solve first"
        return self.alpha

    @property
    def J(self) -> float:
        alpha = self.point
        return self.problem.gain(alpha) - 0.5 * float(np.sum(alpha * (self.K @ alpha)))

    def iterate(self) -> Iterate:
        if self.curved:
            self.v  # noqa: B018  # before the loop asks for quad(α), and pays for it
        return Iterate(self.point, self.theta, info={"svm_solves": self.solves})

    def heed(self, certificate: Certificate) -> None:
        """Tie the tolerance to the true gap."""
        self.tol = self.sharpness * max(certificate.gap, 0.0)

    @property
    def free(self) -> svm.Free | crammer.Free:
        """The coordinates in which α can move."""
        return self.kind.Free.of(self.problem, self.point)

    def respond(self, force: Array) -> Array:
        """−∂α/∂f: by how much α gives way when predictions are pushed, per column."""
        free, shape = self.free, self.problem.shape
        if len(free) == 0:
            return np.zeros_like(force)
        B = free.reduced(force.T.reshape(-1, *shape))
        found = svm.bordered(free.system(self.K), B, free.border)
        if found is None:  # no curvature to be had: a linear model
            return np.zeros_like(force)
        return free.lifted(found, shape[0]).reshape(force.shape)

    def foresee(self, move: Array) -> None:
        """Begin the next machine at α + move."""
        self.alpha = self.point + move.reshape(self.problem.shape)
        self._forget()

    def forces(self, which: Array) -> Array:
        """(nk, which): K_mα of some kernels, from `images` where they are kept."""
        if self.curved:
            images = self.images[which]
        else:
            images = self.problem.grams.subset(which).matvec(self.point)
        return np.ascontiguousarray(images.reshape(len(which), self.point.size).T)

    def hessian(self, which: Array) -> Array:
        """∂²J/∂θ² for some kernels."""
        B = self.forces(which)
        H = B.T @ self.respond(B)
        return np.asarray(0.5 * (H + H.T))


def kind_of(problem: Problem) -> Any:
    """The module that solves the machine of a problem: one output, k, or None."""
    if problem.loss.margins(problem.y) is not None:
        return crammer
    return svm if problem.loss.quadratic(problem.y, problem.costs) else None


def improve(
    problem: Problem, alpha: Array, theta: Array, budget: int | None = None
) -> Array:
    """A dual point at least as good as α, cheaply: what a stochastic run ends with.

    Some moves at fixed kernel weights θ (losses without a machine: steps towards the
    gradient of the loss, which is where the linearized dual is largest), then the best
    point of the segment from α to where they lead. The machine raises its own dual at
    θ; only the search on the segment makes sure of the one with Ω*, which never falls.

    alpha: any numbers of the shape of the dual; made feasible first
    theta: θ ≥ 0, one per kernel
    budget: moves of one sample each, by default two per sample
    """
    old, n = problem.feasible(np.asarray(alpha, float)), problem.grams.n
    K, moves = problem.grams.combine(theta), max(2 * n if budget is None else budget, 1)
    machine = kind_of(problem)
    if machine is None:
        new = _towards_the_gradient(problem, K, old, rounds=-(-moves // n))
    else:
        new = problem.feasible(machine.solve(problem, K, old, budget=moves).alpha)
    return _best_between(problem, old, new)


def _towards_the_gradient(problem: Problem, K: Array, alpha: Array, rounds: int):
    """Generalized conditional gradient on the dual at fixed kernel weights."""
    loss, y, costs = problem.loss, problem.y, problem.spread_costs
    for _ in range(rounds):
        f = K @ alpha
        b = loss.offset(f, y, problem.costs) if problem.bias else 0.0
        step = problem.feasible(-costs * loss.gradient(f + b, y)) - alpha
        linear, square = float(np.sum(step * f)), float(np.sum(step * (K @ step)))

        def loses(t, alpha=alpha, step=step, linear=linear, square=square):
            return t * linear + 0.5 * t * t * square - problem.gain(alpha + t * step)

        alpha = alpha + _argmin(loses) * step
    return alpha


def _best_between(problem: Problem, old: Array, new: Array) -> Array:
    """The point of a segment with the best dual value, scaled as it likes."""
    middle = 0.5 * (old + new)
    ends = [problem.grams.quad(point) for point in (old, new, middle)]
    ends = [
        square + problem.grams.shift * np.sum(point**2)
        for square, point in zip(ends, (old, new, middle))
    ]
    cross = 2 * ends[2] - 0.5 * (ends[0] + ends[1])

    def loses(t: float) -> float:
        squares = (1 - t) ** 2 * ends[0] + t**2 * ends[1] + 2 * t * (1 - t) * cross
        v = np.sqrt(np.maximum(squares, 0.0))
        return -best_shrink(problem, old + t * (new - old), v)[1]

    t = _argmin(loses)
    return old if t == 0 else new if t == 1 else old + t * (new - old)


def _argmin(loses: Callable[[float], float]) -> float:
    """Where on [0, 1] a function with one valley is smallest; the ends included."""
    found = minimize_scalar(
        loses, bounds=(0.0, 1.0), method="bounded", options={"maxiter": 20}
    )
    return min((0.0, 1.0, float(found.x)), key=loses)
