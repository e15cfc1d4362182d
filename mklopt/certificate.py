"""The gap of any primal and dual candidate. It trusts no solver.

Problem. Given α and kernel weights θ (or coefficients), from anyone: two numbers with

    dual ≤ f* ≤ primal.

Feasibility is restored before a value is believed, in an order that keeps what was won:
clip α to the domain of V*; restore Σα = 0 inside it; shrink α towards 0 until Ω* is
finite, and as far as the dual value still rises. The primal point is w_m = θ_m Σ α_i
ψ_m(x_i) (or the coefficients), with the best bias for it.

Guarantee. `primal` and `dual` are plain float64. `lower` and `upper` are an enclosure:
α is put on a dyadic grid where Σα = 0 exactly, every inner product carries its a-priori
error bound γ_n (|K_ij| ≤ √K_ii √K_jj saves a second pass), loss and Ω their stated
round-off, so that lower ≤ f* ≤ upper holds in exact arithmetic for the kernels
K_m + δ_m I with the δ of the stack. `assumptions` lists what this still rests on.
Reference: Higham (2002), chapter 3; Rump (2010).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from .arrays import real_array
from .formulations.epigraph import DerivationError
from .grams import U, gamma
from .problem import Problem

Array = np.ndarray


class Enclosure(NamedTuple):
    """lower ≤ f* ≤ upper in exact arithmetic, and the two points that show it."""

    lower: float
    upper: float
    alpha: Array  # on a dyadic grid, exactly feasible; the dual point is shrink · alpha
    shrink: float
    stretch: float  # the primal point is stretch · (w, b)


@dataclass(frozen=True, eq=False)
class Certificate:
    """dual ≤ f* ≤ primal, with the feasible points that show it."""

    problem: Problem = field(repr=False)
    primal: float
    dual: float
    alpha: Array = field(repr=False)  # feasible for V* and the bias, not yet shrunk
    shrink: float  # the dual point is shrink · alpha
    weights: Array | None = field(repr=False)
    coefficients: Array | None = field(repr=False)
    bias: Any
    shift: Array = field(repr=False)  # δ and why K + δI ⪰ 0, when it was certified
    proof: str = field(repr=False)

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        return relative(self.gap, self.primal)

    @property
    def lower(self) -> float:
        return self.enclosure.lower

    @property
    def upper(self) -> float:
        return self.enclosure.upper

    @cached_property
    def enclosure(self) -> Enclosure:
        found = enclose(self)
        if found.lower > found.upper:
            raise ValueError(
                f"weak duality fails: {found.lower:.6g} > {found.upper:.6g}. Either a "
                "kernel is not positive semi-definite (grams.verify_psd() tells), or "
                "a declared function is not convex and increasing"
            )
        return found

    @property
    def width(self) -> float:
        """(upper − lower)/|upper|: the gap that is a theorem."""
        return relative(self.upper - self.lower, self.upper)

    @property
    def assumptions(self) -> list[str]:
        """What lower ≤ f* ≤ upper rests on besides arithmetic; empty: a theorem."""
        problem, found = self.problem, []
        if not self.proof:
            found.append("the kernels are positive semi-definite (grams.verify_psd())")
        for part in (problem.formulation, problem.loss):
            if not part.exact:
                found.append(f"the numerically derived operators of {part.name}")
        return found

    @property
    def expansion(self) -> Array:
        """(M, n[, k]): w_m = Σ_i expansion[m, i] ψ_m(x_i), however it was given."""
        if self.coefficients is not None:
            return self.coefficients
        return np.multiply.outer(np.asarray(self.weights), self.alpha)

    @cached_property
    def norms(self) -> Array:
        """u_m = ‖w_m‖ of the primal point."""
        B = self.expansion
        return np.sqrt(np.maximum(_sums(B * self.problem.grams.apply(B)), 0.0))

    def best_of(self, other: Certificate) -> Certificate:
        """The better primal point of the two with the better dual point."""
        low, high = sorted((self, other), key=lambda c: c.primal)
        dual = max((low, high), key=lambda c: c.dual)
        if dual is low:
            return low
        points = (dual.alpha, dual.shrink, None, low.expansion, low.bias)
        return _judged(low.problem, low.primal, dual.dual, *points)

    def __str__(self) -> str:
        return (
            f"{self.lower:.12g} ≤ f* ≤ {self.upper:.12g}  "
            f"(relative gap {self.relative_gap:.1e}, enclosed {self.width:.1e})"
        )


def relative(difference: float, value: float) -> float:
    if difference == 0:
        return 0.0
    finite = value != 0 and math.isfinite(value) and math.isfinite(difference)
    return difference / abs(value) if finite else math.inf


def certify(
    problem: Problem,
    dual: Array,
    weights: Array | None = None,
    *,
    coefficients: Array | None = None,
    remembered: bool = False,
) -> Certificate:
    """dual ≤ f* ≤ primal from anybody's candidates; feasibility is restored first.

    dual: α, (n,) or (n, k), with the sign of the label; any numbers will do
    weights: θ ≥ 0, (M,), for the primal point w_m = θ_m Σ_i α_i ψ_m(x_i)
    coefficients: (M, n[, k]) instead, for w_m = Σ_i coefficients[m, i] ψ_m(x_i)
    remembered: whether products the stack remembers from a moment ago will do

    The bias is chosen here, as good as it can be. `lower` and `upper` of the result
    hold in exact arithmetic; they are computed when first asked for.
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"certify takes a Problem first, got {type(problem).__name__}")
    alpha = _checked(dual, problem.shape, "dual")
    if (weights is None) == (coefficients is None):
        raise ValueError("give either weights= or coefficients=, not both or neither")
    alpha = problem.feasible(alpha)
    if remembered:
        quad = problem.grams.quad(alpha)
    else:
        KA = problem.grams.matvec(alpha)
        quad = problem.grams.inner(alpha, KA)
    shift = problem.grams.shift  # δ of K + δI: 0 unless a proof needed it
    v = np.sqrt(np.maximum(quad + shift * np.sum(alpha**2), 0.0))
    shrink, bound = _best_shrink(problem, alpha, v)
    if weights is not None:
        weights = _checked(weights, (problem.grams.M,), "weights", nonneg=True)
        u = weights * v
        if remembered:
            f = problem.grams.combine(weights) @ alpha
        else:
            f = np.tensordot(weights, KA, axes=1)
        f = f + float(weights @ shift) * alpha
    else:
        shape = (problem.grams.M, *problem.shape)
        coefficients = _checked(coefficients, shape, "coefficients")
        KB = problem.grams.apply(coefficients)
        KB = KB + shift.reshape(-1, *[1] * (KB.ndim - 1)) * coefficients
        u = np.sqrt(np.maximum(_sums(coefficients * KB), 0.0))
        f = np.sum(KB, axis=0)
    bias: Any = 0.0
    if problem.bias:
        bias = problem.loss.offset(f, problem.y, problem.costs)
        bias = bias if np.all(np.isfinite(bias)) else np.zeros_like(bias)
    primal = _finite(lambda: primal_value(problem, f + bias, u))
    points = (alpha, shrink, weights, coefficients, bias)
    return _judged(problem, primal, bound, *points)


