"""The inner solver for kernels given as factors: no n × n matrix, R × R systems.

    J(θ) = min over w, b   Σ C_i V(f_i) + ½ Σ_m ‖w_m‖²/θ_m,      f = Σ_m L_m w_m + b

with feature weights w_m = √θ_m x_m of each kernel, solved by feature_newton.py. The
memory is that of the factors, a part of their rows, and a few numbers per sample.

Derivatives. With F the factors side by side, Θ = diag(θ), h = Fᵀα and B = Fᵀ diag(d) F
over the samples between their bounds (centred if there is a bias),

    ∂²J/∂θ_m∂θ_l = h_mᵀ [(Θ + B⁻¹)⁻¹]_ml h_l,    (Θ + B⁻¹)⁻¹ = B √Θ A⁻¹ √Θ⁻¹

with A = I + √Θ B √Θ: all of it R × R. For a kernel of weight 0 a tiny weight gives the
limit. d = 1/r, C V'', or a large number for an infinite curvature.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg

from ...certificates.certificate import Certificate
from ...grams.stack import GramStack
from ...problem import Problem
from ..base import Iterate
from .dual_terms import Smooth, terms_of
from .feature_newton import JITTERS, FeatureNewton, Gram, Point
from .linear import jittered_cholesky
from .machine import Array, Combined, Machine

NUMBERS_PER_WORK = 1e9  # numbers read in the time after which a solver should yield
TINY_ROOT = 1e-100  # √θ of kernels of weight 0, relative to the largest
ON_BOUND = 1e-9  # α_i this near to a bound counts as on it; relative to the largest |α|
STIFF = 100.0  # times σ: the curvature of a kink in derivatives
LOOSER = 10.0  # the first tolerance, relative to that of other machines
# The tolerance relative to the certified gap with one kernel, where nothing depends on
# α but the certificate; a gap above ACCURATE times the primal value counts as this.
ALONE, ACCURATE = 0.03, 0.1


class FactoredMachine(Machine):
    """The inner solver in feature space, for losses with one output."""

    sums_type: Any = Gram
    newton_type: Any = FeatureNewton
    terms_of: Any = staticmethod(terms_of)
    _at: Point | None = None
    _newton: FeatureNewton | None = None
    _gram: Gram | None = None
    _found: Array | None = None  # the last α
    products, rows = 0.0, 0  # with all factors; in sums of R × R matrices: so far

    def __init__(self, problem: Problem, alpha: Array | None, sharpness: float):
        super().__init__(problem, alpha, sharpness)
        self.tol *= LOOSER

    def combined(self, theta: Array) -> Combined:
        """Σθ_mK_m as an operator."""
        return Combined(self.problem.grams, theta)

    def solve(self, theta: Array, K: Any = None) -> Array:
        """Solve at θ, from the last α. K(θ) is never formed."""
        self.K = self.combined(theta)
        newton, last = self._prepared(theta), self._newton
        same = last is not None and last.same(newton)
        self.theta = theta
        if self.alpha is None or self._at is None:
            at = newton.cold(self.tol)
        elif same and self.alpha is self._found:
            at = newton.again(self._at, self.tol)
        else:
            h = self.problem.grams.subset(self._used).fold(self.alpha)
            at = self._last_point(newton)
            at = newton.warm(self.alpha, _scaled(newton.root, h), at, self.tol)
        self._at, self._newton = at, newton
        self.products += newton.products
        self.rows = newton.gram.rows
        self.problem.grams.count_reads(newton.products)
        work = newton.products * newton.panel.n * newton.panel.R / NUMBERS_PER_WORK
        self._found = self._solved(at.alpha, at.gap, 0.125 + work)
        return self._found

    def _last_point(self, newton: FeatureNewton) -> Point:
        """The last point, with the same feature weights at the new θ."""
        last, before = self._at, self._newton
        assert last is not None and before is not None
        w = np.zeros((newton.panel.width, *last.x.shape[1:]))
        w[before.panel.places] = _scaled(before.root, last.x)
        with np.errstate(divide="ignore", invalid="ignore"):
            x = (w[newton.panel.places].T / newton.root).T
        left = np.setdiff1d(before.panel.places, newton.panel.places)
        kept = np.all(np.isfinite(x)) and not np.any(w[left])
        return replace(last, x=x if kept else np.zeros(0))

    @property
    def features(self) -> Array:
        """(R,) or (R, k): the feature weights w of the last solution."""
        assert self._at is not None and self._newton is not None, "solve first"
        grams = self.problem.grams
        w = np.zeros((int(np.sum(grams.ranks)), *self._at.x.shape[1:]))
        w[np.isin(grams.owner, self._used)] = _scaled(self._newton.root, self._at.x)
        return w

    def primal_point(self) -> dict[str, Array]:
        """The primal point of the last solution: feature weights, or θ."""
        found = self._found is not None and np.array_equal(self.point, self._found)
        return {"features": self.features} if found else {"weights": self.theta}

    def iterate(self) -> Iterate:
        """α and the feature weights as a candidate."""
        info = {"svm_solves": self.solves}
        return Iterate(self.point, **self.primal_point(), info=info)

    def _prepared(self, theta: Array) -> FeatureNewton:
        """The problem at θ, with the kernels in use; sums over rows are kept."""
        used = np.flatnonzero(theta)
        self._used = used if len(used) else np.array([0])
        grams = self.problem.grams.subset(self._used)
        panel, old = grams.panel(), self._gram
        if old is None or not np.array_equal(panel.places, old.panel.places):
            self._gram = self.sums_type(panel)
        root = np.sqrt(theta[self._used])[grams.owner]
        terms, bias = self.terms_of(self.problem), self.problem.bias
        assert self._gram is not None
        found = self.newton_type(panel, root, terms, bias, self._gram)
        return found  # type: ignore[no-any-return]

    def adopt(self, alpha: Array, theta: Array) -> Array:
        """Continue from an α that was found in another way."""
        self.theta = theta
        return self._moved(alpha)

    def extrapolate(self, move: Array) -> None:
        """Begin the next solve at α + move."""
        super().extrapolate(move)
        self.alpha = self.problem.feasible(self.point)

    def set_tolerance(self, certificate: Certificate) -> None:
        """Set the tolerance to a part of the certified gap."""
        share = ALONE if self.problem.grams.M == 1 else self.sharpness
        gap, primal = max(certificate.gap, 0.0), abs(certificate.primal)
        self.tol = share * min(gap, ACCURATE * primal)

    # ---- J and its derivatives -----------------------------------------------------

    @property
    def J(self) -> float:
        """A lower bound of J(θ): the dual value at α."""
        return self.problem.dual_loss(self.point) - 0.5 * float(self.theta @ self.v**2)

    def products_of(self, which: Array) -> Array:
        """(n, which): K_mα of some kernels."""
        grams, found = self.problem.grams, []
        for m in which:
            part = grams.subset(np.array([m]))
            found.append(part.unfold(part.fold(self.point)))
        return np.stack(found, axis=-1)

    @property
    def curvature(self) -> Array:
        """d of all samples at the solution."""
        assert self._at is not None and self._newton is not None, "solve first"
        terms = self._newton.terms
        if isinstance(terms, Smooth):
            return terms.respond(self._at.g)[1]
        form, alpha = terms.form, self.point
        room = ON_BOUND * float(np.max(np.abs(alpha), initial=0.0))
        free, d = form.free(alpha, room), np.zeros(len(alpha))
        soft = 0.0 if terms.curved else 1 / (STIFF * self._at.sigma)
        d[free] = 1 / (soft + form.ridge[free])
        return d

    def sensitivity(self, force: Array) -> Array:
        """H applied to each column: −∂α for a change of the predictions."""
        newton, d = self._newton, self.curvature
        assert newton is not None
        if not np.any(d):
            return np.zeros_like(force)
        system, border, total = newton.system(None, d)
        factor = jittered_cholesky(system, JITTERS)
        if factor is None:
            return np.zeros_like(force)
        free = np.flatnonzero(d)
        panel, force_there = newton.panel.rows(free), force[free]
        pushed = d[free, None] * force_there
        right = newton.root[:, None] * panel.fold(pushed)
        bias = 1.0 if self.problem.bias else 0.0
        means = bias * np.sum(pushed, axis=0) / total
        right = right - np.multiply.outer(border, means)
        y = scipy.linalg.cho_solve(factor, right, check_finite=False)
        rest = force_there - panel.unfold(newton.root[:, None] * y)
        rest -= means - bias * (border @ y) / total
        out = np.zeros_like(force)
        out[free] = d[free, None] * rest
        return out

    def hessian(self, which: Array) -> Array:
        """∂²J/∂θ² for some kernels, by R × R matrices."""
        kernels = np.union1d(which, self._used)
        grams, d = self.problem.grams.subset(kernels), self.curvature
        if not np.any(d):
            return np.zeros((len(which), len(which)))
        B = self._bent(grams, kernels, d)
        root = np.sqrt(self.theta[kernels])
        root = np.maximum(root, TINY_ROOT * np.max(root))[grams.owner]
        A = root[:, None] * B * root
        A[np.diag_indices_from(A)] += 1
        E = np.zeros((len(root), len(which)))
        place = np.searchsorted(which, kernels[grams.owner])
        mine = np.isin(kernels[grams.owner], which)
        E[mine, place[mine]] = grams.fold(self.point)[mine]
        factor = jittered_cholesky(A, JITTERS)
        if factor is None:
            return np.zeros((len(which), len(which)))
        right = E / root[:, None]
        inner = scipy.linalg.cho_solve(factor, right, check_finite=False)
        H = (root[:, None] * (B @ E)).T @ inner
        return np.asarray(0.5 * (H + H.T))

    def _bent(self, grams: GramStack, kernels: Array, d: Array) -> Array:
        """B = Fᵀ diag(d) F of these kernels, centred if there is a bias."""
        unit, assembled = float(np.max(d)), self._gram
        assert assembled is not None
        if not np.array_equal(kernels, self._used):
            assembled = Gram(grams.panel())
        sums = unit * assembled.at(None, d / unit)
        B = sums[:-1, :-1]
        if self.problem.bias:
            B = B - np.outer(sums[:-1, -1] / sums[-1, -1], sums[:-1, -1])
        return B


def _scaled(root: Array, x: Array) -> Array:
    """diag(root) x, for x of shape (R,) or (R, k)."""
    return (root * x.T).T
