"""The formulas of the paper, as they are printed and in its notation.

    min over α, b of  Σ ℓ(y_i, (Σ K_m α_m)_i + b) + C Σ ‖α_m‖_{K_m}              (2)

One proximal step from (α, b) minimizes this + Σ‖α_m − α_m'‖²/(2γ_m) + (b − b')²/(2γ_b),
(3). Its dual is the minimum over ρ of φ_γ(ρ; α, b), (7), for the hinge with slacks ξ, ζ
as further variables, (12). Nothing here is used by a solver: these are the statements
that solvers and claims are held against. K is (M, n, n), α is (M, n).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray


def norms(K: Array, v: Array) -> Array:
    """‖v_m‖_{K_m} for v of shape (M, n), or of one v for all kernels."""
    v = np.broadcast_to(v, K.shape[:2])
    return np.sqrt(np.maximum(np.einsum("mi,mij,mj->m", v, K, v), 0.0))


def soft_threshold(K: Array, v: Array, at: Array) -> Array:
    """ST of section 3.1: each block shortened by `at`, to 0 where it is no longer."""
    s = norms(K, v)
    return v * (np.maximum(s - at, 0.0) / np.maximum(s, 1e-300))[:, None]


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(−yf)); its conjugate is the negative entropy of yρ, section 3.2."""

    y: Array

    def value(self, z: Array) -> float:
        return float(np.sum(np.logaddexp(0.0, -self.y * z)))

    def slope(self, z: Array) -> Array:
        return -self.y / (1 + np.exp(self.y * z))

    def dual(self, rho: Array) -> tuple[float, Array, Array]:
        """f*(−ρ) and its first and second derivatives in ρ."""
        a = self.y * rho
        if np.any((a <= 0) | (a >= 1)):
            return np.inf, a, a
        value = float(np.sum(a * np.log(a) + (1 - a) * np.log(1 - a)))
        return value, self.y * np.log(a / (1 - a)), 1 / (a * (1 - a))

    def inside(self) -> Array:
        return 0.5 * self.y


@dataclass(frozen=True)
class Squared:
    """(y − f)², without ½: f*(−ρ) = Σ ρ²/4 − yρ."""

    y: Array

    def value(self, z: Array) -> float:
        return float(np.sum((self.y - z) ** 2))

    def slope(self, z: Array) -> Array:
        return 2 * (z - self.y)

    def dual(self, rho: Array) -> tuple[float, Array, Array]:
        value = float(np.sum(rho**2 / 4 - self.y * rho))
        return value, rho / 2 - self.y, np.full(len(rho), 0.5)

    def inside(self) -> Array:
        return np.zeros(len(self.y))


@dataclass(frozen=True)
class Slacks:
    """The hinge in a proximal step: −Σyρ and the two sums of squares of (12)."""

    y: Array
    xi: Array
    zeta: Array
    gamma: float

    def value(self, z: Array) -> float:
        return float(np.sum(np.maximum(1 - self.y * z, 0.0)))

    def moved(self, rho: Array) -> tuple[Array, Array]:
        """ξ and ζ after the step, (11)."""
        push = self.y * rho
        xi = np.maximum(0.0, self.xi - self.gamma * (1 - push))
        return xi, np.maximum(0.0, self.zeta - self.gamma * push)

    def dual(self, rho: Array) -> tuple[float, Array, Array]:
        xi, zeta = self.moved(rho)
        value = -float(self.y @ rho)
        value += float(np.sum(xi**2 + zeta**2)) / (2 * self.gamma)
        slope = self.y * (xi - zeta - 1)
        return value, slope, self.gamma * ((xi > 0) | (zeta > 0))

    def inside(self) -> Array:
        return 0.5 * self.y