def _judged(problem: Problem, primal: float, dual: float, *points: Any) -> Certificate:
    """A certificate; where rounding makes dual > primal, of what is proved instead."""
    known = (problem.grams.shift, problem.grams.proof)
    make: Any = Certificate
    found = make(problem, primal, dual, *points, *known)
    if primal < dual:
        found = make(problem, found.upper, found.lower, *points, *known)
    return found


def primal_value(problem: Problem, f: Array, u: Array) -> float:
    """Σ C V(f) + Ω(u)."""
    losses = problem.loss.value(f, problem.y)
    return float(problem.costs @ losses) + problem.formulation.value(u)


def dual_value(problem: Problem, alpha: Array, v: Array) -> float:
    """−Σ C V*(−α/C) − Ω*(v), −inf outside the domain."""
    return problem.gain(alpha) - problem.formulation.conjugate(v)


def _best_shrink(problem: Problem, alpha: Array, v: Array) -> tuple[float, float]:
    """The s in [0, reach] with the largest dual value at s·α (concave in s)."""

    def value(s: float) -> float:
        try:
            return -_finite(lambda: -dual_value(problem, s * alpha, s * v))
        except DerivationError:  # no bound here: try closer to 0
            return -math.inf

    top = problem.formulation.reach(v)
    if top < 1:
        top *= 1 - 8 * U
    points = [top, top * (1 - 1e-4), 0.0]
    values = [value(s) for s in points]
    if (
        top > 0 and values[1] > values[0]
    ):  # otherwise, by concavity, the maximum is at the top
        found = minimize_scalar(
            lambda s: -max(value(float(s)), -1e300),
            bounds=(0.0, top),
            method="bounded",
            options={"xatol": 1e-10},
        )
        points.append(float(found.x))
        values.append(value(float(found.x)))
    best = int(np.argmax(values))
    return points[best], values[best]


