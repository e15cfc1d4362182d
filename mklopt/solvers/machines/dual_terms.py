"""How a loss enters the augmented Lagrangian in feature space: α(g), its slope, a bias.

At predictions g of some samples, with multipliers a and a penalty σ,

    α(g) = argmax over α of  −Σ C V*(−α/C) − ⟨α, g⟩ − ‖α − a‖²/(2σ)

is minus the gradient of a smooth function E(g), whose Hessian is diagonal: d(g).

    Quadratic    losses with a quadratic dual, with bounds and kinks: α(g) is a clipped
                 and thresholded line; d = 1/(1/σ + r) where it is not constant. With
                 r > 0 (squared, Huber) σ = ∞, and E is the loss itself.
    Smooth       losses that are twice differentiable: σ = ∞, α = −C V'(g), d = C V''.

`fenchel` is Σ C V(g) + C V*(−α/C) + α g ≥ 0, term by term: the part of the gap that
these samples have. `away` is how far a sample is from where α(g) moves at σ = ∞.
"""

from typing import Any, Protocol

import numpy as np

from ...formulations.losses.base import Quadratic as Form
from ...formulations.losses.class_terms import limited
from ...formulations.norms import FLAT_SLOPE, MAX_EVALUATIONS, line_minimum
from ...problem import Problem
from ...util.compiled import compiled

Array = np.ndarray
FIRST_SIGMA = 0.3
ON_BOUND = 1e-12  # α this near to a bound is there; relative to high − low
BALANCED = 1e-15  # Σα relative to Σ(high − low): as exact as floats


class Terms(Protocol):
    """The loss of some samples."""

    sigma: float
    alpha: Array  # a
    shrinks: bool  # whether α(g) is constant far from kinks
    curved: bool  # whether σ = ∞

    def respond(self, g: Array) -> tuple[Array, Array]:
        """α(g) and d(g)."""

    def length(self, g: Array, dg: Array, along: float, bend: float) -> float:
        """The t with the least E(g + t dg) + along·t + ½ bend·t²."""

    def slopes(self, g: Array, dg: Array, t: float) -> tuple[float, float]:
        """The slope of E(g + t dg) in t, and its curvature."""

    def best_bias(self, g: Array, b: float, total: float) -> float:
        """The b with Σα(g + b) + total = 0, from a guess b."""

    def fenchel(self, g: Array, alpha: Array) -> float:
        """The part of the gap that these samples have."""

    def part(self, rows: Array) -> "Terms":
        """Those of some of the samples."""

    def times(self, factor: float) -> "Terms":
        """The same with a C that is larger by a factor."""


class Quadratic:
    """A loss with a quadratic dual; a and σ are those of the proximal step."""

    def __init__(self, form: Form, alpha: Array, sigma: float = np.inf):
        self.form, self.alpha, self.sigma = form, alpha, sigma
        self.curved = bool(np.all(form.ridge > 0))
        self.shrinks = bool(np.all(np.isfinite(form.low)))

    @property
    def _inverse(self) -> float:
        return 0.0 if self.curved else 1 / limited(self.sigma)

    def respond(self, g: Array) -> tuple[Array, Array]:
        """α(g) and d(g)."""
        out, d = np.empty(len(g)), np.empty(len(g))
        _respond(*self.form, self.alpha, self._inverse, g, out, d)
        return out, d

    def length(self, g: Array, dg: Array, along: float, bend: float) -> float:
        """The t with the least E(g + t dg) + along·t + ½ bend·t²."""
        both = (self.alpha, self._inverse, g, dg)
        return float(_length(*self.form, *both, along, bend))

    def slopes(self, g: Array, dg: Array, t: float) -> tuple[float, float]:
        """The slope of E(g + t dg) in t, and its curvature."""
        first, second = _slopes(*self.form, self.alpha, self._inverse, g, dg, t)
        return -float(first), float(second)

    def best_bias(self, g: Array, b: float, total: float) -> float:
        """The b with Σα(g + b) + total = 0, from a guess b."""
        return float(_bias(*self.form, self.alpha, self._inverse, g, b, total))

    def fenchel(self, g: Array, alpha: Array) -> float:
        """The part of the gap that these samples have."""
        return float(_fenchel(*self.form, g, alpha))

    def away(self, g: Array, alpha: Array) -> Array:
        """The distance from where α(g) moves at σ = ∞; 0 where it is not α."""
        out = np.empty(len(g))
        _away(*self.form, g, alpha, out)
        return out

    def part(self, rows: Array) -> "Quadratic":
        """Those of some of the samples."""
        form = Form(*(column[rows] for column in self.form))
        return Quadratic(form, self.alpha[rows], self.sigma)

    def times(self, factor: float) -> "Quadratic":
        """The same with a C that is larger by a factor."""
        form = self.form._replace(
            low=factor * self.form.low,
            high=factor * self.form.high,
            ridge=self.form.ridge / factor,
        )
        return Quadratic(form, factor * self.alpha, factor * self.sigma)

    @property
    def middle(self) -> Array:
        """A point in the middle of the bounds, 0 without bounds."""
        form = self.form
        return 0.5 * (form.low + form.high) if self.shrinks else np.zeros(len(form.low))

    @property
    def first_sigma(self) -> float:
        """σ of a cold start: α moves through its interval while g moves by about 3."""
        if self.curved:
            return 1.0
        linear, largest = self.form.linear, float(np.max(np.abs(self.form.linear)))
        with np.errstate(over="ignore", invalid="ignore"):
            size, width = float(np.std(linear)), np.mean(self.form.high - self.form.low)
        if not 0 < size <= largest:  # it overflows, or all labels are equal
            size = largest or 1.0
        return limited(FIRST_SIGMA * float(width) / size)

    @property
    def parts_help(self) -> bool:
        """Whether fewer samples give a good start; not if one step is enough."""
        return self.shrinks