@dataclass(frozen=True)
class Step:
    """One proximal step from (α, b) with penalties γ."""

    K: Array
    loss: Any
    C: float
    alpha: Array
    b: float
    gamma: Array
    gamma_b: float

    def v(self, rho: Array) -> Array:
        return self.alpha + self.gamma[:, None] * rho

    def active(self, rho: Array) -> Array:
        """M₊: the kernels with ‖v_m‖ > γ_m C."""
        return norms(self.K, self.v(rho)) > self.gamma * self.C

    def phi(self, rho: Array) -> float:
        """(7), or (12) for the hinge."""
        after = soft_threshold(self.K, self.v(rho), self.gamma * self.C)
        blocks = float(np.sum(norms(self.K, after) ** 2 / (2 * self.gamma)))
        bias = (self.b + self.gamma_b * float(np.sum(rho))) ** 2 / (2 * self.gamma_b)
        return float(self.loss.dual(rho)[0]) + blocks + bias

    def gradient(self, rho: Array) -> Array:
        """(8)."""
        after = soft_threshold(self.K, self.v(rho), self.gamma * self.C)
        kernels = np.einsum("mij,mj->i", self.K, after)
        bias = self.b + self.gamma_b * float(np.sum(rho))
        return np.asarray(self.loss.dual(rho)[1] + kernels + bias)

    def hessian(self, rho: Array, swapped: bool = False) -> Array:
        """(9); `swapped` has q where 1 − q belongs."""
        v, s = self.v(rho), norms(self.K, self.v(rho))
        q = self.gamma * self.C / np.maximum(s, 1e-300)
        own, cross = (q, 1 - q) if swapped else (1 - q, q)
        H = np.diag(self.loss.dual(rho)[2]) + self.gamma_b
        for m in np.flatnonzero(self.active(rho)):
            Kv = self.K[m] @ v[m] / s[m]
            H = H + self.gamma[m] * (own[m] * self.K[m] + cross[m] * np.outer(Kv, Kv))
        return np.asarray(H)

    def after(self, rho: Array) -> tuple[Array, float]:
        """α and b after the step, (5) and (6)."""
        alpha = soft_threshold(self.K, self.v(rho), self.gamma * self.C)
        return alpha, self.b + self.gamma_b * float(np.sum(rho))

    def minimum(self, rho: Array | None = None, tol: float = 1e-11) -> Array:
        """argmin φ by Newton's method with Armijo's rule, section 3.4."""
        rho = self.loss.inside() if rho is None else rho
        ridge = 1e-10 * np.eye(len(rho))
        for _ in range(200):
            g, value = self.gradient(rho), self.phi(rho)
            if np.max(np.abs(g)) <= tol * max(1.0, float(np.max(self.gamma))):
                break
            delta = -np.linalg.solve(self.hessian(rho) + ridge, g)
            t, room = 1.0, 1e-14 * abs(value)
            while self.phi(rho + t * delta) > value + 0.1 * t * (g @ delta) + room:
                t *= 0.5
                if t < 1e-12:
                    return rho
            rho = rho + t * delta
        return rho

    def moved(
        self, alpha: Array, b: float, growth: float = 1.0, rho: Array | None = None
    ) -> Step:
        """The next step: from where this one led, with γ times growth."""
        gamma, gamma_b, loss = growth * self.gamma, growth * self.gamma_b, self.loss
        if isinstance(loss, Slacks) and rho is not None:
            loss = Slacks(loss.y, *loss.moved(rho), growth * loss.gamma)
        return Step(self.K, loss, self.C, alpha, b, gamma, gamma_b)

    def linearized(self) -> tuple[Array, float]:
        """The step of section 4.1 instead: the loss replaced by its tangent."""
        slope = self.loss.slope(np.einsum("mij,mj->i", self.K, self.alpha) + self.b)
        v = self.alpha - self.gamma[:, None] * slope
        alpha = soft_threshold(self.K, v, self.gamma * self.C)
        return alpha, self.b - self.gamma_b * float(np.sum(slope))

    def objective(self, alpha: Array, b: float) -> float:
        """(2)."""
        z = np.einsum("mij,mj->i", self.K, alpha) + b
        return float(self.loss.value(z) + self.C * np.sum(norms(self.K, alpha)))


def projected(K: Array, rho: Array, C: float, centred_first: bool = False) -> Array:
    """ρ̃ of section 5.1: scaled into all balls, then centred; or the other way round."""
    if centred_first:
        rho = rho - np.mean(rho)
    rho = rho / max(float(np.max(norms(K, rho))) / C, 1.0)
    return rho if centred_first else rho - np.mean(rho)