# ---- the enclosure -----------------------------------------------------------


def enclose(certificate: Certificate) -> Enclosure:
    """lower ≤ f* ≤ upper in exact arithmetic (for K_m + δ_m I), in one pass.

    Error terms are sums of non-negative numbers computed in floats; `ROOM` covers the
    rounding of those sums themselves.
    """
    problem = certificate.problem
    domain = problem.loss.domain(problem.y)
    alpha = domain.exact(certificate.alpha, problem.costs, problem.bias)
    products = _Products(problem, alpha, problem.grams.matvec(alpha), certificate)
    above = products.norms_above
    top = problem.formulation.reach(above)
    shrink = min(certificate.shrink, top if top == 1 else top * (1 - 16 * U))
    lower = -_finite(lambda: -_lower(problem, alpha, above, shrink))
    if certificate.coefficients is not None:
        B = certificate.coefficients
        products = _Products(problem, B, problem.grams.apply(B), certificate)
    upper, stretch = _upper(problem, products, certificate.bias)
    return Enclosure(lower, upper, alpha, shrink, stretch)


def _finite(bound: Callable[[], float]) -> float:
    """A bound that left the range of float64 proves nothing: +inf."""
    try:
        with np.errstate(all="ignore"):
            value = bound()
    except OverflowError:
        return math.inf
    return math.inf if math.isnan(value) else value


ROOM = 1 + 1e-6


class _Products:
    """K_m A, its error bound, and upper bounds of the norms ‖A‖_{K_m}.

    A is one set of coefficients for all kernels, or one per kernel (M, n[, k]). The
    error of (K_m A)_i is at most roots[m, i] · spread[m]: |K_ij| ≤ √K_ii √K_jj by
    Cauchy–Schwarz saves a second pass, and a bound of rank one costs nothing.
    """

    def __init__(self, problem: Problem, A: Array, KA: Array, source: Certificate):
        self.grams, self.source = problem.grams, source
        M, n = self.grams.M, self.grams.n
        self.columns = A.reshape((1, n, -1) if A.ndim < KA.ndim else (M, n, -1))
        self.KA = KA.reshape(M, n, -1)
        self.size, size = np.abs(self.KA), np.abs(self.columns)
        self.roots = self.grams.root_diag(source.shift)
        if len(size) == 1:
            sums = self.roots @ size[0]
        else:
            sums = np.einsum("mi,mik->mk", self.roots, size)
        terms = int(np.max(np.count_nonzero(size, axis=1)))  # zeros add no rounding
        self.spread = gamma(self.grams.chain(terms)) * sums * ROOM
        factored = self.grams.storage == "factors"
        norms = self._norms_from_factors() if factored else self._norms(size, sums)
        shift = source.shift * np.sum(size**2, axis=(1, 2)) * ROOM
        self.norms_above = np.sqrt(norms**2 + shift) * (1 + 8 * U)

    def _norms(self, size: Array, sums: Array) -> Array:
        """√⟨A, K A⟩ from the product, in two stages."""
        M, terms = self.grams.M, self.grams.n * size.shape[2]
        KA, absolute = self.KA.reshape(M, -1), self.size.reshape(M, -1)
        error = np.sum(self.spread * sums, axis=1)
        if len(size) == 1:
            quad, second = KA @ self.columns.ravel(), absolute @ size.ravel()
        else:
            quad = np.sum(KA * self.columns.reshape(M, -1), axis=1)
            second = np.sum(absolute * size.reshape(M, -1), axis=1)
        error += gamma(terms + 2) * second
        return np.sqrt(np.maximum(quad + error * ROOM, 0.0)) * (1 + 4 * U)

    def _norms_from_factors(self) -> Array:
        """‖LᵀA‖: no square root of a cancelled sum, so sharp also where it is 0."""
        assert self.grams.factors is not None
        above = []
        for m, L in enumerate(self.grams.factors):
            A = self.columns[m if len(self.columns) > 1 else 0]
            error = gamma(len(L) + 2) * (np.abs(L).T @ np.abs(A)) * ROOM
            above.append(np.linalg.norm(np.abs(L.T @ A) + error))
        terms = max(L.shape[1] for L in self.grams.factors) * self.columns.shape[2]
        return np.array(above) * (1 + gamma(terms + 8))

    def predictions(self, bias: Any) -> tuple[Array, Array, Array]:
        """f, a bound of its error, and upper bounds of u_m = ‖w_m‖."""
        theta = self.source.weights
        if theta is None:
            theta = np.ones(self.grams.M)
        f = np.tensordot(theta, self.KA, axes=1) + bias
        magnitude = np.tensordot(theta, self.size, axes=1) + np.abs(bias)
        error = self.roots.T @ (theta[:, None] * self.spread)
        error += gamma(self.grams.M + 4) * magnitude * ROOM
        if np.any(self.source.shift):
            weight = np.broadcast_to(theta * self.source.shift, (self.grams.M,))
            full = np.broadcast_to(self.columns, self.KA.shape)
            f = f + np.tensordot(weight, full, axes=1)
            error += gamma(self.grams.M + 8) * np.tensordot(
                weight, np.abs(full), axes=1
            )
            error += 8 * U * np.abs(f)
        return f, error * ROOM, theta * self.norms_above * (1 + 4 * U)


