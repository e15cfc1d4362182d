"""Regularizers made of one function: @formulation and @variational.

    @formulation      Ω(u), a CVXPY expression in the block norms u ≥ 0
    @variational      r(θ), for Ω(u) = min over θ ≥ 0 of ½ Σ u_m²/θ_m + r(θ)

Everything else is derived from the declaration (derive/epigraph.py). It is compiled
again only when the function, or something it refers to, has changed
(derive/declaration.py). A declaration made of known terms has a twin (recognized.py):
then closed forms and traits are those of the twin, and nothing is compiled. Further
arguments of the function are its parameters:

    @formulation
    def elastic(u, lam=0.3): return cp.sum(u) + lam * cp.sum_squares(u)

    elastic, elastic(lam=1.0)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, ClassVar

import numpy as np

from .base import Formulation, stated
from .derive.declaration import Declaration, Keyed, key_of, split
from .derive.epigraph import Epigraph, Template
from .norms import Array, declared_quadratic
from .recognized import Twin, from_penalty, from_price, twin_of

# Operators that the twin of a declaration answers, where it has closed forms of them.
OPERATORS = ["value", "conjugate", "weights", "prox", "prox_slope", "feasible_scale"]
OPERATORS += ["dual_weights", "reweight", "elasticities"]
PARAMETER = "a parameter"  # stands for a number in keys of templates
# What belongs to the traits of the twin.
STATED = ("ball", "orthant", "strongly_convex", "groups", "exponents", "exponent")


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
        if self.twin(M) is None:  # twins are convex and increase
            _check_increase(Keyed(self.key(), self), M)

    def bound(self, M: int) -> Formulation:
        """This declaration for M kernels, with the traits of its twin.

        Parameters
        ----------
        M : int
            The number of kernels.

        Returns
        -------
        Declared
            It is equal to this one, and knows its twin.
        """
        made = dataclasses.replace(self)
        for name, kept in vars(self).items():
            object.__setattr__(made, name, kept)
        object.__setattr__(made, "_bound", (M, self._looked_up(M)))
        return made

    def twin(self, M: int) -> Twin | None:
        """The formulation of known terms that this one is, for M kernels.

        Parameters
        ----------
        M : int
            The number of kernels.

        Returns
        -------
        Twin or None
            None: its expression tree has other parts than the table knows.
        """
        known, twin = vars(self).get("_bound", (None, None))
        return twin if known == M else self._looked_up(M)

    def _looked_up(self, M: int) -> Twin | None:
        return twin_of(Keyed(self.key(), self), M)

    def recognize(self, M: int) -> Twin | None:
        """Read the expression tree, and look it up in the table.

        Parameters
        ----------
        M : int
            The number of kernels.

        Returns
        -------
        Twin or None
        """
        return from_penalty(self.penalty, M)

    def template(self) -> Template | None:
        """The same declaration with parameters of CVXPY for its positive numbers.

        Returns
        -------
        Template or None
            None: it has no such numbers.
        """
        values = {
            name: float(value)
            for name, value in self.get_params().items()
            if type(value) in (int, float) and 0 < value < np.inf
        }
        open_ = (*self.parameters, *((name, PARAMETER) for name in values))
        key = key_of(dataclasses.replace(self, parameters=tuple(dict(open_).items())))
        if not values or key is None:
            return None
        return _template_of(Keyed(key, self), tuple(values)).at(values)

    @property
    def _own_twin(self) -> Formulation | None:
        """The twin for the number of kernels that this one is bound to."""
        _, twin = vars(self).get("_bound", (None, None))
        return None if twin is None else twin.formulation

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether it is bound to M kernels, and its twin is exact.

        Returns
        -------
        bool
        """
        _, twin = vars(self).get("_bound", (None, None))
        return twin is not None and twin.exact

    @property
    def traits(self) -> frozenset[str]:
        """Those of the twin, where it is bound to M kernels; else none.

        Returns
        -------
        frozenset of str
        """
        twin = self._own_twin
        return frozenset() if twin is None else twin.traits

    def closed(self, name: str) -> bool:
        """Whether the twin has a closed form of a method.

        Parameters
        ----------
        name : str
            The name of a method, such as "prox".

        Returns
        -------
        bool
        """
        twin = self._own_twin
        return twin is not None and twin.closed(name)

    def rounding(self, M: int) -> float:
        """That of an exact twin; else what is derived is good to 1e-8.

        Parameters
        ----------
        M : int
            The number of kernels.

        Returns
        -------
        float
        """
        twin = self._own_twin
        return twin.rounding(M) if twin and self.exact else super().rounding(M)

    def simplices(self, M: int) -> Any:
        """Those of the twin.

        Parameters
        ----------
        M : int
            The number of kernels.

        Returns
        -------
        groups : tuple of tuples of int
            The kernels of each group.
        q : float
            The exponent across groups.
        """
        twin = self.twin(M)
        return super().simplices(M) if twin is None else twin.formulation.simplices(M)

    def price(self, theta: Array) -> tuple[float, Array]:
        """That of the twin.

        Parameters
        ----------
        theta : ndarray of shape (M,)
            Kernel weights, θ ≥ 0.

        Returns
        -------
        r : float
            The price.
        gradient : ndarray of shape (M,)
            Its gradient.
        """
        twin = self.twin(len(theta))
        return super().price(theta) if twin is None else twin.formulation.price(theta)

    def __reduce__(self) -> tuple:
        """As every declaration; a bound one is bound again."""
        kept = vars(self).get("_bound")
        if kept is None:
            return super().__reduce__()
        return _bind, (dataclasses.replace(self), kept[0])

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
        return self.written(u)

    def written(self, u: Any) -> Any:
        """Ω(u), as the function writes it.

        Parameters
        ----------
        u : cvxpy.Expression
            The block norms.

        Returns
        -------
        cvxpy.Expression or tuple
        """
        return self.declared(u)

    def __repr__(self) -> str:
        return f"formulation {self.label!r}"


