"""What all wrappers around the machine share: J(θ), its gradient and its Hessian.

    J(θ) = max over α   −C Σ V*(−α_i/C) − ½ Σ_m θ_m αᵀK_mα

is convex in θ ≥ 0 with ∂J/∂θ_m = −½ v_m², v_m² = αᵀK_mα at the optimal α, and, where
the free coordinates F of α do not change, ∂²J/∂θ_m∂θ_l = (K_mα)_Fᵀ H (K_lα)_F with H
the inverse of Σθ_mK_m + ridge on F, bordered when there is a bias. `respond` is H.

One product K_mα with every kernel gives v and all that the Hessian needs: where it is
wanted (`curved`), v costs that product and the Hessian nothing more.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..certificate import Certificate
from ..formulations.losses import Quadratic
from ..problem import Problem
from . import svm
from .base import Iterate

Array = np.ndarray


class Machine:
    """The machine at given kernel weights, warm-started from one to the next.

    Its tolerance follows the certificate: a blind schedule stalls when C is large, and
    with a loose one the warm start is already good enough and α never moves.
    """

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
        self.tol, self.solves, self.gap = 1e-3 * worst, 0, np.inf

    def solve(
        self, theta: Array, offset: Array | None = None, K: Array | None = None
    ) -> Array:
        """α at θ: one combine, unless Σθ_mK_m is known, and no other pass."""
        self.theta = theta
        self.K = self.problem.grams.combine(theta) if K is None else K
        found = svm.solve(self.problem, self.K, self.alpha, tol=self.tol, offset=offset)
        return self._solved(found.alpha, found.gap)

    def enter(self, problem: Problem) -> None:
        """Go on with other kernels, from α as it is."""
        self.problem = problem
        self._forget()

    def _forget(self) -> None:
        for name in ("v", "images"):
            self.__dict__.pop(name, None)

    def _solved(self, alpha: Array, gap: float) -> Array:
        self.alpha, self.gap = self.problem.feasible(alpha), gap
        self.solves += 1
        self._forget()
        return self.alpha

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
        return self.problem.gain(alpha) - 0.5 * float(alpha @ self.K @ alpha)

    def iterate(self) -> Iterate:
        if self.curved:
            self.v  # noqa: B018  # before the loop asks for quad(α), and pays for it
        return Iterate(self.point, self.theta, info={"svm_solves": self.solves})

    def heed(self, certificate: Certificate) -> None:
        """Tie the tolerance to the true gap."""
        self.tol = self.sharpness * max(certificate.gap, 0.0)

    @property
    def quadratic(self) -> Quadratic:
        dual = self.problem.loss.quadratic(self.problem.y, self.problem.costs)
        assert dual is not None
        return dual

    @property
    def free(self) -> Array:
        """The coordinates of α off bounds and kinks."""
        return self.quadratic.free(self.point)

    def system(self, free: Array) -> Array:
        """Σθ_mK_m + ridge on the free coordinates."""
        return self.K[np.ix_(free, free)] + np.diag(self.quadratic.ridge[free])

    def respond(self, force: Array) -> Array:
        """−∂α/∂f: by how much α gives way when predictions are pushed, per column."""
        free, out = self.free, np.zeros_like(force)
        if len(free):
            found = svm.bordered(self.system(free), force[free], self.problem.bias)
            if found is not None:  # else no curvature to be had: a linear model
                out[free] = found
        return out

    def foresee(self, move: Array) -> None:
        """Begin the next machine at α + move."""
        self.alpha = self.point + move

    def forces(self, which: Array) -> Array:
        """(n, which): K_mα of some kernels, from `images` where they are kept."""
        if self.curved:
            return np.ascontiguousarray(self.images[which].T)
        return self.problem.grams.subset(which).matvec(self.point).T

    def hessian(self, which: Array) -> Array:
        """∂²J/∂θ² for some kernels."""
        B = self.forces(which)
        H = B.T @ self.respond(B)
        return np.asarray(0.5 * (H + H.T))
