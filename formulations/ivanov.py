"""Kernel weights as variables: the Ivanov and the Tikhonov form of ℓp-norm MKL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import Array, Formulation, check_range, stated
from .block_norm import PowerOfBlockNorm
from .lp_norm import LpNorm
from .norms import (
    INF,
    block_exponent,
    declared_norm,
    declared_quadratic,
    norm,
    norm_gradient,
)


@dataclass(frozen=True)
class Ivanov(LpNorm):
    """Ω(u) = min over θ ≥ 0, ‖θ‖_p ≤ 1 of ½ Σ u_m²/θ_m.

    Declared with θ as the paper writes it; the minimum is ½‖u‖_q², q = 2p/(p+1), so
    the closed forms are those of LpNorm. Reference: Kloft et al. (2011), problem (P).

    Parameters
    ----------
    p : float
        The exponent of the ball of kernel weights, 1 ≤ p ≤ ∞.
    """

    exact: ClassVar[bool] = True  # the same function, declared in another way

    def penalty(self, u: Any) -> Any:
        """As declared, with θ as an auxiliary variable."""
        import cvxpy as cp

        theta = cp.Variable(u.shape, nonneg=True)
        half, cones = declared_quadratic(u, theta)
        return half, [*cones, declared_norm(theta, self.p) <= 1]


@dataclass(frozen=True)
class Tikhonov(PowerOfBlockNorm):
    """Ω(u) = min over θ ≥ 0 of ½ Σ u_m²/θ_m + μ‖θ‖_p².

    With N = ‖u‖_q, q = 2p/(p+1), and t = ‖θ‖_p the minimum over the shape of θ is
    N²/(2t) + μt²; then t³ = N²/(4μ) and Ω = (c/k) N^k with k = 4/3 and c³ = 4μ, that is
    3·2^(−4/3) μ^(1/3) N^(4/3). Dual: ‖v‖⁴_{q*} / (16μ).
    Reference: Kloft et al. (2011), eq. (4).

    Parameters
    ----------
    p : float
        The exponent of the kernel weights, 1 ≤ p ≤ ∞.
    mu : float
        μ > 0, how much weights cost.
    """

    p: float = 2.0
    mu: float = 1.0
    exact: ClassVar[bool] = True
    same_for_part: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range("Tikhonov", "p", self.p, 1.0, INF)
        check_range("Tikhonov", "mu", self.mu, 1e-100, 1e100)

    @property
    def exponent(self) -> float:
        """q = 2p/(p + 1)."""
        return block_exponent(self.p)

    @property
    def power(self) -> tuple[float, float]:
        """k = 4/3 and c = (4μ)^(1/3)."""
        return 4 / 3, (4 * self.mu) ** (1 / 3)

    @property
    def _dual_power(self) -> tuple[float, float]:
        return 4.0, 1 / (4 * self.mu)

    def penalty(self, u: Any) -> Any:
        """As declared, with θ as an auxiliary variable."""
        import cvxpy as cp

        theta = cp.Variable(u.shape, nonneg=True)
        half, cones = declared_quadratic(u, theta)
        return half + self.mu * cp.square(declared_norm(theta, self.p)), cones

    @property
    def traits(self) -> frozenset[str]:
        """The dual has kinks for p = 1, the price for p = ∞."""
        return stated(reweighted=True, smooth_dual=self.p > 1, priced=self.p < INF)

    def price(self, theta: Array) -> tuple[float, Array]:
        """μ‖θ‖_p², as declared."""
        size = norm(theta, self.p)
        if size == 0:
            return 0.0, np.zeros_like(theta)
        slope = 2 * self.mu * size * norm_gradient(theta, self.p)
        return self.mu * size**2, np.asarray(slope)

    def rounding(self, M: int) -> float:
        """Thirds are rounded exponents of large powers."""
        return 4 * super().rounding(M)

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        """Both ends of p, and two between them."""
        return [cls(4 / 3, 0.5), cls(2.0, 1.0), cls(1.0, 2.0), cls(INF, 0.3)]
