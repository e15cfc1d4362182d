"""Grouped kernels: one norm inside each group, another across the groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import (
    Array,
    Formulation,
    Groups,
    as_groups,
    check_partition,
    check_range,
)
from .norms import (
    INF,
    declared_norm,
    dual_exponent,
    norm,
    norm_gradient,
)


class SquaredMixedNorm(Formulation):
    """½‖(‖u_j‖_r)_j‖_s²: the shared closed forms of VSKL and CKL.

    The dual of a mixed norm is the mixed norm of the dual exponents.
    """

    exact: ClassVar[bool] = True
    groups: Any  # a tuple of tuples after __post_init__

    @property
    def exponents(self) -> tuple[float, float]:
        """(r inside groups, s across them)."""
        raise TypeError(f"{type(self).__name__} states no exponents")

    def validate(self, M: int) -> None:
        check_partition(self.groups, M, type(self).__name__)

    def inner(self, u: Array, r: float) -> Array:
        return np.array([norm(u[list(group)], r) for group in self.groups])

    def penalty(self, u: Any) -> Any:
        import cvxpy as cp

        r, s = self.exponents
        inside = cp.hstack([declared_norm(u[list(g)], r) for g in self.groups])
        return 0.5 * cp.square(declared_norm(inside, s))

    def value(self, u: Array) -> float:
        r, s = self.exponents
        return 0.5 * norm(self.inner(u, r), s) ** 2

    def conjugate(self, v: Array) -> float:
        r, s = map(dual_exponent, self.exponents)
        return 0.5 * norm(self.inner(v, r), s) ** 2

    @property
    def traits(self) -> frozenset[str]:
        concave = max(self.exponents) <= 2  # in the squares of u
        return frozenset({"groups"} | ({"reweighted"} if concave else set()))

    def weights(self, u: Array) -> Array:
        r, s = self.exponents
        sums = self.inner(u, r)
        theta = np.zeros_like(u, dtype=float)
        if not np.any(sums):
            return theta
        outer = norm(sums, s) * norm_gradient(sums, s)
        silent = INF if s > 2 else 1.0 if r == s == 2 else 0.0  # limit at total = 0
        for group, total, slope in zip(self.groups, sums, outer):
            index = list(group)
            if total == 0 or slope == 0:  # slope 0: not the largest, s = ∞
                theta[index] = silent
            else:  # u / (slope (u/total)^(r−1))
                theta[index] = total / slope * (u[index] / total) ** (2 - r)
        return theta

    def closed(self, name: str) -> bool:
        return super().closed(name) and (name != "prox" or self.exponents[0] == 1)

    def prox(self, u: Array, step: Array | float) -> Array:
        if not self.closed("prox"):
            return super().prox(u, step)
        from .sums import prices  # numba: only when it is needed

        step = np.broadcast_to(np.asarray(step, float), u.shape)
        order = np.concatenate([np.array(group) for group in self.groups])
        ends = np.cumsum([0, *map(len, self.groups)])
        found = prices(u[order], step[order], ends, float(self.exponents[1]))
        return np.maximum(u - step * found[self._owner(len(u))], 0.0)

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        if not self.closed("prox"):
            return super().prox_slope(u, step)
        step = np.broadcast_to(np.asarray(step, float), u.shape)
        z, owner, s = self.prox(u, step), self._owner(len(u)), self.exponents[1]
        used = np.flatnonzero(z > 0)
        if len(used) == 0:
            return np.zeros((0, 0))
        T = np.bincount(owner, z, len(self.groups))
        S = np.bincount(owner[used], step[used], len(self.groups))
        prices = _slope_of_prices(T, S, s)  # ∂λ_j/∂u_k for every k in use of a group
        inside = prices[np.ix_(owner[used], owner[used])]
        return np.eye(len(used)) - step[used, None] * inside

    def _owner(self, M: int) -> Array:
        """The group of each kernel."""
        owner = np.empty(M, int)
        for j, group in enumerate(self.groups):
            owner[list(group)] = j
        return owner

    def rounding(self, M: int) -> float:
        return 2 * super().rounding(M)


def _slope_of_prices(T: Array, S: Array, s: float) -> Array:
    """∂λ_j/∂U_i of the prices of sums.py, U_i the sum of u over the used kernels of i.

    U − Sλ = T and λ = ∂½‖T‖_s² give ∂λ/∂U = (Q⁻¹ + S)⁻¹, Q the Hessian of ½‖T‖_s²; for
    s = ∞ the largest groups share: U − Sλ = N for each of them, Σλ = N.
    """
    count, N = len(T), norm(T, s)
    if s == INF:
        tied = np.flatnonzero(T >= N * (1 - 1e-9))
        out, inverse = np.zeros((count, count)), 1 / S[tied]
        shared = np.outer(inverse, inverse) / (1 + np.sum(inverse))
        out[np.ix_(tied, tied)] = np.diag(inverse) - shared
        return out
    x = T / N
    curve = np.diag((s - 1) * np.where(T > 0, x, 1.0) ** (s - 2))
    Q = curve + (2 - s) * np.outer(x ** (s - 1), x ** (s - 1))
    return np.linalg.solve(np.eye(count) + Q * S, Q)


@dataclass(frozen=True)
class VSKL(SquaredMixedNorm):
    """Ω(u) = ½ (Σ_j (Σ_{k∈j} u_k)^{2q})^{1/q}: sparse inside groups, dense across.

    q = 1: the sum over groups of ½(Σu)²; q = ∞: the worst group rules.
    Reference: Aflalo et al. (2011), eq. (1).
    """

    groups: Groups | Sequence[Sequence[int]]
    q: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", as_groups(self.groups, "VSKL"))
        check_range("VSKL", "q", self.q, 1.0, INF)

    @property
    def exponents(self) -> tuple[float, float]:
        return 1.0, 2 * self.q

    @property
    def traits(self) -> frozenset[str]:
        return super().traits | {"simplices"}

    def simplices(self, M: int) -> tuple[Groups, float]:
        return self.groups, self.q  # type: ignore[return-value]

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        return [cls(thirds(M), q) for q in (1.0, 2.0, INF)]


@dataclass(frozen=True)
class Composite(SquaredMixedNorm):
    """Ω(u) = ½‖u‖²_{r,s}, 1 ≤ r, s ≤ 2: composite kernel learning (CKL).

    r rules inside the groups, s across them; both below 2 make both levels sparse.
    Reference: Szafranski, Grandvalet and Rakotomamonjy (2008), eq. (11).
    """

    groups: Groups | Sequence[Sequence[int]]
    r: float = 1.0
    s: float = 1.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", as_groups(self.groups, "Composite"))
        check_range("Composite", "r", self.r, 1.0, 2.0)
        check_range("Composite", "s", self.s, 1.0, 2.0)

    @property
    def exponents(self) -> tuple[float, float]:
        return self.r, self.s

    @property
    def traits(self) -> frozenset[str]:
        sparse = max(self.r, self.s) < 2
        return super().traits | ({"two_levels"} if sparse else set())

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        return [cls(thirds(M), r, s) for r, s in ((1.0, 1.5), (4 / 3, 1.0), (2.0, 1.2))]


def thirds(M: int) -> Groups:
    """Groups of uneven size for the contract suite: one, two, then the rest."""
    cuts = (range(1), range(1, 3), range(3, M))
    found = (tuple(k for k in cut if k < M) for cut in cuts)
    return tuple(group for group in found if group)
