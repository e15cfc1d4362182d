"""Losses of the margin y f, for two classes or one: hinge, one-class, logistic, …

Reference: the conjugates are those of Kloft et al. (2011), table 4, derived anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit, xlogy

from ..norms import newton_root
from .base import EDGE, INF, Loss, Quadratic, crossing
from .domains import Array, Box


@dataclass(frozen=True)
class Hinge(Loss):
    """V = max(0, 1 − y f);  V*(a) = a y for −1 ≤ a y ≤ 0."""

    labels: ClassVar[str] = "binary"
    exact: ClassVar[bool] = True
    relative_rounding: ClassVar[bool] = True  # y f is exact, and 1 − y f rounded once
    compiled: ClassVar[tuple[str, ...]] = ("hinge",)

    def expression(self, f: Any, y: Array) -> Any:
        """max(0, 1 − y f) as a CVXPY expression."""
        import cvxpy as cp

        return cp.pos(1 - cp.multiply(y, f))

    def value(self, f: Array, y: Array) -> Array:
        """max(0, 1 − y f)."""
        return np.maximum(0.0, 1 - y * f)

    def conjugate(self, a: Array, y: Array) -> Array:
        """a y for −1 ≤ a y ≤ 0."""
        ay = a * y
        return np.where((ay < -1 - EDGE) | (ay > EDGE), INF, ay)

    def gradient(self, f: Array, y: Array) -> Array:
        """−y where y f < 1, else 0."""
        return np.where(y * f < 1, -y, 0.0)

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        """The margin y f moves towards 1 by the step at most."""
        margin = y * f
        return y * np.maximum(margin, np.minimum(margin + step, 1.0))

    def quadratic(self, y: Array, C: Array) -> Quadratic:
        """−y α for 0 ≤ y α ≤ C."""
        return self._quadratic(y, C, 0.0, 0.0 * C)

    def best_bias(self, f: Array, y: Array, C: Array) -> float:
        """Σ C V is piecewise linear in b, with kinks at y − f."""
        return crossing(y - f, C, -float(np.sum(C[y > 0])))

    def domain(self, y: Array) -> Box:
        """−1 ≤ a y ≤ 0."""
        return Box(np.where(y > 0, -1.0, 0.0), np.where(y > 0, 0.0, 1.0))


@dataclass(frozen=True)
class OneClass(Hinge):
    """V = max(0, 1 − f): the hinge of a single class. With a bias it is trivial."""

    labels: ClassVar[str] = "ones"
    exact: ClassVar[bool] = True  # the hinge with all labels 1
    bias_allowed: ClassVar[bool] = False

    def expression(self, f: Any, y: Array) -> Any:
        """max(0, 1 − f) as a CVXPY expression."""
        import cvxpy as cp

        return cp.pos(1 - f)


@dataclass(frozen=True)
class Logistic(Loss):
    """V = log(1 + exp(−y f));  V*(a) = t log t + (1−t) log(1−t), t = −a y in [0, 1]."""

    labels: ClassVar[str] = "binary"
    exact: ClassVar[bool] = True
    smoothness: ClassVar[float | None] = 0.25
    twice_differentiable: ClassVar[bool] = True
    compiled: ClassVar[tuple[str, ...]] = ("logistic",)

    def expression(self, f: Any, y: Array) -> Any:
        """log(1 + exp(−y f)) as a CVXPY expression."""
        import cvxpy as cp

        return cp.logistic(-cp.multiply(y, f))

    def value(self, f: Array, y: Array) -> Array:
        """log(1 + exp(−y f)), without overflow."""
        return np.logaddexp(0.0, -y * f)

    def conjugate(self, a: Array, y: Array) -> Array:
        """t log t + (1−t) log(1−t) for t = −a y in [0, 1]."""
        t = -a * y
        inside = np.clip(t, 0.0, 1.0)
        entropy = xlogy(inside, inside) + xlogy(1 - inside, 1 - inside)
        return np.where((t < -EDGE) | (t > 1 + EDGE), INF, entropy)

    def gradient(self, f: Array, y: Array) -> Array:
        """−y / (1 + exp(y f))."""
        return -y * expit(-y * f)

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        """z = f + step·y·s with s = expit(−y z) in (0, 1): Newton in that bracket."""
        margin = y * f

        def excess(m: Array) -> tuple[Array, Array]:
            s = expit(-m)
            return m - margin - step * s, 1 + step * s * (1 - s)

        return y * newton_root(excess, margin, margin + step)

    def curvature(self, f: Array, y: Array) -> Array:
        """p (1 − p) for p = 1/(1 + exp(−f))."""
        return expit(f) * expit(-f)

    def inverse(self, a: Array, y: Array) -> Array:
        """−y log(t/(1 − t)) for t = −a y."""
        return -y * logit(-a * y)

    def root(self, a: Array, y: Array) -> Array:
        """√(t (1 − t)) for t = −a y."""
        t = -a * y
        return np.sqrt(t * (1 - t))

    def domain(self, y: Array) -> Box:
        """That of the hinge."""
        return Hinge().domain(y)


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """V = ½ max(0, 1 − y f)²;  V*(a) = a y + ½a² for a y ≤ 0.

    For the diagnosis of solvers that minimize it in place of the hinge. It is not
    offered by name: no stored references and no compiled loops know it.
    """

    labels: ClassVar[str] = "binary"
    exact: ClassVar[bool] = True
    listed: ClassVar[bool] = False
    smoothness: ClassVar[float | None] = 1.0

    def expression(self, f: Any, y: Array) -> Any:
        """½ max(0, 1 − y f)² as a CVXPY expression."""
        import cvxpy as cp

        return 0.5 * cp.square(cp.pos(1 - cp.multiply(y, f)))

    def value(self, f: Array, y: Array) -> Array:
        """½ max(0, 1 − y f)²."""
        return 0.5 * np.maximum(0.0, 1 - y * f) ** 2

    def conjugate(self, a: Array, y: Array) -> Array:
        """a y + ½a² for a y ≤ 0."""
        return np.where(a * y > EDGE, INF, a * y + 0.5 * a**2)

    def gradient(self, f: Array, y: Array) -> Array:
        """−y max(0, 1 − y f)."""
        return -y * np.maximum(0.0, 1 - y * f)

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        """A margin below 1 moves to (m + step)/(1 + step)."""
        margin = y * f
        return y * np.where(
            margin < 1, (margin + step) / (1 + np.asarray(step)), margin
        )

    def quadratic(self, y: Array, C: Array) -> Quadratic:
        """−y α + α²/(2C) for y α ≥ 0."""
        return self._quadratic(y, C, 0.0, 1 / C)

    def domain(self, y: Array) -> Box:
        """a y ≤ 0."""
        return Box(np.where(y > 0, -INF, 0.0), np.where(y > 0, 0.0, INF))