class Smooth:
    """A loss that is twice differentiable: E is the loss itself."""

    sigma, first_sigma, shrinks, curved, parts_help = 1.0, 1.0, False, True, True
    middle = np.zeros(0)

    def __init__(self, problem: Problem, y: Array, costs: Array):
        self.problem, self.loss, self.y, self.costs = problem, problem.loss, y, costs
        self.alpha = np.zeros(len(y))

    def respond(self, g: Array) -> tuple[Array, Array]:
        """α(g) and d(g)."""
        slope = self.loss.gradient(g, self.y)
        return -self.costs * slope, self.costs * self.loss.root(slope, self.y) ** 2

    def length(self, g: Array, dg: Array, along: float, bend: float) -> float:
        """The t with the least E(g + t dg) + along·t + ½ bend·t²."""

        def slopes(t: float) -> tuple[float, float]:
            slope, curve = self.slopes(g, dg, t)
            return along + t * bend + slope, bend + curve

        return line_minimum(slopes)

    def slopes(self, g: Array, dg: Array, t: float) -> tuple[float, float]:
        """The slope of E(g + t dg) in t, and its curvature."""
        alpha, d = self.respond(g + t * dg)
        return -float(alpha @ dg), float(d @ dg**2)

    def best_bias(self, g: Array, b: float, total: float) -> float:
        """The b with Σα(g + b) + total = 0, from a guess b."""
        ones = np.ones(len(g))

        def slopes(t: float) -> tuple[float, float]:
            alpha, d = self.respond(g + b + t)
            return -float(alpha @ ones) - total, float(d @ ones)

        size = float(np.sum(self.costs)) + abs(total)
        return b + _root(slopes, BALANCED * size)

    def fenchel(self, g: Array, alpha: Array) -> float:
        """The part of the gap that these samples have."""
        value = self.loss.value(g, self.y)
        conjugate = self.loss.conjugate(-alpha / self.costs, self.y)
        return float(self.costs @ (value + conjugate) + alpha @ g)

    def part(self, rows: Array) -> "Smooth":
        """Those of some of the samples."""
        return Smooth(self.problem, self.y[rows], self.costs[rows])

    def times(self, factor: float) -> "Smooth":
        """The same with a C that is larger by a factor."""
        return Smooth(self.problem, self.y, factor * self.costs)


def terms_of(problem: Problem) -> Any:
    """The terms of all samples of a problem with one output."""
    form = problem.loss.quadratic(problem.y, problem.costs)
    if form is None:
        return Smooth(problem, problem.y, np.array(problem.costs))
    form = Form(*(np.array(np.broadcast_to(c, problem.shape), float) for c in form))
    return Quadratic(form, np.zeros(problem.shape), 1.0)


# ---- searches on a line --------------------------------------------------------------


def _root(slopes: Any, tiny: float) -> float:
    """The root of an increasing function, near 0."""
    low, high, t = -np.inf, np.inf, 0.0
    for count in range(2 * MAX_EVALUATIONS):
        slope, curve = slopes(t)
        if abs(slope) <= tiny:
            break
        low, high = (t, high) if slope < 0 else (low, t)
        # Where V is nearly straight, Newton's step would leave all numbers behind.
        reach = 2.0 ** min(count, 1000)
        step = t - float(np.clip(slope / max(curve, 1e-300), -reach, reach))
        if not low < step < high:
            step = 0.5 * (low + high)
            if not np.isfinite(step):  # only one end is known
                step = low + 2.0**count if low > -np.inf else high - 2.0**count
        if step == t:
            break
        t = step
    return t


# ---- the compiled loops of quadratic duals -------------------------------------------


