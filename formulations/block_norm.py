"""Powers of block norms: (c/k)‖u‖_q^k, above all ½‖u‖_q² and ½(Σu)²."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import Array, Formulation, check_range, stated
from .norms import (
    INF,
    declared_norm,
    dual_exponent,
    norm,
    norm_gradient,
    prox_power,
    prox_power_slope,
)


class PowerOfBlockNorm(Formulation):
    """(c/k)‖u‖_q^k with 1 < k ≤ 2 and c > 0: the shared closed forms.

    With k* = k/(k − 1) and c* = c^(1−k*), the dual is (c*/k*)‖v‖_{q*}^{k*}.
    A subclass gives `exponent`, and k and c as `power`.
    """

    @property
    def exponent(self) -> float:
        """The block exponent q."""
        raise TypeError(f"{type(self).__name__} states no block exponent")

    @property
    def power(self) -> tuple[float, float]:
        """k and c; here those of ½‖u‖_q²."""
        return 2.0, 1.0

    def value(self, u: Array) -> float:
        """(c/k)‖u‖_q^k."""
        k, c = self.power
        return c / k * norm(u, self.exponent) ** k

    def conjugate(self, v: Array) -> float:
        """(c*/k*)‖v‖_{q*}^{k*}."""
        k, c = self._dual_power
        return c / k * norm(v, dual_exponent(self.exponent)) ** k

    @property
    def _dual_power(self) -> tuple[float, float]:
        k, c = self.power
        dual = dual_exponent(k)
        return dual, c ** (1 - dual)

    def weights(self, u: Array) -> Array:
        """‖u‖_q^(2−k)/c · (u/‖u‖_q)^(2−q)."""
        (k, c), q = self.power, self.exponent
        if q == k == 2:
            return np.full(len(u), 1 / c)
        N = norm(u, q)
        if N == 0:
            return np.zeros_like(u)
        if q > 2:  # an unused kernel costs nothing at first order: no finite weight
            slope = c * N ** (k - 1) * norm_gradient(u, q)
            return np.divide(u, slope, out=np.full(len(u), INF), where=slope > 0)
        return np.asarray(N ** (2 - k) / c * (u / N) ** (2 - q))

    def dual_weights(self, v: Array) -> Array:
        """c*‖v‖^(k*−2) (v/‖v‖)^(q*−2), ‖v‖ being the dual norm ‖v‖_{q*}."""
        (k, c), d = self._dual_power, dual_exponent(self.exponent)
        if not np.any(v):
            return np.zeros_like(v)
        N = norm(v, d)
        if d == INF:  # one of many: the kernels that attain the maximum share
            top = v == np.max(v)
            return np.asarray(c * N ** (k - 2) * top / np.sum(top))
        with np.errstate(divide="ignore"):  # d < 2 and v = 0: no finite weight
            return np.asarray(c * N ** (k - 2) * (v / N) ** (d - 2))

    def elasticities(self, theta: Array, v: Array) -> tuple[Array, Array]:
        """For q ≤ 2, log θ_new is (2 − q) log(u/‖u‖_q) + (2 − k) log ‖u‖_q."""
        u, q = theta * v, self.exponent
        share = (u / norm(u, q)) ** q if np.any(u) else np.zeros(len(u))
        by_u = (2 - q) * (np.eye(len(u)) - share) + (2 - self.power[0]) * share
        return by_u, by_u

    def prox(self, u: Array, step: Array | float) -> Array:
        """By the root of one equation in ‖z‖_q."""
        return prox_power(u, step, self.exponent, *self.power)

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """A diagonal and a rank-one term; by differences for q = ∞."""
        if self.exponent == INF:
            return super().prox_slope(u, step)
        return prox_power_slope(self.prox(u, step), step, self.exponent, *self.power)


class SquaredBlockNorm(PowerOfBlockNorm):
    """½‖u‖_q² for a block exponent given by the subclass."""

    def penalty(self, u: Any) -> Any:
        """½‖u‖_q² as a CVXPY expression."""
        import cvxpy as cp

        if self.exponent == 2:  # the same function, said without a square root
            return 0.5 * cp.sum_squares(u)
        return 0.5 * cp.square(declared_norm(u, self.exponent))

    @property
    def traits(self) -> frozenset[str]:
        """q > 2 is a ball for no p; q = 1 and q = ∞ have kinks in the dual."""
        q = self.exponent
        return stated(
            reweighted=True,
            ball=q <= 2,
            simplex=q == 1,
            smooth_dual=1 < q < INF,
            strongly_convex=1 < q <= 2,
        )

    @property
    def ball(self) -> float:
        """The exponent p of the ball of kernel weights: q = 2p/(p + 1)."""
        q = self.exponent
        return INF if q >= 2 else q / (2 - q)

    @property
    def strongly_convex(self) -> tuple[float, float, float]:
        """½‖u‖_q² alone."""
        return self.exponent, 0.0, 1.0

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
        """For q > 2, log θ_new is (q* − 2) log(v/‖v‖_{q*}): θ does not matter."""
        if self.exponent <= 2:
            return super().elasticities(theta, v)
        e, M = dual_exponent(self.exponent), len(v)
        share = (v / norm(v, e)) ** e if np.any(v) else np.zeros(M)
        return np.zeros((M, M)), (e - 2) * (np.eye(M) - share)


@dataclass(frozen=True)
class BlockNorm(SquaredBlockNorm):
    """Ω(u) = ½‖u‖_q², 1 ≤ q ≤ ∞: q = 1 sparse, q = 2 the plain sum, q = ∞ the worst.

    Dual: ½‖v‖²_{q*}. Reference: Kloft et al. (2011), section 3.

    Parameters
    ----------
    q : float
        The block exponent, 1 ≤ q ≤ ∞.
    """

    q: float = 1.5
    exact: ClassVar[bool] = True
    same_for_part: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range("BlockNorm", "q", self.q, 1.0, INF)

    @property
    def exponent(self) -> float:
        """q."""
        return self.q

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        """Both ends, and three exponents between them."""
        return [cls(q) for q in (1.0, 2**0.5, 2.0, 3.0, INF)]


@dataclass(frozen=True)
class BlockL1(SquaredBlockNorm):
    """Ω(u) = ½(Σ u_m)²: the sparse ℓ1-MKL of Bach et al. and of SimpleMKL.

    Dual: ½ max v². Meets GroupLasso along C. Reference: Rakotomamonjy et al. (2008).
    """

    exact: ClassVar[bool] = True
    same_for_part: ClassVar[bool] = True

    @property
    def exponent(self) -> float:
        """q = 1."""
        return 1.0
