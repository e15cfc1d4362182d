"""What all wrappers around the machine share: J(θ), its gradient and its Hessian.

    J(θ) = max over α   −C Σ V*(−α_i/C) − ½ Σ_m θ_m αᵀK_mα

is convex in θ ≥ 0 with ∂J/∂θ_m = −½ v_m², v_m² = αᵀK_mα at the optimal α, and, where
the free coordinates F of α do not change, ∂²J/∂θ_m∂θ_l = (K_mα)_Fᵀ H (K_lα)_F with H
the inverse of Σθ_mK_m + ridge on F, bordered when there is a bias. There are two
machines: svm.py for one output, crammer.py for k of them (traces instead of αᵀKα).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..certificate import Certificate
from ..problem import Problem
from . import crammer, svm
from .base import Iterate

Array = np.ndarray


class Machine:
    """The machine at given kernel weights, warm-started from one to the next.

    Its tolerance follows the certificate: a blind schedule stalls when C is large, and
    with a loose one the warm start is already good enough and α never moves.
    """

    def __init__(self, problem: Problem, alpha: Array | None, sharpness: float = 1e-5):
        self.problem, self.sharpness, self.alpha = problem, sharpness, alpha
        zero = np.zeros(problem.shape)
        worst = float(problem.costs @ problem.loss.value(zero, problem.y))
        self.tol, self.solves, self.gap = 1e-3 * worst, 0, np.inf
        self.kind = machine_for(problem)

    def solve(self, theta: Array, offset: Array | None = None) -> Array:
        """α at θ: one combine, and no other pass."""
        self.theta = theta
        self.K = self.problem.grams.combine(theta)
        found = self.kind.solve(
            self.problem, self.K, self.alpha, tol=self.tol, offset=offset
        )
        self.alpha, self.gap = self.problem.feasible(found.alpha), found.gap
        self.solves += 1
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
        return self.problem.gain(alpha) - 0.5 * float(np.sum(alpha * (self.K @ alpha)))

    def iterate(self) -> Iterate:
        return Iterate(self.point, self.theta, info={"svm_solves": self.solves})

    def heed(self, certificate: Certificate) -> None:
        """Tie the tolerance to the true gap."""
        self.tol = self.sharpness * max(certificate.gap, 0.0)

    @property
    def free(self) -> svm.Free | crammer.Free:
        """The coordinates in which α can move."""
        return self.kind.Free.of(self.problem, self.point)

    def hessian(self, which: Array) -> Array:
        """∂²J/∂θ² for some kernels: one product with each of them."""
        free, flat = self.free, np.zeros((len(which), len(which)))
        if len(free) == 0:
            return flat
        B = free.reduced(self.problem.grams.subset(which).matvec(self.point))
        columns = svm.bordered(free.system(self.K), B, free.border)
        if columns is None:  # no curvature to be had: a linear model
            return flat
        H = B.T @ columns
        return np.asarray(0.5 * (H + H.T))


def machine_for(problem: Problem) -> Any:
    """The module that solves the machine of a problem: one output, or k."""
    return svm if len(problem.shape) == 1 else crammer
