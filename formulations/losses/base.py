"""What a loss is: a declaration of V, its closed forms, and what is derived from it.

Problem. V(f, y) is convex in the prediction f of one sample (a number, or a vector of k
outputs). A loss states it once for all samples, as a CVXPY expression of length n:

    def expression(self, f, y): return cp.pos(1 - cp.multiply(y, f))       # hinge

and may add closed forms in NumPy, all per sample; what is absent is derived:

    value(f, y)         V(f_i, y_i)
    conjugate(a, y)     V*(a_i, y_i) = sup over f of ⟨a_i, f⟩ − V(f, y_i)
    gradient(f, y)      one subgradient of V(·, y_i) at f_i
    prox(f, y, step)    argmin over z of V(z, y_i) + ‖z − f_i‖²/(2 step_i)
    best_bias(f, y, C)  the bias b that minimizes Σ C_i V(f_i + b)
    domain(y)           the domain of V*, which must contain 0 (V is bounded below)
    curvature(f, y)     V''(f_i, y_i), where V is twice differentiable nearly everywhere
    quadratic(y, C)     C V*(−α/C) as a quadratic with a kink, where it is one
    pointwise()         V and ∂V at one sample, compiled (pointwise.py), V Lipschitz
    margins(y)          Δ (n, k) with V = max_j (f_j + Δ_j) − f_y, where it is that
    class_terms(y, C)   how it enters an augmented Lagrangian, with k classes
    kinds(y)            which of these it has: what solvers ask for

`smoothness` is a Lipschitz constant of ∂V, where there is one. A loss that is
`twice_differentiable`, with V*' infinite at the ends of its domain (or no ends), gives

    inverse(a, y)       the f with V'(f, y_i) = a_i
    root(a, y)          R with R Rᵀ = V''(f, y_i) there: (n,) or (n, k, k)

Guarantee: the contract tests check every closed form against its declaration.
Reference: the conjugates are those of Kloft et al. (2011), table 4, derived anew.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...util.checks import snake_case
from ..base import stated
from ..derive.closed_forms import ClosedForms
from ..derive.declaration import Keyed, split
from ..derive.epigraph import Epigraph
from ..norms import INF, increasing_root, newton_root
from .domains import Array, Box, Projected, Simplex
from .labels import LABELS

EDGE = 4e-16  # how far rounding may carry a dual variable past the end of its interval
INSIDE = 1 - 1e-9  # slopes at infinity are derived to about 1e-9: stay inside them


class Quadratic(NamedTuple):
    """C V*(−α/C, y) = −linear α + kink |α| + ½ ridge α² for low ≤ α ≤ high."""

    linear: Array
    kink: Array
    ridge: Array
    low: Array
    high: Array

    def free(self, alpha: Array, room: float = 0.0) -> Array:
        """The coordinates farther than `room` from their bounds and kinks."""
        inside = (alpha > self.low + room) & (alpha < self.high - room)
        return np.flatnonzero(inside & ((np.abs(alpha) > room) | (self.kink == 0)))


@dataclass(frozen=True)
class Loss(ClosedForms):
    """A convex loss V(f, y), declared by `expression`.

    To make one, write a subclass that is a frozen dataclass. Its fields are its
    parameters. Only `expression` is needed: every other method is derived from it, or
    says that there is no such thing (None, or TypeError).

    Attributes
    ----------
    labels : {"real", "binary", "ones", "classes"}
        What y holds: numbers, −1/+1, only ones, or classes 0 … k−1.
    exact : bool
        Whether value and conjugate are closed forms, good to a few units of rounding.
    relative_rounding : bool
        Whether their errors are relative: then V has none where it is 0.
    listed : bool
        Whether it is offered to users by name.
    bias_allowed : bool
        Whether a problem with this loss may have a bias.
    smoothness : float or None
        A Lipschitz constant of ∂V, where there is one.
    twice_differentiable : bool
        Whether `inverse` and `root` exist.
    compiled : tuple of str
        The name of its function in pointwise.py, then the field that is its parameter
        if it has one; empty where V is not Lipschitz.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class SquaredHinge(Loss):
    ...     labels = "binary"
    ...     def expression(self, f, y):
    ...         return cp.square(cp.pos(1 - cp.multiply(y, f)))
    """

    labels: ClassVar[str] = "real"
    declares: ClassVar[str] = "expression"
    relative_rounding: ClassVar[bool] = False
    listed: ClassVar[bool] = True
    bias_allowed: ClassVar[bool] = True
    smoothness: ClassVar[float | None] = None
    twice_differentiable: ClassVar[bool] = False
    compiled: ClassVar[tuple[str, ...]] = ()

    def expression(self, f: Any, y: Array) -> Any:
        """V(f, y) as a CVXPY expression: THE declaration.

        Parameters
        ----------
        f : cvxpy.Expression
            Predictions of shape (n,), or (n, k) for classes.
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        cvxpy.Expression or tuple
            n convex expressions, one per sample, or (expressions, [constraints]).
        """
        raise TypeError(f"{type(self).__name__} declares no expression(f, y)")

    @property
    def name(self) -> str:
        """The name that a Problem takes, such as "hinge".

        Returns
        -------
        str
        """
        return snake_case(type(self).__name__)

    def outputs(self, y: Array) -> int | None:
        """The number of outputs of a prediction.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        int or None
            k for vector predictions (n, k); None for plain ones (n,).
        """
        return int(np.max(y)) + 1 if self.labels == "classes" else None

    def shape(self, y: Array) -> tuple[int, ...]:
        """The shape of predictions and of dual variables.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        tuple of int
            (n,) or (n, k).
        """
        k = self.outputs(y)
        return (len(y),) if k is None else (len(y), k)

    def validate(self, y: Array) -> Array:
        """Check the labels.

        Parameters
        ----------
        y : array of shape (n,)
            Labels.

        Returns
        -------
        ndarray of shape (n,)
            Labels in the form that the loss needs.

        Raises
        ------
        ValueError
            With a sentence that says what is wrong.
        """
        return LABELS[self.labels](np.asarray(y), self.name)

    def key(self) -> Hashable:
        """What compiled programs are stored under: the loss itself.

        Returns
        -------
        Hashable
        """
        return self

    def epigraph(self, y: Array) -> Epigraph:
        """The conic epigraph of the declaration for these labels, one for each key.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        Epigraph
        """
        found = epigraph_of(Keyed(self.key(), self), y.tobytes(), y.dtype.str)
        # Compiled when first needed, by the loss that needs it (see Formulation).
        found.declare = lambda f: self.expression(f, y)
        return found

    def value(self, f: Array, y: Array) -> Array:
        """V(f_i, y_i).

        Parameters
        ----------
        f : ndarray of shape (n,) or (n, k)
            Predictions.
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.epigraph(y).value(f)

    def conjugate(self, a: Array, y: Array) -> Array:
        """V*(a_i, y_i) = sup over f of ⟨a_i, f⟩ − V(f, y_i).

        Parameters
        ----------
        a : ndarray of shape (n,) or (n, k)
            Slopes.
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        ndarray of shape (n,)
            Infinite outside the domain.
        """
        domain = self.domain(y)
        if not isinstance(domain, Box):
            return self.epigraph(y).conjugate(a)
        outside = (a < domain.low) | (a > domain.high)
        inside = np.clip(a, domain.low, domain.high)
        return np.where(outside, INF, self.epigraph(y).conjugate(inside))

    def gradient(self, f: Array, y: Array) -> Array:
        """One subgradient of V(·, y_i) at f_i.

        Parameters
        ----------
        f : ndarray of shape (n,) or (n, k)
            Predictions.
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        ndarray of the shape of f
        """
        return self.epigraph(y).subgradient(f)

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        """argmin over z of V(z, y_i) + ‖z − f_i‖²/(2 step_i).

        Parameters
        ----------
        f : ndarray of shape (n,) or (n, k)
            Predictions.
        y : ndarray of shape (n,)
            Labels.
        step : float or ndarray of shape (n,)
            One step for all samples, or one for each; positive.

        Returns
        -------
        ndarray of the shape of f
        """
        return self.epigraph(y).prox(f, per_sample(step, f))

    def curvature(self, f: Array, y: Array) -> Array:
        """V''(f_i, y_i), for one output.

        Parameters
        ----------
        f : ndarray of shape (n,)
            Predictions.
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        ndarray of shape (n,)
        """
        raise TypeError(f"the {self.name} loss states no V''")

    def inverse(self, a: Array, y: Array) -> Array:
        """The f with V'(f, y_i) = a_i, for losses that are twice differentiable.

        Parameters
        ----------
        a : ndarray of shape (n,) or (n, k)
            Slopes inside the domain.
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        ndarray of the shape of a
        """
        raise TypeError(f"the {self.name} loss states no inverse of V'")

    def root(self, a: Array, y: Array) -> Array:
        """R with R Rᵀ = V''(f, y_i) at f = inverse(a, y).

        Parameters
        ----------
        a : ndarray of shape (n,) or (n, k)
            Slopes inside the domain.
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        ndarray of shape (n,) or (n, k, k)
        """
        raise TypeError(f"the {self.name} loss states no root of V''")

    def domain(self, y: Array) -> Box | Simplex | Projected:
        """The domain of V*, which contains 0.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        Box, Simplex or Projected
            Knows how to bring dual variables back into it.
        """
        if self.outputs(y) is not None:
            return Projected(_membership(self, y))
        return derived_domain(Keyed(self.key(), self), y.tobytes(), y.dtype.str)

    def best_bias(self, f: Array, y: Array, C: Array) -> Any:
        """The b that minimizes Σ C_i V(f_i + b, y_i).

        Parameters
        ----------
        f : ndarray of shape (n,) or (n, k)
            Predictions without a bias.
        y : ndarray of shape (n,)
            Labels.
        C : ndarray of shape (n,)
            The weight of each sample.

        Returns
        -------
        float or ndarray of shape (k,)
        """
        total = lambda b: float(C @ self.value(f + b, y))  # noqa: E731
        if self.outputs(y) is not None:
            return minimize_in_space(self, f, y, C)
        if type(self).gradient is Loss.gradient:
            return minimize_on_line(total)
        slope = lambda b: C @ self.gradient(f + b, y)  # noqa: E731
        reach = 1.0
        while (slope(-reach) > 0 or slope(reach) < 0) and reach < 2.0**60:
            reach *= 2
        low, high = np.asarray(-reach), np.asarray(reach)
        if type(self).curvature is Loss.curvature:
            b = float(increasing_root(slope, low, high))
        else:
            both = lambda b: (slope(b), C @ self.curvature(f + b, y))  # noqa: E731
            b = float(newton_root(both, low, high))
        nearby = (b, np.nextafter(b, -INF), np.nextafter(b, INF))
        return float(min(nearby, key=total))

    def quadratic(self, y: Array, C: Array) -> Quadratic | None:
        """C V*(−α/C) as a quadratic: the dual that SVM solvers need.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Labels.
        C : ndarray of shape (n,)
            The weight of each sample.

        Returns
        -------
        Quadratic or None
            None: it is not quadratic.
        """
        return None

    def pointwise(self) -> tuple[Callable, float] | None:
        """V and a subgradient at one sample, compiled: for stochastic solvers.

        Returns
        -------
        tuple or None
            A function of pointwise.py and its parameter. None: there is none.
        """
        if not self.compiled:
            return None
        from . import pointwise

        name, *parameter = self.compiled
        value = getattr(self, parameter[0]) if parameter else 0.0
        return pointwise.at_a_sample(getattr(pointwise, name)), value

    def margins(self, y: Array) -> Array | None:
        """Δ of V = max_j (f_j + Δ_j) − f_y: how far class j must stay below class y.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        ndarray of shape (n, k) or None
            None: V is not of this form.
        """
        return None

    def class_terms(self, y: Array, C: Array) -> Any:
        """How a loss of k classes enters an augmented Lagrangian (class_terms.py).

        Parameters
        ----------
        y : ndarray of shape (n,)
            Labels.
        C : ndarray of shape (n,)
            The weight of each sample.

        Returns
        -------
        ClassTerms or None
            None for other losses.
        """
        return None

    def kinds(self, y: Array) -> set[str]:
        """What solvers may ask for: its name, "any", and what it states.

        "smooth" has a Lipschitz gradient. "quadratic" has a quadratic dual. "machine"
        has that, or margins: an SVM solver exists. "pointwise" is Lipschitz, with a
        compiled subgradient at one sample. "twice_differentiable" has `inverse` and
        `root`, and one output.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        set of str
        """
        quadratic = self.quadratic(y, np.ones(len(y))) is not None
        return {self.name, "any"} | stated(
            smooth=self.smoothness is not None,
            quadratic=quadratic,
            machine=quadratic or self.margins(y) is not None,
            pointwise=bool(self.compiled),
            twice_differentiable=self.twice_differentiable and self.outputs(y) is None,
        )

    def _quadratic(self, y: Array, C: Array, kink: float, ridge: Array) -> Quadratic:
        domain = self.domain(y)
        assert isinstance(domain, Box)
        low, high = domain.ends(C)
        return Quadratic(np.asarray(y, float), np.full(len(y), kink), ridge, low, high)

    @classmethod
    def examples(cls) -> list[Loss]:
        """The instances on which the contract tests try this loss.

        Returns
        -------
        list of Loss
        """
        return [cls()]


