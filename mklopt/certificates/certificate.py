"""The certified duality gap of any primal and dual candidates, from any solver.

Problem. Given α and kernel weights θ (or coefficients), from anyone: two numbers with

    dual ≤ f* ≤ primal.

The candidates may be infeasible. α is made feasible first, in an order in which no step
undoes an earlier one: clip α to the domain of V*; restore Σα = 0 inside it; shrink α
towards 0 until Ω* is finite, and further while the dual value rises. The primal point
is w_m = θ_m Σ α_i ψ_m(x_i) (or the coefficients), with the best bias for it.

Guarantee. `primal` and `dual` are plain float64. `lower` and `upper` count every
rounding error (enclosure.py). `assumptions` lists what these two still rest on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..grams.stack import GramStack
from ..problem import Problem
from ..util.arrays import NotFinite, real_array
from ..util.rounding import U, interval
from ..util.tables import facts
from ..util.threads import with_blas_alone
from .enclosure import Enclosure, enclose, exact_point, finite, largest_scale
from .feature_space import Folded, feature_point
from .pricing import enough_norms, near_use, norms_near
from .products import Combined, Products

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Certificate:
    """dual ≤ f* ≤ primal, with the feasible points that show it. Made by `certify`.

    Parameters
    ----------
    problem : Problem
    primal, dual : float
        The two values, in plain float64.
    alpha : array (n,) or (n, k)
        In the domain of V*, with Σα = 0 for a bias.
    shrink : float
        The dual point is shrink · alpha, 0 ≤ shrink ≤ 1.
    weights : array (M,) or None
        θ of the primal point w_m = θ_m Σ_i α_i ψ_m(x_i); None with coefficients.
    coefficients : array (M, n) or (M, n, k), or None
        Of the primal point w_m = Σ_i coefficients[m, i] ψ_m(x_i); None with weights.
    bias : float, or array (k,)
        The bias b of the primal point.
    shift : array (M,)
        δ of the kernels K_m + δ_m I that the certificate is for.
    proof : str
        Why these are positive semi-definite; "" if it is assumed.
    norms : array (M,)
        The block norms u_m = ‖w_m‖ of the primal point, in K_m + δ_m I.
    features : array (R,) or (R, k), or None
        For factors with few columns: the primal point itself, the feature weights w_m
        of all kernels one below the other. With weights they are θ_m L_mᵀα as computed.
    bounds : Enclosure or None
        lower and upper, if they are known already; see `enclosure`.
    completed : str
        What `mklopt.certify` computed because it was not given, in words.
    """

    problem: Problem = field(repr=False)
    primal: float
    dual: float
    alpha: Array = field(repr=False)
    shrink: float
    weights: Array | None = field(repr=False)
    coefficients: Array | None = field(repr=False)
    bias: Any
    shift: Array = field(repr=False)
    proof: str = field(repr=False)
    norms: Array = field(repr=False)
    features: Array | None = field(repr=False, default=None)
    bounds: Enclosure | None = field(default=None, repr=False)
    completed: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        points = (self.alpha, self.weights, self.coefficients, self.bias, self.norms)
        for array in (*points, self.features):
            if isinstance(array, np.ndarray):  # the bounds are computed from it later
                array.flags.writeable = False

    @property
    def gap(self) -> float:
        """primal − dual."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """(primal − dual)/|primal|."""
        return relative(self.gap, self.primal)

    @property
    def lower(self) -> float:
        """A lower bound of f* in exact arithmetic."""
        return self.enclosure.lower

    @property
    def upper(self) -> float:
        """An upper bound of f* in exact arithmetic."""
        return self.enclosure.upper

    @cached_property
    def enclosure(self) -> Enclosure:
        """lower and upper, with the points that show them or why there are none.

        A fresh `certify` computes it with its own products; else it costs one pass.
        """
        return enclose(self) if self.bounds is None else self.bounds

    @property
    def width(self) -> float:
        """(upper − lower)/|upper|: the relative gap in exact arithmetic."""
        return relative(self.upper - self.lower, self.upper)

    @property
    def assumptions(self) -> list[str]:
        """What lower ≤ f* ≤ upper assumes; an empty list means that it is proved."""
        problem, found = self.problem, []
        if not self.proof:
            found.append("the kernels are positive semi-definite (grams.verify_psd())")
        for part in (problem.formulation, problem.loss):
            if not part.exact:
                found.append(f"the numerically derived operators of {part.name}")
        return found

    @property
    def expansion(self) -> Array:
        """(M, n[, k]): w_m = Σ_i expansion[m, i] ψ_m(x_i), from weights as well."""
        return self.expansion_of(slice(None))

    def expansion_of(self, kernels: Any) -> Array:
        """The rows of `expansion` for some of the kernels.

        Parameters
        ----------
        kernels : array of int, or of bool (M,), or slice

        Returns
        -------
        array (r, n) or (r, n, k)
        """
        if self.coefficients is not None:
            return self.coefficients[kernels]
        if self.weights is None:
            raise ValueError(
                "the point has feature weights and no coefficients: use `features`"
            )
        return np.multiply.outer(np.asarray(self.weights)[kernels], self.alpha)

    @property
    def combines(self) -> bool:
        """Whether coefficients (M, n) are small enough for points of two certificates.

        Then `best_of` has the better bound of both.
        """
        return not self.problem.grams.is_large

    def best_of(self, other: Certificate) -> Certificate:
        """The better primal point of the two with the better dual point.

        Such a point has coefficients (M, n). Of a large stack it is the one of the two
        with the smaller gap.

        Parameters
        ----------
        other : Certificate
            Of the same problem.

        Returns
        -------
        Certificate
        """
        low, high = sorted((self, other), key=lambda c: c.primal)
        dual = max((low, high), key=lambda c: c.dual)
        if dual is low:
            return low
        w = low.features
        if not self.combines and w is None:
            return min((low, high), key=lambda c: c.relative_gap)
        B = low.expansion if w is None else None
        points = (dual.alpha, dual.shrink, None, B, low.bias)
        more: Any = {"norms": low.norms, "features": w}
        return _judged(low.problem, low.primal, dual.dual, *points, **more)

    @property
    def statement(self) -> str:
        """The bounds with what they assume, or why there are none, in one line."""
        if self.enclosure.reason:
            return f"no bounds: {self.enclosure.reason}"
        bounds = interval(self.lower, self.upper, self.assumptions, digits=12)
        return bounds if self.assumptions else f"proved: {bounds}"

    def __str__(self) -> str:
        completed = f"\ncompleted: {self.completed}" if self.completed else ""
        return (
            f"relative gap {self.relative_gap:.1e}, with all rounding errors counted "
            f"{self.width:.1e}\n{self.statement}{completed}"
        )

    def facts(self) -> dict[str, str]:
        """What the certificate says, by name, for tables.

        Returns
        -------
        dict of str
        """
        return {
            "relative gap": f"{self.relative_gap:.1e}",
            "with all rounding errors": f"{self.width:.1e}",
            "bounds": self.statement,
        }

    def _repr_html_(self) -> str:
        return facts(self.facts())


def relative(difference: float, value: float) -> float:
    """difference/|value|; 0/0 is 0, and what is not finite gives ∞."""
    if difference == 0:
        return 0.0
    finite = value != 0 and math.isfinite(value) and math.isfinite(difference)
    return difference / abs(value) if finite else math.inf


@with_blas_alone
def certify(
    problem: Problem,
    dual: Array,
    weights: Array | None = None,
    *,
    coefficients: Array | None = None,
    features: Array | None = None,
    bias: Any = None,
    remembered: bool = False,
) -> Certificate:
    """Two bounds dual ≤ f* ≤ primal from a primal and a dual candidate.

    `mklopt.certify` (tasks/certify.py) takes half a candidate, too, and calls this. The
    dual candidate is made feasible first; without a bias the best one is computed here.
    `lower` and `upper` of the result hold in exact arithmetic; they cost no pass.
    With remembered products they are computed on first use.

    Parameters
    ----------
    problem : Problem
    dual : array (n,) or (n, k)
        α, with the sign of the label; any finite numbers are allowed.
    weights : array (M,), optional
        θ ≥ 0, for the primal point w_m = θ_m Σ_i α_i ψ_m(x_i).
    coefficients : array (M, n) or (M, n, k), optional
        Instead of weights, for w_m = Σ_i coefficients[m, i] ψ_m(x_i).
    features : array (R,) or (R, k), optional
        Instead of weights, for kernels given as factors: the feature weights w_m of all
        kernels, one below the other, with f = Σ_m L_m w_m + b.
    bias : float or array (k,), optional
        b of the primal point; by default the best one.
    remembered : bool
        Whether products that the stack remembers may be used; it saves passes.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If a candidate has the wrong shape or is not finite, if weights are negative,
        or if not exactly one of weights, coefficients and features is given.

    Examples
    --------
    >>> from mklopt.formulations import LpNorm
    >>> y = np.array([1.0, -1.0])
    >>> problem = Problem(np.eye(2)[None], y, formulation=LpNorm(p=2), C=10)
    >>> certify(problem, dual=y, weights=[1.0]).relative_gap < 1e-12
    True
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"certify takes a Problem first, got {type(problem).__name__}")
    alpha = checked(dual, problem.shape, "dual")
    if sum(point is not None for point in (weights, coefficients, features)) != 1:
        raise ValueError("give one of weights=, coefficients= and features=")
    if features is not None:
        features = checked(features, feature_shape(problem), "features")
    elif weights is not None:
        weights = checked(weights, (problem.grams.M,), "weights", nonneg=True)
    else:
        shape = (problem.grams.M, *problem.shape)
        coefficients = checked(coefficients, shape, "coefficients")
    if bias is not None:
        bias = _given_bias(problem, bias)
    with np.errstate(all="ignore"):  # what overflows is infinite
        if features is not None or problem.grams.in_feature_space:
            points = (weights, coefficients, features)
            return _in_feature_space(problem, alpha, *points, remembered, bias)
        return _certified(problem, alpha, weights, coefficients, remembered, bias)


