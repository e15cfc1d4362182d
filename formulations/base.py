"""What a formulation is: a declaration of Ω, and what is derived from it.

Problem. Ω is a convex function of the block norms u_m = ‖w_m‖ ≥ 0, increasing in each.
A formulation states it once, as a CVXPY expression:

    def penalty(self, u): return cp.sum(u)                    # group lasso

and may add closed forms in NumPy. Whatever it does not give is derived numerically from
`penalty` through its conic epigraph (epigraph.py):

    value(u)        Ω(u)
    conjugate(v)    Ω*(v) = sup over u ≥ 0 of ⟨v, u⟩ − Ω(u)
    weights(u)      u / ∂Ω(u): the θ for which ½Σ u²/θ + const majorizes Ω at u
    prox(u, step)   argmin over z ≥ 0 of Ω(z) + Σ (z_m − u_m)²/(2 step_m)
    reach(v)        the largest s ≤ 1 for which Ω*(s v) is finite

Guarantee: derived values are good to about 1e-9. Closed forms are checked against the
declaration by the contract suite. `rounding` bounds their relative error in units of
the float64 round-off; a formulation that states none gets no rigorous enclosure.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from .epigraph import DerivationError, Epigraph
from .norms import increasing_root, ratio

Array = np.ndarray
Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Formulation:
    """A regularizer Ω(‖w_1‖, …, ‖w_M‖); its fields are its parameters."""

    exact: ClassVar[bool] = False  # closed forms with the error bound of `rounding`

    def penalty(self, u: Any) -> Any:
        """THE declaration: a convex CVXPY expression in u ≥ 0, increasing in u."""
        raise TypeError(f"{type(self).__name__} declares no penalty(u)")

    def value(self, u: Array) -> float:
        return float(self.epigraph(len(u)).value(u)[0])

    def conjugate(self, v: Array) -> float:
        return float(self.epigraph(len(v)).conjugate(v)[0])

    def weights(self, u: Array) -> Array:
        slope = np.maximum(self.epigraph(len(u)).subgradient(u), 0.0)
        return ratio(u, slope)

    def prox(self, u: Array, step: Array | float) -> Array:
        return np.maximum(self.epigraph(len(u)).prox(u, np.asarray(step)), 0.0)

    def reach(self, v: Array) -> float:
        with contextlib.suppress(DerivationError):  # at the very edge of the domain
            if np.isfinite(self.conjugate(v)):
                return 1.0
        if type(self).conjugate is Formulation.conjugate:
            # Interior-point values blow up at the edge: stay a hair inside.
            return min(1.0, self.epigraph(len(v)).reach(v) * (1 - 1e-9))
        finite = increasing_root(
            lambda s: np.where(np.isfinite(self.conjugate(float(s) * v)), -1.0, 1.0),
            np.zeros(()),
            np.ones(()),
        )
        return float(finite)

    def validate(self, M: int) -> None:
        """Raise a sentence when the parameters do not fit M kernels."""

    def rounding(self, M: int) -> float:
        """Relative error of value and conjugate, in units of 2^-53.

        All closed forms here are sums of M non-negative terms, powers and roots: a
        norm costs (M + 5) units, outer powers at most multiply that by 4.
        """
        return 16.0 * (M + 16)

    def epigraph(self, M: int) -> Epigraph:
        return _epigraph(self, M)

    @property
    def name(self) -> str:
        return type(self).__name__

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        """The instances on which the contract suite tries this formulation."""
        return [cls()]


@lru_cache(maxsize=256)
def _epigraph(formulation: Formulation, M: int) -> Epigraph:
    return Epigraph(formulation.penalty, (M,), nonneg=True, what=repr(formulation))


@dataclass(frozen=True)
class Declared(Formulation):
    """A formulation that is nothing but a function of u."""

    function: Callable[[Any], Any]

    def penalty(self, u: Any) -> Any:
        return self.function(u)

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", "declared")

    def __repr__(self) -> str:
        return f"formulation {self.name!r}"


def formulation(function: Callable[[Any], Any]) -> Declared:
    """Make a regularizer of one function of u (a CVXPY expression).

    >>> @formulation
    ... def elastic(u): return cp.sum(u) + 0.1 * cp.sum_squares(u)
    """
    return Declared(function)


def stripped(formulation: Formulation) -> Declared:
    """The same declaration with every closed form deleted."""
    return Declared(formulation.penalty)


def as_groups(groups: Sequence[Sequence[int]], owner: str) -> Groups:
    """Groups as tuples of integers; an empty or repeated member is refused."""
    found = tuple(tuple(int(k) for k in group) for group in groups)
    members = [k for group in found for k in group]
    if not members or not all(found) or len(set(members)) < len(members):
        raise ValueError(
            f"{owner}: groups must be non-empty and share no kernel, got {groups}; "
            "list each kernel in exactly one group, e.g. [[0, 1], [2]]"
        )
    return found


def check_partition(groups: Groups, M: int, owner: str) -> None:
    members = sorted(k for group in groups for k in group)
    if members != list(range(M)):
        raise ValueError(
            f"{owner}: the groups name kernels {members} but the stack has {M}; "
            f"list every kernel 0 to {M - 1} in exactly one group"
        )


def check_range(owner: str, name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # also false for NaN
        raise ValueError(
            f"{owner}: {name} = {value} is outside [{low}, {high}]; choose it inside"
        )
