"""Single norms, powers of norms and sums of powers: terms of declared regularizers.

    UnitNorm       ‖u‖_q, q > 1; Ω* = 0 where ‖v‖_{q*} ≤ 1
    PowerNorm      (1/k)‖u‖_q^k, 1 < k ≤ 2
    PowerSum       Σ c_m u_m^q, q > 1; Ω* = Σ (1 − 1/q) v (v/(c q))^{1/(q−1)}
    LinearSquares  Σ a_m u_m + ½ Σ b_m u_m²; Ω* = Σ (v − a)₊²/(2b), v ≤ a for b = 0
    AnyNorm        c‖(‖d_j ∘ u_j‖_{r_j})_j‖_s^k, groups may overlap
    QuadraticForm  uᵀQu with Q ≥ 0 entrywise

The last two have value and weights only. Domains of Ω* err on the safe side: what is
called inside is inside in spite of rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..util.rounding import U
from .base import Array, Formulation, stated
from .block_norm import PowerOfBlockNorm
from .derive.structure import Part
from .norms import (
    INF,
    declared_norm,
    dual_exponent,
    norm,
    norm_gradient,
    positive_root,
    power_step,
    prox_power_slope,
    ratio,
)


@dataclass(frozen=True)
class UnitNorm(Formulation):
    """Ω(u) = ‖u‖_q, 1 < q ≤ ∞.

    Parameters
    ----------
    q : float
        The exponent.
    """

    q: float
    exact: ClassVar[bool] = True
    listed: ClassVar[bool] = False

    @property
    def exponent(self) -> float:
        """q."""
        return self.q

    def penalty(self, u: Any) -> Any:
        """‖u‖_q as a CVXPY expression."""
        return declared_norm(u, self.q)

    @property
    def traits(self) -> frozenset[str]:
        """Reweighted for q ≤ 2."""
        return stated(reweighted=self.q <= 2)

    def value(self, u: Array) -> float:
        """‖u‖_q."""
        return norm(u, self.q)

    def _dual(self, v: Array) -> float:
        """An upper bound of ‖v‖_{q*}: that of the rounded v and of the norm, too."""
        return norm(v, dual_exponent(self.q)) * (1 + 8 * (len(v) + 16) * U)

    def conjugate(self, v: Array) -> float:
        """0 where ‖v‖_{q*} ≤ 1, else infinite."""
        return 0.0 if self._dual(v) <= 1 else INF

    def feasible_scale(self, v: Array) -> float:
        """1/‖v‖_{q*}, or 1."""
        return 1.0 if (size := self._dual(v)) <= 1 else (1 - 16 * U) / size

    def weights(self, u: Array) -> Array:
        """u/∂‖u‖_q."""
        N = norm(u, self.q)
        if N == 0:
            return np.zeros_like(u)
        if self.q > 2:
            slope = norm_gradient(u, self.q)
            return np.divide(u, slope, out=np.full(len(u), INF), where=slope > 0)
        return np.asarray(N * (u / N) ** (2 - self.q))

    def prox(self, u: Array, step: Array | float) -> Array:
        """u − step y, y the nearest point of the dual ball, in the metric of the steps.

        y + (λ/step) y^(q*−1) = u/step, λ ≥ 0 the root of ‖y‖_{q*} = 1.
        """
        step = np.broadcast_to(np.asarray(step, float), u.shape)
        dual, point = dual_exponent(self.q), u / step
        if norm(point, dual) <= 1:
            return np.zeros_like(u)
        if self.q == 2 and step.min() == step.max():
            return np.asarray(u * (1 - step[0] / norm(u, 2.0)))

        def at(size: float) -> Array:  # size = λ
            return power_step(point, size / step, dual)

        top = float(np.max(step) * np.sum(point)) * len(u)  # ‖y‖ < 1 from there on
        while norm(at(top), dual) > 1:
            top *= 4
        lam = positive_root(lambda size: 1 - norm(at(size), dual), top)
        if self.q == INF:
            return np.minimum(u, lam)
        return np.clip(lam * at(lam) ** (dual - 1), 0.0, u)  # z = u − step y

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """(I + step ∂²‖z‖_q)⁻¹ over the kernels that are used; q = ∞: differences."""
        if self.q == INF:
            return super().prox_slope(u, step)
        return prox_power_slope(self.prox(u, step), step, self.q, 1.0, 1.0)


@dataclass(frozen=True)
class PowerNorm(PowerOfBlockNorm):
    """Ω(u) = (1/k)‖u‖_q^k, 1 < k ≤ 2.

    Parameters
    ----------
    q : float
        The exponent of the norm, 1 ≤ q ≤ ∞.
    k : float
        The power.
    """

    q: float
    k: float
    exact: ClassVar[bool] = True
    listed: ClassVar[bool] = False

    @property
    def exponent(self) -> float:
        """q."""
        return self.q

    @property
    def power(self) -> tuple[float, float]:
        """k and 1."""
        return self.k, 1.0

    def penalty(self, u: Any) -> Any:
        """(1/k)‖u‖_q^k as a CVXPY expression."""
        import cvxpy as cp

        return cp.power(declared_norm(u, self.q), self.k, approx=False) / self.k

    @property
    def traits(self) -> frozenset[str]:
        """Reweighted for q ≤ 2; smooth in the dual for q > 1."""
        smooth = 1 < self.q < INF
        return stated(reweighted=self.q <= 2, smooth_dual=smooth and self.q <= 2)

    def rounding(self, M: int) -> float:
        """Powers multiply relative errors by their exponent."""
        return (4 + dual_exponent(self.k)) * super().rounding(M)


@dataclass(frozen=True)
class PowerSum(Formulation):
    """Ω(u) = Σ c_m u_m^q, q > 1 and c > 0.

    Parameters
    ----------
    q : float
        The power.
    c : tuple of float
        One factor for each kernel.
    """

    q: float
    c: tuple[float, ...]
    exact: ClassVar[bool] = True
    listed: ClassVar[bool] = False

    @property
    def _c(self) -> Array:
        return np.array(self.c)

    def penalty(self, u: Any) -> Any:
        """Σ c u^q as a CVXPY expression."""
        import cvxpy as cp

        return self._c @ cp.power(u, self.q, approx=False)

    @property
    def traits(self) -> frozenset[str]:
        """Reweighted; the dual is smooth."""
        return stated(reweighted=True, smooth_dual=True)

    def value(self, u: Array) -> float:
        """Σ c u^q."""
        return float(self._c @ u**self.q)

    def conjugate(self, v: Array) -> float:
        """Σ (1 − 1/q) v (v/(c q))^{1/(q−1)}."""
        with np.errstate(over="ignore"):
            best = (v / (self._c * self.q)) ** (1 / (self.q - 1))
            return float(np.sum((1 - 1 / self.q) * v * best))

    def weights(self, u: Array) -> Array:
        """u^(2−q)/(c q)."""
        with np.errstate(divide="ignore"):
            return np.asarray(u ** (2 - self.q) / (self._c * self.q))

    def dual_weights(self, v: Array) -> Array:
        """(c q)^{−1/(q−1)} v^{1/(q−1) − 1}."""
        power = 1 / (self.q - 1)
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray((self._c * self.q) ** -power * v ** (power - 1))

    def reweight(self, theta: Array, v: Array, slack: float = 0.0) -> Array:
        """For q > 2 from a majorizer of the dual."""
        if self.q <= 2:
            return self.weights(theta * v)
        return self.dual_weights(np.maximum(v, 1e-12 * np.max(v, initial=0.0)))

    def elasticities(self, theta: Array, v: Array) -> tuple[Array, Array]:
        """log θ_new is (2 − q) log u + const, or (q* − 2) log v + const for q > 2."""
        eye = np.eye(len(v))
        if self.q <= 2:
            return (2 - self.q) * eye, (2 - self.q) * eye
        return 0 * eye, (dual_exponent(self.q) - 2) * eye

    def prox(self, u: Array, step: Array | float) -> Array:
        """z + q c step z^(q−1) = u, kernel by kernel."""
        weight = self.q * self._c * np.asarray(step)
        return power_step(u, np.broadcast_to(weight, u.shape), self.q)

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """1/(1 + q(q − 1) c step z^(q−2)), kernel by kernel."""
        z = self.prox(u, step)
        used, weight = z > 0, np.broadcast_to(self._c * np.asarray(step), u.shape)
        curve = self.q * (self.q - 1) * z[used] ** (self.q - 2)
        return np.diag(1 / (1 + weight[used] * curve))

    def rounding(self, M: int) -> float:
        """Powers multiply relative errors by their exponent."""
        return (4 + max(self.q, dual_exponent(self.q))) * super().rounding(M)


@dataclass(frozen=True)
class LinearSquares(Formulation):
    """Ω(u) = Σ a_m u_m + ½ Σ b_m u_m², a ≥ 0, b ≥ 0, a + b > 0.

    Parameters
    ----------
    a, b : tuple of float
        One number for each kernel.
    """

    a: tuple[float, ...]
    b: tuple[float, ...]
    exact: ClassVar[bool] = True
    listed: ClassVar[bool] = False

    @property
    def _arrays(self) -> tuple[Array, Array]:
        return np.array(self.a), np.array(self.b)

    def penalty(self, u: Any) -> Any:
        """Σ a u + ½ Σ b u² as a CVXPY expression."""
        import cvxpy as cp

        a, b = self._arrays
        used = np.flatnonzero(b)
        squares = cp.sum_squares(cp.multiply(np.sqrt(b[used]), u[used]))
        return a @ u + 0.5 * squares

    @property
    def traits(self) -> frozenset[str]:
        """As ElasticNet where all kernels have the same a and b."""
        same = len(set(self.a)) == len(set(self.b)) == 1
        return stated(
            reweighted=True,
            orthant=same and self.a[0] > 1e-6,  # t = u/a stays moderate
            strongly_convex=same and self.b[0] > 0,
            priced=not any(self.b),
        )

    @property
    def orthant(self) -> tuple[float, float]:
        """min over t of ½u²/t + ½a²t is a u, at t = u/a."""
        return 0.5 * self.a[0] ** 2, self.b[0]

    @property
    def strongly_convex(self) -> tuple[float, float, float]:
        """(b/2)‖u‖² + a Σu."""
        return 2.0, self.a[0], self.b[0]

    def price(self, theta: Array) -> tuple[float, Array]:
        """½Σa²θ."""
        slope = 0.5 * self._arrays[0] ** 2
        return float(slope @ theta), slope

    def value(self, u: Array) -> float:
        """Σ a u + ½ Σ b u²."""
        a, b = self._arrays
        return float(a @ u + 0.5 * (b @ (u * u)))

    def conjugate(self, v: Array) -> float:
        """Σ (v − a)₊²/(2b); where b = 0, v ≤ a."""
        a, b = self._arrays
        excess = np.maximum(v - a, 0.0)
        if np.any(excess[b == 0] > 0):
            return INF
        return float(np.sum(excess[b > 0] ** 2 / (2 * b[b > 0])))

    def feasible_scale(self, v: Array) -> float:
        """a/v at its smallest, or 1."""
        a, b = self._arrays
        over = (b == 0) & (v > a)
        return float(np.min(a[over] / v[over], initial=1.0))

    def weights(self, u: Array) -> Array:
        """u/(a + b u); where a = 0, 1/b."""
        a, b = self._arrays
        plain = np.divide(1.0, b, where=b > 0, out=np.zeros(len(u)))
        return np.where(a > 0, ratio(u, a + b * u), plain)

    def prox(self, u: Array, step: Array | float) -> Array:
        """(u − step a)₊/(1 + step b)."""
        a, b = self._arrays
        return np.maximum(u - np.asarray(step) * a, 0.0) / (1 + np.asarray(step) * b)

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """1/(1 + step b) for the kernels that are left."""
        slope = 1 / (1 + np.broadcast_to(np.asarray(step) * self._arrays[1], u.shape))
        return np.diag(slope[self.prox(u, step) > 0])


@dataclass(frozen=True)
class AnyNorm(Formulation):
    """Ω(u) = c‖(‖d_j ∘ u_j‖_{r_j})_j‖_s^k: value and weights; the rest is derived.

    Parameters
    ----------
    c, k, s : float
        The factor, the power, and the exponent across groups.
    parts : tuple of Part
        The norms inside groups; groups may overlap.
    """

    c: float
    k: float
    s: float
    parts: tuple[Part, ...]
    listed: ClassVar[bool] = False

    @property
    def traits(self) -> frozenset[str]:
        """Reweighted where it is concave in the squares of u."""
        return stated(reweighted=max(self.k, self.s, *(p.r for p in self.parts)) <= 2)

    def _inner(self, u: Array) -> Array:
        return np.array(
            [norm(np.array(p.d) * u[list(p.index)], p.r) for p in self.parts]
        )

    def value(self, u: Array) -> float:
        """c‖(‖d_j ∘ u_j‖_{r_j})_j‖_s^k."""
        return self.c * norm(self._inner(u), self.s) ** self.k

    def weights(self, u: Array) -> Array:
        """u over the gradient, part by part."""
        N, inverse = self._inner(u), np.zeros(len(u))
        total = norm(N, self.s)
        if total == 0:
            return np.zeros(len(u))
        outer = self.c * self.k * total ** (self.k - 1) * norm_gradient(N, self.s)
        with np.errstate(divide="ignore", invalid="ignore"):
            for part, size, slope in zip(self.parts, N, outer):
                index, d = list(part.index), np.array(part.d)
                share = (d * u[index] / size) ** (part.r - 2) if size else INF
                if part.r == INF:
                    share = norm_gradient(d * u[index], INF) if size else INF
                inverse[index] += slope * d**2 * share / size if slope else 0.0
            return np.where(inverse > 0, 1 / inverse, INF)


@dataclass(frozen=True)
class QuadraticForm(Formulation):
    """Ω(u) = uᵀQu with Q ⪰ 0 and Q ≥ 0 entrywise: value and weights.

    Parameters
    ----------
    Q : tuple of tuples of float
        The matrix.
    """

    Q: tuple[tuple[float, ...], ...]
    listed: ClassVar[bool] = False

    @property
    def traits(self) -> frozenset[str]:
        """u_i u_j is concave in the squares."""
        return frozenset({"reweighted"})

    def value(self, u: Array) -> float:
        """uᵀQu."""
        return float(u @ np.array(self.Q) @ u)

    def weights(self, u: Array) -> Array:
        """u/(2Qu)."""
        return ratio(u, 2 * np.array(self.Q) @ u)
