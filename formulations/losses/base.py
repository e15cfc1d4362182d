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

`smoothness` is a Lipschitz constant of ∂V, where there is one. A loss that is
`twice_differentiable`, with V*' infinite at the ends of its domain (or no ends), gives

    inverse(a, y)       the f with V'(f, y_i) = a_i
    root(a, y)          R with R Rᵀ = V''(f, y_i) there: (n,) or (n, k, k)

Guarantee: the contract suite checks every closed form against its declaration.
Reference: the conjugates are those of Kloft et al. (2011), table 4, derived anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from ..derive.epigraph import Epigraph, split
from ..norms import increasing_root, newton_root
from .domains import Array, Box, Projected, Simplex
from .labels import LABELS

INF = float("inf")
EDGE = 4e-16  # how far rounding may carry a dual variable past the end of its interval


class Quadratic(NamedTuple):
    """C V*(−α/C, y) = −linear α + kink |α| + ½ ridge α² for low ≤ α ≤ high."""

    linear: Array
    kink: Array
    ridge: Array
    low: Array
    high: Array

    def free(self, alpha: Array, room: float = 0.0) -> Array:
        """The coordinates off their bounds and kinks, by more than the room."""
        inside = (alpha > self.low + room) & (alpha < self.high - room)
        return np.flatnonzero(inside & ((np.abs(alpha) > room) | (self.kink == 0)))


@dataclass(frozen=True)
class Loss:
    """A convex loss V(f, y); its fields are its parameters."""

    labels: ClassVar[str] = "real"  # binary (−1/+1), real, ones, or classes (0 … k−1)
    exact: ClassVar[bool] = False  # closed forms good to a few units of rounding
    listed: ClassVar[bool] = True  # False: a helper, not offered by name
    bias_allowed: ClassVar[bool] = True
    smoothness: ClassVar[float | None] = None
    twice_differentiable: ClassVar[bool] = False

    def expression(self, f: Any, y: Array) -> Any:
        """THE declaration: n convex expressions, one per sample."""
        raise TypeError(f"{type(self).__name__} declares no expression(f, y)")

    @property
    def name(self) -> str:
        return snake_case(type(self).__name__)

    def outputs(self, y: Array) -> int | None:
        """k for vector predictions (n, k); None for plain ones (n,)."""
        return int(np.max(y)) + 1 if self.labels == "classes" else None

    def shape(self, y: Array) -> tuple[int, ...]:
        k = self.outputs(y)
        return (len(y),) if k is None else (len(y), k)

    def validate(self, y: Array) -> Array:
        """y in the form the loss needs, or a sentence that says what is wrong."""
        return LABELS[self.labels](np.asarray(y), self.name)

    def epigraph(self, y: Array) -> Epigraph:
        return epigraph_of(self, y.tobytes(), y.dtype.str)

    def value(self, f: Array, y: Array) -> Array:
        return self.epigraph(y).value(f)

    def conjugate(self, a: Array, y: Array) -> Array:
        domain = self.domain(y)
        if not isinstance(domain, Box):
            return self.epigraph(y).conjugate(a)
        outside = (a < domain.low) | (a > domain.high)
        inside = np.clip(a, domain.low, domain.high)
        return np.where(outside, INF, self.epigraph(y).conjugate(inside))

    def gradient(self, f: Array, y: Array) -> Array:
        return self.epigraph(y).subgradient(f)

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        return self.epigraph(y).prox(f, per_sample(step, f))

    def curvature(self, f: Array, y: Array) -> Array:
        raise TypeError(f"the {self.name} loss states no V''")

    def inverse(self, a: Array, y: Array) -> Array:
        raise TypeError(
            f"the {self.name} loss is not twice differentiable: V' has no inverse"
        )

    def root(self, a: Array, y: Array) -> Array:
        raise TypeError(
            f"the {self.name} loss is not twice differentiable: V'' may vanish"
        )

    def domain(self, y: Array) -> Box | Simplex | Projected:
        return derived_domain(self, y.tobytes(), y.dtype.str)

    def best_bias(self, f: Array, y: Array, C: Array) -> Any:
        """The b that minimizes Σ C_i V(f_i + b, y_i): the best bias for given f."""
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
        """The dual of a support vector machine with this loss; None: not quadratic."""
        return None

    def pointwise(self) -> tuple[Callable, float] | None:
        """V and a subgradient at one sample, compiled, and its parameter; None: none.

        For Lipschitz losses: what a stochastic solver needs. See pointwise.py.
        """
        return None

    def margins(self, y: Array) -> Array | None:
        """Δ of V = max_j (f_j + Δ_j) − f_y: what class j must stay below; None: no."""
        return None

    def kinds(self, y: Array) -> set[str]:
        """What solvers may ask for: its name, "any", and what it states.

        smooth: a Lipschitz gradient; quadratic: a quadratic dual; machine: that, or
        the same with k outputs (margins); pointwise: Lipschitz, with a compiled
        subgradient at one sample; twice_differentiable: with one output
        """
        quadratic = self.quadratic(y, np.ones(len(y))) is not None
        stated = {
            "smooth": self.smoothness is not None,
            "quadratic": quadratic,
            "machine": quadratic or self.margins(y) is not None,
            "pointwise": self.pointwise() is not None,
            "twice_differentiable": self.twice_differentiable
            and len(self.shape(y)) == 1,
        }
        return {self.name, "any", *(kind for kind, holds in stated.items() if holds)}

    def _quadratic(self, y: Array, C: Array, kink: float, ridge: Array) -> Quadratic:
        domain = self.domain(y)
        assert isinstance(domain, Box)
        low, high = domain.ends(C)
        return Quadratic(np.asarray(y, float), np.full(len(y), kink), ridge, low, high)

    @classmethod
    def examples(cls) -> list[Loss]:
        """The instances on which the contract suite tries this loss."""
        return [cls()]


