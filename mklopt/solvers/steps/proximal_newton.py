"""Proximal Newton steps on MKL in feature space: all kernels for about one SVM.

    min over w, b   Ω(‖w_1‖, …, ‖w_M‖) + Σ_i C_i V(g_i),      g = F w + b

As feature_newton.py, with Ω in the place of ½‖x‖²: proximal steps on the dual, bands of
samples, a cold start on a part of them. Newton's step minimizes a model that keeps Ω as
it is and has the curvature of the losses only,

    min over w⁺   Ω(‖w⁺‖) − ⟨h, w⁺ − w⟩ + ½ (w⁺ − w)ᵀ FᵀDF (w⁺ − w),      h = Fᵀα(g)

which does not depend on the number of samples (feature_model.py). So kernels leave and
enter inside the model; products with F, and sums over rows of it, are those of one SVM.

Guarantee. `gap` = Ω(u) + Ω*(s v) − s⟨w, h⟩ + the part of the losses at sα, each ≥ 0:
primal − dual, with s ≤ 1 such that Ω* is finite.

Reference: Lee, Sun and Saunders (2014) for proximal Newton steps; Suzuki and Tomioka
(2009) for proximal minimization in MKL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...formulations import LpNorm
from ...formulations.base import Formulation
from ..machines.feature_newton import FeatureNewton, Samples
from .feature_model import Array, Model, minimum, penalty_gap

MODEL_GAP = 1.0  # of the model, relative to its decrease; less saves no Newton step
FLAT = 1e-12  # added to the model, relative to its mean curvature
SOLVED = 0.1  # error² of a proximal step relative to its length²
# Newton steps without a smaller gap: more than IDLE. Where Ω* is finite on a domain
# only, Fᵀα is far outside of it until a proximal step is nearly done: with a large C
# after 40 Newton steps. A point that is left before is far from any solution.
PATIENCE = 60
SPARSE = LpNorm(1.0)
FLAT_SLOPE, MAX_TRIALS = 0.1, 30  # of a search on a line, relative to the model


@dataclass
class ProximalNewton(FeatureNewton):
    """MKL in feature space; √θ of FeatureNewton is 1."""

    patience = PATIENCE

    formulation: Formulation = field(kw_only=True)
    owner: Array = field(kw_only=True)
    theta: Array = field(kw_only=True)
    size: float = 1.0  # Σu at the first weights
    flat: float = 1.0
    models: int = 0  # Cholesky factorizations

    def lengths(self, w: Array) -> Array:
        """(M,): ‖w_m‖."""
        return np.sqrt(np.bincount(self.owner, w**2, minlength=len(self.theta)))

    def rest(self, x: Array, folded: Array) -> tuple[float, float]:
        """The gap of Ω at Fᵀα, and the factor of α for which it is."""
        u, v = self.lengths(x), self.lengths(folded)
        return penalty_gap(self.formulation, u, v, float(x @ folded))

    def penalty(self, x: Array) -> float:
        """Ω."""
        return self.formulation.value(self.lengths(x))

    def look(self, some: Samples, d: Array, x: Array, folded: Array) -> None:
        """Minimize the model."""
        if np.any(d):
            H, border, total = self.curvature(some.numbers, d)
            self.flat = FLAT * float(np.trace(H)) / len(H)
        else:
            H, border, total = np.zeros((len(x), len(x))), np.zeros(len(x)), 1.0
        H[np.diag_indices_from(H)] += self.flat
        unit, formulation = 1.0, self.formulation
        if "orthant" in formulation.traits:
            price, kappa = formulation.orthant
            size = float(np.sum(self.lengths(x))) or self.size
            unit, formulation = size / np.sqrt(2 * price), SPARSE
            H[np.diag_indices_from(H)] += kappa
            folded = folded - kappa * x
        model = Model(formulation, self.owner, unit * H, x, unit * folded)
        dx, falls = minimum(model, self.theta, MODEL_GAP)
        self._falls = falls / unit
        self.theta, self.models = model.theta, self.models + model.solves
        self._step = dx, -float(border @ dx) / total if self.bias else 0.0

    def solved(self, terms: Any, alpha: Array, kinks: float) -> bool:
        """Whether α is near enough to the proximal step, relative to its length.

        With α⁺ at the minimum of φ, ‖α − α⁺‖² ≤ 2σ times the distance of φ from it.
        """
        moved = float(np.sum((alpha - terms.alpha) ** 2)) / (2 * terms.sigma)
        return self._falls <= SOLVED * moved

    def direction(self) -> tuple[Array, float]:
        """The step to the minimum of the model."""
        return self._step

    def length(
        self,
        terms: Any,
        predictions: tuple[Array, Array],
        weights: tuple[Array, Array],
        along: float,
    ) -> float:
        """A step length at which the slope nearly vanishes; 1 if possible."""
        left, right, t = 0.0, np.inf, 1.0
        for _ in range(MAX_TRIALS):
            slope, curve = terms.slopes(*predictions, t)
            slope += along + self._slope(*weights, t)
            if abs(slope) <= FLAT_SLOPE * self._falls:
                break
            left, right = (t, right) if slope < 0 else (left, t)
            if right == np.inf:
                t = min(t - slope / max(curve, 1e-300), 4 * t)
            else:
                t = _inside(left, right, t - slope / max(curve, 1e-300))
        return t

    def _slope(self, x: Array, dx: Array, t: float) -> float:
        """∂Ω(‖x + t dx‖)/∂t."""
        w = x + t * dx
        u = self.lengths(w)
        theta = self.formulation.weights(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            pull = np.where(theta > 0, 1 / theta, 0.0)
        along = np.bincount(self.owner, w * dx, minlength=len(u))
        return float(pull @ along)


def _inside(left: float, right: float, t: float) -> float:
    """t, or the middle if it is not well inside."""
    room = 0.05 * (right - left)
    return t if left + room < t < right - room else 0.5 * (left + right)
