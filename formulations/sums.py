"""Sums of formulations of some of the kernels each, and a linear term.

    Ω(u) = constant + ⟨a, u⟩ + Σ_i f_i(u_i)

value and weights (1/θ = a/u + Σ 1/θ_i) hold in general. Where the f_i share no kernel,
so do

    Ω*(v) = −constant + Σ f_i*((v_i − a_i)₊),  v ≤ a for kernels without f_i
    prox  = that of f_i at u_i − step a_i

The linear term completes the square; Ω increases, so (v − a) counts as 0 where it is
negative. Where the f_i are multiples of Euclidean norms over nested groups, both follow
from shrinkage by one group after the other (nested_norms.py).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from .base import Array, Formulation, stated
from .derive.declaration import split
from .nested_norms import Tree
from .norm_terms import UnitNorm
from .rescaled import Rescaled

DISJOINT_ONLY = {"conjugate", "prox", "prox_slope", "feasible_scale", "dual_weights"}
Terms = tuple[tuple[tuple[int, ...], Formulation], ...]


@dataclass(frozen=True)
class Forbidden(Formulation):
    """Ω(u) = 0 at u = 0, and infinite elsewhere: kernels that must not be used."""

    exact: ClassVar[bool] = True
    listed: ClassVar[bool] = False

    @property
    def traits(self) -> frozenset[str]:
        """Reweighted: by zeros. The dual is 0."""
        return stated(reweighted=True, smooth_dual=True)

    def penalty(self, u: Any) -> Any:
        """u ≤ 0 in CVXPY."""
        import cvxpy as cp

        return cp.Constant(0.0), [u <= 0]

    def value(self, u: Array) -> float:
        """0 at 0."""
        return np.inf if np.any(u > 0) else 0.0

    def conjugate(self, v: Array) -> float:
        """0."""
        return 0.0

    def weights(self, u: Array) -> Array:
        """0."""
        return np.zeros(len(u))

    def dual_weights(self, v: Array) -> Array:
        """0."""
        return np.zeros(len(v))

    def prox(self, u: Array, step: Array | float) -> Array:
        """0."""
        return np.zeros(len(u))

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """No kernel is used."""
        return np.zeros((0, 0))


@dataclass(frozen=True)
class Sum(Formulation):
    """Ω(u) = constant + ⟨a, u⟩ + Σ_i f_i(u_i).

    Parameters
    ----------
    terms : tuple of (kernels, Formulation)
        The f_i, and the kernels of each.
    a : tuple of float
        One number a_m ≥ 0 for each kernel.
    constant : float
        A constant; with one there is no relative error bound.
    """

    terms: Terms
    a: tuple[float, ...]
    constant: float = 0.0
    listed: ClassVar[bool] = False

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Where all terms are, they share no kernel, and there is no constant."""
        known = self.disjoint and self.constant == 0
        return known and all(term.exact for _, term in self.terms)

    def key(self) -> Hashable:
        """Those of the terms."""
        return Sum, tuple((i, f.key()) for i, f in self.terms), self.a, self.constant

    @property
    def disjoint(self) -> bool:
        """Whether no kernel is in two terms."""
        kernels = [m for index, _ in self.terms for m in index]
        return len(set(kernels)) == len(kernels)

    @property
    def nested(self) -> bool:
        """Whether the terms are Euclidean norms over nested groups."""
        return self._tree is not None

    @property
    def _tree(self) -> Tree | None:
        return _tree_of(self.terms)

    def closed(self, name: str) -> bool:
        """Value and weights always; the rest where terms are disjoint, or nested."""
        if (
            name in ("conjugate", "feasible_scale", "prox", "prox_slope")
            and self.nested
        ):
            return True
        if name in DISJOINT_ONLY and not self.disjoint:
            return False
        if name == "dual_weights" and any(self.a):
            return False
        return all(f.closed(name) or name == "feasible_scale" for _, f in self.terms)

    @property
    def traits(self) -> frozenset[str]:
        """Reweighted where all terms are in the primal; smooth without a."""
        shared = frozenset({"reweighted", "smooth_dual"})
        for _, term in self.terms:
            shared &= term.traits
            steep = max(getattr(term, "exponent", 1.0), getattr(term, "q", 1.0)) > 2
            shared -= {"reweighted"} if steep else frozenset()
        covered = len({m for index, _ in self.terms for m in index}) == len(self.a)
        smooth = self.disjoint and covered and not any(self.a)
        return shared if smooth else shared - {"smooth_dual"}

    def _parts(self, x: Array) -> list[tuple[list[int], Formulation, Array]]:
        return [(list(index), f, x[list(index)]) for index, f in self.terms]

    def value(self, u: Array) -> float:
        """constant + ⟨a, u⟩ + Σ f_i(u_i)."""
        total = sum(f.value(part) for _, f, part in self._parts(u))
        return float(self.constant + np.array(self.a) @ u + total)

    def weights(self, u: Array) -> Array:
        """1/θ = a/u + Σ 1/θ_i."""
        a = np.array(self.a)
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = np.where(a > 0, a / u, 0.0)
            for index, f, part in self._parts(u):
                inverse[index] += 1 / f.weights(part)
            return np.asarray(1 / inverse)

    @property
    def _free(self) -> Array:
        """The kernels of the linear term alone."""
        free = np.ones(len(self.a), bool)
        free[[m for index, _ in self.terms for m in index]] = False
        return free

    def conjugate(self, v: Array) -> float:
        """−constant + Σ f_i*((v_i − a_i)₊)."""
        excess = np.maximum(v - np.array(self.a), 0.0)
        if not self.disjoint and self._tree is not None:
            return -self.constant if self._tree.holds(excess) else np.inf
        if np.any(excess[self._free] > 0):
            return np.inf
        return sum(f.conjugate(x) for _, f, x in self._parts(excess)) - self.constant

    def feasible_scale(self, v: Array) -> float:
        """That of each term, and a/v of the others; by bisection where both meet."""
        if not self.disjoint:
            return super().feasible_scale(v)
        a, free = np.array(self.a), self._free
        over = free & (v > a)
        s = float(np.min(a[over] / v[over], initial=1.0))
        for index, f, part in self._parts(v):
            alone = f.feasible_scale(part)
            if alone < s and np.any(a[index]):
                return super().feasible_scale(v)
            s = min(s, alone)
        return s

    def dual_weights(self, v: Array) -> Array:
        """Those of the terms."""
        theta = np.zeros(len(v))
        for index, f, part in self._parts(v):
            theta[index] = f.dual_weights(part)
        return theta

    def prox(self, u: Array, step: Array | float) -> Array:
        """That of each term at u − step a."""
        step = np.broadcast_to(np.asarray(step, float), u.shape)
        z = np.maximum(u - step * np.array(self.a), 0.0)
        if not self.disjoint:
            tree = self._tree
            return super().prox(u, step) if tree is None else tree.prox(z, step)
        for index, f, part in self._parts(z):
            z[index] = f.prox(part, step[index])
        return z

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """Block by block."""
        step = np.broadcast_to(np.asarray(step, float), u.shape)
        moved = np.maximum(u - step * np.array(self.a), 0.0)
        if not self.disjoint:
            tree = self._tree
            if tree is None:
                return super().prox_slope(u, step)
            return tree.slope(moved, step)
        J = np.eye(len(u))
        for index, f, part in self._parts(moved):
            used = np.array(index)[f.prox(part, step[index]) > 0]
            J[np.ix_(used, used)] = f.prox_slope(part, step[index])
        used = np.flatnonzero(self.prox(u, step) > 0)
        return J[np.ix_(used, used)]

    def penalty(self, u: Any) -> Any:
        """The sum as a CVXPY expression."""
        total = self.constant + np.array(self.a) @ u
        constraints: list[Any] = []
        for index, f in self.terms:
            term, more = split(f.penalty(u[list(index)]))
            total, constraints = total + term, [*constraints, *more]
        return (total, constraints) if constraints else total

    def rounding(self, M: int) -> float:
        """The largest of all terms, and one sum more."""
        most = max((f.rounding(M) for _, f in self.terms), default=0.0)
        return most + super().rounding(M) if self.exact else super().rounding(M)


@lru_cache(maxsize=64)
def _tree_of(terms: Terms) -> Tree | None:
    """The groups of nested Euclidean norms; None: terms are others."""
    sets = [set(index) for index, _ in terms]
    laminar = all(a <= b or b <= a or not a & b for a in sets for b in sets)
    factors = [euclidean_factor(f) for _, f in terms]
    if not laminar or not all(factors):
        return None
    return Tree(tuple((index, c) for (index, _), c in zip(terms, factors)))


def euclidean_factor(term: Formulation) -> float:
    """c where a term is c‖u‖; else 0."""
    if term == UnitNorm(2.0):
        return 1.0
    plain = isinstance(term, Rescaled) and term.inner == UnitNorm(2.0)
    return term.c if plain and set(term.d) == {1.0} else 0.0  # type: ignore[attr-defined]
