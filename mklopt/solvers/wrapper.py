"""What all wrappers around the machine share: J(θ), its gradient and its Hessian.

    J(θ) = max over α   −C Σ V*(−α_i/C) − ½ Σ_m θ_m αᵀK_mα

is convex in θ ≥ 0 with ∂J/∂θ_m = −½ v_m², v_m² = αᵀK_mα at the optimal α, and, where
the free coordinates F of α do not change, ∂²J/∂θ_m∂θ_l = (K_mα)_Fᵀ H (K_lα)_F with H
the inverse of Σθ_mK_m + ridge on F, bordered when there is a bias.
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
NEAR = 1e-7  # of the largest |α_i|: so far off a bound is on it


class Machine:
    """The machine at given kernel weights, warm-started from one to the next.

    Its tolerance follows the certificate: a blind schedule stalls when C is large, and
    with a loose one the warm start is already good enough and α never moves.
    """

    def __init__(self, problem: Problem, alpha: Array | None, sharpness: float = 1e-5):
        self.problem, self.sharpness, self.alpha = problem, sharpness, alpha
        zero = np.zeros(problem.shape)
        worst = float(problem.costs @ problem.loss.value(zero, problem.y))
        self.tol, self.gap = 1e-3 * worst, np.inf
        self.solves, self.work = 0, 0.0

    def solve(self, theta: Array) -> Array:
        """α at θ: one combine, and no other pass."""
        K = self.problem.grams.combine(theta)
        found = svm.solve(self.problem, K, self.alpha, tol=self.tol)
        self.gap, self.solves = found.gap, self.solves + 1
        self.work += found.work
        return self.adopt(self.problem.feasible(found.alpha), theta)

    def adopt(self, alpha: Array, theta: Array) -> Array:
        """Go on from an α that was found elsewhere."""
        self.theta, self.K = theta, self.problem.grams.combine(theta)
        self.alpha = alpha
        self.__dict__.pop("v", None)
        return self.alpha

    @cached_property
    def v(self) -> Array:
        """‖α‖_{K_m}: one quad."""
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
        room = NEAR * float(np.max(np.abs(self.point), initial=0.0))
        return self.quadratic.free(self.point, room)

    def system(self, free: Array) -> Array:
        """Σθ_mK_m + ridge on the free coordinates."""
        return self.K[np.ix_(free, free)] + np.diag(self.quadratic.ridge[free])

    def hessian(self, which: Array) -> Array:
        """∂²J/∂θ² for some kernels: one product with each of them."""
        problem, free = self.problem, self.free
        if len(free) == 0:
            return np.zeros((len(which), len(which)))
        B = problem.grams.subset(which).matvec(self.point)[:, free].T
        columns = svm.bordered(self.system(free), B, problem.bias)
        if columns is None:  # no curvature to be had: a linear model
            return np.zeros((len(which), len(which)))
        H = B.T @ columns
        return np.asarray(0.5 * (H + H.T))
