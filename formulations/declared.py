"""Regularizers made of one function: @formulation and @variational.

    @formulation      Ω(u), a CVXPY expression in the block norms u ≥ 0
    @variational      r(θ), for Ω(u) = min over θ ≥ 0 of ½ Σ u_m²/θ_m + r(θ)

Everything else is derived from the declaration (derive/epigraph.py). It is compiled
again only when the function, or something it refers to, has changed
(derive/declaration.py). Further arguments of the function are its parameters:

    @formulation
    def elastic(u, lam=0.3): return cp.sum(u) + lam * cp.sum_squares(u)

    elastic, elastic(lam=1.0)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from .base import Formulation, stated
from .derive.declaration import Declaration, Keyed
from .derive.epigraph import Epigraph, split
from .norms import Array, declared_quadratic


@dataclass(frozen=True)
class Declared(Declaration, Formulation):
    """A formulation that is nothing but a function of u.

    Parameters
    ----------
    function : callable
        Takes the block norms u and returns Ω(u), both as CVXPY expressions.
    parameters : tuple
        Pairs of a name and a value: arguments of the function after u that do not have
        their defaults. Calling the formulation sets them.
    """

    function: Callable[..., Any]
    parameters: tuple[tuple[str, Any], ...] = ()
    listed: ClassVar[bool] = False

    def validate(self, M: int) -> None:
        """Check that the declaration is convex and increases in each of M norms.

        A declaration that was checked before is not checked again.

        Parameters
        ----------
        M : int
            The number of kernels.

        Raises
        ------
        ValueError
            With a sentence that says what is wrong.
        """
        self.read_again()
        _check_increase(Keyed(self.key(), self), M)

    def penalty(self, u: Any) -> Any:
        """Ω(u), as the function declares it.

        Parameters
        ----------
        u : cvxpy.Expression
            The block norms, M numbers, known to be non-negative.

        Returns
        -------
        cvxpy.Expression or tuple
            An expression, or (expression, [constraints]).
        """
        return self.declared(u)

    def __repr__(self) -> str:
        return f"formulation {self.label!r}"


@lru_cache(maxsize=256)
def _check_increase(declared: Keyed, M: int) -> None:
    """Compile a declaration, and see that Ω increases: at six points, in each u_m."""
    owner = declared.owner
    owner.epigraph(M).cones  # noqa: B018  # DCP, shape and type are checked here
    rng = np.random.default_rng(0)
    if not np.isfinite(owner.value(np.zeros(M))):
        raise ValueError(
            f"{owner!r} is infinite at u = 0, where all weights are zero; Ω must be "
            "finite there, and increase in each block norm"
        )
    for u in (np.zeros(M), np.ones(M), *rng.uniform(0, 2, size=(4, M))):
        here = owner.value(u)
        for m in range(M):
            more = u + 0.1 * (np.arange(M) == m)
            there = owner.value(more)
            if here - there > 1e-7 * (1 + abs(there)):  # also from infinity
                raise ValueError(
                    f"{owner!r} falls from {here:.6g} to {there:.6g} when u_{m} "
                    f"grows from {u[m]:.3g} to {more[m]:.3g}; Ω must increase in "
                    "each block norm, or the problem in w is not convex"
                )


def formulation(function: Callable[..., Any]) -> Declared:
    """Make a regularizer of one function of u.

    Its values may depend on variables outside the function. When one of them changes,
    the next Problem sees it. They must not depend on files, clocks or random numbers.

    Parameters
    ----------
    function : callable
        Takes the block norms u ≥ 0 and returns a convex CVXPY expression of one number
        that increases in each u_m, or (expression, [constraints]). Its other arguments
        are parameters.

    Returns
    -------
    Declared
        A formulation whose values, conjugates, weights and prox are derived. Calling it
        with parameters gives another one.

    Raises
    ------
    ValueError
        Where something else than a function is given. Whether Ω is convex and
        increasing is checked when a Problem is made.

    Examples
    --------
    >>> @formulation
    ... def elastic(u, lam=0.1): return cp.sum(u) + lam * cp.sum_squares(u)
    >>> problem = mklopt.Problem(grams, y, "hinge", elastic(lam=0.5))
    """
    if not callable(function):
        raise ValueError(f"formulation takes a function of u, got {function!r}")
    return Declared(function)


@dataclass(frozen=True)
class Variational(Declared):
    """Ω(u) = min over θ ≥ 0 of ½ Σ u_m²/θ_m + r(θ), declared by r.

    As a minimum of linear functions of u² it is concave in them: `reweighted`. Where r
    is smooth and finite for all θ ≥ 0, it is `priced`, too.

    Parameters
    ----------
    function : callable
        Takes the kernel weights θ and returns r(θ), both as CVXPY expressions.
    parameters : tuple
        As in Declared.
    smooth : bool
        Whether r is differentiable and finite for all θ ≥ 0.
    """

    smooth: bool = False

    @property
    def traits(self) -> frozenset[str]:
        """Reweighted; with a smooth r, priced.

        Returns
        -------
        frozenset of str
        """
        return stated(reweighted=True, priced=self.smooth)

    def penalty(self, u: Any) -> Any:
        """½ Σ u_m²/θ_m + r(θ), θ being an auxiliary variable.

        Parameters
        ----------
        u : cvxpy.Expression
            The block norms, M numbers, known to be non-negative.

        Returns
        -------
        tuple
            (expression, [constraints]).
        """
        import cvxpy as cp

        theta = cp.Variable(u.shape, nonneg=True)
        half, cones = declared_quadratic(u, theta)
        price, constraints = split(self.declared(theta))
        return half + price, [*cones, *constraints]

    def price(self, theta: Array) -> tuple[float, Array]:
        """The price r(θ) of kernel weights and its gradient."""
        r = _price_of(Keyed(self.key(), self), len(theta))
        r.declare = self.declared
        return float(r.value(theta)[0]), r.subgradient(theta)

    def __repr__(self) -> str:
        return f"variational formulation {self.label!r}"


@lru_cache(maxsize=64)
def _price_of(declared: Keyed, M: int) -> Epigraph:
    """r as an epigraph of its own."""
    owner = declared.owner
    what = f"the price {owner.name}"
    return Epigraph(owner.declared, (M,), nonneg=True, what=what)


def variational(
    function: Callable[..., Any] | None = None, *, smooth: bool = False
) -> Any:
    """Make a regularizer of the price r(θ) of the kernel weights.

    It is Ω(u) = min over θ ≥ 0 of ½ Σ u_m²/θ_m + r(θ).

    Parameters
    ----------
    function : callable, optional
        Takes θ ≥ 0 and returns r(θ), a convex CVXPY expression of one number, or
        (expression, [constraints]); its other arguments are parameters. Without it, a
        decorator is returned.
    smooth : bool
        r is differentiable and finite for all θ ≥ 0: solvers in θ take it, too.

    Returns
    -------
    Variational or callable
        The formulation, or a decorator that makes one.

    Raises
    ------
    ValueError
        Where something else than a function is given.

    Examples
    --------
    >>> @variational
    ... def budget(theta): return cp.Constant(0.0), [cp.sum(theta) <= 1]
    """
    if function is None:
        return lambda inner: variational(inner, smooth=smooth)
    if not callable(function):
        raise ValueError(f"variational takes a function of theta, got {function!r}")
    return Variational(function, smooth=smooth)


def stripped(formulation: Formulation) -> Declared:
    """The same declaration with every closed form deleted: for comparisons.

    Parameters
    ----------
    formulation : Formulation
        Any formulation.

    Returns
    -------
    Declared
    """
    return Declared(formulation.penalty)
