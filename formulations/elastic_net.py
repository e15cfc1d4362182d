"""Elastic net over kernels: between group lasso and the plain sum of squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import Array, Formulation, check_range, stated
from .norms import ratio


@dataclass(frozen=True)
class ElasticNet(Formulation):
    """Ω(u) = ρ Σ u_m + (1 − ρ)/2 Σ u_m², ρ = l1_ratio in [0, 1].

    Dual: Ω*(v) = Σ (v_m − ρ)₊² / (2(1 − ρ)). Reference: Suzuki and Tomioka (2009),
    section 2, on regularizers beyond the group lasso.

    Parameters
    ----------
    l1_ratio : float
        ρ: 1 is the group lasso, 0 the plain sum of squares.
    """

    l1_ratio: float = 0.5
    exact: ClassVar[bool] = True
    same_for_part: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range("ElasticNet", "l1_ratio", self.l1_ratio, 0.0, 1.0)

    def penalty(self, u: Any) -> Any:
        """ρ Σ u + (1 − ρ)/2 Σ u² as a CVXPY expression."""
        import cvxpy as cp

        rho, linear = self.l1_ratio, self.l1_ratio * cp.sum(u)
        return linear if rho == 1 else linear + 0.5 * (1 - rho) * cp.sum_squares(u)

    def value(self, u: Array) -> float:
        """ρ Σ u + (1 − ρ)/2 Σ u²."""
        rho = self.l1_ratio
        return float(rho * np.sum(u) + 0.5 * (1 - rho) * np.sum(u * u))

    def conjugate(self, v: Array) -> float:
        """Σ (v − ρ)₊² / (2(1 − ρ)); for ρ = 1, 0 where all v ≤ 1."""
        excess = np.maximum(v - self.l1_ratio, 0.0)
        if self.l1_ratio == 1:
            return np.inf if np.any(excess > 0) else 0.0
        return float(np.sum(excess**2) / (2 * (1 - self.l1_ratio)))

    @property
    def traits(self) -> frozenset[str]:
        """Where ρ is next to nothing, t = u/ρ is too large to be handled."""
        rho = self.l1_ratio
        return stated(reweighted=True, orthant=rho > 1e-6, strongly_convex=rho < 1)

    @property
    def orthant(self) -> tuple[float, float]:
        """min over t of ½u²/t + ½ρ²t is ρu, at t = u/ρ."""
        return 0.5 * self.l1_ratio**2, 1 - self.l1_ratio

    @property
    def strongly_convex(self) -> tuple[float, float, float]:
        """(1 − ρ)/2 ‖u‖² + ρ Σ u."""
        return 2.0, self.l1_ratio, 1 - self.l1_ratio

    def weights(self, u: Array) -> Array:
        """u / (ρ + (1 − ρ) u)."""
        return ratio(u, self.l1_ratio + (1 - self.l1_ratio) * u)

    def prox(self, u: Array, step: Array | float) -> Array:
        """(u − step ρ)₊ / (1 + step (1 − ρ))."""
        shrunk = np.maximum(u - np.asarray(step) * self.l1_ratio, 0.0)
        return np.asarray(shrunk / (1 + np.asarray(step) * (1 - self.l1_ratio)))

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """1/(1 + step (1 − ρ)) for the kernels that are left."""
        step = np.broadcast_to(np.asarray(step, float), u.shape)
        used = u > step * self.l1_ratio
        return np.diag(1 / (1 + step[used] * (1 - self.l1_ratio)))

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        """Both ends, and two between them."""
        return [cls(0.5), cls(0.1), cls(0.0), cls(1.0)]
