"""What all wrappers around the machine share: J(θ), its gradient and its Hessian.

    J(θ) = max over α   −C Σ V*(−α_i/C) − ½ Σ_m θ_m αᵀK_mα

is convex in θ ≥ 0 with ∂J/∂θ_m = −½ v_m², v_m² = αᵀK_mα at the optimal α, and, where
the free coordinates F of α do not change, ∂²J/∂θ_m∂θ_l = (K_mα)_Fᵀ H (K_lα)_F with H
the inverse of Σθ_mK_m + ridge on F, bordered when there is a bias. `sensitivity` is H.
There are two machines: svm.py for one output, crammer.py for k of them (traces instead
of αᵀKα); predictions and α are then flat, (nk,).

One product K_mα with every kernel gives v and all that the Hessian needs: where it is
wanted (`strongly_convex`), v costs that product and the Hessian nothing more.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...certificates.certificate import Certificate
from ...problem import Problem
from ..base import Iterate
from . import crammer, svm

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
        keep_products: bool = False,
    ):
        self.problem, self.sharpness, self.alpha = problem, sharpness, alpha
        self.keep_products = keep_products and problem.grams.storage != "factors"
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
        known = self.__dict__.get("products")
        before, self.kernels = self.kernels, kernels
        self.problem = problem
        self._forget()
        if known is not None and before is not None:
            self.products = self._carried(known, before)

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
        for name in ("v", "products"):
            self.__dict__.pop(name, None)

    @cached_property
    def products(self) -> Array:
        """(M, n): K_mα, after which the stack knows quad(α)."""
        return self.problem.grams.matvec(self.point)

    @cached_property
    def v(self) -> Array:
        """‖α‖_{K_m}: half a pass."""
        if self.keep_products:
            self.products  # noqa: B018
        return np.sqrt(np.maximum(self.problem.grams.quad(self.point), 0.0))

    @property
    def point(self) -> Array:
        assert self.alpha is not None, "solve first"
        return self.alpha

    @property
    def J(self) -> float:
        alpha = self.point
        return self.problem.dual_loss(alpha) - 0.5 * float(
            np.sum(alpha * (self.K @ alpha))
        )

    def iterate(self) -> Iterate:
        if self.keep_products:
            self.v  # noqa: B018  # before the loop asks for quad(α), and pays for it
        return Iterate(self.point, self.theta, info={"svm_solves": self.solves})

    def set_tolerance(self, certificate: Certificate) -> None:
        """Tie the tolerance to the true gap."""
        self.tol = self.sharpness * max(certificate.gap, 0.0)

    @property
    def free(self) -> svm.Free | crammer.Free:
        """The coordinates in which α can move."""
        return self.kind.Free.of(self.problem, self.point)

    def sensitivity(self, force: Array) -> Array:
        """−∂α/∂f: by how much α gives way when predictions are pushed, per column."""
        free, shape = self.free, self.problem.shape
        if len(free) == 0:
            return np.zeros_like(force)
        B = free.reduced(force.T.reshape(-1, *shape))
        found = svm.bordered(free.system(self.K), B, free.border)
        if found is None:  # no curvature to be had: a linear model
            return np.zeros_like(force)
        return free.lifted(found, shape[0]).reshape(force.shape)

    def extrapolate(self, move: Array) -> None:
        """Begin the next machine at α + move."""
        self.alpha = self.point + move.reshape(self.problem.shape)
        self._forget()

    def products_of(self, which: Array) -> Array:
        """(nk, which): K_mα of some kernels, from `products` where they are kept."""
        if self.keep_products:
            images = self.products[which]
        else:
            images = self.problem.grams.subset(which).matvec(self.point)
        return np.ascontiguousarray(images.reshape(len(which), self.point.size).T)

    def hessian(self, which: Array) -> Array:
        """∂²J/∂θ² for some kernels."""
        B = self.products_of(which)
        H = B.T @ self.sensitivity(B)
        return np.asarray(0.5 * (H + H.T))


def kind_of(problem: Problem) -> Any:
    """The module that solves the machine of a problem: one output, k, or None."""
    if problem.loss.margins(problem.y) is not None:
        return crammer
    return svm if problem.loss.quadratic(problem.y, problem.costs) else None
