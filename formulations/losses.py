"""What a loss is: a declaration of V, its closed forms, and what is derived from it.

Problem. V(f, y) is convex in the prediction f of one sample (a number, or a vector of k
outputs). A loss states it once for all samples, as a CVXPY expression of length n:

    def expression(self, f, y): return cp.pos(1 - cp.multiply(y, f))       # hinge

and may add closed forms in NumPy, all per sample; what is absent is derived:

    value(f, y)         V(f_i, y_i)
    conjugate(a, y)     V*(a_i, y_i) = sup over f of ⟨a_i, f⟩ − V(f, y_i)
    gradient(f, y)      one subgradient of V(·, y_i) at f_i
    prox(f, y, step)    argmin over z of V(z, y_i) + ‖z − f_i‖²/(2 step_i)
    offset(f, y, C)     the bias b that minimizes Σ C_i V(f_i + b)
    domain(y)           the domain of V*, which must contain 0 (V is bounded below)
    curvature(f, y)     V''(f_i, y_i), where V is twice differentiable nearly everywhere
    quadratic(y, C)     C V*(−α/C) as a quadratic with a kink, where it is one
    pointwise()         V and ∂V at one sample, compiled (pointwise.py), V Lipschitz
    margins(y)          Δ (n, k) with V = max_j (f_j + Δ_j) − f_y, where it is that

`smoothness` is a Lipschitz constant of ∂V, where there is one. `steep` losses are twice
differentiable with V*' infinite at the ends of its domain (or no ends); they give

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
import scipy.sparse as sp
from scipy.optimize import linprog, minimize_scalar
from scipy.special import expit, log_softmax, logit, softmax, xlogy

from .base import by_name, check_range
from .domains import Array, Box, Projected, Simplex, project_simplex
from .epigraph import Epigraph, split
from .norms import increasing_root, newton_root

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
    bias_allowed: ClassVar[bool] = True
    smoothness: ClassVar[float | None] = None
    steep: ClassVar[bool] = False

    def expression(self, f: Any, y: Array) -> Any:
        """THE declaration: n convex expressions, one per sample."""
        raise TypeError(f"{type(self).__name__} declares no expression(f, y)")

    @property
    def name(self) -> str:
        return _snake(type(self).__name__)

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
        return _epigraph(self, y.tobytes(), y.dtype.str)

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
        return self.epigraph(y).prox(f, _per_sample(step, f))

    def curvature(self, f: Array, y: Array) -> Array:
        raise TypeError(f"the {self.name} loss states no V''")

    def inverse(self, a: Array, y: Array) -> Array:
        raise TypeError(f"the {self.name} loss is not steep: V' has no inverse")

    def root(self, a: Array, y: Array) -> Array:
        raise TypeError(f"the {self.name} loss is not steep: V'' may vanish")

    def domain(self, y: Array) -> Box | Simplex | Projected:
        return _derived_domain(self, y.tobytes(), y.dtype.str)

    def offset(self, f: Array, y: Array, C: Array) -> Any:
        """The b that minimizes Σ C_i V(f_i + b, y_i): the best bias for given f."""
        total = lambda b: float(C @ self.value(f + b, y))  # noqa: E731
        if self.outputs(y) is not None:
            return _minimize_in_space(self, f, y, C)
        if type(self).gradient is Loss.gradient:
            return _minimize_on_line(total)
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

    def _quadratic(self, y: Array, C: Array, kink: float, ridge: Array) -> Quadratic:
        domain = self.domain(y)
        assert isinstance(domain, Box)
        low, high = domain.ends(C)
        return Quadratic(np.asarray(y, float), np.full(len(y), kink), ridge, low, high)

    @classmethod
    def examples(cls) -> list[Loss]:
        """The instances on which the contract suite tries this loss."""
        return [cls()]


def _minimize_on_line(total: Callable[[float], float]) -> float:
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


def _crossing(points: Array, jumps: Array, slope: float) -> float:
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


def _per_sample(step: Array | float, f: Array) -> Array:
    """A step, or one per sample, against predictions with one or with k outputs."""
    step = np.asarray(step, float)
    return step[:, None] if step.ndim == 1 and f.ndim == 2 else step


def _snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


def _minimize_in_space(loss: Loss, f: Array, y: Array, C: Array) -> Array:
    """The best bias vector of a loss that gives no closed form, as a program."""
    import cvxpy as cp

    b = cp.Variable(f.shape[1])
    moved = f + np.ones((len(y), 1)) @ cp.reshape(b, (1, f.shape[1]), order="C")
    expression, constraints = split(loss.expression(moved, y))
    cp.Problem(cp.Minimize(C @ expression), constraints).solve(solver=cp.CLARABEL)
    return np.zeros(f.shape[1]) if b.value is None else np.array(b.value)


@lru_cache(maxsize=64)
def _epigraph(loss: Loss, y_bytes: bytes, dtype: str) -> Epigraph:
    y = np.frombuffer(y_bytes, dtype=dtype)
    return Epigraph(
        lambda f: loss.expression(f, y),
        loss.shape(y),
        heights=len(y),
        what=f"loss {loss.name!r}",
    )


@lru_cache(maxsize=64)
def _derived_domain(loss: Loss, y_bytes: bytes, dtype: str) -> Box | Projected:
    """[−V^∞(−1), V^∞(1)] for each distinct label: the slopes of V at infinity."""
    y = np.frombuffer(y_bytes, dtype=dtype)
    if loss.outputs(y) is not None:
        return Projected(_membership(loss, y))
    distinct, place = np.unique(y, return_inverse=True)
    ends = np.empty((2, len(distinct)))
    for i, label in enumerate(distinct):
        one = np.array([label])
        growth = _epigraph(loss, one.tobytes(), dtype).slope_at_infinity
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


# ---- labels ------------------------------------------------------------------


def _real(y: Array, name: str) -> Array:
    if not np.all(np.isfinite(y)):
        raise ValueError(f"y has NaN or infinite entries; {name} needs finite targets")
    return y


def _binary(y: Array, name: str) -> Array:
    found = sorted({float(v) for v in np.unique(y)})
    if not set(found) <= {-1.0, 1.0}:
        shown = "{" + ", ".join(f"{v:g}" for v in found[:5]) + "}"
        hint = ": pass 2*y − 1" if set(found) <= {0.0, 1.0} else ""
        raise ValueError(f"y has labels {shown}; {name} needs −1/+1{hint}")
    if len(found) < 2:
        raise ValueError(
            f"y has only the label {found[0]:+g}; {name} needs both classes "
            "(one class alone is the one_class loss)"
        )
    return np.asarray(y, float)


def _ones(y: Array, name: str) -> Array:
    if not np.all(y == 1):
        raise ValueError(f"{name} has no labels: pass y = numpy.ones(n)")
    return np.asarray(y, float)


def _classes(y: Array, name: str) -> Array:
    whole = np.all(np.isfinite(y)) and np.all(y == np.rint(y))
    if not whole or np.min(y) < 0:
        raise ValueError(
            f"y must hold classes 0, 1, …, k−1 for {name}; map labels with "
            "numpy.unique(y, return_inverse=True)[1]"
        )
    y = y.astype(np.int64)
    if len(np.unique(y)) != int(y.max()) + 1 or y.max() == 0:
        raise ValueError(
            f"y has {len(np.unique(y))} classes out of {int(y.max()) + 1} for {name}; "
            "number at least two classes 0, 1, …, k−1 without holes"
        )
    return y


LABELS = {"real": _real, "binary": _binary, "ones": _ones, "classes": _classes}


# ---- losses of a margin ------------------------------------------------------


@dataclass(frozen=True)
class Hinge(Loss):
    """V = max(0, 1 − y f);  V*(a) = a y for −1 ≤ a y ≤ 0."""

    labels: ClassVar[str] = "binary"
    exact: ClassVar[bool] = True

    def expression(self, f: Any, y: Array) -> Any:
        import cvxpy as cp

        return cp.pos(1 - cp.multiply(y, f))

    def value(self, f: Array, y: Array) -> Array:
        return np.maximum(0.0, 1 - y * f)

    def conjugate(self, a: Array, y: Array) -> Array:
        ay = a * y
        return np.where((ay < -1 - EDGE) | (ay > EDGE), INF, ay)

    def gradient(self, f: Array, y: Array) -> Array:
        return np.where(y * f < 1, -y, 0.0)

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        margin = y * f
        return y * np.where(
            margin >= 1, margin, np.minimum(margin + step, np.ones_like(margin))
        )

    def quadratic(self, y: Array, C: Array) -> Quadratic:
        return self._quadratic(y, C, 0.0, 0.0 * C)

    def offset(self, f: Array, y: Array, C: Array) -> float:
        return _crossing(y - f, C, -float(np.sum(C[y > 0])))

    def pointwise(self) -> tuple[Callable, float]:
        from .pointwise import hinge

        return hinge, 0.0

    def domain(self, y: Array) -> Box:
        return Box(np.where(y > 0, -1.0, 0.0), np.where(y > 0, 0.0, 1.0))


@dataclass(frozen=True)
class OneClass(Hinge):
    """V = max(0, 1 − f): the hinge of a single class. With a bias it is trivial."""

    labels: ClassVar[str] = "ones"
    bias_allowed: ClassVar[bool] = False

    def expression(self, f: Any, y: Array) -> Any:
        import cvxpy as cp

        return cp.pos(1 - f)


@dataclass(frozen=True)
class Logistic(Loss):
    """V = log(1 + exp(−y f));  V*(a) = t log t + (1−t) log(1−t), t = −a y in [0, 1]."""

    labels: ClassVar[str] = "binary"
    exact: ClassVar[bool] = True
    smoothness: ClassVar[float | None] = 0.25
    steep: ClassVar[bool] = True

    def expression(self, f: Any, y: Array) -> Any:
        import cvxpy as cp

        return cp.logistic(-cp.multiply(y, f))

    def value(self, f: Array, y: Array) -> Array:
        return np.logaddexp(0.0, -y * f)

    def conjugate(self, a: Array, y: Array) -> Array:
        t = -a * y
        inside = np.clip(t, 0.0, 1.0)
        entropy = xlogy(inside, inside) + xlogy(1 - inside, 1 - inside)
        return np.where((t < -EDGE) | (t > 1 + EDGE), INF, entropy)

    def gradient(self, f: Array, y: Array) -> Array:
        return -y * expit(-y * f)

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        # z = f + step·y·s with s = expit(−y z) in (0, 1): Newton inside that bracket.
        margin = y * f
        low, high = margin.copy(), margin + step
        m = margin + step * expit(-margin)
        for _ in range(100):
            s = expit(-m)
            excess = m - margin - step * s
            low, high = np.where(excess < 0, m, low), np.where(excess > 0, m, high)
            new = m - excess / (1 + step * s * (1 - s))
            new = np.where((new > low) & (new < high), new, 0.5 * (low + high))
            if np.all(np.abs(new - m) <= 2e-16 * (1 + np.abs(m))):
                break
            m = new
        return y * m

    def curvature(self, f: Array, y: Array) -> Array:
        return expit(f) * expit(-f)

    def inverse(self, a: Array, y: Array) -> Array:
        return -y * logit(-a * y)

    def root(self, a: Array, y: Array) -> Array:
        t = -a * y
        return np.sqrt(t * (1 - t))

    def pointwise(self) -> tuple[Callable, float]:
        from .pointwise import logistic

        return logistic, 0.0

    def domain(self, y: Array) -> Box:
        return Hinge().domain(y)


# ---- losses of a residual r = y − f ------------------------------------------


@dataclass(frozen=True)
class Squared(Loss):
    """V = ½(f − y)²;  V*(a) = ½a² + a y."""

    exact: ClassVar[bool] = True
    smoothness: ClassVar[float | None] = 1.0
    steep: ClassVar[bool] = True

    def expression(self, f: Any, y: Array) -> Any:
        import cvxpy as cp

        return 0.5 * cp.square(f - y)

    def value(self, f: Array, y: Array) -> Array:
        return 0.5 * (f - y) ** 2

    def conjugate(self, a: Array, y: Array) -> Array:
        return 0.5 * a**2 + a * y

    def gradient(self, f: Array, y: Array) -> Array:
        return f - y

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        return (f + step * y) / (1 + step)

    def inverse(self, a: Array, y: Array) -> Array:
        return y + a

    def root(self, a: Array, y: Array) -> Array:
        return np.ones(len(y))

    def quadratic(self, y: Array, C: Array) -> Quadratic:
        return self._quadratic(y, C, 0.0, 1 / C)

    def offset(self, f: Array, y: Array, C: Array) -> float:
        return float(C @ (y - f) / np.sum(C))

    def domain(self, y: Array) -> Box:
        return Box(np.full(len(y), -INF), np.full(len(y), INF))


@dataclass(frozen=True)
class EpsInsensitive(Loss):
    """V = max(0, |f − y| − ε);  V*(a) = a y + ε|a| for |a| ≤ 1."""

    eps: float = 0.1
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range("EpsInsensitive", "eps", self.eps, 0.0, 1e300)

    def expression(self, f: Any, y: Array) -> Any:
        import cvxpy as cp

        return cp.pos(cp.abs(f - y) - self.eps)

    def value(self, f: Array, y: Array) -> Array:
        return np.maximum(0.0, np.abs(f - y) - self.eps)

    def conjugate(self, a: Array, y: Array) -> Array:
        return np.where(np.abs(a) > 1 + EDGE, INF, a * y + self.eps * np.abs(a))

    def gradient(self, f: Array, y: Array) -> Array:
        return np.where(np.abs(f - y) > self.eps, np.sign(f - y), 0.0)

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        r = f - y
        excess = np.clip(np.abs(r) - self.eps, 0.0, step)
        return y + r - np.sign(r) * excess

    def quadratic(self, y: Array, C: Array) -> Quadratic:
        return self._quadratic(y, C, self.eps, 0.0 * C)

    def offset(self, f: Array, y: Array, C: Array) -> float:
        ends = np.concatenate([y - f - self.eps, y - f + self.eps])
        return _crossing(ends, np.concatenate([C, C]), -float(np.sum(C)))

    def pointwise(self) -> tuple[Callable, float]:
        from .pointwise import eps_insensitive

        return eps_insensitive, self.eps

    def domain(self, y: Array) -> Box:
        return Box(np.full(len(y), -1.0), np.full(len(y), 1.0))


@dataclass(frozen=True)
class Huber(Loss):
    """V = ½r² up to |r| = δ, then δ|r| − ½δ²;  V*(a) = a y + ½a² for |a| ≤ δ."""

    delta: float = 1.0
    exact: ClassVar[bool] = True
    smoothness: ClassVar[float | None] = 1.0

    def __post_init__(self) -> None:
        check_range("Huber", "delta", self.delta, 1e-300, 1e300)

    def expression(self, f: Any, y: Array) -> Any:
        import cvxpy as cp

        huber: Any = cp.huber  # its annotations know whole thresholds only
        return 0.5 * huber(f - y, self.delta)

    def value(self, f: Array, y: Array) -> Array:
        size = np.abs(f - y)
        inner = np.minimum(size, self.delta)
        return inner * (size - 0.5 * inner)

    def conjugate(self, a: Array, y: Array) -> Array:
        outside = np.abs(a) > self.delta * (1 + EDGE)
        return np.where(outside, INF, a * y + 0.5 * a**2)

    def gradient(self, f: Array, y: Array) -> Array:
        return np.clip(f - y, -self.delta, self.delta)

    def curvature(self, f: Array, y: Array) -> Array:
        return np.where(np.abs(f - y) < self.delta, 1.0, 0.0)

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        r = f - y
        return f - step * np.clip(r / (1 + step), -self.delta, self.delta)

    def quadratic(self, y: Array, C: Array) -> Quadratic:
        return self._quadratic(y, C, 0.0, 1 / C)

    def pointwise(self) -> tuple[Callable, float]:
        from .pointwise import huber

        return huber, self.delta

    def domain(self, y: Array) -> Box:
        return Box(np.full(len(y), -self.delta), np.full(len(y), self.delta))


@dataclass(frozen=True)
class Quantile(Loss):
    """V = max(τ r, (τ − 1) r), r = y − f;  V*(a) = a y for −τ ≤ a ≤ 1 − τ."""

    tau: float = 0.5
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range("Quantile", "tau", self.tau, 0.0, 1.0)

    def expression(self, f: Any, y: Array) -> Any:
        import cvxpy as cp

        return cp.maximum(self.tau * (y - f), (self.tau - 1) * (y - f))

    def value(self, f: Array, y: Array) -> Array:
        return np.maximum(self.tau * (y - f), (self.tau - 1) * (y - f))

    def conjugate(self, a: Array, y: Array) -> Array:
        outside = (a < -self.tau - EDGE) | (a > 1 - self.tau + EDGE)
        return np.where(outside, INF, a * y)

    def gradient(self, f: Array, y: Array) -> Array:
        return np.where(f < y, -self.tau, np.where(f > y, 1 - self.tau, 0.0))

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        return f - np.clip(f - y, -step * self.tau, step * (1 - self.tau))

    def quadratic(self, y: Array, C: Array) -> Quadratic:
        return self._quadratic(y, C, 0.0, 0.0 * C)

    def offset(self, f: Array, y: Array, C: Array) -> float:
        return _crossing(y - f, C, -self.tau * float(np.sum(C)))

    def pointwise(self) -> tuple[Callable, float]:
        from .pointwise import quantile

        return quantile, self.tau

    def domain(self, y: Array) -> Box:
        return Box(np.full(len(y), -self.tau), np.full(len(y), 1 - self.tau))

    @classmethod
    def examples(cls) -> list[Loss]:
        return [cls(0.5), cls(0.2)]


# ---- losses with k outputs ---------------------------------------------------


def one_hot(y: Array, k: int) -> Array:
    return np.eye(k)[y]


@dataclass(frozen=True)
class MulticlassHinge(Loss):
    """V = max_j (f_j + [j ≠ y]) − f_y;  V*(a) = a_y for a + e_y in the simplex.

    Reference: Crammer and Singer (2001).
    """

    labels: ClassVar[str] = "classes"
    exact: ClassVar[bool] = True

    def expression(self, f: Any, y: Array) -> Any:
        import cvxpy as cp

        Y = one_hot(y, f.shape[1])
        return cp.max(f + 1 - Y, axis=1) - cp.sum(cp.multiply(Y, f), axis=1)

    def value(self, f: Array, y: Array) -> Array:
        rows = np.arange(len(y))
        rivals = f + 1.0
        rivals[rows, y] = f[rows, y]
        return np.max(rivals, axis=1) - f[rows, y]

    def conjugate(self, a: Array, y: Array) -> Array:
        return np.where(_in_simplex(a, y), a[np.arange(len(y)), y], INF)

    def margins(self, y: Array) -> Array:
        return 1.0 - one_hot(y, int(y.max()) + 1)

    def gradient(self, f: Array, y: Array) -> Array:
        Y = one_hot(y, f.shape[1])
        winner = np.argmax(f + 1 - Y, axis=1)
        return one_hot(winner, f.shape[1]) - Y

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        # Moreau: f/step minus the nearest point of the simplex, with margins inside.
        Y, step = one_hot(y, f.shape[1]), _per_sample(step, f)
        g = project_simplex((f + step * Y + 1 - Y) / step, np.ones(len(y)))
        return f + step * (Y - g)

    def pointwise(self) -> tuple[Callable, float]:
        from .pointwise import multiclass_hinge

        return multiclass_hinge, 0.0

    def domain(self, y: Array) -> Simplex:
        return Simplex(y, int(y.max()) + 1)

    def offset(self, f: Array, y: Array, C: Array) -> Array:
        """A linear program: min Σ C ξ, ξ_i ≥ f_ij + [j ≠ y_i] + b_j − f_iy − b_y."""
        n, k = f.shape
        rows, Y = np.arange(n), one_hot(y, k)
        margin = (f + 1 - Y - f[rows, y][:, None]).ravel()
        shift = sp.csr_matrix(np.tile(np.eye(k), (n, 1)) - np.repeat(Y, k, axis=0))
        slack = sp.csr_matrix(sp.kron(sp.eye(n), -np.ones((k, 1))))
        found = linprog(
            np.concatenate([np.zeros(k), C]),
            A_ub=sp.hstack([shift, slack]).tocsr(),
            b_ub=-margin,
            bounds=[(0, 0)] + [(None, None)] * (k - 1) + [(0, None)] * n,
            method="highs",
        )
        return np.zeros(k) if found.x is None else np.asarray(found.x[:k])


@dataclass(frozen=True)
class Multinomial(Loss):
    """V = log Σ_j exp f_j − f_y;  V*(a) = Σ g log g for g = a + e_y in the simplex."""

    labels: ClassVar[str] = "classes"
    exact: ClassVar[bool] = True
    smoothness: ClassVar[float | None] = 0.5
    steep: ClassVar[bool] = True

    def expression(self, f: Any, y: Array) -> Any:
        import cvxpy as cp

        Y = one_hot(y, f.shape[1])
        return cp.log_sum_exp(f, axis=1) - cp.sum(cp.multiply(Y, f), axis=1)

    def value(self, f: Array, y: Array) -> Array:
        return -log_softmax(f, axis=1)[np.arange(len(y)), y]

    def conjugate(self, a: Array, y: Array) -> Array:
        g = np.clip(a + one_hot(y, a.shape[1]), 0.0, 1.0)
        return np.where(_in_simplex(a, y), np.sum(xlogy(g, g), axis=1), INF)

    def gradient(self, f: Array, y: Array) -> Array:
        return softmax(f, axis=1) - one_hot(y, f.shape[1])

    def inverse(self, a: Array, y: Array) -> Array:
        return np.log(a + one_hot(y, a.shape[1]))  # up to a constant per sample

    def root(self, a: Array, y: Array) -> Array:
        """diag(g) − g gᵀ = R Rᵀ with R = diag(√g) − g √gᵀ, as Σg = 1."""
        g = a + one_hot(y, a.shape[1])
        half = np.sqrt(g)
        diagonal = half[:, :, None] * np.eye(a.shape[1])
        return diagonal - g[:, :, None] * half[:, None, :]

    def pointwise(self) -> tuple[Callable, float]:
        from .pointwise import multinomial

        return multinomial, 0.0

    def domain(self, y: Array) -> Simplex:
        return Simplex(y, int(y.max()) + 1)

    def offset(self, f: Array, y: Array, C: Array) -> Array:
        """Newton on the k − 1 free biases, in bounded steps that lower the loss."""
        k = f.shape[1]
        Y, b = one_hot(y, k), np.zeros(k)
        total = lambda b: float(C @ self.value(f + b, y))  # noqa: E731
        farthest = 1.0 + float(np.max(np.ptp(f, axis=1)))  # saturated: curvature is 0
        for _ in range(200):
            g = softmax(f + b, axis=1)
            slope = (C @ (g - Y))[1:]
            curve = np.diag(C @ g) - (g * C[:, None]).T @ g
            ridge = np.max(np.abs(slope)) / farthest + 1e-14 * np.trace(curve)
            if ridge == 0:
                break
            matrix = curve[1:, 1:] + ridge * 1e-3 * np.eye(k - 1)
            step = np.append(0.0, np.linalg.solve(matrix, slope))
            step *= min(1.0, farthest / np.max(np.abs(step), initial=1e-300))
            now = total(b)
            for _ in range(60):
                if total(b - step) < now:
                    break
                step = step / 2
            else:
                break
            b = b - step
        return b

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        """Newton on z + step·softmax(z) = f + step·e_y, rows at once.

        The Jacobian I + step(diag g − g gᵀ) is at least I; halving keeps it downhill.
        """
        step = np.broadcast_to(_per_sample(step, f), (len(f), 1))
        target = f + step * one_hot(y, f.shape[1])
        z = np.array(f, float)

        def merit(z: Array) -> Array:
            spread = np.sum((z - target) ** 2, axis=1) / 2
            peak = np.max(z, axis=1)
            return spread + step[:, 0] * (
                peak + np.log(np.sum(np.exp(z - peak[:, None]), axis=1))
            )

        for _ in range(100):
            g = softmax(z, axis=1)
            residual = z + step * g - target
            inverse = 1 / (1 + step * g)
            left, gd = inverse * residual, inverse * g
            move = left + (
                step
                * gd
                * np.sum(g * left, axis=1, keepdims=True)
                / (1 - step * np.sum(g * gd, axis=1, keepdims=True))
            )
            size, now = np.ones((len(z), 1)), merit(z)
            for _ in range(60):
                worse = merit(z - size * move) > now + 1e-15 * np.abs(now)
                if not np.any(worse):
                    break
                size[worse] /= 2
            z = z - size * move
            if np.max(np.abs(residual)) < 1e-15 * (1 + np.max(np.abs(target))):
                break
        return z


def _in_simplex(a: Array, y: Array) -> Array:
    g = a + one_hot(y, a.shape[1])
    whole = np.abs(np.sum(a, axis=1)) <= 1e-12
    return np.asarray(whole & (np.min(g, axis=1) >= -EDGE))


# ---- a user's own ------------------------------------------------------------


@dataclass(frozen=True)
class DeclaredLoss(Loss):
    """A loss that is nothing but a function of (f, y)."""

    function: Callable[[Any, Array], Any]
    kind: str = "real"

    def expression(self, f: Any, y: Array) -> Any:
        return self.function(f, y)

    @property
    def labels(self) -> str:  # type: ignore[override]
        return self.kind

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", "declared")

    def validate(self, y: Array) -> Array:
        """Labels as for every loss; the declaration is compiled afresh and checked."""
        y = super().validate(y)
        _epigraph.cache_clear()  # what the function refers to may have changed
        _derived_domain.cache_clear()
        self.epigraph(y).cones  # noqa: B018  # DCP, shape and type are checked here
        self.domain(y)
        return y

    def __repr__(self) -> str:
        return f"loss {self.name!r}"

    def __reduce__(self) -> tuple:
        parts = (self.function, self.kind)
        return by_name(self, self.function, DeclaredLoss, *parts)


def loss(function: Callable | None = None, *, labels: str = "real") -> Any:
    """Make a loss of one function of (f, y): n convex CVXPY expressions.

    labels says what y holds: "real" numbers (the default), "binary" −1/+1, or "classes"
    0 … k−1, and then f is (n, k).

    >>> @loss(labels="binary")
    ... def squared_hinge(f, y): return cp.square(cp.pos(1 - cp.multiply(y, f)))
    """
    if labels not in ("real", "binary", "classes"):
        raise ValueError(f"labels = {labels!r}; choose 'real', 'binary' or 'classes'")
    if function is None:
        return lambda inner: DeclaredLoss(inner, labels)
    if not callable(function):
        raise ValueError(f"loss takes a function of (f, y), got {function!r}")
    return DeclaredLoss(function, labels)


def stripped_loss(given: Loss) -> DeclaredLoss:
    """The same declaration with every closed form deleted."""
    return DeclaredLoss(given.expression, given.labels)
