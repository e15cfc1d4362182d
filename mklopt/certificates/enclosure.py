"""Where rounding is bounded: lower ≤ f* ≤ upper in exact arithmetic, in one pass.

α is rounded to multiples of a power of two, for which Σα = 0 holds exactly. Products
with kernels have their error bounds (products.py). Loss and Ω have the rounding errors
that they declare.

Underflow. What products lose is less than `TINY`; where this is multiplied later on, so
is `TINY`. Ω and Ω* increase: they are evaluated at block norms of at least `LEAST`, and
their value is raised by LEAST². V* is evaluated at α/C, which may be denormal: then it
is bounded over an interval. Otherwise an error of V and V* by underflow is far below
the rounding error 64 u that they are given. Overflow makes a bound infinite.

Guarantee. lower ≤ f* ≤ upper in exact arithmetic, for the kernels K_m + δ_m I with the
δ of the certificate; a bound that cannot be proved is infinite, with a reason.

Reference: Higham (2002), chapter 3; Rump (2010).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..formulations import Formulation, Loss
from ..formulations.derive.epigraph import DerivationError
from ..formulations.losses.domains import Projected
from ..problem import Problem
from ..util.rounding import TINY, U
from .feature_space import FeatureBounds, Folded
from .products import ERROR_MARGIN, PointBounds, Products

if TYPE_CHECKING:
    from .certificate import Certificate

Array = np.ndarray
DERIVED = 1e-8  # relative and absolute error of derived operators
DERIVED_DOMAIN = 1e-7  # relative error of the domain of a derived Ω*
LEAST = 2.0**-250  # its fourth power, and with it all of Ω and Ω*, does not underflow
DENORMAL, UNIT = 2.0**-1000, 2.0**-1074  # products below the first may lose digits
UNBOUNDED = (
    "the {} bound is infinite at this point, or leaves the range of float64; certify "
    "another point, or rescale kernels, C or y towards 1"
)
CROSSED = (
    "weak duality fails, {:.6g} > {:.6g}: a kernel is not positive semi-definite "
    "(grams.verify_psd() tells), or a declared function is not convex and increasing"
)


class Enclosure(NamedTuple):
    """lower ≤ f* ≤ upper in exact arithmetic, and the two points that show it."""

    lower: float
    upper: float
    alpha: Array  # exactly feasible; the dual point is shrink · alpha
    shrink: float
    stretch: float  # the primal point is stretch · (w, b)
    reason: str = ""  # why there are no bounds, −∞ and ∞; "" if there are
    parts: tuple[float, float] = (math.inf, math.inf)  # of Σ C V and Ω: at most these


def exact_point(problem: Problem, alpha: Array) -> Array:
    """α rounded to a grid on which it is exactly feasible; twice is the same as once.

    Rounding up to a power of two, or balancing, can double the grid: then it is rounded
    once more. A domain known by a program alone has no grid.
    """
    domain = problem.loss.domain(problem.y)
    for _ in range(1 if isinstance(domain, Projected) else 4):
        with np.errstate(over="ignore"):  # C in units of the grid
            given, alpha = alpha, domain.exact(alpha, problem.costs, problem.bias)
        if np.array_equal(given, alpha):
            break
    return alpha


def enclose(
    certificate: Certificate,
    known: PointBounds | Folded | None = None,
    primal: PointBounds | None = None,
) -> Enclosure:
    """lower ≤ f* ≤ upper in exact arithmetic (for K_m + δ_m I).

    known: what is computed already, with an α that is exactly feasible; without it it
        takes one pass
    primal: the bounds of coefficients, which are computed if there are any
    """
    problem, alpha, B = certificate.problem, certificate.alpha, certificate.coefficients
    with np.errstate(all="ignore"):  # overflow makes bounds infinite
        if known is None:
            alpha = exact_point(problem, alpha)
        bounds = _bounds(certificate, alpha, known)
        lower, shrink = _lower(problem, alpha, bounds.above, certificate.shrink)
        if certificate.features is None and B is not None and primal is None:
            primal = products_of(problem, B, certificate.shift)
        upper, stretch = _upper(problem, primal or bounds, certificate.bias)
        parts = _parts_at(problem, primal or bounds, certificate.bias, stretch)
    return _enclosed(lower, upper, alpha, shrink, stretch)._replace(parts=parts)


def point_bounds(certificate: Certificate) -> tuple[PointBounds, PointBounds]:
    """The bounds at the exactly feasible α, and at the primal point: a pass for each.

    They are the same for a point of kernel weights.
    """
    problem, B = certificate.problem, certificate.coefficients
    dual = _bounds(certificate, certificate.enclosure.alpha, None)
    if certificate.features is not None or B is None:
        return dual, dual
    return dual, products_of(problem, B, certificate.shift)


def _bounds(
    certificate: Certificate, alpha: Array, known: PointBounds | Folded | None
) -> PointBounds:
    """The bounds at a point of feature weights, or of kernel weights."""
    problem, w = certificate.problem, certificate.features
    if known is not None and not isinstance(known, Folded):
        return known
    if w is not None:
        return FeatureBounds(problem, alpha, w, known)
    return Products(problem.grams, alpha, certificate.weights, certificate.shift)


def _enclosed(
    lower: float, upper: float, alpha: Array, shrink: float, stretch: float
) -> Enclosure:
    """The two bounds, or the reason why there are none."""
    reason = ""
    if lower > upper:
        reason = CROSSED.format(lower, upper)
        lower, upper = -math.inf, math.inf
    elif not math.isfinite(upper - lower):
        sides = [] if math.isfinite(lower) else ["lower"]
        sides += [] if math.isfinite(upper) else ["upper"]
        reason = UNBOUNDED.format(" and the ".join(sides))
    return Enclosure(lower, upper, alpha, shrink, stretch, reason)


def products_of(problem: Problem, B: Array, shift: Array) -> Products:
    """The products K_mB_m with coefficients B; kernels with B_m = 0 are not read."""
    return Products(problem.grams, B, None, shift, KA=problem.grams.apply(B))


def finite(bound: Callable[[], float]) -> float:
    """The value of an upper bound; +inf if it overflows, is NaN or is refused."""
    try:
        with np.errstate(all="ignore"):
            value = bound()
    except (ArithmeticError, ValueError, DerivationError):
        return math.inf
    return math.inf if math.isnan(value) else value


def largest_scale(problem: Problem, v: Array) -> float:
    """The largest s ≤ 1 for which Ω*(s v) is finite; 0 where v or Ω* overflows."""
    if not np.all(np.isfinite(v)):
        return 0.0
    return max(0.0, -finite(lambda: -problem.formulation.feasible_scale(v)))


def _raised(norms: Array, where: Array) -> Array:
    """Block norms of at least LEAST where these are not 0."""
    return np.where(where == 0, 0.0, np.maximum(norms, LEAST))  # NaN stays NaN


def _lower(
    problem: Problem, alpha: Array, v: Array, shrink: float
) -> tuple[float, float]:
    """Lower bound of the dual value at s·α, and s: `shrink`, or less if Ω* needs it."""
    room = 1.0 if problem.formulation.exact else 1 + DERIVED_DOMAIN
    top = largest_scale(problem, _raised(v, v) * room)
    s = min(shrink, top if top == 1 else top * (1 - 16 * U))
    for scale in (s, s * (1 - 16 * U)):  # the border may be within rounding errors
        value = _finite_below(problem, alpha, v, scale) if scale else -math.inf
        if value > -math.inf:
            return value, scale
    alpha, v = np.zeros_like(alpha), np.zeros_like(v)
    return _finite_below(problem, alpha, v, 0.0), 0.0


def _finite_below(problem: Problem, alpha: Array, v: Array, s: float) -> float:
    return -finite(lambda: -_value_below(problem, alpha, v, s))


def _value_below(problem: Problem, alpha: Array, v: Array, s: float) -> float:
    formulation, loss = problem.formulation, problem.loss
    slack = formulation.rounding(problem.grams.M) * U
    penalty = formulation.conjugate(_raised(s * v * (1 + 4 * U), v))
    penalty += slack * abs(penalty)
    penalty += LEAST**2 + _absolute_error(formulation)
    a = -s * (alpha / problem.spread_costs)  # s·α underflows if C is tiny, α/C not
    conjugates = _conjugates_above(loss, a, alpha, problem.y)
    k, y = (1, problem.y) if a.ndim == 1 else (a.shape[1], problem.y[:, None])
    size = np.abs(a * y).reshape(len(a), -1).sum(axis=1)
    conjugates = conjugates + _loss_rounding(loss, conjugates, k + size)
    value = -_sum_above(problem.costs, conjugates) - penalty
    return value - 4 * U * abs(value) - TINY


def _conjugates_above(loss: Loss, a: Array, alpha: Array, y: Array) -> Array:
    """Upper bounds of V* at the exact −s α/C, but for the rounding of V* itself.

    With a large C, a = −s α/C may be denormal, and off by two units in the last place.
    V* is convex: the larger value at both ends of that interval is enough. Of several
    outputs, the slope of V* is at most |log a| < 1000.
    """
    found = loss.conjugate(a, y)
    small = (alpha != 0) & (np.abs(a) < DENORMAL)
    if not np.any(small):
        return found
    if a.ndim == 1:
        size = np.abs(a)
        for near in (size + 2 * UNIT, np.maximum(size - 2 * UNIT, 0.0)):
            near = np.where(small, -np.sign(alpha) * near, a)
            found = np.maximum(found, loss.conjugate(near, y))
    k, small = a.size // len(a), np.any(small.reshape(len(a), -1), axis=1)
    return found + np.where(small, 1000 * k * UNIT, 0.0)


def _sum_above(costs: Array, values: Array) -> float:
    """Upper bound of Σ C V but for TINY, by products that are rounded upwards."""
    # Away from zero if positive, towards zero if negative: upwards in both cases.
    return math.fsum(costs * values * np.where(values > 0, 1 + 4 * U, 1 - 4 * U))


def _upper(problem: Problem, bounds: PointBounds, bias: Any) -> tuple[float, float]:
    """Upper bound of Σ C V(f) + Ω(u) at t·(w, b) for the best of three t ≥ 1, and t.

    At samples on the margin every rounding error of f costs C times as much. A stretch
    t that exceeds 1 by the largest error moves them beyond the margin; Ω grows only by
    a factor of that order.
    """
    f, error, u = bounds.predictions(bias)
    best = finite(partial(_value_above, problem, f, error, u)), 1.0
    for times in (1.02, 2.0) if np.max(error) < 1 else ():
        stretch = 1 + times * float(np.max(error))
        at = _stretched(f, error, u, stretch)
        best = min(best, (finite(partial(_value_above, problem, *at)), stretch))
    return best


def _parts_at(
    problem: Problem, bounds: PointBounds, bias: Any, stretch: float
) -> tuple[float, float]:
    """Upper bounds of Σ C V(f) and of Ω(u) at stretch·(w, b), each by itself."""
    at = bounds.predictions(bias)
    if stretch > 1:
        at = _stretched(*at, stretch)
    parts: list[float] = []

    def largest() -> float:
        parts.extend(_parts_above(problem, *at))
        return max(parts)

    if not math.isfinite(finite(largest)):
        return math.inf, math.inf
    loss, penalty = (part + 4 * U * abs(part) + TINY for part in parts)
    return loss, penalty


def _stretched(
    f: Array, error: Array, u: Array, t: float
) -> tuple[Array, Array, Array]:
    """t·f, a bound of its error, and upper bounds of t·u."""
    error = error * t * ERROR_MARGIN + 2 * U * np.abs(t * f)
    return t * f, error, t * u * (1 + 4 * U)


def _value_above(problem: Problem, f: Array, error: Array, u: Array) -> float:
    loss, penalty = _parts_above(problem, f, error, u)
    value = loss + penalty
    return value + 4 * U * abs(value) + TINY


def _parts_above(
    problem: Problem, f: Array, error: Array, u: Array
) -> tuple[float, float]:
    """Upper bounds of Σ C V(f) and Ω(u), but for the rounding of each sum."""
    formulation, loss, y = problem.formulation, problem.loss, problem.y
    if len(problem.shape) == 1:
        f, error = f[:, 0], error[:, 0]
        values = np.maximum(loss.value(f - error, y), loss.value(f + error, y))
        size = 1 + np.abs(f) + np.abs(y)
    else:  # ‖∂V‖_1 ≤ 2: these dual variables are e_y − probabilities
        values = loss.value(f, y) + 2 * np.max(error, axis=1)
        size = 1 + np.max(np.abs(f), axis=1) + np.abs(y)
    values = values + _loss_rounding(loss, values, size)
    penalty = formulation.value(_raised(u, u))
    penalty += formulation.rounding(problem.grams.M) * U * abs(penalty)
    penalty += LEAST**2 + _absolute_error(formulation)
    return _sum_above(problem.costs, values), penalty


def _loss_rounding(loss: Loss, values: Array, size: Array) -> Array:
    """Bounds of the errors of V or V*; size: the numbers that they are computed from.

    The hinge has no error where it is 0. A declared loss has that of a solver.
    """
    if not loss.exact:
        return 1e-9 * (np.abs(values) + size)
    return 64 * U * (np.abs(values) + (0.0 if loss.relative_rounding else size))


def _absolute_error(formulation: Formulation) -> float:
    """What is added to the relative error of Ω and Ω*: the tolerance of a solver."""
    return 0.0 if formulation.exact else DERIVED


# ---- bounds from products that were computed elsewhere -------------------------------


class _Given(NamedTuple):
    """Predictions with a bound of their error, and upper bounds of ‖w_m‖."""

    f: Array  # (n, k), with the bias
    error: Array
    u: Array

    def predictions(self, bias: Any) -> tuple[Array, Array, Array]:
        return self.f, self.error, self.u


def lower_bound(problem: Problem, alpha: Array, v: Array, shrink: float) -> float:
    """A lower bound of f* in exact arithmetic.

    alpha is exactly feasible, v are upper bounds of its norms; the point is shrink·α.
    """
    with np.errstate(all="ignore"):
        return _lower(problem, alpha, v, shrink)[0]


def upper_bound(problem: Problem, f: Array, error: Array, u: Array) -> float:
    """An upper bound of f* in exact arithmetic.

    f: (n, k) predictions with their bias, off by at most `error`; u: upper bounds of
    ‖w_m‖
    """
    with np.errstate(all="ignore"):
        return _upper(problem, _Given(f, error, u), 0.0)[0]  # type: ignore[arg-type]
