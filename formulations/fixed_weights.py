"""Kernel weights held fixed: one SVM on Σ θ_m K_m, as a formulation like the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..util.checks import short
from .base import Array, Formulation, Groups, check_count, owners
from .block_norm import BlockNorm


@dataclass(frozen=True)
class FixedWeights(Formulation):
    """Ω(u) = ½ Σ u_m²/θ_m with θ ≥ 0 given; θ_m = 0 forbids kernel m.

    Dual: ½ Σ θ_m v_m². The inner problem of every wrapper method.
    Reference: Rakotomamonjy et al. (2008), eq. (10).

    Parameters
    ----------
    theta : sequence of float
        One weight θ_m ≥ 0 per kernel.
    """

    theta: Sequence[float] | Array
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        theta = self._theta
        if theta.ndim != 1 or not np.all(np.isfinite(theta) & (theta >= 0)):
            raise ValueError(
                f"FixedWeights: weights must be finite and non-negative, got "
                f"{short(self.theta)}"
            )

    @property
    def _theta(self) -> Array:
        return np.array(self.theta)

    def validate(self, M: int) -> None:
        """One weight per kernel."""
        check_count("FixedWeights", "theta", self.theta, M)

    def penalty(self, u: Any) -> Any:
        """½ Σ u²/θ in CVXPY, with u_m ≤ 0 where θ_m = 0."""
        import cvxpy as cp

        used = self._theta > 0
        scale = np.where(used, 1 / np.sqrt(np.where(used, self._theta, 1.0)), 0.0)
        half = 0.5 * cp.sum_squares(cp.multiply(scale, u))
        forbidden = np.flatnonzero(~used)
        return half, [u[forbidden] <= 0] if len(forbidden) else []

    def value(self, u: Array) -> float:
        """½ Σ u²/θ; infinite where a forbidden kernel is used."""
        used = self._theta > 0
        if np.any(u[~used] > 0):
            return np.inf
        return 0.5 * float(np.sum(u[used] ** 2 / self._theta[used]))

    def conjugate(self, v: Array) -> float:
        """½ Σ θ v²."""
        return 0.5 * float(np.sum(self._theta * v**2))

    @property
    def traits(self) -> frozenset[str]:
        """Reweighted: the weights stay what they are."""
        return frozenset({"reweighted"})

    def weights(self, u: Array) -> Array:
        """θ."""
        return self._theta

    def prox(self, u: Array, step: Array | float) -> Array:
        """u θ/(θ + step)."""
        return np.asarray(u * self._theta / (self._theta + np.asarray(step)))

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """θ/(θ + step) for the kernels that are used."""
        used = self.prox(u, step) > 0
        return np.diag((self._theta / (self._theta + np.asarray(step)))[used])

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        """Decreasing weights, and some that are 0."""
        return [cls(1 / (1 + np.arange(M))), cls(np.arange(M) % 3)]


@dataclass(frozen=True)
class FixedInside(Formulation):
    """Ω(u) = ½ (Σ_j (Σ_{k∈j} u_k²/λ_k)^q)^{1/q}: λ is held fixed inside the groups.

    Parameters
    ----------
    groups : tuple of tuples of int
        The kernels of each group.
    q : float
        The exponent across groups is 2q.
    lam : tuple of float
        One weight λ_k ≥ 0 per kernel.
    """

    groups: Groups
    q: float
    lam: tuple[float, ...]
    exact: ClassVar[bool] = True
    listed: ClassVar[bool] = False

    @property
    def outer(self) -> BlockNorm:
        """½‖·‖²_{2q}, across the groups."""
        return BlockNorm(2 * self.q)

    def _across(self, squares: Array) -> Array:
        return np.sqrt(np.bincount(owners(self.groups), squares))

    def value(self, u: Array) -> float:
        """½‖(Σ_{k∈j} u_k²/λ_k)^½‖²_{2q}; infinite where u_k > 0 = λ_k."""
        lam = np.array(self.lam)
        if np.any(u[lam == 0] > 0):
            return np.inf
        squares = u**2 / np.where(lam > 0, lam, 1.0)
        return self.outer.value(self._across(squares))

    def conjugate(self, v: Array) -> float:
        """½‖(Σ_{k∈j} λ_k v_k²)^½‖² in the dual norm."""
        return self.outer.conjugate(self._across(np.array(self.lam) * v**2))