def minimize_on_line(total: Callable[[float], float]) -> float:
    """A minimizer of a convex function on the line from its values alone."""
    reach = 1.0
    while min(total(-reach), total(reach)) < total(0.0) and reach < 2.0**40:
        if min(total(-2 * reach), total(2 * reach)) >= min(total(-reach), total(reach)):
            break
        reach *= 2
    found = minimize_scalar(
        total,
        bounds=(-2 * reach, 2 * reach),
        method="bounded",
        options={"xatol": 1e-13},
    )
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


def snake_case(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


def minimize_in_space(loss: Loss, f: Array, y: Array, C: Array) -> Array:
    """The best bias vector of a loss that gives no closed form, as a program."""
    import cvxpy as cp

    b = cp.Variable(f.shape[1])
    moved = f + np.ones((len(y), 1)) @ cp.reshape(b, (1, f.shape[1]), order="C")
    expression, constraints = split(loss.expression(moved, y))
    cp.Problem(cp.Minimize(C @ expression), constraints).solve(solver=cp.CLARABEL)
    return np.zeros(f.shape[1]) if b.value is None else np.array(b.value)


@lru_cache(maxsize=64)
def epigraph_of(loss: Loss, y_bytes: bytes, dtype: str) -> Epigraph:
    y = np.frombuffer(y_bytes, dtype=dtype)
    return Epigraph(
        lambda f: loss.expression(f, y),
        loss.shape(y),
        heights=len(y),
        what=f"loss {loss.name!r}",
    )


@lru_cache(maxsize=64)
def derived_domain(loss: Loss, y_bytes: bytes, dtype: str) -> Box | Projected:
    """[−V^∞(−1), V^∞(1)] for each distinct label: the slopes of V at infinity."""
    y = np.frombuffer(y_bytes, dtype=dtype)
    if loss.outputs(y) is not None:
        return Projected(_membership(loss, y))
    distinct, place = np.unique(y, return_inverse=True)
    ends = np.empty((2, len(distinct)))
    for i, label in enumerate(distinct):
        one = np.array([label])
        growth = epigraph_of(loss, one.tobytes(), dtype).slope_at_infinity
        low, high = growth(-np.ones(1)), growth(np.ones(1))
        ends[:, i] = -low, high
    if np.any(ends[0] > 1e-9) or np.any(ends[1] < -1e-9):
        raise ValueError(
            f"loss {loss.name!r} is not bounded below: its slopes at infinity are "
            f"{ends[0].max():.3g} and {ends[1].min():.3g}; a loss must stop falling"
        )
    # Interior-point values are sharp to about 1e-9: the safe side is inside.
    low, high = np.minimum(ends[0], 0) * (1 - 1e-9), np.maximum(ends[1], 0) * (1 - 1e-9)
    return Box(low[place], high[place])


def _membership(loss: Loss, y: Array) -> Callable[[Any, Array], list]:
    """(−α, −C) has a finite support: the cones of the derived dual, without a value."""

    def constraints(alpha: Any, C: Array) -> list:
        import cvxpy as cp

        return loss.epigraph(y).support_program(-cp.vec(alpha, order="C"), -C)[1]

    return constraints
