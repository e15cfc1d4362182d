"""ℓp-norm MKL: the block norm written with the exponent p of the kernel weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Array, Formulation, check_count, check_range
from .block_norm import SquaredBlockNorm
from .norms import INF, block_exponent, prox_power_slope


@dataclass(frozen=True)
class LpNorm(SquaredBlockNorm):
    """Ω(u) = ½‖u‖_q² with q = 2p/(p+1): what is left of ½Σu²/θ under ‖θ‖_p ≤ 1.

    p = 1 is sparse MKL, p = ∞ the SVM on the unweighted sum of kernels.
    Reference: Kloft et al. (2011), eq. (10) and section 3.2.

    Parameters
    ----------
    p : float
        The exponent of the ball of kernel weights, 1 ≤ p ≤ ∞.
    """

    p: float = 2.0
    exact: ClassVar[bool] = True
    same_for_part: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range("LpNorm", "p", self.p, 1.0, INF)

    @property
    def exponent(self) -> float:
        """q = 2p/(p + 1)."""
        return block_exponent(self.p)

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        """Both ends, and three exponents between them."""
        return [cls(p) for p in (1.0, 4 / 3, 2.0, 4.0, INF)]


@dataclass(frozen=True)
class WeightedLpNorm(SquaredBlockNorm):
    """ℓp-norm MKL with θ_m measured in units of prior_m: ‖θ/prior‖_p ≤ 1.

    Substituting θ = prior·θ' turns u²/θ into (u/√prior)²/θ', so
    Ω(u) = ½‖u/√prior‖_q² and Ω*(v) = ½‖√prior·v‖²_{q*}.
    Reference: Kloft et al. (2011), section 3.6 (weighted norms).

    Parameters
    ----------
    p : float
        The exponent of the ball of kernel weights, 1 ≤ p ≤ ∞.
    prior : sequence of float
        One positive number per kernel; kernels with a large one cost less.
    """

    p: float
    prior: Sequence[float] | Array
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range("WeightedLpNorm", "p", self.p, 1.0, INF)
        prior = np.array(self.prior)
        if prior.ndim != 1 or not np.all(np.isfinite(prior) & (prior > 0)):
            raise ValueError(
                f"WeightedLpNorm: prior must be one positive number per kernel, got "
                f"{self.prior}; leave out a kernel instead of giving it prior 0"
            )

    @property
    def exponent(self) -> float:
        """q = 2p/(p + 1)."""
        return block_exponent(self.p)

    @property
    def _root(self) -> Array:
        return np.sqrt(np.array(self.prior))

    def validate(self, M: int) -> None:
        """One prior weight per kernel."""
        check_count("WeightedLpNorm", "prior", self.prior, M)

    def penalty(self, u):
        """½‖u/√prior‖_q² as a CVXPY expression."""
        import cvxpy as cp

        return super().penalty(cp.multiply(1 / self._root, u))

    def value(self, u: Array) -> float:
        """½‖u/√prior‖_q²."""
        return super().value(u / self._root)

    def conjugate(self, v: Array) -> float:
        """½‖√prior·v‖²_{q*}."""
        return super().conjugate(self._root * v)

    @property
    def traits(self) -> frozenset[str]:
        """Its ball is stretched: none of the traits that name one."""
        return super().traits - {"ball", "simplex", "strongly_convex"}

    def elasticities(self, theta: Array, v: Array) -> tuple[Array, Array]:
        """Those of LpNorm in units of the prior."""
        return super().elasticities(theta / np.array(self.prior), self._root * v)

    def dual_weights(self, v: Array) -> Array:
        """Those of LpNorm at √prior·v, times the prior."""
        return np.array(self.prior) * super().dual_weights(self._root * v)

    def weights(self, u: Array) -> Array:
        """Those of LpNorm at u/√prior, times the prior."""
        return np.array(self.prior) * super().weights(u / self._root)

    def prox(self, u: Array, step: Array | float) -> Array:
        """That of LpNorm in units of √prior."""
        root = self._root
        return root * super().prox(u / root, np.asarray(step) / root**2)

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """That of LpNorm in units of √prior."""
        root, z = self._root, self.prox(u, step) / self._root
        slope = prox_power_slope(z, np.asarray(step) / root**2, self.exponent)
        return root[z > 0, None] * slope / root[z > 0]

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        """Priors that rise, and priors that fall."""
        prior = 1 + np.arange(M) / 2
        return [cls(4 / 3, prior), cls(2.0, 1 / prior)]
