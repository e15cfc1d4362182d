"""Losses of the residual f − y: squared, ε-insensitive, Huber, quantile.

Reference: the conjugates are those of Kloft et al. (2011), table 4, derived anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..base import check_range
from .base import EDGE, INF, Loss, Quadratic, crossing
from .domains import Array, Box


@dataclass(frozen=True)
class Squared(Loss):
    """V = ½(f − y)²;  V*(a) = ½a² + a y."""

    exact: ClassVar[bool] = True
    smoothness: ClassVar[float | None] = 1.0
    twice_differentiable: ClassVar[bool] = True

    def expression(self, f: Any, y: Array) -> Any:
        """½(f − y)² as a CVXPY expression."""
        import cvxpy as cp

        return 0.5 * cp.square(f - y)

    def value(self, f: Array, y: Array) -> Array:
        """½(f − y)²."""
        return 0.5 * (f - y) ** 2

    def conjugate(self, a: Array, y: Array) -> Array:
        """½a² + a y."""
        return 0.5 * a**2 + a * y

    def gradient(self, f: Array, y: Array) -> Array:
        """f − y."""
        return f - y

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        """(f + step·y)/(1 + step)."""
        return (f + step * y) / (1 + step)

    def inverse(self, a: Array, y: Array) -> Array:
        """y + a."""
        return y + a

    def root(self, a: Array, y: Array) -> Array:
        """1."""
        return np.ones(len(y))

    def quadratic(self, y: Array, C: Array) -> Quadratic:
        """−y α + α²/(2C)."""
        return self._quadratic(y, C, 0.0, 1 / C)

    def best_bias(self, f: Array, y: Array, C: Array) -> float:
        """The weighted mean of y − f."""
        return float(C @ (y - f) / np.sum(C))

    def domain(self, y: Array) -> Box:
        """Every a."""
        return Box(np.full(len(y), -INF), np.full(len(y), INF))


@dataclass(frozen=True)
class EpsInsensitive(Loss):
    """V = max(0, |f − y| − ε);  V*(a) = a y + ε|a| for |a| ≤ 1.

    Parameters
    ----------
    eps : float
        ε ≥ 0, half the width of the tube.
    """

    eps: float = 0.1
    exact: ClassVar[bool] = True
    compiled: ClassVar[tuple[str, ...]] = ("eps_insensitive", "eps")

    def __post_init__(self) -> None:
        check_range("EpsInsensitive", "eps", self.eps, 0.0, 1e300)

    def expression(self, f: Any, y: Array) -> Any:
        """max(0, |f − y| − ε) as a CVXPY expression."""
        import cvxpy as cp

        return cp.pos(cp.abs(f - y) - self.eps)

    def value(self, f: Array, y: Array) -> Array:
        """max(0, |f − y| − ε)."""
        return np.maximum(0.0, np.abs(f - y) - self.eps)

    def conjugate(self, a: Array, y: Array) -> Array:
        """a y + ε|a| for |a| ≤ 1."""
        return np.where(np.abs(a) > 1 + EDGE, INF, a * y + self.eps * np.abs(a))

    def gradient(self, f: Array, y: Array) -> Array:
        """The sign of f − y outside the tube, else 0."""
        return np.where(np.abs(f - y) > self.eps, np.sign(f - y), 0.0)

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        """The residual moves towards the tube by the step at most."""
        r = f - y
        excess = np.clip(np.abs(r) - self.eps, 0.0, step)
        return y + r - np.sign(r) * excess

    def quadratic(self, y: Array, C: Array) -> Quadratic:
        """−y α + ε|α| for |α| ≤ C."""
        return self._quadratic(y, C, self.eps, 0.0 * C)

    def best_bias(self, f: Array, y: Array, C: Array) -> float:
        """Σ C V is piecewise linear in b, with kinks at y − f ± ε."""
        ends = np.concatenate([y - f - self.eps, y - f + self.eps])
        return crossing(ends, np.concatenate([C, C]), -float(np.sum(C)))

    def domain(self, y: Array) -> Box:
        """|a| ≤ 1."""
        return Box(np.full(len(y), -1.0), np.full(len(y), 1.0))


@dataclass(frozen=True)
class Huber(Loss):
    """V = ½r² up to |r| = δ, then δ|r| − ½δ²;  V*(a) = a y + ½a² for |a| ≤ δ.

    Parameters
    ----------
    delta : float
        δ > 0, the residual r = f − y from which on V grows linearly.
    """

    delta: float = 1.0
    exact: ClassVar[bool] = True
    smoothness: ClassVar[float | None] = 1.0
    compiled: ClassVar[tuple[str, ...]] = ("huber", "delta")

    def __post_init__(self) -> None:
        check_range("Huber", "delta", self.delta, 1e-300, 1e300)

    def expression(self, f: Any, y: Array) -> Any:
        """½r² up to |r| = δ, then δ|r| − ½δ², as a CVXPY expression."""
        import cvxpy as cp

        huber: Any = cp.huber  # its annotations know whole thresholds only
        return 0.5 * huber(f - y, self.delta)

    def value(self, f: Array, y: Array) -> Array:
        """½r² up to |r| = δ, then δ|r| − ½δ²."""
        size = np.abs(f - y)
        inner = np.minimum(size, self.delta)
        return inner * (size - 0.5 * inner)

    def conjugate(self, a: Array, y: Array) -> Array:
        """a y + ½a² for |a| ≤ δ."""
        outside = np.abs(a) > self.delta * (1 + EDGE)
        return np.where(outside, INF, a * y + 0.5 * a**2)

    def gradient(self, f: Array, y: Array) -> Array:
        """The residual, cut off at ±δ."""
        return np.clip(f - y, -self.delta, self.delta)

    def curvature(self, f: Array, y: Array) -> Array:
        """1 where |r| < δ, else 0."""
        return np.where(np.abs(f - y) < self.delta, 1.0, 0.0)

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        """f minus step times the slope at the result."""
        r = f - y
        return f - step * np.clip(r / (1 + step), -self.delta, self.delta)

    def quadratic(self, y: Array, C: Array) -> Quadratic:
        """−y α + α²/(2C) for |α| ≤ C δ."""
        return self._quadratic(y, C, 0.0, 1 / C)

    def domain(self, y: Array) -> Box:
        """|a| ≤ δ."""
        return Box(np.full(len(y), -self.delta), np.full(len(y), self.delta))


@dataclass(frozen=True)
class Quantile(Loss):
    """V = max(τ r, (τ − 1) r), r = y − f;  V*(a) = a y for −τ ≤ a ≤ 1 − τ.

    Parameters
    ----------
    tau : float
        The quantile τ in [0, 1] that is estimated.
    """

    tau: float = 0.5
    exact: ClassVar[bool] = True
    compiled: ClassVar[tuple[str, ...]] = ("quantile", "tau")

    def __post_init__(self) -> None:
        check_range("Quantile", "tau", self.tau, 0.0, 1.0)

    def expression(self, f: Any, y: Array) -> Any:
        """max(τ r, (τ − 1) r) as a CVXPY expression."""
        import cvxpy as cp

        return cp.maximum(self.tau * (y - f), (self.tau - 1) * (y - f))

    def value(self, f: Array, y: Array) -> Array:
        """max(τ r, (τ − 1) r), r = y − f."""
        return np.maximum(self.tau * (y - f), (self.tau - 1) * (y - f))

    def conjugate(self, a: Array, y: Array) -> Array:
        """a y for −τ ≤ a ≤ 1 − τ."""
        outside = (a < -self.tau - EDGE) | (a > 1 - self.tau + EDGE)
        return np.where(outside, INF, a * y)

    def gradient(self, f: Array, y: Array) -> Array:
        """−τ below y, 1 − τ above, 0 at y."""
        return np.where(f < y, -self.tau, np.where(f > y, 1 - self.tau, 0.0))

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        """f moves towards y, by step·τ or step·(1 − τ) at most."""
        return f - np.clip(f - y, -step * self.tau, step * (1 - self.tau))

    def quadratic(self, y: Array, C: Array) -> Quadratic:
        """−y α for −C(1 − τ) ≤ α ≤ C τ."""
        return self._quadratic(y, C, 0.0, 0.0 * C)

    def best_bias(self, f: Array, y: Array, C: Array) -> float:
        """Σ C V is piecewise linear in b, with kinks at y − f."""
        return crossing(y - f, C, -self.tau * float(np.sum(C)))

    def domain(self, y: Array) -> Box:
        """−τ ≤ a ≤ 1 − τ."""
        return Box(np.full(len(y), -self.tau), np.full(len(y), 1 - self.tau))

    @classmethod
    def examples(cls) -> list[Loss]:
        """The median, and a quantile that is not symmetric."""
        return [cls(0.5), cls(0.2)]