def certify_again(
    problem: Problem, dual: Array, weights: Array, tight: bool = False
) -> Certificate:
    """The certificate of a point near which a solver has read the kernels.

    Products with the kernels in use, Σθ_mK_m and norms are those that the stack
    remembers, or computed. All other kernels keep bounds from the last time they were
    read, if these are enough. `tight`: from products alone, whose errors are smaller.
    """
    with np.errstate(all="ignore"):
        if problem.grams.in_feature_space:
            return _in_feature_space(problem, dual, weights, None, None, False)
        grams, alpha = problem.grams, exact_point(problem, dual)
        v = enough_norms(problem, alpha, weights)
        kernels, above = near_use(problem, v, weights), grams.norms_above(alpha)[1]
        if not np.all(np.isfinite(np.delete(above, kernels))):
            kernels = np.arange(grams.M)
        products = _known_products(grams, alpha, weights, kernels, above, tight)
        v = np.array(v)
        v[kernels] = products.plain
        return _at_weights(problem, alpha, weights, v, products)


def _known_products(
    grams: GramStack,
    alpha: Array,
    weights: Array,
    kernels: Array,
    above: Array,
    tight: bool,
) -> Products | Combined:
    """Products with these kernels, or what the stack remembers if that is enough."""
    small = not grams.subset(kernels).is_large
    remembered = small and grams.remembers_products(alpha, kernels)
    known = Combined.is_known(grams, alpha, weights, kernels)
    if known and not remembered and not (tight and small):
        return Combined(grams, alpha, weights, kernels)
    KA = grams.products(alpha, kernels) if small else None
    part = kernels if len(kernels) < grams.M or not small else None
    given: Any = {"KA": KA, "kernels": part, "rest": above}
    return Products(grams, alpha, weights, grams.shift, **given)


