"""Squared block norms: ½‖u‖_q² and its first member, ½(Σu)²."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import Array, Formulation, check_range
from .norms import (
    INF,
    declared_norm,
    dual_exponent,
    norm,
    norm_gradient,
    prox_norm,
    prox_norm_slope,
)


class SquaredBlockNorm(Formulation):
    """½‖u‖_q² for a block exponent given by the subclass: the shared closed forms."""

    exact: ClassVar[bool] = True

    @property
    def exponent(self) -> float:
        """The block exponent q."""
        raise TypeError(f"{type(self).__name__} states no block exponent")

    def penalty(self, u: Any) -> Any:
        import cvxpy as cp

        if self.exponent == 2:  # the same function, said without a square root
            return 0.5 * cp.sum_squares(u)
        return 0.5 * cp.square(declared_norm(u, self.exponent))

    def value(self, u: Array) -> float:
        return 0.5 * norm(u, self.exponent) ** 2

    def conjugate(self, v: Array) -> float:
        return 0.5 * norm(v, dual_exponent(self.exponent)) ** 2

    def weights(self, u: Array) -> Array:
        q = self.exponent
        if q == 2:
            return np.ones_like(u)
        if not np.any(u):
            return np.zeros_like(u)
        if q > 2:  # an unused kernel costs nothing at first order: no finite weight
            slope = norm(u, q) * norm_gradient(u, q)
            return np.divide(u, slope, out=np.full(len(u), INF), where=slope > 0)
        return np.asarray((u / norm(u, q)) ** (2 - q))

    @property
    def traits(self) -> frozenset[str]:
        """q > 2 is a ball for no p; q = 1 and q = ∞ have kinks in the dual."""
        found = {"reweighted"}
        if self.exponent <= 2:
            found.add("ball")
        if self.exponent == 1:
            found.add("simplex")
        if 1 < self.exponent < INF:
            found.add("smooth_dual")
        if 1 < self.exponent <= 2:
            found.add("strongly_convex")
        return frozenset(found)

    @property
    def ball(self) -> float:
        """The exponent p of the ball of kernel weights: q = 2p/(p + 1)."""
        q = self.exponent
        return INF if q >= 2 else q / (2 - q)

    @property
    def strongly_convex(self) -> tuple[float, float, float]:
        return self.exponent, 0.0, 1.0

    def dual_weights(self, v: Array) -> Array:
        d = dual_exponent(self.exponent)
        if not np.any(v):
            return np.zeros_like(v)
        if d == INF:  # one of many: the kernels that attain the maximum share
            top = v == np.max(v)
            return np.asarray(top / np.sum(top))
        with np.errstate(divide="ignore"):  # d < 2 and v = 0: no finite weight
            return np.asarray((v / norm(v, d)) ** (d - 2))

    def reweight(self, theta: Array, v: Array, slack: float = 0.0) -> Array:
        """For q > 2, where Ω*∘√ is concave, from a majorizer of the dual.

        q = ∞: K_mα vanishes for some kernels, and their θ = ‖v‖₁/v_m grows without
        bound. v_m ≥ ε‖v‖₁ instead adds at most Mε‖v‖₁² = 2Mε Ω* to the dual.
        """
        if self.exponent <= 2:
            return self.weights(theta * v)
        floor = 1e-12 * np.max(v, initial=0.0)
        if self.exponent == INF:
            floor = max(floor, slack / (2 * len(v)) * float(np.sum(v)))
        return self.dual_weights(np.maximum(v, floor))

    def elasticities(self, theta: Array, v: Array) -> tuple[Array, Array]:
        """log θ_new is (2 − q) log(u/‖u‖_q), or (q* − 2) log(v/‖v‖_{q*}) for q > 2."""
        q, M = self.exponent, len(v)
        e, point = (q, theta * v) if q <= 2 else (dual_exponent(q), v)
        share = (point / norm(point, e)) ** e if np.any(point) else np.zeros(M)
        by_v = (2 - q if q <= 2 else e - 2) * (np.eye(M) - share)
        return (by_v if q <= 2 else np.zeros((M, M))), by_v

    def prox(self, u: Array, step: Array | float) -> Array:
        q = self.exponent
        step = np.broadcast_to(np.asarray(step, float), u.shape)
        if q <= 2:
            return prox_norm(u, step, q, slope=lambda N: N)
        # Moreau in the metric of the steps: u − step · prox of the dual at u/step.
        return u - step * prox_norm(u / step, 1 / step, dual_exponent(q), lambda N: N)

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        q, z = self.exponent, self.prox(u, step)
        if q == INF:
            return super().prox_slope(u, step)
        step = np.broadcast_to(np.asarray(step, float), u.shape)
        return prox_norm_slope(z, step, q, slope=norm(z, q), curve=1.0)


@dataclass(frozen=True)
class BlockNorm(SquaredBlockNorm):
    """Ω(u) = ½‖u‖_q², 1 ≤ q ≤ ∞: q = 1 sparse, q = 2 the plain sum, q = ∞ the worst.

    Dual: ½‖v‖²_{q*}. Reference: Kloft et al. (2011), section 3.
    """

    q: float = 1.5

    def __post_init__(self) -> None:
        check_range("BlockNorm", "q", self.q, 1.0, INF)

    @property
    def exponent(self) -> float:
        return self.q

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        return [cls(q) for q in (1.0, 2**0.5, 2.0, 3.0, INF)]


@dataclass(frozen=True)
class BlockL1(SquaredBlockNorm):
    """Ω(u) = ½(Σ u_m)²: the sparse ℓ1-MKL of Bach et al. and of SimpleMKL.

    Dual: ½ max v². Meets GroupLasso along C. Reference: Rakotomamonjy et al. (2008).
    """

    @property
    def exponent(self) -> float:
        return 1.0
