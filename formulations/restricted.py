"""A formulation seen from some of the kernels, the others unused.

    Ω_W(u) = Ω(u on W, 0 elsewhere)

Ω increases in each u_m, so the others stay at 0 where they have no slope: Ω_W*(v) =
Ω*(v on W, 0 elsewhere), and weights and prox are those of Ω with zeros filled in. Every
closed form of Ω is one of Ω_W.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import TRAITS, Array, Formulation, Groups

OF_PART = {name for name, trait in TRAITS.items() if trait.of_part}


@dataclass(frozen=True)
class Restricted(Formulation):
    """Ω over some of M kernels.

    Parameters
    ----------
    whole : Formulation
        Ω over all kernels.
    kernels : tuple of int
        The kernels that are left.
    M : int
        The number of all kernels.
    """

    whole: Formulation
    kernels: tuple[int, ...]
    M: int
    exact: ClassVar[bool] = True  # where the whole is
    listed: ClassVar[bool] = False

    def fill(self, part: Array | float, rest: float = 0.0) -> Array:
        """Numbers of these kernels among those of all; the others have the rest."""
        out = np.full(self.M, rest)
        out[list(self.kernels)] = part
        return out

    def _of_these(self, everyone: Array) -> Array:
        return np.asarray(everyone)[list(self.kernels)]

    def key(self) -> Hashable:
        """That of the whole, and which kernels."""
        return Restricted, self.whole.key(), self.kernels, self.M

    def closed(self, name: str) -> bool:
        """As for all kernels."""
        return self.whole.closed(name)

    def has_sharp_values(self, M: int) -> bool:
        """As for all kernels."""
        return self.whole.has_sharp_values(self.M)

    @property
    def traits(self) -> frozenset[str]:
        """Those of the whole that hold for a part, too."""
        return self.whole.traits & OF_PART

    def penalty(self, u: Any) -> Any:
        """Ω(u, and 0 elsewhere) as a CVXPY expression."""
        placed = np.zeros((self.M, len(self.kernels)))
        placed[list(self.kernels), np.arange(len(self.kernels))] = 1.0
        return self.whole.penalty(placed @ u)

    def value(self, u: Array) -> float:
        """Ω(u, and 0 elsewhere)."""
        return self.whole.value(self.fill(u))

    def conjugate(self, v: Array) -> float:
        """Ω*(v, and 0 elsewhere)."""
        return self.whole.conjugate(self.fill(v))

    def feasible_scale(self, v: Array) -> float:
        """That of the whole, with zeros filled in."""
        return self.whole.feasible_scale(self.fill(v))

    def weights(self, u: Array) -> Array:
        """Those of the whole, with zeros filled in."""
        return self._of_these(self.whole.weights(self.fill(u)))

    def dual_weights(self, v: Array) -> Array:
        """Those of the whole, with zeros filled in."""
        return self._of_these(self.whole.dual_weights(self.fill(v)))

    def reweight(self, theta: Array, v: Array, slack: float = 0.0) -> Array:
        """That of the whole, with zeros filled in."""
        whole = self.whole.reweight(self.fill(theta), self.fill(v), slack)
        return self._of_these(whole)

    def prox(self, u: Array, step: Array | float) -> Array:
        """That of the whole, with zeros filled in."""
        return self._of_these(self.whole.prox(self.fill(u), self.fill(step, 1.0)))

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """That of the whole, with zeros filled in."""
        return self.whole.prox_slope(self.fill(u), self.fill(step, 1.0))

    def rounding(self, M: int) -> float:
        """That of the whole."""
        return self.whole.rounding(self.M)

    @property
    def ball(self) -> float:
        """That of the whole."""
        return self.whole.ball

    @property
    def orthant(self) -> tuple[float, float]:
        """That of the whole."""
        return self.whole.orthant

    def simplices(self, M: int) -> tuple[Groups, float]:
        """The groups that are left, numbered anew."""
        groups, q = self.whole.simplices(self.M)
        place = {k: i for i, k in enumerate(self.kernels)}
        left = (tuple(place[k] for k in group if k in place) for group in groups)
        return tuple(group for group in left if group), q
