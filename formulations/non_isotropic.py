"""Kernel weights in an ellipsoid: prior knowledge on which kernels go together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import scipy.linalg

from ..util.parameters import nested
from .base import Array, Formulation, check_count
from .norms import declared_quadratic


@dataclass(frozen=True)
class NonIsotropic(Formulation):
    """Ω(u) = min over θ ≥ 0, θᵀE⁻¹θ ≤ 1 of ½ Σ u_m²/θ_m, with E ≻ 0.

    Dual: ½ max of θᵀx over the same θ, x = v²; the multiplier s ≥ 0 of θ ≥ 0 gives
    ½ min over s ≥ 0 of ‖x + s‖_E, a non-negative least-squares problem. When E ≥ 0
    entrywise s = 0 and this is ½‖v²‖_E, as printed; otherwise θ ≥ 0 matters.
    Any s is an upper bound of Ω*, any feasible θ one of Ω: both err on the safe side.
    Reference: Kloft et al. (2011), section 3.6.

    Parameters
    ----------
    E : array of shape (M, M)
        A symmetric positive definite matrix.
    """

    E: Sequence[Sequence[float]] | Array
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        E = np.array(self.E)
        if E.ndim != 2 or E.shape[0] != E.shape[1] or not np.all(np.isfinite(E)):
            raise ValueError(
                f"NonIsotropic: E must be a finite square matrix, got shape {E.shape}"
            )
        smallest = np.linalg.eigvalsh(E)[0] if np.allclose(E, E.T) else -np.inf
        if smallest <= 1e-12 * np.trace(E):
            raise ValueError(
                "NonIsotropic: E must be symmetric positive definite; add a small "
                "multiple of the identity"
            )
        object.__setattr__(self, "E", nested((E + E.T) / 2))

    def validate(self, M: int) -> None:
        """One row of E per kernel."""
        check_count("NonIsotropic", "E", self.E, M)

    @property
    def root(self) -> Array:
        """R with E = R Rᵀ."""
        return _root(self.E)  # type: ignore[arg-type]  # a tuple after __post_init__

    def penalty(self, u: Any) -> Any:
        """As declared, with θ as an auxiliary variable."""
        import cvxpy as cp

        theta = cp.Variable(u.shape, nonneg=True)
        half, cones = declared_quadratic(u, theta)
        eye = np.eye(len(self.E))
        whiten = scipy.linalg.solve_triangular(self.root, eye, lower=True)
        return half, [*cones, cp.norm(whiten @ theta, 2) <= 1]

    def value(self, u: Array) -> float:
        """½ Σ u²/θ at the minimizing θ."""
        if not np.any(u):
            return 0.0
        used, theta = u > 0, self.weights(u)
        return 0.5 * float(np.sum(u[used] ** 2 / theta[used]))

    def conjugate(self, v: Array) -> float:
        """½ min over s ≥ 0 of ‖v² + s‖_E."""
        top = float(np.max(v)) ** 2
        if top == 0:
            return 0.0
        x = (np.asarray(v, float) ** 2 + self.slack(v)) / top
        return 0.5 * top * float(np.linalg.norm(self.root.T @ x))

    def slack(self, v: Array) -> Array:
        """The s ≥ 0 that minimizes ‖v² + s‖_E.

        Parameters
        ----------
        v : ndarray of shape (M,)
            Dual norms.

        Returns
        -------
        ndarray of shape (M,)
        """
        from scipy.optimize import nnls

        x = np.asarray(v, float) ** 2
        top = float(np.max(x))
        if top == 0:
            return np.zeros_like(x)
        R = self.root
        return top * np.asarray(nnls(R.T, -(R.T @ (x / top)))[0])

    def direction(self, u: Array) -> Array:
        """z with θ = E z up to a factor, for the minimizing θ: Ω(u) in rationals.

        For every z with E z > 0, Ω(u) ≤ ½ √(zᵀE z) Σ u_m²/(E z)_m.

        Parameters
        ----------
        u : ndarray of shape (M,)
            Block norms.

        Returns
        -------
        ndarray of shape (M,)
        """
        theta = self.weights(u) if np.any(u) else np.ones(len(u))
        return np.asarray(scipy.linalg.cho_solve((self.root, True), theta))

    @property
    def traits(self) -> frozenset[str]:
        """Reweighted."""
        return frozenset({"reweighted"})

    def weights(self, u: Array) -> Array:
        """The minimizing θ: Newton on ½Σu²/θ + ½θᵀE⁻¹θ, then scaled to the boundary.

        Both terms are homogeneous, so the shape of θ is the same. Zeros of u are
        lifted to 1e-12: a vanishing change that keeps θ > 0 along the way.
        """
        top = float(np.max(u))
        if top == 0:
            return np.zeros_like(u, dtype=float)
        square = np.maximum(u / top, 1e-12) ** 2
        precision = scipy.linalg.cho_solve((self.root, True), np.eye(len(u)))
        theta = np.ones(len(u)) / np.sqrt(np.sum(precision))

        def objective(theta: Array) -> float:
            return float(np.sum(square / theta) + theta @ precision @ theta)

        for _ in range(500):
            slope = -square / theta**2 + 2 * precision @ theta
            curve = np.diag(2 * square / theta**3) + 2 * precision
            step = -scipy.linalg.solve(curve, slope, assume_a="pos")
            size = min(1.0, 0.9 / max(np.max(-step / theta), 1e-300))
            now, decrease = objective(theta), -float(slope @ step)
            if decrease <= 1e-18 * now:  # one more step: the error is squared
                theta = theta + size * step
                break
            while (
                size > 1e-12
                and objective(theta + size * step) > now - 1e-4 * size * decrease
            ):
                size /= 2
            if size <= 1e-12:
                break
            theta = theta + size * step
        return np.asarray(theta / np.sqrt(theta @ precision @ theta))

    def rounding(self, M: int) -> float:
        """Errors grow with the condition number of E."""
        E = np.array(self.E)
        return float(np.linalg.cond(E)) * super().rounding(M)

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        """Kernels that go together, and kernels that exclude each other."""
        step = np.abs(np.subtract.outer(np.arange(M), np.arange(M)))
        return [cls(0.5**step), cls((-0.4) ** step)]


@lru_cache(maxsize=64)
def _root(E: tuple[tuple[float, ...], ...]) -> Array:
    return np.linalg.cholesky(np.array(E))
