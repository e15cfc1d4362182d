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
    owners,
)
from .norms import INF, declared_norm, dual_exponent, norm, norm_gradient, ratio


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

    def simplices(self, M: int) -> tuple[Groups, float]:
        return self.groups, self.exponents[1] / 2

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

    def dual_weights(self, v: Array) -> Array:
        """∂Ω*/v: N_j = ‖v_j‖_{r*}, ‖N‖ ∂‖N‖/∂N_j (v/N_j)^(r*−2) / N_j."""
        r, s = map(dual_exponent, self.exponents)
        N, owner = self.inner(v, r), owners(self.groups)
        if not np.any(N):
            return np.ones_like(v, dtype=float) if r == s == 2 else np.zeros_like(v)
        outer = norm(N, s) * norm_gradient(N, s)
        share = np.divide(v, N[owner], out=np.zeros_like(v), where=N[owner] > 0)
        inside = share ** (r - 2)
        if r == INF:  # one of many: the kernels that attain the maximum share
            many = np.bincount(owner, share == 1)
            inside = (share == 1) / np.maximum(many, 1)[owner]
        return np.asarray(ratio(outer, N)[owner] * inside)

    def prox(self, u: Array, step: Array | float) -> Array:
        from .mixed_prox import prox_of_groups

        step = np.broadcast_to(np.asarray(step, float), u.shape)
        order = np.concatenate([np.array(group) for group in self.groups])
        ends = np.cumsum([0, *map(len, self.groups)])
        z, sorted_z = np.empty(len(u)), np.empty(len(u))
        r, s = map(float, self.exponents)
        prox_of_groups(u[order], step[order], ends, r, s, sorted_z)
        z[order] = sorted_z
        return z

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        z, owner = self.prox(u, step), owners(self.groups)
        used = np.flatnonzero(z > 0)
        if len(used) == 0:
            return np.zeros((0, 0))
        steps = np.broadcast_to(np.asarray(step, float), u.shape)[used, None]
        if self.exponents[1] == INF:
            R = self.inner(z, 1.0)
            inside = _slope_of_prices(R, owner[used], steps[:, 0])
            return np.eye(len(used)) - steps * inside
        bent = np.eye(len(used)) + steps * self._hessian(z, owner, used)
        return np.linalg.inv(bent)

    def _hessian(self, z: Array, owner: Array, used: Array) -> Array:
        """∂²Ω over the used kernels: λ_j ∂²R_j inside the groups, ∂R ∂²½‖R‖_s² ∂Rᵀ."""
        r, s = self.exponents
        R = self.inner(z, r)
        x = R / norm(R, s)
        Q = np.diag((s - 1) * np.where(R > 0, x, 1.0) ** (s - 2))
        Q += (2 - s) * np.outer(x ** (s - 1), x ** (s - 1))
        mine = owner[used]
        share = np.maximum(z[used] / R[mine], 1e-100)
        slope = share ** (r - 1)
        same = mine[:, None] == mine
        price = norm(R, s) * x ** (s - 1) / np.where(R > 0, R, 1.0)
        bend = (r - 1) * price[mine]
        inside = np.diag(bend * share ** (r - 2)) - bend * same * np.outer(slope, slope)
        return inside + np.outer(slope, slope) * Q[np.ix_(mine, mine)]

    def rounding(self, M: int) -> float:
        return 2 * super().rounding(M)


def _slope_of_prices(R: Array, owner: Array, step: Array) -> Array:
    """s = ∞: ∂λ_j/∂u_k for each pair of used kernels, from R_j = N for the groups that
    share the maximum, U_j − S_j λ_j = N, and Σλ = N.
    """
    S = np.bincount(owner, step, len(R))
    tied = np.flatnonzero(np.max(R) * (1 - 1e-9) <= R)
    out, inverse = np.zeros((len(R), len(R))), 1 / S[tied]
    shared = np.outer(inverse, inverse) / (1 + np.sum(inverse))
    out[np.ix_(tied, tied)] = np.diag(inverse) - shared
    return out[np.ix_(owner, owner)]


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
        return super().traits | {"sums", "simplices"}

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
        sparse = {"two_levels"} if max(self.r, self.s) < 2 else set()
        smooth = {"smooth_dual"} if min(self.r, self.s) > 1 else set()
        sums = {"sums"} if self.r == 1 < self.s else set()
        return super().traits | sparse | smooth | sums

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        return [cls(thirds(M), r, s) for r, s in ((1.0, 1.5), (4 / 3, 1.0), (2.0, 1.2))]


def thirds(M: int) -> Groups:
    """Groups of uneven size for the contract suite: one, two, then the rest."""
    cuts = (range(1), range(1, 3), range(3, M))
    found = (tuple(k for k in cut if k < M) for cut in cuts)
    return tuple(group for group in found if group)