def _given_bias(problem: Problem, bias: Any) -> Any:
    """A bias that was given, as a number or (k,); 0 alone for a problem without one."""
    k = problem.shape[1:]
    found = checked(np.full(k, bias) if np.ndim(bias) == 0 else bias, k, "b")
    if np.any(found) and not problem.bias:
        raise ValueError(f"b = {bias!r:.40}, but the problem has no bias; leave it out")
    return float(found) if found.ndim == 0 else found


def _certified(
    problem: Problem,
    alpha: Array,
    weights: Any,
    coefficients: Any,
    remembered: bool,
    bias: Any,
) -> Certificate:
    grams = problem.grams
    products: Any = None
    if remembered:
        alpha = problem.feasible(alpha)
    else:
        alpha = exact_point(problem, alpha)
        products = Products(grams, alpha, weights, grams.shift)
    if weights is not None:
        v = enough_norms(problem, alpha, weights) if remembered else products.plain
        return _at_weights(problem, alpha, weights, v, products, bias)
    KB = grams.apply(coefficients)
    shifted, u = _shifted(KB, coefficients, grams.shift)
    v = products.plain if products else norms_near(problem, alpha, u)
    shrink, bound = best_shrink(problem, alpha, v)
    primal, bias = primal_at(problem, np.sum(shifted, axis=0), u, bias)
    points = (alpha, shrink, None, coefficients, bias)
    own = Products(grams, coefficients, None, grams.shift, KA=KB) if products else None
    return _judged(problem, primal, bound, *points, norms=u, products=(products, own))


