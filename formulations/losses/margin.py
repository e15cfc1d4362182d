"""Losses of the margin y f, for two classes or one: hinge, one-class, logistic.

Reference: the conjugates are those of Kloft et al. (2011), table 4, derived anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit, xlogy

from .base import EDGE, INF, Loss, Quadratic, crossing
from .domains import Array, Box


@dataclass(frozen=True)
class Hinge(Loss):
    """V = max(0, 1 − y f);  V*(a) = a y for −1 ≤ a y ≤ 0."""

    labels: ClassVar[str] = "binary"
    exact: ClassVar[bool] = True

    def expression(self, f: Any, y: Array) -> Any:
        import cvxpy as cp

        return cp.pos(1 - cp.multiply(y, f))

    def value(self, f: Array, y: Array) -> Array:
        return np.maximum(0.0, 1 - y * f)

    def conjugate(self, a: Array, y: Array) -> Array:
        ay = a * y
        return np.where((ay < -1 - EDGE) | (ay > EDGE), INF, ay)

    def gradient(self, f: Array, y: Array) -> Array:
        return np.where(y * f < 1, -y, 0.0)

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        margin = y * f
        return y * np.where(
            margin >= 1, margin, np.minimum(margin + step, np.ones_like(margin))
        )

    def quadratic(self, y: Array, C: Array) -> Quadratic:
        return self._quadratic(y, C, 0.0, 0.0 * C)

    def best_bias(self, f: Array, y: Array, C: Array) -> float:
        return crossing(y - f, C, -float(np.sum(C[y > 0])))

    def pointwise(self) -> tuple[Callable, float]:
        from .pointwise import hinge

        return hinge, 0.0

    def domain(self, y: Array) -> Box:
        return Box(np.where(y > 0, -1.0, 0.0), np.where(y > 0, 0.0, 1.0))


@dataclass(frozen=True)
class OneClass(Hinge):
    """V = max(0, 1 − f): the hinge of a single class. With a bias it is trivial."""

    labels: ClassVar[str] = "ones"
    bias_allowed: ClassVar[bool] = False

    def expression(self, f: Any, y: Array) -> Any:
        import cvxpy as cp

        return cp.pos(1 - f)


@dataclass(frozen=True)
class Logistic(Loss):
    """V = log(1 + exp(−y f));  V*(a) = t log t + (1−t) log(1−t), t = −a y in [0, 1]."""

    labels: ClassVar[str] = "binary"
    exact: ClassVar[bool] = True
    smoothness: ClassVar[float | None] = 0.25
    twice_differentiable: ClassVar[bool] = True

    def expression(self, f: Any, y: Array) -> Any:
        import cvxpy as cp

        return cp.logistic(-cp.multiply(y, f))

    def value(self, f: Array, y: Array) -> Array:
        return np.logaddexp(0.0, -y * f)

    def conjugate(self, a: Array, y: Array) -> Array:
        t = -a * y
        inside = np.clip(t, 0.0, 1.0)
        entropy = xlogy(inside, inside) + xlogy(1 - inside, 1 - inside)
        return np.where((t < -EDGE) | (t > 1 + EDGE), INF, entropy)

    def gradient(self, f: Array, y: Array) -> Array:
        return -y * expit(-y * f)

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        # z = f + step·y·s with s = expit(−y z) in (0, 1): Newton inside that bracket.
        margin = y * f
        low, high = margin.copy(), margin + step
        m = margin + step * expit(-margin)
        for _ in range(100):
            s = expit(-m)
            excess = m - margin - step * s
            low, high = np.where(excess < 0, m, low), np.where(excess > 0, m, high)
            new = m - excess / (1 + step * s * (1 - s))
            new = np.where((new > low) & (new < high), new, 0.5 * (low + high))
            if np.all(np.abs(new - m) <= 2e-16 * (1 + np.abs(m))):
                break
            m = new
        return y * m

    def curvature(self, f: Array, y: Array) -> Array:
        return expit(f) * expit(-f)

    def inverse(self, a: Array, y: Array) -> Array:
        return -y * logit(-a * y)

    def root(self, a: Array, y: Array) -> Array:
        t = -a * y
        return np.sqrt(t * (1 - t))

    def pointwise(self) -> tuple[Callable, float]:
        from .pointwise import logistic

        return logistic, 0.0

    def domain(self, y: Array) -> Box:
        return Hinge().domain(y)
