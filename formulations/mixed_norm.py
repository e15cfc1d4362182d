"""Grouped kernels: one norm inside each group, another across the groups."""

from __future__ import annotations

import math
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
    stated,
)
from .norms import INF, declared_norm, dual_exponent, norm, norm_gradient, ratio


class SquaredMixedNorm(Formulation):
    """½‖(‖u_j‖_r)_j‖_s²: the shared closed forms of VSKL and CKL.

    The dual of a mixed norm is the mixed norm of the dual exponents.
    """

    groups: Any  # a tuple of tuples after __post_init__

    @property
    def exponents(self) -> tuple[float, float]:
        """(r inside groups, s across them)."""
        raise TypeError(f"{type(self).__name__} states no exponents")

    def validate(self, M: int) -> None:
        """The groups are a partition of the kernels."""
        check_partition(self.groups, M, type(self).__name__)

    def inner(self, u: Array, r: float) -> Array:
        """‖u_j‖_r for each group j.

        Parameters
        ----------
        u : array (M,)
            Block norms.
        r : float
            The exponent inside groups.

        Returns
        -------
        array
            One norm per group.
        """
        return np.array([norm(u[list(group)], r) for group in self.groups])

    def penalty(self, u: Any) -> Any:
        """½‖(‖u_j‖_r)_j‖_s² as a CVXPY expression."""
        import cvxpy as cp

        r, s = self.exponents
        inside = cp.hstack([declared_norm(u[list(g)], r) for g in self.groups])
        return 0.5 * cp.square(declared_norm(inside, s))

    def value(self, u: Array) -> float:
        """½‖(‖u_j‖_r)_j‖_s²."""
        r, s = self.exponents
        return 0.5 * norm(self.inner(u, r), s) ** 2

    def conjugate(self, v: Array) -> float:
        """½‖(‖v_j‖_{r*})_j‖²_{s*}."""
        r, s = map(dual_exponent, self.exponents)
        return 0.5 * norm(self.inner(v, r), s) ** 2

    @property
    def traits(self) -> frozenset[str]:
        """Reweighted where Ω is concave in the squares of u."""
        return stated(groups=True, reweighted=max(self.exponents) <= 2)

    def simplices(self, M: int) -> tuple[Groups, float]:
        """The groups, and q = s/2 across them."""
        return self.groups, self.exponents[1] / 2

    def weights(self, u: Array) -> Array:
        """u/∂Ω: with N_j = ‖u_j‖_r, N_j (u/N_j)^(2−r) / (‖N‖_s ∂‖N‖_s/∂N_j)."""
        r, s = self.exponents
        N, outer, share, owner = self._levels(u, r, s)
        if not np.any(N):
            return np.zeros_like(u)
        unused = INF if s > 2 else 1.0 if r == s == 2 else 0.0  # limit at N_j = 0
        used = (N > 0) & (outer > 0)  # outer = 0: not the largest, s = ∞
        level = np.divide(N, outer, out=np.zeros_like(N), where=used)
        return np.where(used[owner], level[owner] * share ** (2 - r), unused)

    def dual_weights(self, v: Array) -> Array:
        """∂Ω*/v: with N_j = ‖v_j‖_{r*}, ‖N‖ ∂‖N‖/∂N_j (v/N_j)^(r*−2) / N_j."""
        r, s = map(dual_exponent, self.exponents)
        N, outer, share, owner = self._levels(v, r, s)
        if not np.any(N):
            return np.ones_like(v) if r == s == 2 else np.zeros_like(v)
        inside = share ** (r - 2)
        if r == INF:  # one of many: the kernels that attain the maximum share
            many = np.bincount(owner, share == 1)
            inside = (share == 1) / np.maximum(many, 1)[owner]
        return np.asarray(ratio(outer, N)[owner] * inside)

    def _levels(self, u: Array, r: float, s: float) -> tuple[Array, ...]:
        """N_j = ‖u_j‖_r, the gradient of ½‖N‖_s², u/N_j, and the group j of each."""
        N, owner = self.inner(u, r), owners(self.groups)
        outer = norm(N, s) * norm_gradient(N, s) if np.any(N) else N
        share = np.divide(u, N[owner], out=np.zeros_like(u), where=N[owner] > 0)
        return N, outer, share, owner

    def prox(self, u: Array, step: Array | float) -> Array:
        """By roots in the norms of groups (mixed_prox.py)."""
        from .mixed_prox import prox_of_groups

        top = float(np.max(u, initial=0.0))
        if not 0 < top < INF:
            return np.full(u.shape, 0.0 if top == 0 else np.nan)
        unit = 2.0 ** (math.frexp(top)[1] - 1)  # the prox of u/c is 1/c of that of u
        step = np.broadcast_to(np.asarray(step, float), u.shape)
        order = np.concatenate([np.array(group) for group in self.groups])
        ends = np.cumsum([0, *map(len, self.groups)])
        z, sorted_z = np.empty(len(u)), np.empty(len(u))
        r, s = map(float, self.exponents)
        prox_of_groups(u[order] / unit, step[order], ends, r, s, sorted_z)
        z[order] = sorted_z
        return z * unit

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """(I + step ∇²Ω)⁻¹ over the kernels that are used."""
        z, owner = self.prox(u, step), owners(self.groups)
        used = np.flatnonzero(z > 0)
        if len(used) == 0:
            return np.zeros((0, 0))
        steps = np.broadcast_to(np.asarray(step, float), u.shape)[used, None]
        if self.exponents[1] == INF:
            R = self.inner(z, 1.0)
            inside = _slope_of_multipliers(R, owner[used], steps[:, 0])
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
        multiplier = norm(R, s) * x ** (s - 1)
        bend = (r - 1) * (multiplier / np.where(R > 0, R, 1.0))[mine]
        inside = np.diag(bend * share ** (r - 2)) - bend * same * np.outer(slope, slope)
        return inside + np.outer(slope, slope) * Q[np.ix_(mine, mine)]

    def rounding(self, M: int) -> float:
        """Two norms, one of the other."""
        return 2 * super().rounding(M)