def feature_shape(problem: Problem) -> tuple[int, ...]:
    """The shape of all feature weights, (R,) or (R, k), of kernels given as factors."""
    if problem.grams.storage != "factors":
        raise ValueError(
            "features= and w= are for kernels that are given as factors; for others "
            "give w= with maps=, one array (n, r) of features per kernel"
        )
    return (int(np.sum(problem.grams.ranks)), *problem.shape[1:])


def _in_feature_space(
    problem: Problem,
    alpha: Array,
    weights: Array | None,
    coefficients: Array | None,
    features: Array | None,
    remembered: bool,
    bias: Any = None,
) -> Certificate:
    """The certificate of feature weights; of weights or coefficients they are made."""
    if remembered:
        alpha = problem.feasible(alpha)
    else:
        problem.grams.forget()
        alpha = exact_point(problem, alpha)
    grams = problem.grams
    h, w = grams.fold(alpha), features
    if w is None:
        w = feature_point(problem, h, weights, coefficients)
    shrink, bound = best_shrink(problem, alpha, grams.feature_norms(h))
    f, u = grams.unfold(w), grams.feature_norms(w)
    primal, bias = primal_at(problem, f, u, bias)
    points = (alpha, shrink, weights, None, bias)
    more: Any = {} if remembered else {"products": (Folded(h, f), None)}
    return _judged(problem, primal, bound, *points, norms=u, features=w, **more)


def _at_weights(
    problem: Problem,
    alpha: Array,
    weights: Array,
    v: Array,
    products: Any = None,
    bias: Any = None,
) -> Certificate:
    """The certificate of α and θ, with v; of products the bounds are computed, too."""
    grams = problem.grams
    f = grams.product(weights, alpha) if products is None else products.f
    f = f + float(weights @ grams.shift) * alpha
    shrink, bound = best_shrink(problem, alpha, v)
    u = np.where(weights > 0, weights * v, 0.0)
    primal, bias = primal_at(problem, f, u, bias)
    points = (alpha, shrink, weights, None, bias)
    return _judged(problem, primal, bound, *points, norms=u, products=(products, None))


def _best_bias(problem: Problem, f: Array) -> Any:
    """The best bias for predictions f; 0 where the search overflows."""
    zero: Any = 0.0 if f.ndim == 1 else np.zeros(f.shape[1])
    if not problem.bias:
        return 0.0
    try:
        bias = problem.loss.best_bias(f, problem.y, problem.costs)
    except (ArithmeticError, ValueError):
        return zero
    return bias if np.all(np.isfinite(bias)) else zero