@compiled()
def _at(linear, kink, ridge, low, high, a, inverse, g):
    """α(g) of one sample, and d."""
    x, weight = inverse * a + linear - g, inverse + ridge
    t = x - kink if x > kink else (x + kink if x < -kink else 0.0)
    if t == 0.0 and kink > 0.0:
        return min(max(0.0, low), high), 0.0
    alpha = t / weight
    if alpha <= low:
        return low, 0.0
    if alpha >= high:
        return high, 0.0
    return alpha, 1.0 / weight


@compiled()
def _respond(linear, kink, ridge, low, high, a, inverse, g, out, d):
    for i in range(len(g)):
        out[i], d[i] = _at(
            linear[i], kink[i], ridge[i], low[i], high[i], a[i], inverse, g[i]
        )


@compiled()
def _slopes(linear, kink, ridge, low, high, a, inverse, g, dg, t):
    """Σα(g + t dg) dg and Σ d dg²."""
    first = second = 0.0
    for i in range(len(g)):
        alpha, d = _at(
            linear[i], kink[i], ridge[i], low[i], high[i], a[i], inverse,
            g[i] + t * dg[i],
        )  # fmt: skip
        first += alpha * dg[i]
        second += d * dg[i] * dg[i]
    return first, second


@compiled()
def _length(linear, kink, ridge, low, high, a, inverse, g, dg, along, bend):
    """Newton's method in a bracket on the slope, which increases."""
    first, _ = _slopes(linear, kink, ridge, low, high, a, inverse, g, dg, 0.0)
    start = abs(along - first)
    left, right, t = 0.0, np.inf, 1.0
    for _ in range(MAX_EVALUATIONS):
        total, curve = _slopes(linear, kink, ridge, low, high, a, inverse, g, dg, t)
        slope = along + t * bend - total
        if abs(slope) <= FLAT_SLOPE * start:
            break
        if slope < 0:
            left = t
        else:
            right = t
        t = t - slope / max(bend + curve, 1e-300)
        if not (left < t and t < right):
            t = 0.5 * (left + right) if right < np.inf else 2 * left + 1
    return t


@compiled()
def _bias(linear, kink, ridge, low, high, a, inverse, g, b, total):
    """Newton's method in a bracket on −Σα(g + b) − total, which increases."""
    left, right, size = -np.inf, np.inf, abs(total)
    for i in range(len(g)):
        if np.isfinite(high[i] - low[i]):
            size += high[i] - low[i]
        else:
            size += abs(linear[i] / (inverse + ridge[i]))
    for count in range(2 * MAX_EVALUATIONS):
        surplus, curve = total, 0.0
        for i in range(len(g)):
            alpha, d = _at(
                linear[i], kink[i], ridge[i], low[i], high[i], a[i], inverse, g[i] + b
            )
            surplus += alpha
            curve += d
        if abs(surplus) <= BALANCED * size:
            break
        if surplus > 0:
            left = b
        else:
            right = b
        step = b + surplus / curve if curve > 0 else np.nan
        if not (left < step and step < right):
            step = 0.5 * (left + right)
            if not np.isfinite(step):  # only one end is known
                step = left + 2.0**count if left > -np.inf else right - 2.0**count
        if step == b:
            break
        b = step
    return b


@compiled()
def _fenchel(linear, kink, ridge, low, high, g, alpha):
    """Σ sup over β of (xβ − κ|β| − ½rβ²) − (xα − κ|α| − ½rα²), x = ℓ − g."""
    total = 0.0
    for i in range(len(g)):
        x, a = linear[i] - g[i], alpha[i]
        t = x - kink[i] if x > kink[i] else (x + kink[i] if x < -kink[i] else 0.0)
        if ridge[i] > 0:
            best = t / ridge[i]
        else:
            best = np.inf if t > 0 else (-np.inf if t < 0 else 0.0)
        best = min(max(best, low[i]), high[i])
        gain = (x - 0.5 * ridge[i] * (best + a)) * (best - a)
        total += max(gain - kink[i] * (abs(best) - abs(a)), 0.0)
    return total


@compiled()
def _away(linear, kink, ridge, low, high, g, alpha, out):
    """The distance of x = ℓ − g from [κ, κ + r·high] and [r·low − κ, −κ]."""
    for i in range(len(g)):
        x, k = linear[i] - g[i], kink[i]
        top, bottom = k + ridge[i] * high[i], ridge[i] * low[i] - k
        if x > top:
            settled, room = high[i], x - top
        elif x < bottom:
            settled, room = low[i], bottom - x
        else:
            settled, room = 0.0, min(k - x, x + k)
        near = abs(alpha[i] - settled) <= ON_BOUND * (high[i] - low[i])
        out[i] = room if room > 0 and near else 0.0