def minimize_on_line(total: Callable[[float], float]) -> float:
    """A minimizer of a convex function on the line from its values alone."""
    from scipy.optimize import minimize_scalar

    reach = 1.0
    while min(total(-reach), total(reach)) < total(0.0) and reach < 2.0**40:
        if min(total(-2 * reach), total(2 * reach)) >= min(total(-reach), total(reach)):
            break
        reach *= 2
    ends, sharp = (-2 * reach, 2 * reach), {"xatol": 1e-13}
    found = minimize_scalar(total, bounds=ends, method="bounded", options=sharp)
    return float(found.x) if found.fun < total(0.0) else 0.0


def crossing(points: Array, jumps: Array, slope: float) -> float:
    """Where a slope that starts negative and jumps up at the points reaches 0.

    The middle, where it stays at 0 between two points.
    """
    order = np.argsort(points, kind="stable")
    after = slope + np.cumsum(jumps[order])
    room = len(points) * 2.0**-52 * float(np.sum(jumps))
    first = int(np.argmax(after >= -room)) if after[-1] >= -room else len(points) - 1
    ends = points[order]
    flat = abs(after[first]) <= room and first + 1 < len(points)
    return float(0.5 * (ends[first] + ends[first + 1]) if flat else ends[first])


def per_sample(step: Array | float, f: Array) -> Array:
    """A step, or one per sample, against predictions with one or with k outputs."""
    step = np.asarray(step, float)
    return step[:, None] if step.ndim == 1 and f.ndim == 2 else step