def _lower(problem: Problem, alpha: Array, v: Array, s: float) -> float:
    formulation, loss = problem.formulation, problem.loss
    slack = formulation.rounding(problem.grams.M) * U
    penalty = formulation.conjugate(s * v * (1 + 4 * U))
    penalty += slack * abs(penalty)
    a = -s * alpha / _column(problem.costs, alpha)
    conjugates = loss.conjugate(a, problem.y)
    size = np.abs(a * _column(problem.y, alpha)).reshape(len(a), -1).sum(axis=1)
    k = a.shape[1] if a.ndim == 2 else 1
    unit = 64 * U if loss.exact else 1e-9
    conjugates = conjugates + unit * (k + np.abs(conjugates) + size)
    return _down(-math.fsum(problem.costs * conjugates * _away(conjugates)) - penalty)


def _upper(problem: Problem, products: _Products, bias: Any) -> tuple[float, float]:
    """Σ C V(f) + Ω(u) from above, at w or at a w longer by a hair, and by how much.

    Samples on the margin pay C for every rounding error of f; stretching w and b by the
    largest error carries them past it, at a price of that order times Ω.
    """
    with np.errstate(all="ignore"):  # _finite judges what overflows
        f, error, u = products.predictions(bias)
        best = _finite(partial(_value_above, problem, f, error, u)), 1.0
        for times in (1.02, 2.0) if np.max(error) < 1 else ():
            stretch = 1 + times * float(np.max(error))
            moved = error * stretch + 2 * U * np.abs(stretch * f)
            at = (stretch * f, moved, stretch * u * (1 + 4 * U))
            best = min(best, (_finite(partial(_value_above, problem, *at)), stretch))
    return best


def _value_above(problem: Problem, f: Array, error: Array, u: Array) -> float:
    formulation, loss, y = problem.formulation, problem.loss, problem.y
    if len(problem.shape) == 1:
        f, error = f[:, 0], error[:, 0]
        values = np.maximum(loss.value(f - error, y), loss.value(f + error, y))
        size = np.abs(f)
    else:  # ‖∂V‖_1 ≤ 2 for losses whose dual variables are e_y − probabilities
        values = loss.value(f, y) + 2 * np.max(error, axis=1)
        size = np.max(np.abs(f), axis=1)
    unit = 64 * U if loss.exact else 1e-9
    values = values + unit * (1 + np.abs(values) + size + np.abs(y))
    penalty = formulation.value(u)
    penalty += formulation.rounding(problem.grams.M) * U * abs(penalty)
    return _up(math.fsum(problem.costs * values * (1 + 4 * U)) + penalty)


def _away(values: Array) -> Array:
    """Factors that push non-negative values up and negative ones towards zero."""
    return np.where(values > 0, 1 + 4 * U, 1 - 4 * U)


def _down(value: float) -> float:
    return value - 4 * U * abs(value)


def _up(value: float) -> float:
    return value + 4 * U * abs(value)


# ---- small helpers -----------------------------------------------------------


def _column(per_sample: Array, like: Array) -> Array:
    return per_sample if like.ndim == 1 else per_sample[:, None]


def _sums(per_kernel: Array) -> Array:
    return np.sum(per_kernel.reshape(len(per_kernel), -1), axis=1)


def _checked(given: Any, shape: tuple, name: str, nonneg: bool = False) -> Array:
    array = real_array(given, name, f"numbers of shape {shape}")
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; expected {shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} has NaN or infinite entries; give finite candidates")
    if nonneg and np.any(array < 0):
        raise ValueError(f"{name} has negative entries; kernel weights are ≥ 0")
    return array
