"""The support function of an interval of slopes, for the search of C_zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import EDGE, INF, Loss, Quadratic
from .domains import Array, Box


@dataclass(frozen=True)
class Face(Loss):
    """V(f) = max(low f, high f): the support function of the slopes [low, high].

    V* is 0 on them; unlike any other loss here, 0 need not be among them.

    Parameters
    ----------
    low, high : tuple of float
        The ends of the interval of slopes, one for each sample.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    exact: ClassVar[bool] = True
    listed: ClassVar[bool] = False

    @property
    def _ends(self) -> tuple[Array, Array]:
        return np.array(self.low), np.array(self.high)

    def validate(self, y: Array) -> Array:
        """There are no labels: zeros."""
        return np.zeros(len(y))

    def value(self, f: Array, y: Array) -> Array:
        """max(low f, high f)."""
        low, high = self._ends
        return np.maximum(low * f, high * f)

    def conjugate(self, a: Array, y: Array) -> Array:
        """0 for low ≤ a ≤ high."""
        low, high = self._ends
        return np.where((a < low - EDGE) | (a > high + EDGE), INF, 0.0)

    def gradient(self, f: Array, y: Array) -> Array:
        """low below 0, high above, the slope nearest to 0 at 0."""
        low, high = self._ends
        return np.where(f < 0, low, np.where(f > 0, high, np.clip(0.0, low, high)))

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        """f minus its nearest point in step·[low, high]."""
        low, high = self._ends
        return f - np.clip(f, np.asarray(step) * low, np.asarray(step) * high)

    def domain(self, y: Array) -> Any:
        """low ≤ a ≤ high."""
        return Box(*self._ends)

    def quadratic(self, y: Array, C: Array) -> Quadratic:
        """0 for −C high ≤ α ≤ −C low."""
        return self._quadratic(0.0 * y, C, 0.0, 0.0 * C)