def minimize_in_space(loss: Loss, f: Array, y: Array, C: Array) -> Array:
    """The best bias vector of a loss that gives no closed form, as a program."""
    import cvxpy as cp

    b = cp.Variable(f.shape[1])
    moved = f + np.ones((len(y), 1)) @ cp.reshape(b, (1, f.shape[1]), order="C")
    expression, constraints = split(loss.expression(moved, y))
    cp.Problem(cp.Minimize(C @ expression), constraints).solve(solver=cp.CLARABEL)
    return np.zeros(f.shape[1]) if b.value is None else np.array(b.value)


def _compiled(loss: Loss, y: Array) -> Epigraph:
    declare = lambda f: loss.expression(f, y)  # noqa: E731
    what = f"loss {loss.name!r}"
    return Epigraph(declare, loss.shape(y), heights=len(y), what=what)


@lru_cache(maxsize=64)
def epigraph_of(loss: Keyed, y_bytes: bytes, dtype: str) -> Epigraph:
    """The epigraph of a loss for some labels, one for each key."""
    return _compiled(loss.owner, np.frombuffer(y_bytes, dtype))


@lru_cache(maxsize=64)
def derived_domain(loss: Keyed, y_bytes: bytes, dtype: str) -> Box:
    """[−V^∞(−1), V^∞(1)] for each distinct label: the slopes of V at infinity."""
    distinct, place = np.unique(np.frombuffer(y_bytes, dtype), return_inverse=True)
    ends = np.empty((2, len(distinct)))
    for i, label in enumerate(distinct):
        growth = _compiled(loss.owner, np.array([label])).slope_at_infinity
        ends[:, i] = -growth(-np.ones(1)), growth(np.ones(1))
    if np.any(ends[0] > 1e-9) or np.any(ends[1] < -1e-9):
        raise ValueError(
            f"loss {loss.owner.name!r} is not bounded below: its slopes at infinity "
            f"are {ends[0].max():.3g} and {ends[1].min():.3g}; a loss must stop falling"
        )
    low, high = np.minimum(ends[0], 0) * INSIDE, np.maximum(ends[1], 0) * INSIDE
    return Box(low[place], high[place])


def _membership(loss: Loss, y: Array) -> Callable[[Any, Array], list]:
    """(−α, −C) has a finite support: the cones of the derived dual, without a value."""

    def constraints(alpha: Any, C: Array) -> list:
        import cvxpy as cp

        return loss.epigraph(y).support_program(-cp.vec(alpha, order="C"), -C)[1]

    return constraints
