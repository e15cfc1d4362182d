"""Group lasso: the plain sum of block norms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import Array, Formulation


@dataclass(frozen=True)
class GroupLasso(Formulation):
    """Ω(u) = Σ u_m: sparse, and with a C of its own scale.

    Dual: every ‖α‖_{K_m} ≤ 1. Reference: Bach, Lanckriet and Jordan (2004);
    Suzuki and Tomioka (2009), eq. (1).
    """

    exact: ClassVar[bool] = True
    same_for_part: ClassVar[bool] = True

    def penalty(self, u: Any) -> Any:
        """Σ u as a CVXPY expression."""
        import cvxpy as cp

        return cp.sum(u)

    def value(self, u: Array) -> float:
        """Σ u."""
        return float(np.sum(u))

    def conjugate(self, v: Array) -> float:
        """0 where all v ≤ 1, else infinite."""
        return 0.0 if np.max(v) <= 1 else np.inf

    def feasible_scale(self, v: Array) -> float:
        """1/max v, or 1."""
        return min(1.0, 1 / max(float(np.max(v)), 1.0))

    @property
    def traits(self) -> frozenset[str]:
        """Reweighted, with a price of weights that is separate and linear."""
        return frozenset({"reweighted", "priced", "orthant"})

    @property
    def orthant(self) -> tuple[float, float]:
        """½Σ(u²/t + t)."""
        return 0.5, 0.0

    def price(self, theta: Array) -> tuple[float, Array]:
        """½Σθ: min over θ of u²/(2θ) + θ/2 is u, at θ = u."""
        return 0.5 * float(np.sum(theta)), np.full(len(theta), 0.5)

    def weights(self, u: Array) -> Array:
        """u."""
        return np.array(u, float)

    def prox(self, u: Array, step: Array | float) -> Array:
        """(u − step)₊."""
        return np.maximum(u - step, 0.0)

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """1 for the kernels that are left."""
        return np.eye(int(np.count_nonzero(u > step)))
