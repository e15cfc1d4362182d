"""A squared block norm and the group lasso together: strongly convex and sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import Array, Formulation, check_range
from .norms import (
    declared_norm,
    dual_exponent,
    norm,
    norm_gradient,
    prox_power,
    prox_power_slope,
    ratio,
)


@dataclass(frozen=True)
class SparseBlockNorm(Formulation):
    """Ω(u) = ½‖u‖_q² + a Σu_m, 1 < q ≤ 2, a ≥ 0: small kernels vanish altogether.

    Dual: ½‖(v − a)₊‖²_{q*}. Reference: Orabona and Jie (2011), UFO-MKL, whose λ/2
    ‖w‖²_{2,p} + α‖w‖_{2,1} + (1/N)Σℓ is this with q = p, a = α/λ and C = 1/(λN).

    Parameters
    ----------
    q : float
        The block exponent, 1 < q ≤ 2.
    a : float
        The weight of the group lasso, a ≥ 0.
    """

    q: float = 1.5
    a: float = 0.1
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range("SparseBlockNorm", "q", self.q, np.nextafter(1.0, 2.0), 2.0)
        check_range("SparseBlockNorm", "a", self.a, 0.0, 1e300)

    def penalty(self, u: Any) -> Any:
        """½‖u‖_q² + a Σu as a CVXPY expression."""
        import cvxpy as cp

        return 0.5 * cp.square(declared_norm(u, self.q)) + self.a * cp.sum(u)

    def value(self, u: Array) -> float:
        """½‖u‖_q² + a Σu."""
        return 0.5 * norm(u, self.q) ** 2 + self.a * float(np.sum(u))

    def conjugate(self, v: Array) -> float:
        """½‖(v − a)₊‖²_{q*}."""
        return 0.5 * norm(np.maximum(v - self.a, 0.0), dual_exponent(self.q)) ** 2

    @property
    def traits(self) -> frozenset[str]:
        """Reweighted and strongly convex."""
        return frozenset({"reweighted", "strongly_convex"})

    @property
    def strongly_convex(self) -> tuple[float, float, float]:
        """½‖u‖_q² + a Σu."""
        return self.q, self.a, 1.0

    def weights(self, u: Array) -> Array:
        """u / (∂½‖u‖_q² + a)."""
        if not np.any(u):
            return np.zeros_like(u)
        return ratio(u, norm(u, self.q) * norm_gradient(u, self.q) + self.a)

    def prox(self, u: Array, step: Array | float) -> Array:
        """Complete the square: the linear term moves u."""
        shifted = np.maximum(u - self.a * np.asarray(step), 0.0)
        return prox_power(shifted, step, self.q)

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """That of ½‖z‖_q² over the kernels that are left."""
        return prox_power_slope(self.prox(u, step), step, self.q)

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        """A large and a small a."""
        return [cls(1.5, 0.3), cls(2**0.5, 0.05)]
