"""Prices r(d) of kernel parameters, with their gradients.

    Total()                 Σ d_m
    SquaredNorm(p)          ½‖d‖_p²; p = 1 is ½(Σd)²
    MixedNorm(groups, r, s) ½‖(‖d_j‖_r)_j‖_s²
    LogDeterminant(family)  −log det(K(d) + ridge I): away from singular kernels
    Given(value, gradient)  any differentiable r(d)

Each takes a weight that multiplies it. Reference: Jain, Vishwanathan and Varma (2012),
section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from .formulations.base import as_groups, check_partition, check_range
from .formulations.norms import INF, norm, norm_gradient

Array = np.ndarray


@dataclass(frozen=True)
class Regularizer:
    """r(d) and its gradient; `weight` multiplies both."""

    weight: float = field(default=1.0, kw_only=True)

    def value(self, d: Array) -> float:
        raise TypeError(f"{type(self).__name__} states no value")

    def gradient(self, d: Array) -> Array:
        raise TypeError(f"{type(self).__name__} states no gradient")

    def validate(self, M: int) -> None:
        """Raise a sentence when the parameters do not fit M kernels."""


@dataclass(frozen=True)
class Total(Regularizer):
    """Σ d_m, sparse."""

    def value(self, d: Array) -> float:
        return self.weight * float(np.sum(d))

    def gradient(self, d: Array) -> Array:
        return np.full(len(d), self.weight)


@dataclass(frozen=True)
class SquaredNorm(Regularizer):
    """½‖d‖_p², 1 ≤ p < ∞; p = 1 is ½(Σd)²."""

    p: float = 2.0

    def __post_init__(self) -> None:
        check_range("SquaredNorm", "p", self.p, 1.0, 1e6)

    def value(self, d: Array) -> float:
        return 0.5 * self.weight * norm(d, self.p) ** 2

    def gradient(self, d: Array) -> Array:
        return self.weight * _slope(d, self.p)


@dataclass(frozen=True)
class MixedNorm(Regularizer):
    """½‖(‖d_j‖_r)_j‖_s² over groups j of parameters."""

    groups: Any
    r: float = 1.0
    s: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", as_groups(self.groups, "MixedNorm"))
        check_range("MixedNorm", "r", self.r, 1.0, 1e6)
        check_range("MixedNorm", "s", self.s, 1.0, 1e6)

    def validate(self, M: int) -> None:
        check_partition(self.groups, M, "MixedNorm")

    def _sums(self, d: Array) -> Array:
        return np.array([norm(d[list(group)], self.r) for group in self.groups])

    def value(self, d: Array) -> float:
        return 0.5 * self.weight * norm(self._sums(d), self.s) ** 2

    def gradient(self, d: Array) -> Array:
        sums, found = self._sums(d), np.zeros(len(d))
        for group, size, outer in zip(self.groups, sums, _slope(sums, self.s)):
            part = d[list(group)]
            flat = np.ones(len(part)) if self.r == 1 else np.zeros(len(part))
            inner = norm_gradient(part, self.r) if size > 0 else flat
            found[list(group)] = self.weight * outer * inner
        return found


@dataclass(frozen=True)
class LogDeterminant(Regularizer):
    """−log det(K(d) + ridge I), for a family that has `derivative`."""

    family: Any
    ridge: float = 1e-3

    def __post_init__(self) -> None:
        if not hasattr(self.family, "derivative"):
            raise ValueError(
                "LogDeterminant takes the family whose kernel it is the determinant "
                f"of, with a method derivative(d, S); got {self.family!r}"
            )
        check_range("LogDeterminant", "ridge", self.ridge, 0.0, INF)

    def _factor(self, d: Array) -> Array:
        K = np.array(self.family.combine(d))
        K[np.diag_indices_from(K)] += self.ridge
        try:
            return np.asarray(scipy.linalg.cholesky(K, lower=True))
        except np.linalg.LinAlgError:
            raise ValueError(
                "LogDeterminant: the kernel is singular; give a ridge that is not so "
                f"small, {self.ridge} is"
            ) from None

    def value(self, d: Array) -> float:
        return -2 * self.weight * float(np.sum(np.log(np.diag(self._factor(d)))))

    def gradient(self, d: Array) -> Array:
        identity = np.eye(self.family.n)
        inverse = scipy.linalg.cho_solve((self._factor(d), True), identity)
        return -self.weight * self.family.derivative(d, 0.5 * (inverse + inverse.T))


@dataclass(frozen=True)
class Given(Regularizer):
    """Any differentiable r(d), as a pair of functions."""

    function: Callable[[Array], float]
    slope: Callable[[Array], Sequence[float] | Array]

    def __post_init__(self) -> None:
        if not callable(self.function) or not callable(self.slope):
            raise ValueError("Given takes two functions of d: r(d) and its gradient")

    def value(self, d: Array) -> float:
        return self.weight * float(self.function(d))

    def gradient(self, d: Array) -> Array:
        found = np.asarray(self.slope(d), float)
        if found.shape != d.shape:
            raise ValueError(
                f"the gradient of r has shape {found.shape}; expected {d.shape}, one "
                "number per parameter"
            )
        return self.weight * found


def _slope(d: Array, p: float) -> Array:
    """The gradient of ½‖d‖_p²."""
    size = norm(d, p)
    return np.zeros(len(d)) if size == 0 else np.asarray(size * norm_gradient(d, p))
