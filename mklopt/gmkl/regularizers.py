"""Regularizers r(d) of kernel parameters, with their gradients.

    Total()                 Σ d_m
    SquaredNorm(p)          ½‖d‖_p²; p = 1 is ½(Σd)²
    MixedNorm(groups, r, s) ½‖(‖d_j‖_r)_j‖_s²
    LogDeterminant(family)  −log det(K(d) + ridge I): away from singular kernels
    Given(value, gradient)  any differentiable r(d)

Each takes a weight > 0 that multiplies it. Norms are of |d|: parameters below 0, in a
set of one's own, cost what those above do. Reference: Jain, Vishwanathan and Varma
(2012), section 3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from ..formulations.base import as_groups, check_partition, check_range, owners
from ..formulations.norms import INF, Array, norm, norm_gradient
from ..util.checks import check_positive, short
from ..util.parameters import Parameters


@dataclass(frozen=True)
class Regularizer(Parameters):
    """r(d) and its gradient; a subclass of your own states both.

    Parameters
    ----------
    weight : float, default=1.0
        A factor > 0.
    """

    weight: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        check_positive(self.weight, f"{type(self).__name__}: weight", finite=True)

    def value(self, d: Array) -> float:
        """r(d).

        Parameters
        ----------
        d : array of shape (M,)

        Returns
        -------
        float
        """
        raise TypeError(f"{type(self).__name__} states no value")

    def gradient(self, d: Array) -> Array:
        """∇r(d), (M,).

        Parameters
        ----------
        d : array of shape (M,)

        Returns
        -------
        array of shape (M,)
        """
        raise TypeError(f"{type(self).__name__} states no gradient")

    def validate(self, M: int) -> None:
        """Raise ValueError where the regularizer does not fit M parameters.

        Parameters
        ----------
        M : int
            The number of parameters of the family.
        """


@dataclass(frozen=True)
class Total(Regularizer):
    """Σ d_m, sparse.

    Parameters
    ----------
    weight : float, default=1.0
        A factor > 0.
    """

    def value(self, d: Array) -> float:
        """r(d)."""
        return self.weight * float(np.sum(d))

    def gradient(self, d: Array) -> Array:
        """∇r(d), (M,)."""
        return np.full(len(d), self.weight)


@dataclass(frozen=True)
class SquaredNorm(Regularizer):
    """½‖d‖_p², 1 ≤ p < ∞; p = 1 is ½(Σd)².

    Parameters
    ----------
    p : float, default=2.0
    weight : float, default=1.0
        A factor > 0.
    """

    p: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("SquaredNorm", "p", self.p, 1.0, 1e6)

    def value(self, d: Array) -> float:
        """r(d)."""
        return 0.5 * self.weight * norm(np.abs(d), self.p) ** 2

    def gradient(self, d: Array) -> Array:
        """∇r(d), (M,)."""
        return self.weight * _slope(d, self.p)


@dataclass(frozen=True)
class MixedNorm(Regularizer):
    """½‖(‖d_j‖_r)_j‖_s² over groups j of parameters.

    Parameters
    ----------
    groups : list of lists of int
        Every parameter 0 … M−1 in one group.
    r, s : float, default=1.0 and 2.0
        At least 1.
    weight : float, default=1.0
        A factor > 0.
    """

    groups: Any
    r: float = 1.0
    s: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "groups", as_groups(self.groups, "MixedNorm"))
        check_range("MixedNorm", "r", self.r, 1.0, 1e6)
        check_range("MixedNorm", "s", self.s, 1.0, 1e6)

    def validate(self, M: int) -> None:
        """Raise ValueError where the groups do not fit M parameters."""
        check_partition(self.groups, M, "MixedNorm")

    def _sums(self, d: Array) -> Array:
        """‖d_j‖_r of every group, relative to the largest: nothing overflows."""
        top = float(np.max(np.abs(d), initial=0.0)) or 1.0
        powers = np.bincount(owners(self.groups), (np.abs(d) / top) ** self.r)
        return np.asarray(top * powers ** (1 / self.r))

    def value(self, d: Array) -> float:
        """r(d)."""
        return 0.5 * self.weight * norm(self._sums(d), self.s) ** 2

    def gradient(self, d: Array) -> Array:
        """∇r(d), (M,)."""
        sums, owner = self._sums(d), owners(self.groups)
        own = np.where(sums > 0, sums, 1.0)[owner]
        inner = (np.abs(d) / own) ** (self.r - 1)  # 1 for r = 1, also in empty groups
        return self.weight * _slope(sums, self.s)[owner] * inner * signs(d)


@dataclass(frozen=True)
class LogDeterminant(Regularizer):
    """−log det(K(d) + ridge I), for a family that has `derivative`.

    Parameters
    ----------
    family : KernelFamily
        That of the problem.
    ridge : float, default=1e-3
    weight : float, default=1.0
        A factor > 0.
    """

    family: Any
    ridge: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        if not hasattr(self.family, "derivative"):
            raise ValueError(
                "LogDeterminant takes the family whose kernel it is the determinant "
                f"of, with a method derivative(d, S); got {short(self.family)}"
            )
        check_range("LogDeterminant", "ridge", self.ridge, 0.0, INF)

    def validate(self, M: int) -> None:
        """Raise ValueError where the family has not M parameters."""
        if self.family.M != M:
            raise ValueError(
                f"LogDeterminant is of a family with {self.family.M} parameters, but "
                f"the problem has {M}; give it the family of the problem"
            )

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
        """r(d)."""
        return -2 * self.weight * float(np.sum(np.log(np.diag(self._factor(d)))))

    def gradient(self, d: Array) -> Array:
        """∇r(d), (M,)."""
        identity = np.eye(self.family.n)
        inverse = scipy.linalg.cho_solve((self._factor(d), True), identity)
        return -self.weight * self.family.derivative(d, 0.5 * (inverse + inverse.T))


@dataclass(frozen=True)
class Given(Regularizer):
    """Any differentiable r(d), as a pair of functions.

    Parameters
    ----------
    function : callable
        r(d), a number.
    slope : callable
        ∇r(d), one number per parameter.
    weight : float, default=1.0
        A factor > 0.
    """

    function: Callable[[Array], float]
    slope: Callable[[Array], Sequence[float] | Array]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.function) or not callable(self.slope):
            raise ValueError("Given takes two functions of d: r(d) and its gradient")

    def value(self, d: Array) -> float:
        """r(d)."""
        return self.weight * float(self.function(d))

    def gradient(self, d: Array) -> Array:
        """∇r(d), (M,)."""
        found = np.asarray(self.slope(d), float)
        if found.shape != d.shape:
            raise ValueError(
                f"the gradient of r has shape {found.shape}; expected {d.shape}, one "
                "number per parameter"
            )
        return self.weight * found


def _slope(d: Array, p: float) -> Array:
    """The gradient of ½‖d‖_p²."""
    size = norm(np.abs(d), p)
    if size == 0:
        return np.zeros(len(d))
    return np.asarray(size * norm_gradient(np.abs(d), p) * signs(d))


def signs(d: Array) -> Array:
    """−1 below 0, and 1 from 0 on.

    Parameters
    ----------
    d : array
        Parameters.

    Returns
    -------
    array
        Their signs.
    """
    return np.where(d < 0, -1.0, 1.0)