def _slope_of_multipliers(R: Array, owner: Array, step: Array) -> Array:
    """s = ∞: ∂λ_j/∂u_k for each pair of used kernels.

    From R_j = N for the groups that share the maximum, U_j − S_j λ_j = N, and Σλ = N.
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

    q = 1: the sum over groups of ½(Σu)²; q = ∞: the group with the largest sum alone.
    Reference: Aflalo et al. (2011), eq. (1).

    Parameters
    ----------
    groups : sequence of sequences of int
        The kernels of each group; every kernel is in exactly one.
    q : float
        1 ≤ q ≤ ∞; the exponent across groups is 2q.
    """

    groups: Groups | Sequence[Sequence[int]]
    q: float = 2.0
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", as_groups(self.groups, "VSKL"))
        check_range("VSKL", "q", self.q, 1.0, INF)

    @property
    def exponents(self) -> tuple[float, float]:
        """(1, 2q)."""
        return 1.0, 2 * self.q

    @property
    def traits(self) -> frozenset[str]:
        """Those of mixed norms, and simplices inside the groups."""
        found = super().traits | {"sums", "simplices"}
        return found | stated(finite_sums=self.q < INF)

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        """Both ends of q, and q = 2."""
        return [cls(thirds(M), q) for q in (1.0, 2.0, INF)]


@dataclass(frozen=True)
class Composite(SquaredMixedNorm):
    """Ω(u) = ½‖u‖²_{r,s}, 1 ≤ r, s ≤ 2: composite kernel learning (CKL).

    r is the exponent inside the groups, s across them; both below 2 make both levels
    sparse. Reference: Szafranski, Grandvalet and Rakotomamonjy (2008), eq. (11).

    Parameters
    ----------
    groups : sequence of sequences of int
        The kernels of each group; every kernel is in exactly one.
    r : float
        The exponent inside groups, 1 ≤ r ≤ 2.
    s : float
        The exponent across groups, 1 ≤ s ≤ 2.
    """

    groups: Groups | Sequence[Sequence[int]]
    r: float = 1.0
    s: float = 1.5
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", as_groups(self.groups, "Composite"))
        check_range("Composite", "r", self.r, 1.0, 2.0)
        check_range("Composite", "s", self.s, 1.0, 2.0)

    @property
    def exponents(self) -> tuple[float, float]:
        """(r, s)."""
        return self.r, self.s

    @property
    def traits(self) -> frozenset[str]:
        """Those of mixed norms, and what holds for these exponents."""
        return super().traits | stated(
            two_levels=max(self.r, self.s) < 2,
            smooth_dual=min(self.r, self.s) > 1,
            sums=self.r == 1 < self.s,
            finite_sums=self.r == 1 < self.s,
        )

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        """Three pairs of exponents."""
        return [cls(thirds(M), r, s) for r, s in ((1.0, 1.5), (4 / 3, 1.0), (2.0, 1.2))]


def thirds(M: int) -> Groups:
    """Groups of uneven size for the contract suite: one, two, then the rest."""
    cuts = (range(1), range(1, 3), range(3, M))
    found = (tuple(k for k in cut if k < M) for cut in cuts)
    return tuple(group for group in found if group)
