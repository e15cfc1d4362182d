"""Regularizers made of one function: @formulation and @variational.

    @formulation      Ω(u), a CVXPY expression in the block norms u ≥ 0
    @variational      r(θ), for Ω(u) = min over θ ≥ 0 of ½ Σ u_m²/θ_m + r(θ)

Everything else is derived from the declaration (derive/epigraph.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from .base import Formulation, by_name, epigraph_of
from .derive.epigraph import Epigraph, split
from .norms import declared_quadratic

Array = np.ndarray


@dataclass(frozen=True)
class Declared(Formulation):
    """A formulation that is nothing but a function of u."""

    function: Callable[[Any], Any]
    listed: ClassVar[bool] = False

    def validate(self, M: int) -> None:
        """Compile the declaration afresh, and see that it increases in each u_m."""
        epigraph_of.cache_clear()  # what the function refers to may have changed
        self.epigraph(M).cones  # noqa: B018  # DCP, shape and type are checked here
        rng = np.random.default_rng(0)
        for u in (np.zeros(M), np.ones(M), *rng.uniform(0, 2, size=(4, M))):
            here = self.value(u)
            for m in range(M):
                more = u + 0.1 * (np.arange(M) == m)
                if self.value(more) < here - 1e-7 * (1 + abs(here)):
                    there = self.value(more)
                    raise ValueError(
                        f"{self!r} falls from {here:.6g} to {there:.6g} when u_{m} "
                        f"grows from {u[m]:.3g} to {more[m]:.3g}; Ω must increase in "
                        "each block norm, or the problem in w is not convex"
                    )

    def penalty(self, u: Any) -> Any:
        return self.function(u)

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", "declared")

    def __repr__(self) -> str:
        return f"formulation {self.name!r}"

    def __reduce__(self) -> tuple:
        return by_name(self, self.function, Declared, self.function)


def formulation(function: Callable[[Any], Any]) -> Declared:
    """Make a regularizer of one function of u (a CVXPY expression).

    >>> @formulation
    ... def elastic(u): return cp.sum(u) + 0.1 * cp.sum_squares(u)
    """
    if not callable(function):
        raise ValueError(f"formulation takes a function of u, got {function!r}")
    return Declared(function)


@dataclass(frozen=True)
class Variational(Declared):
    """Ω(u) = min over θ ≥ 0 of ½ Σ u_m²/θ_m + r(θ), declared by r.

    As a minimum of linear functions of u² it is concave in them: `reweighted`. Where r
    is smooth and finite for all θ ≥ 0, it is `priced`, too.
    """

    smooth: bool = False

    @property
    def traits(self) -> frozenset[str]:
        return frozenset({"reweighted", "priced"} if self.smooth else {"reweighted"})

    def penalty(self, u: Any) -> Any:
        import cvxpy as cp

        theta = cp.Variable(u.shape, nonneg=True)
        half, cones = declared_quadratic(u, theta)
        price, constraints = split(self.function(theta))
        return half + price, [*cones, *constraints]

    def price(self, theta: Array) -> tuple[float, Array]:
        r = _price(self.function, len(theta))
        return float(r.value(theta)[0]), r.subgradient(theta)

    def __repr__(self) -> str:
        return f"variational formulation {self.name!r}"

    def __reduce__(self) -> tuple:
        parts = (self.function, self.smooth)
        return by_name(self, self.function, Variational, *parts)


@lru_cache(maxsize=64)
def _price(function: Callable, M: int) -> Epigraph:
    return Epigraph(function, (M,), nonneg=True, what=f"the price {function.__name__}")


def variational(
    function: Callable[[Any], Any] | None = None, *, smooth: bool = False
) -> Any:
    """Make a regularizer of the price r(θ) of the kernel weights, convex in θ ≥ 0.

    smooth: r is differentiable and finite for all θ ≥ 0: solvers in θ take it, too

    >>> @variational
    ... def budget(theta): return cp.Constant(0.0), [cp.sum(theta) <= 1]
    """
    if function is None:
        return lambda inner: variational(inner, smooth=smooth)
    if not callable(function):
        raise ValueError(f"variational takes a function of theta, got {function!r}")
    return Variational(function, smooth)


def stripped(formulation: Formulation) -> Declared:
    """The same declaration with every closed form deleted."""
    return Declared(formulation.penalty)