@lru_cache(maxsize=64)
def _template_of(declared: Keyed, names: tuple[str, ...]) -> Template:
    """One for all values of the numbers with these names."""
    import cvxpy as cp

    owner = declared.owner
    symbols = {name: cp.Parameter(nonneg=True, name=name) for name in names}
    parameters = tuple((dict(owner.parameters) | symbols).items())
    return Template(dataclasses.replace(owner, parameters=parameters).written, symbols)


def _bind(declaration: Declared, M: int) -> Formulation:
    return declaration.bound(M)


def _answered(name: str) -> Callable:
    """An operator: that of the twin where it is closed, else derived."""
    derived = getattr(Formulation, name)

    @wraps(derived)
    def answer(self: Declared, point: Array, *more: Any, **options: Any) -> Any:
        twin = self.twin(len(point))
        if twin is not None and twin.formulation.closed(name):
            return getattr(twin.formulation, name)(point, *more, **options)
        return derived(self, point, *more, **options)

    return answer


def _stated(name: str) -> property:
    """A number that belongs to a trait of the twin."""

    def read(self: Declared) -> Any:
        twin = self._own_twin
        return getattr(super(Declared, self) if twin is None else twin, name)

    return property(read, doc=f"That of the twin: {name}.")


for _name in OPERATORS:
    setattr(Declared, _name, _answered(_name))
for _name in STATED:
    setattr(Declared, _name, _stated(_name))


@lru_cache(maxsize=256)
def _check_increase(declared: Keyed, M: int) -> None:
    """Compile a declaration, and see that Ω increases: at six points, in each u_m."""
    owner = declared.owner
    owner.epigraph(M).cones  # noqa: B018  # DCP, shape and type are checked here
    rng = np.random.default_rng(0)
    if not np.isfinite(owner.value(np.zeros(M))):
        raise ValueError(
            f"{owner!r} is infinite at u = 0, where all weights are zero; Ω must be "
            "finite there: leave out constraints and terms that exclude 0, or declare "
            "them of the kernel weights with @mklopt.variational"
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
                    "each block norm, or the problem in w is not convex: leave out "
                    "negative terms, and write cp.pos(u - 1) for u - 1"
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
        return super().traits | stated(reweighted=True, priced=self.smooth)

    def recognize(self, M: int) -> Twin | None:
        """Read the expression tree of r, and look it up in the table."""
        return from_price(self.declared, M)

    def written(self, u: Any) -> Any:
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
        if self._own_twin is not None and "priced" in self._own_twin.traits:
            return self._own_twin.price(theta)
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


@dataclass(frozen=True, repr=False)
class Stripped(Declared):
    """A declaration without a twin: everything is derived.

    Parameters
    ----------
    function : callable
        Takes the block norms u and returns Ω(u).
    parameters : tuple
        As in Declared.
    """

    def recognize(self, M: int) -> Twin | None:
        """Nothing."""
        return None


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
    return Stripped(formulation.penalty)
