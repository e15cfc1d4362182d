"""The squared hinge, for the diagnosis of solvers that minimize it in place of another.

It is not offered by name: no stored references and no compiled loops know it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import EDGE, INF, Loss, Quadratic
from .domains import Array, Box


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """V = ½ max(0, 1 − y f)²;  V*(a) = a y + ½a² for a y ≤ 0."""

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
