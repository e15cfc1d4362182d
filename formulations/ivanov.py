"""Kernel weights as variables: the Ivanov and the Tikhonov form of ℓp-norm MKL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import Array, Formulation, check_range
from .lp_norm import LpNorm
from .norms import (
    INF,
    block_exponent,
    declared_norm,
    declared_quadratic,
    dual_exponent,
    norm,
    norm_gradient,
    prox_norm,
    prox_norm_slope,
)


@dataclass(frozen=True)
class Ivanov(LpNorm):
    """Ω(u) = min over θ ≥ 0, ‖θ‖_p ≤ 1 of ½ Σ u_m²/θ_m.

    Declared with θ as the paper writes it; the minimum is ½‖u‖_q², q = 2p/(p+1), so
    the closed forms are those of LpNorm. Reference: Kloft et al. (2011), problem (P).
    """

    exact: ClassVar[bool] = True  # the same function, declared in another way

    def penalty(self, u: Any) -> Any:
        import cvxpy as cp

        theta = cp.Variable(u.shape, nonneg=True)
        half, cones = declared_quadratic(u, theta)
        return half, [*cones, declared_norm(theta, self.p) <= 1]


@dataclass(frozen=True)
class Tikhonov(Formulation):
    """Ω(u) = min over θ ≥ 0 of ½ Σ u_m²/θ_m + μ‖θ‖_p².

    With N = ‖u‖_q and t = ‖θ‖_p the minimum over the shape of θ is N²/(2t) + μt²; then
    t³ = N²/(4μ) and Ω = 3·2^(−4/3) μ^(1/3) N^(4/3). Dual: ‖v‖⁴_{q*} / (16μ).
    Reference: Kloft et al. (2011), eq. (4).
    """

    p: float = 2.0
    mu: float = 1.0
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range("Tikhonov", "p", self.p, 1.0, INF)
        check_range("Tikhonov", "mu", self.mu, 1e-100, 1e100)

    @property
    def exponent(self) -> float:
        return block_exponent(self.p)

    @property
    def _scale(self) -> float:
        return 3 * 2 ** (-4 / 3) * self.mu ** (1 / 3)

    def penalty(self, u: Any) -> Any:
        import cvxpy as cp

        theta = cp.Variable(u.shape, nonneg=True)
        half, cones = declared_quadratic(u, theta)
        return half + self.mu * cp.square(declared_norm(theta, self.p)), cones

    def value(self, u: Array) -> float:
        return self._scale * norm(u, self.exponent) ** (4 / 3)

    def conjugate(self, v: Array) -> float:
        return norm(v, dual_exponent(self.exponent)) ** 4 / (16 * self.mu)

    @property
    def traits(self) -> frozenset[str]:
        found = {"reweighted"}
        if self.p > 1:
            found.add("smooth_dual")
        if self.p < INF:
            found.add("priced")
        return frozenset(found)

    def price(self, theta: Array) -> tuple[float, Array]:
        """μ‖θ‖_p², as declared."""
        size = norm(theta, self.p)
        if size == 0:
            return 0.0, np.zeros_like(theta)
        slope = 2 * self.mu * size * norm_gradient(theta, self.p)
        return self.mu * size**2, np.asarray(slope)

    def elasticities(self, theta: Array, v: Array) -> tuple[Array, Array]:
        u, q = theta * v, self.exponent
        share = (u / norm(u, q)) ** q if np.any(u) else np.zeros(len(u))
        by_u = (2 - q) * (np.eye(len(u)) - share) + 2 / 3 * share
        return by_u, by_u

    def dual_weights(self, v: Array) -> Array:
        size = norm(v, dual_exponent(self.exponent)) ** 2 / (4 * self.mu)
        return size * LpNorm(self.p).dual_weights(v)

    def weights(self, u: Array) -> Array:
        N = norm(u, self.exponent)
        if N == 0:
            return np.zeros_like(u)
        size = (N**2 / (4 * self.mu)) ** (1 / 3)
        return np.asarray(size * (u / N) ** (2 - self.exponent))

    def rounding(self, M: int) -> float:
        return 4 * super().rounding(M)  # thirds are rounded exponents of large powers

    def prox(self, u: Array, step: Array | float) -> Array:
        step = np.broadcast_to(np.asarray(step, float), u.shape)
        q = self.exponent
        if q <= 4 / 3:
            slope = 4 / 3 * self._scale
            return prox_norm(u, step, q, lambda N: slope * N ** (1 / 3))
        # Moreau: the dual ‖v‖⁴/(16μ) has q* ≤ 4, where its root is the unique one.
        dual = dual_exponent(q)
        cubic = lambda N: N**3 / (4 * self.mu)  # noqa: E731
        return u - step * prox_norm(u / step, 1 / step, dual, cubic)

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        z = self.prox(u, step)
        N = norm(z, self.exponent)
        if N == 0:
            return np.zeros((0, 0))
        step = np.broadcast_to(np.asarray(step, float), u.shape)
        slope = 4 / 3 * self._scale * N ** (1 / 3)
        return prox_norm_slope(z, step, self.exponent, slope, slope / (3 * N))

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        return [cls(4 / 3, 0.5), cls(2.0, 1.0), cls(1.0, 2.0), cls(INF, 0.3)]
