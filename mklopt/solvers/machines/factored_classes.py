"""The inner solver for k classes and kernels given as factors: no n × n matrix.

    J(θ) = min over W, b   Σ C_i V(f_i) + ½ Σ_m ‖W_m‖²/θ_m,      f = Σ_m L_m W_m + b

with f_i and b in R^k, for the multi-class hinge and the multinomial loss; solved by
class_newton.py. The memory is that of the factors and a few numbers per sample and
class.

Derivatives. With F the factors side by side, h = Fᵀα, B = Fᵀ D F (D is a k × k block
per sample, with the bias eliminated) and A = I + √Θ B √Θ,

    ∂²J/∂θ_m∂θ_l = h_mᵀ [B − B √Θ A⁻¹ √Θ B]_ml h_l

A⁻¹ by conjugate gradients, to a few digits: it is used for models alone. With kinks, D
is that of a proximal step with the last σ, or with STIFF/‖z‖² for a mean row z of Z if
this is smaller.
"""

from typing import Any

import numpy as np

from ...certificates.certificate import Certificate
from ...certificates.enclosure import exact_point
from ...formulations.losses.class_terms import ClassTerms, Margins
from ...problem import Problem
from .class_newton import ClassNewton, Curved, Preconditioner
from .factored import ACCURATE, ON_BOUND, FactoredMachine
from .machine import Array

STIFF = 1e3
# Relative to the certified gap. Errors of v are the root of this, and where Ω* bounds v
# (group lasso) an error of v is one of the gap.
TOLERANCE = 1e-8
# The relative residuals of systems: of products, and of the Hessian, where the error is
# of second order.
PRODUCTS, HESSIAN = 1e-6, 1e-5


def class_terms(problem: Problem) -> Any:
    """The terms of all samples of a problem with k outputs; None if it has none."""
    return problem.loss.class_terms(problem.y, problem.costs)


class FactoredClasses(FactoredMachine):
    """The inner solver in feature space, for losses with k outputs."""

    sums_type, newton_type = Preconditioner, ClassNewton
    terms_of = staticmethod(class_terms)

    def _solved(self, alpha: Array, gap: float, work: float) -> Array:
        """Take a solution; its gap is that of the α that is exactly feasible."""
        exact = exact_point(self.problem, alpha)
        newton, at = self._newton, self._at
        assert isinstance(newton, ClassNewton) and at is not None
        apart = at.x - newton.fold(exact)
        gap = 0.5 * float(np.sum(apart**2)) + newton.terms.fenchel(at.g, exact)
        return super()._solved(exact, gap, work)

    def set_tolerance(self, certificate: Certificate) -> None:
        """Set the tolerance to a part of the certified gap."""
        gap, primal = max(certificate.gap, 0.0), abs(certificate.primal)
        self.tol = min(self.sharpness, TOLERANCE) * min(gap, ACCURATE * primal)

    @property
    def curvature(self) -> Array:
        """s of all samples at the solution, (n, k); see class_terms.py."""
        assert self._at is not None and isinstance(self._newton, ClassNewton)
        terms: ClassTerms = self._newton.terms
        if not isinstance(terms, Margins):
            return terms.respond(self._at.g)[1]
        s = terms.support(self.point, ON_BOUND)
        length = self._newton.mean_square(s)
        return s * min(self._at.sigma, STIFF / max(length, 1e-300))

    def sensitivity(self, force: Array) -> Array:
        """H applied to each column: −∂α for a change of the predictions."""
        newton, s = self._newton, self.curvature
        assert isinstance(newton, ClassNewton)
        out = np.zeros_like(force)
        held, curved = np.flatnonzero(np.any(s, axis=1)), newton.curved(s)
        if curved is None:
            return out
        held = held if curved.panel.n == len(held) else np.arange(len(s))
        for column, found in zip(force.T, out.T):
            pushed = column.reshape(s.shape)[held]
            right = curved.fold(curved.bent(pushed)[0])
            y = newton.solve(curved, s, right, PRODUCTS)[0]
            moved = np.zeros_like(s)
            moved[held] = curved.bent(pushed - curved.predict(y))[0]
            found[:] = moved.ravel()
        return out

    def products_of(self, which: Array) -> Array:
        """(nk, which): K_mα of some kernels."""
        found = super().products_of(which)
        return found.reshape(-1, len(which))

    def hessian(self, which: Array) -> Array:
        """∂²J/∂θ² for some kernels: one product and one system for each."""
        newton, s, problem = self._newton, self.curvature, self.problem
        assert isinstance(newton, ClassNewton)
        H, curved = np.zeros((len(which), len(which))), newton.curved(s)
        if curved is None:
            return H
        kernels = np.union1d(which, self._used)
        grams, h = problem.grams.subset(kernels), problem.grams.fold(self.point)
        owner, used = problem.grams.owner, np.isin(kernels[grams.owner], self._used)
        whole = Curved(grams.panel(), s, np.ones(len(used)), curved.inverse)
        pushes, rights, found = [], [], []
        for m in which:
            part = problem.grams.subset(np.array([m]))
            bent = whole.bent(part.panel().unfold(h[owner == m]))[0]
            pushes.append(whole.fold(bent))
            rights.append(newton.root[:, None] * pushes[-1][used])
            found.append(newton.solve(curved, s, rights[-1], HESSIAN))
        for a, m in enumerate(which):
            own = kernels[grams.owner] == m
            for b, (y, rest) in enumerate(found):
                H[a, b] = np.sum(h[owner == m] * pushes[b][own])
                H[a, b] -= np.sum(rights[a] * y) + np.sum(found[a][0] * rest)
        return np.asarray(0.5 * (H + H.T))
