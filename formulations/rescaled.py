"""Multiples and stretches of a formulation: Ω(u) = c f(d ∘ u).

    Ω*(v) = c f*(v/(c d)),   θ = θ_f(d u)/(c d²),   prox in y = d z with steps c d² step

Every closed form of f is one of Ω. Of the traits, those stay that name no size.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import Array, Formulation, check_count

SCALE_FREE = {"reweighted", "smooth_dual", "groups"}


@dataclass(frozen=True)
class Rescaled(Formulation):
    """Ω(u) = c f(d ∘ u), c > 0 and d > 0.

    Parameters
    ----------
    inner : Formulation
        f.
    c : float
        The factor c > 0.
    d : tuple of float
        One factor d_m > 0 for each kernel.
    """

    inner: Formulation
    c: float
    d: tuple[float, ...]
    exact: ClassVar[bool] = True  # where f is
    listed: ClassVar[bool] = False

    @property
    def _d(self) -> Array:
        return np.array(self.d)

    def key(self) -> Hashable:
        """That of f, and the factors."""
        return Rescaled, self.inner.key(), self.c, self.d

    def closed(self, name: str) -> bool:
        """As for f."""
        return self.inner.closed(name)

    def validate(self, M: int) -> None:
        """One factor per kernel."""
        check_count("Rescaled", "d", self.d, M)

    @property
    def traits(self) -> frozenset[str]:
        """Those that name no size, and strong convexity of unstretched norms."""
        kept = self.inner.traits & SCALE_FREE
        same = min(self.d) == max(self.d)
        return kept | (self.inner.traits & {"strongly_convex"} if same else frozenset())

    @property
    def strongly_convex(self) -> tuple[float, float, float]:
        """(c d²/2)‖u‖² + c d aΣu."""
        p, a, bend = self.inner.strongly_convex
        d = self.d[0]
        return p, self.c * d * a, self.c * d * d * bend

    @property
    def groups(self) -> Any:
        """Those of f."""
        return self.inner.groups  # type: ignore[attr-defined]

    @property
    def exponent(self) -> float:
        """That of f."""
        return self.inner.exponent  # type: ignore[attr-defined]

    def penalty(self, u: Any) -> Any:
        """c f(d ∘ u) as a CVXPY expression."""
        import cvxpy as cp

        return self.c * self.inner.penalty(cp.multiply(self._d, u))

    def value(self, u: Array) -> float:
        """c f(d u)."""
        return self.c * self.inner.value(self._d * u)

    def conjugate(self, v: Array) -> float:
        """c f*(v/(c d))."""
        return self.c * self.inner.conjugate(v / (self.c * self._d))

    def feasible_scale(self, v: Array) -> float:
        """That of f at v/(c d)."""
        return self.inner.feasible_scale(v / (self.c * self._d))

    def weights(self, u: Array) -> Array:
        """Those of f at d u, divided by c d²."""
        return self.inner.weights(self._d * u) / (self.c * self._d**2)

    def dual_weights(self, v: Array) -> Array:
        """Those of f at v/(c d), divided by c d²."""
        d = self._d
        return self.inner.dual_weights(v / (self.c * d)) / (self.c * d**2)

    def reweight(self, theta: Array, v: Array, slack: float = 0.0) -> Array:
        """That of f for c d² θ and v/(c d), divided by c d²."""
        d, size = self._d, self.c * self._d**2
        return self.inner.reweight(size * theta, v / (self.c * d), slack) / size

    def elasticities(self, theta: Array, v: Array) -> tuple[Array, Array]:
        """Those of f: factors vanish in logarithms."""
        d = self._d
        return self.inner.elasticities(self.c * d**2 * theta, v / (self.c * d))

    def prox(self, u: Array, step: Array | float) -> Array:
        """That of f at d u for the steps c d² step, divided by d."""
        d = self._d
        return self.inner.prox(d * u, self.c * d**2 * np.asarray(step)) / d

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """That of f in units of d."""
        d, steps = self._d, self.c * self._d**2 * np.asarray(step)
        used = d[self.inner.prox(d * u, steps) > 0]
        return self.inner.prox_slope(d * u, steps) * used / used[:, None]

    def rounding(self, M: int) -> float:
        """That of f; the argument of Ω* is rounded twice more."""
        return 2 * self.inner.rounding(M)
