"""Sums of powers of block norms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import Array, Formulation, check_range, stated
from .norms import dual_exponent, power_step


@dataclass(frozen=True)
class BlockPower(Formulation):
    """Ω(u) = ½ Σ u_m^q, 1 ≤ q < ∞: a block norm without its outer square.

    Dual: Σ ½(q − 1)(2v/q)^{q*}, from the scalar sup of v u − ½u^q at u = (2v/q)^{q*−1}.
    Meets BlockNorm(q) along C. Reference: Kloft et al. (2011), section 3.

    Parameters
    ----------
    q : float
        The exponent, 1 ≤ q ≤ 1e6.
    """

    q: float = 1.5
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range("BlockPower", "q", self.q, 1.0, 1e6)

    def penalty(self, u: Any) -> Any:
        """½ Σ u_m^q as a CVXPY expression."""
        import cvxpy as cp

        if self.q in (1, 2):
            return 0.5 * (cp.sum(u) if self.q == 1 else cp.sum_squares(u))
        return 0.5 * cp.sum(cp.power(u, self.q, approx=False))

    def value(self, u: Array) -> float:
        """½ Σ u_m^q."""
        return 0.5 * float(np.sum(u**self.q))

    def conjugate(self, v: Array) -> float:
        """Σ ½(q − 1)(2v/q)^{q*}; for q = 1, 0 where all v ≤ ½."""
        q = self.q
        if q == 1:
            return 0.0 if np.max(v) <= 0.5 else np.inf
        with np.errstate(over="ignore"):  # p near 1: a steep wall is +inf in float64
            return float(np.sum(0.5 * (q - 1) * (2 * v / q) ** dual_exponent(q)))

    def rounding(self, M: int) -> float:
        """Powers multiply relative errors by their exponent."""
        steepest = self.q if self.q == 1 else max(self.q, dual_exponent(self.q))
        return (4 + steepest) * super().rounding(M)

    @property
    def exponent(self) -> float:
        """q."""
        return self.q

    @property
    def traits(self) -> frozenset[str]:
        """Reweighted; the dual has kinks for q = 1."""
        return stated(reweighted=True, smooth_dual=self.q > 1)

    def dual_weights(self, v: Array) -> Array:
        """(2/q)^(q*−1) v^(q*−2)."""
        if self.q == 2:
            return np.ones_like(v)
        if self.q == 1:  # Ω* vanishes inside its domain
            return np.zeros_like(v)
        with np.errstate(divide="ignore", over="ignore"):  # v = 0 or a steep wall
            power = np.asarray(v, float) ** (dual_exponent(self.q) - 2)
            return np.asarray((2 / self.q) ** (dual_exponent(self.q) - 1) * power)

    def reweight(self, theta: Array, v: Array, slack: float = 0.0) -> Array:
        """For q > 2, where Ω*∘√ is concave, from a majorizer of the dual."""
        if self.q <= 2:
            return self.weights(theta * v)
        return self.dual_weights(np.maximum(v, 1e-12 * np.max(v, initial=0.0)))

    def elasticities(self, theta: Array, v: Array) -> tuple[Array, Array]:
        """log θ_new is (2 − q) log u + const, or (q* − 2) log v + const for q > 2."""
        eye = np.eye(len(v))
        if self.q <= 2:
            return (2 - self.q) * eye, (2 - self.q) * eye
        return 0 * eye, (dual_exponent(self.q) - 2) * eye

    def weights(self, u: Array) -> Array:
        """(2/q) u^(2−q)."""
        if self.q == 2:
            return np.ones_like(u)
        with np.errstate(divide="ignore"):  # q > 2: an unused kernel has weight inf
            return np.asarray(2 / self.q * np.asarray(u, float) ** (2 - self.q))

    def prox(self, u: Array, step: Array | float) -> Array:
        """z + ½q step z^(q−1) = u, kernel by kernel."""
        step = np.broadcast_to(np.asarray(step, float), u.shape)
        return power_step(np.asarray(u, float), 0.5 * self.q * step, self.q)

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """1/(1 + ½q(q − 1) step z^(q−2)), kernel by kernel."""
        q, z = self.q, self.prox(u, step)
        step, used = np.broadcast_to(np.asarray(step, float), u.shape), z > 0
        curve = 0.5 * q * (q - 1) * z[used] ** (q - 2)
        return np.diag(1 / (1 + step[used] * curve))

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        """Sparse, smooth, quadratic, and steeper."""
        return [cls(q) for q in (1.0, 4 / 3, 2.0, 3.0)]