def _judged(
    problem: Problem,
    primal: float,
    dual: float,
    *points: Any,
    norms: Array,
    products: tuple[Any, Any] = (None, None),
    features: Array | None = None,
) -> Certificate:
    """A certificate; if rounding makes dual > primal, with lower and upper instead.

    Of products with α and with coefficients the bounds are computed at once.
    """
    known = (problem.grams.shift, problem.grams.proof, norms, features)
    make: Any = Certificate
    found = make(problem, primal, dual, *points, *known)
    if products[0] is not None:
        found = replace(found, bounds=enclose(found, *products))
    if primal < dual:
        bounds = found.enclosure
        found = make(problem, bounds.upper, bounds.lower, *points, *known, bounds)
    return found


def primal_at(
    problem: Problem, f: Array, u: Array, bias: Any = None
) -> tuple[float, Any]:
    """The primal value for predictions f without a bias, and the bias, if any."""
    bias = _best_bias(problem, f) if bias is None else bias
    return finite(lambda: primal_value(problem, f + bias, u)), bias


def primal_value(problem: Problem, f: Array, u: Array) -> float:
    """Σ C V(f) + Ω(u)."""
    losses = problem.loss.value(f, problem.y)
    return float(problem.costs @ losses) + problem.formulation.value(u)


def dual_value(problem: Problem, alpha: Array, v: Array) -> float:
    """−Σ C V*(−α/C) − Ω*(v), −inf outside the domain."""
    return problem.dual_loss(alpha) - problem.formulation.conjugate(v)


def best_shrink(problem: Problem, alpha: Array, v: Array) -> tuple[float, float]:
    """The s ≤ 1 with the largest dual value at s·α, and this value.

    v are the block norms of α. The dual value is concave in s.
    """

    def value(s: float) -> float:
        return -finite(lambda: -dual_value(problem, s * alpha, s * v))

    if not np.all(np.isfinite(v)):  # α = 0 has a value
        return 0.0, best_shrink(problem, np.zeros_like(alpha), np.zeros_like(v))[1]
    top = largest_scale(problem, v)
    if top < 1:
        top *= 1 - 8 * U  # stay inside the domain of Ω* after rounding
    points = [top, top * (1 - 1e-4), 0.0]
    values = [value(s) for s in points]
    if top > 0 and values[1] > values[0]:  # else, by concavity, `top` is the maximum
        points.append(_peak(value, top))
        values.append(value(points[-1]))
    best = int(np.argmax(values))
    return points[best], values[best]


def _peak(value: Callable[[float], float], top: float) -> float:
    """Where a concave function on [0, top] is largest; it is often a parabola."""
    first, middle, last = (value(t * top) for t in (0.0, 0.5, 1.0))
    bend, tilt = first - 2 * middle + last, last - first
    if bend < 0 and -math.inf < bend:
        x = 0.5 - 0.25 * tilt / bend
        there = middle - 0.125 * tilt / bend * tilt
        if 0 < x < 1 and abs(value(x * top) - there) <= 1e-12 * abs(there):
            return x * top
    from scipy.optimize import minimize_scalar

    def lost(s: float) -> float:
        return -max(value(float(s)), -1e300)

    options = {"xatol": 1e-10}
    found = minimize_scalar(lost, bounds=(0.0, top), method="bounded", options=options)
    return float(found.x)


def _shifted(KB: Array, B: Array, shift: Array) -> tuple[Array, Array]:
    """((K_m + δ_m I) B_m)_m from K_mB_m, and the norms of B_m in these kernels."""
    KB = KB + shift.reshape(-1, *[1] * (KB.ndim - 1)) * B
    squares = np.sum((B * KB).reshape(len(B), -1), axis=1)
    return KB, np.sqrt(np.maximum(squares, 0.0))


def checked(given: Any, shape: tuple, name: str, nonneg: bool = False) -> Array:
    """An array of finite numbers of this shape; ValueError for anything else."""
    array = real_array(given, name, f"numbers of shape {shape}")
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; expected {shape}")
    if not np.all(np.isfinite(array)):
        raise NotFinite(f"{name} has NaN or infinite entries; give finite candidates")
    if nonneg and np.any(array < 0):
        raise ValueError(f"{name} has negative entries; kernel weights are ≥ 0")
    return array
