"""What a formulation is: a declaration of Ω, and what is derived from it.

Problem. Ω is a convex function of the block norms u_m = ‖w_m‖ ≥ 0, increasing in each.
A formulation states it once, as a CVXPY expression:

    def penalty(self, u): return cp.sum(u)                    # group lasso

and may add closed forms in NumPy. Whatever it does not give is derived numerically from
`penalty` through its conic epigraph (derive/epigraph.py):

    value(u)              Ω(u)
    conjugate(v)          Ω*(v) = sup over u ≥ 0 of ⟨v, u⟩ − Ω(u)
    weights(u)            u / ∂Ω(u): the θ for which ½Σ u²/θ + const majorizes Ω at u
    prox(u, step)         argmin over z ≥ 0 of Ω(z) + Σ (z_m − u_m)²/(2 step_m)
    prox_slope(u, step)   ∂prox/∂u over the kernels with prox > 0
    feasible_scale(v)     the largest s ≤ 1 for which Ω*(s v) is finite
    dual_weights(v)       ∂Ω*(v) / v: the weights as a function of α, where Ω* is smooth

`traits` say what solvers may rely on. They ask for traits, never for classes, so a
user's own formulation is treated like those of this room. The table TRAITS below says
what each of them means. The price of kernel weights always means r(θ) there.

Guarantee: derived values are good to 1e-8, mostly better. Closed forms are checked
against the declaration by the contract tests. `rounding` bounds their relative error in
units of the float64 round-off; without `exact` there is no rigorous enclosure.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Hashable, Sequence, Sized
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..util.arrays import NotFinite
from ..util.moved import old_name
from .derive.closed_forms import ClosedForms
from .derive.declaration import Keyed
from .derive.epigraph import DerivationError, Epigraph, Template
from .norms import Array, increasing_root, ratio

Groups = tuple[tuple[int, ...], ...]
CHECKED = ("value", "conjugate", "weights", "dual_weights", "prox", "feasible_scale")
# Derived domains are known to about 1e-9, and Ω* is infinite right behind their edge.
INSIDE = 1 - 1e-9


class Trait(NamedTuple):
    """What a formulation may state, and what a solver may then rely on."""

    words: str  # completes "GroupLasso does not state …"
    attribute: str = ""  # which gives the numbers that belong to it
    of_part: bool = True  # some of the kernels alone have it, too


TRAITS = {
    # ½Σu²/θ + const majorizes Ω at u (Ω∘√ is concave), or the same holds for Ω* in the
    # dual: the step `reweight` never makes the objective worse.
    "reweighted": Trait("kernel weights that majorize it"),
    # Ω* is differentiable: weights are a function of the dual variables.
    "smooth_dual": Trait("a smooth dual", "dual_weights"),
    # Ω(u) = min of ½Σu²/θ over θ ≥ 0, ‖θ‖_p ≤ 1; a simplex is a ball with p = 1.
    "ball": Trait("a ball of kernel weights", "ball"),
    "simplex": Trait("a simplex of kernel weights", "ball"),
    # `groups` is a partition of the kernels.
    "groups": Trait("groups of kernels", "groups", of_part=False),
    # Ω(u) = ½‖u‖²_{r,s} over those groups, r, s < 2.
    "two_levels": Trait("kernel weights on two levels", "exponents", of_part=False),
    # Ω(u) = min over θ ≥ 0 of ½Σu²/θ + r(θ), r with its gradient.
    "priced": Trait("a differentiable price of kernel weights", "price", of_part=False),
    # Ω(u) = min over t ≥ 0 of ½Σu²/θ + c Σt, θ = t/(1 + κt).
    "orthant": Trait("a separate linear price of every kernel weight", "orthant"),
    # Ω(u) = (c/2)‖u‖_p² + aΣu with 1 < p ≤ 2 and c > 0.
    "strongly_convex": Trait(
        "a strongly convex block norm", "strongly_convex", of_part=False
    ),
    # Ω(u) = ½‖(Σ_{k∈j} u_k)_j‖²_{2q} with 2q > 1 over groups j.
    "sums": Trait("sums of block norms inside groups", "simplices"),
    # The same with q < ∞: kernel weights of all groups are finite.
    "finite_sums": Trait("sums of block norms, with a finite exponent", "simplices"),
    # The same with q ≥ 1: ½ max over γ ≥ 0, ‖γ‖_{q*} ≤ 1 of Σ_j γ_j (Σ_{k∈j} u_k)².
    "simplices": Trait("simplices of kernel weights", "simplices"),
}


@dataclass(frozen=True)
class Formulation(ClosedForms):
    """A regularizer Ω(‖w_1‖, …, ‖w_M‖), declared by `penalty`.

    To make one, write a subclass that is a frozen dataclass. Its fields are its
    parameters; they must be hashable (tuples, not arrays). Only `penalty` is needed:
    every other method is derived from it, or raises TypeError where it belongs to a
    trait that is not stated.

    Attributes
    ----------
    exact : bool
        Whether value and conjugate are closed forms with the error bound of `rounding`.
    listed : bool
        Whether it is offered to users by name.
    same_for_part : bool
        Whether Ω of fewer kernels is the same formula, with all others at 0. Each class
        says so itself; it is not inherited.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Scaled(Formulation):
    ...     scale: float = 2.0
    ...     def penalty(self, u): return self.scale * cp.sum(u)
    """

    declares: ClassVar[str] = "penalty"
    listed: ClassVar[bool] = True
    same_for_part: ClassVar[bool] = False

    @property
    def traits(self) -> frozenset[str]:
        """What solvers may rely on: names of TRAITS. Here none.

        Returns
        -------
        frozenset of str
        """
        return frozenset()

    def __init_subclass__(cls, **options: Any) -> None:
        """Check the arguments of closed forms."""
        for name in CHECKED:
            if name in vars(cls):
                setattr(cls, name, _guarded(name, vars(cls)[name]))
        super().__init_subclass__(**options)

    def penalty(self, u: Any) -> Any:
        """Ω(u) as a CVXPY expression: THE declaration.

        Parameters
        ----------
        u : cvxpy.Expression
            The block norms, M numbers, known to be non-negative.

        Returns
        -------
        cvxpy.Expression or tuple
            A convex expression of one number that increases in each u_m, or
            (expression, [constraints]) where it has auxiliary variables.
        """
        raise TypeError(f"{type(self).__name__} declares no penalty(u)")

    def value(self, u: Array) -> float:
        """Ω(u).

        Parameters
        ----------
        u : ndarray of shape (M,)
            Block norms, u ≥ 0.

        Returns
        -------
        float
            Infinite where the declaration excludes u.
        """
        return float(self.epigraph(len(u)).value(u)[0])

    def conjugate(self, v: Array) -> float:
        """Ω*(v) = sup over u ≥ 0 of ⟨v, u⟩ − Ω(u).

        Parameters
        ----------
        v : ndarray of shape (M,)
            Dual norms v_m = ‖α‖_{K_m}. Negative entries count as 0.

        Returns
        -------
        float
            Infinite outside the domain of Ω*.
        """
        return float(self.epigraph(len(v)).conjugate(v)[0])

    def weights(self, u: Array) -> Array:
        """The kernel weights θ = u / ∂Ω(u).

        Parameters
        ----------
        u : ndarray of shape (M,)
            Block norms, u ≥ 0.

        Returns
        -------
        ndarray of shape (M,)
            θ ≥ 0; where u_m and the slope vanish, the limit 0 (or infinity).
        """
        slope = np.maximum(self.epigraph(len(u)).subgradient(u), 0.0)
        return ratio(u, slope)

    @property
    def ball(self) -> float:
        """The exponent p of the ball ‖θ‖_p ≤ 1 (trait "ball").

        Returns
        -------
        float
        """
        raise TypeError(f"{self.name} states no ball of kernel weights")

    @property
    def strongly_convex(self) -> tuple[float, float, float]:
        """(p, a, c) of Ω(u) = (c/2)‖u‖_p² + aΣu (trait "strongly_convex").

        Returns
        -------
        tuple of float
        """
        raise TypeError(f"{self.name} states no strong convexity")

    def simplices(self, M: int) -> tuple[Groups, float]:
        """The groups whose weights live on a simplex each (trait "simplices").

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
        raise TypeError(f"{self.name} states no simplices of kernel weights")

    def price(self, theta: Array) -> tuple[float, Array]:
        """The price r(θ) of kernel weights and its gradient (trait "priced").

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
        raise TypeError(f"{self.name} states no price of kernel weights")

    @property
    def orthant(self) -> tuple[float, float]:
        """c and κ of ½Σu²(1/t + κ) + c Σt, minimized over t ≥ 0 (trait "orthant").

        Returns
        -------
        tuple of float
        """
        raise TypeError(f"{self.name} states no separate price of every kernel")

    def dual_weights(self, v: Array) -> Array:
        """The kernel weights ∂Ω*(v)/v as a function of the dual (trait "smooth_dual").

        Parameters
        ----------
        v : ndarray of shape (M,)
            Dual norms v_m = ‖α‖_{K_m}.

        Returns
        -------
        ndarray of shape (M,)
        """
        raise TypeError(f"{self.name} states no weights as a function of the dual")

    def reweight(self, theta: Array, v: Array, slack: float = 0.0) -> Array:
        """The next θ from θ and v_m = ‖α‖_{K_m}, α being optimal for θ.

        Parameters
        ----------
        theta : ndarray of shape (M,)
            The present kernel weights.
        v : ndarray of shape (M,)
            The dual norms at these weights.
        slack : float
            Where weights may grow without bound, they are bounded so that this part of
            Ω* is lost at most.

        Returns
        -------
        ndarray of shape (M,)
        """
        return self.weights(theta * v)

    def elasticities(self, theta: Array, v: Array) -> tuple[Array, Array]:
        """∂ log reweight / ∂ log θ and ∂ log reweight / ∂ log v; here by differences.

        Parameters
        ----------
        theta : ndarray of shape (M,)
            Kernel weights.
        v : ndarray of shape (M,)
            Dual norms.

        Returns
        -------
        by_theta, by_v : ndarray of shape (M, M)
        """
        h, M = 1e-5, len(v)

        def log(theta: Array, v: Array) -> Array:
            return np.log(np.maximum(self.reweight(theta, v), 1e-300))

        by_theta, by_v = np.empty((2, M, M))
        for m in range(M):
            up = np.where(np.arange(M) == m, np.exp(h), 1.0)
            by_theta[:, m] = log(theta * up, v) - log(theta / up, v)
            by_v[:, m] = log(theta, v * up) - log(theta, v / up)
        return by_theta / (2 * h), by_v / (2 * h)

    def prox(self, u: Array, step: Array | float) -> Array:
        """argmin over z ≥ 0 of Ω(z) + Σ (z_m − u_m)²/(2 step_m).

        Parameters
        ----------
        u : ndarray of shape (M,)
            The point. Negative entries count as 0.
        step : float or ndarray of shape (M,)
            One step for all kernels, or one for each; positive.

        Returns
        -------
        ndarray of shape (M,)
            0 ≤ prox ≤ max(u, 0).
        """
        top = np.maximum(u, 0.0)  # Ω increases: no entry grows, and 0 stays 0
        # Any entry ≤ 0 comes out as 0. Far below 0 the program is not degenerate.
        below = np.where(u > 0, u, np.minimum(u, -np.max(top, initial=0.0)))
        z = np.clip(self.epigraph(len(u)).prox(below, np.asarray(step)), 0.0, top)
        return self._with_zeros(z, u, np.asarray(step, float))

    def _with_zeros(self, z: Array, u: Array, step: Array) -> Array:
        """A derived prox with zeros for its smallest entries, where 0 is not worse.

        Leaving 0 costs or gains at first order. Values that are good to rounding errors
        show it for larger entries than values that are derived.
        """
        objective = lambda z: self.value(z) + float(np.sum((z - u) ** 2 / (2 * step)))  # noqa: E731
        large, longest = np.max(z, initial=0.0), np.max(u, initial=0.0)
        z = np.where(z <= 1e-10 * large, 0.0, z)  # nobody knows these digits
        if not np.any((z > 0) & (z <= 1e-6 * longest)):
            return z
        if self.has_sharp_values(len(z)):
            limits, room = [1e-6 * longest, 1e-8 * longest], 0.0
        else:
            limits, room = [max(1e-7 * large, 1e-10 * longest)], 1e-9
        with contextlib.suppress(DerivationError):
            for limit in limits:
                cut, now = np.where(z <= limit, 0.0, z), objective(z)
                if objective(cut) <= now + room * abs(now):
                    return cut
        return z

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """∂prox/∂u over the kernels with prox > 0; the others stay at 0.

        At kinks it is one element of the generalized Jacobian. Here by differences.

        Parameters
        ----------
        u : ndarray of shape (M,)
            The point.
        step : float or ndarray of shape (M,)
            One step for all kernels, or one for each.

        Returns
        -------
        ndarray of shape (k, k)
            k is the number of kernels with prox > 0.
        """
        used = np.flatnonzero(self.prox(u, step) > 0)
        J = np.empty((len(used), len(used)))
        for place, m in enumerate(used):
            h = (1e-5 if self.closed("prox") else 1e-2) * u[m]  # a program errs by 1e-6
            move = h * (np.arange(len(u)) == m)
            ahead, back = self.prox(u + move, step), self.prox(u - move, step)
            J[:, place] = (ahead - back)[used] / (2 * h)
        return J

    def feasible_scale(self, v: Array) -> float:
        """The largest s ≤ 1 for which Ω*(s v) is finite.

        Parameters
        ----------
        v : ndarray of shape (M,)
            Dual norms.

        Returns
        -------
        float
        """
        with contextlib.suppress(DerivationError):  # at the very edge of the domain
            if np.isfinite(self.conjugate(v)):
                return 1.0
        if not self.closed("conjugate"):
            return min(1.0, self.epigraph(len(v)).feasible_scale(v) * INSIDE)

        def outside(s: Array) -> Array:
            return np.asarray(not np.isfinite(self.conjugate(float(s) * v)))

        return float(increasing_root(outside, np.zeros(()), np.ones(())))

    def has_sharp_values(self, M: int) -> bool:
        """Whether Ω(u) is evaluated to rounding errors, not by a numerical solver.

        Parameters
        ----------
        M : int
            The number of kernels.

        Returns
        -------
        bool
        """
        return self.closed("value") or self.epigraph(M).is_explicit

    def validate(self, M: int) -> None:
        """Check that the parameters fit M kernels.

        Parameters
        ----------
        M : int
            The number of kernels.

        Raises
        ------
        ValueError
            With a sentence that says what is wrong.
        """

    def bound(self, M: int) -> Formulation:
        """This formulation for M kernels: itself, unless it depends on their number.

        Parameters
        ----------
        M : int
            The number of kernels.

        Returns
        -------
        Formulation
        """
        return self

    def rounding(self, M: int) -> float:
        """A bound on the relative error of value and conjugate, in units of 2^-53.

        Closed forms are sums of M non-negative terms, powers and roots: a norm costs
        (M + 5) units, and outer powers multiply that by 4 at most. What is derived
        numerically is good to 1e-8.

        Parameters
        ----------
        M : int
            The number of kernels.

        Returns
        -------
        float
        """
        return 16.0 * (M + 16) if self.exact else 1e-8 * 2.0**53

    def key(self) -> Hashable:
        """What compiled programs are stored under: the formulation itself.

        Returns
        -------
        Hashable
        """
        return self

    def template(self) -> Template | None:
        """The same declaration with parameters of CVXPY for its numbers: here none.

        Returns
        -------
        Template or None
        """
        return None

    def epigraph(self, M: int) -> Epigraph:
        """The conic epigraph of the declaration, compiled once for each key.

        Parameters
        ----------
        M : int
            The number of kernels.

        Returns
        -------
        Epigraph
        """
        found = epigraph_of(Keyed(self.key(), self), M)
        # Programs are compiled when first needed. By then, what the function refers to
        # may have changed for the formulation that was first stored; not for this one.
        found.declare = self.penalty
        return found

    @property
    def name(self) -> str:
        """The name of the class.

        Returns
        -------
        str
        """
        return type(self).__name__

    @classmethod
    def examples(cls, M: int) -> list[Formulation]:
        """The instances on which the contract tests try this formulation.

        Parameters
        ----------
        M : int
            The number of kernels.

        Returns
        -------
        list of Formulation
        """
        return [cls()]


@lru_cache(maxsize=256)
def epigraph_of(formulation: Keyed, M: int) -> Epigraph:
    """The epigraph of a formulation of M kernels, one for each key."""
    owner = formulation.owner
    what, template = repr(owner), owner.template()
    return Epigraph(owner.penalty, (M,), nonneg=True, what=what, template=template)


def stated(**claims: bool) -> frozenset[str]:
    """The names of those that hold."""
    return frozenset(name for name, holds in claims.items() if holds)


def _guarded(name: str, method: Callable) -> Callable:
    """Closed forms live on u ≥ 0; Ω increases, so negative entries act like 0."""

    @wraps(method)
    def checked(self: Formulation, point: Array, *step: Any) -> Any:
        point = np.asarray(point, float)
        if point.ndim != 1 or np.any(np.isnan(point)):
            raise NotFinite(f"{name} takes a vector of M numbers, got {point!r}")
        if name in ("value", "weights") and np.any(point < 0):
            raise ValueError(f"{name} takes block norms u ≥ 0, got {point!r}")
        if step and not np.all(np.asarray(step[0]) > 0):
            raise ValueError(f"prox takes positive steps, got {step[0]!r}")
        return method(self, np.maximum(point, 0.0), *step)

    return checked


def integer_groups(groups: Sequence[Sequence[int]], owner: str) -> Groups:
    """Groups as tuples of integers; groups may overlap."""
    try:
        return tuple(tuple(map(_kernel_number, group)) for group in groups)
    except TypeError:
        raise ValueError(
            f"{owner}: groups = {groups!r} must be lists of kernel numbers, "
            "e.g. [[0, 1], [2]]"
        ) from None


def _kernel_number(given: Any) -> int:
    if isinstance(given, bool | np.bool_):
        raise TypeError
    return operator.index(given)


def as_groups(groups: Sequence[Sequence[int]], owner: str) -> Groups:
    """Groups as tuples of integers; an empty or repeated member is refused."""
    found = integer_groups(groups, owner)
    members = [k for group in found for k in group]
    if not members or not all(found) or len(set(members)) < len(members):
        raise ValueError(
            f"{owner}: groups must be non-empty and share no kernel, got {groups}; "
            "list each kernel in exactly one group, e.g. [[0, 1], [2]]"
        )
    return found


def check_partition(groups: Groups, M: int, owner: str) -> None:
    """Refuse groups that do not name each of M kernels once."""
    members = sorted(k for group in groups for k in group)
    if members != list(range(M)):
        raise ValueError(
            f"{owner}: the groups name kernels {members} but the stack has {M}; "
            f"list every kernel 0 to {M - 1} in exactly one group"
        )


def owners(groups: Groups) -> Array:
    """The group of each kernel, for groups that share none."""
    found = np.empty(sum(map(len, groups)), int)
    for j, group in enumerate(groups):
        found[list(group)] = j
    return found


def check_range(owner: str, name: str, value: float, low: float, high: float) -> None:
    """Refuse a parameter that is not a number between low and high."""
    if not low <= value <= high:  # NaN, too
        raise ValueError(
            f"{owner}: {name} = {value!r} is not a number in [{low}, {high}]"
        )


def check_count(owner: str, name: str, values: Sized, M: int) -> None:
    """Refuse a parameter that does not have one entry for each of M kernels."""
    if len(values) != M:
        raise ValueError(
            f"{owner}: {name} has {len(values)} entries but the stack has {M} kernels; "
            "give one for each kernel"
        )


def __getattr__(name: str) -> Any:
    return old_name(__name__, name)
