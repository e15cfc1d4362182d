"""Where rounding is bounded: lower ≤ f* ≤ upper in exact arithmetic, in one pass.

α is put on a dyadic grid where Σα = 0 exactly, every inner product carries its a-priori
error bound γ_n (|K_ij| ≤ √K_ii √K_jj saves a second pass), loss and Ω their stated
round-off, so that lower ≤ f* ≤ upper holds in exact arithmetic for the kernels
K_m + δ_m I with the δ of the stack.

Reference: Higham (2002), chapter 3; Rump (2010).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..problem import Problem
from ..util.rounding import U, gamma

if TYPE_CHECKING:
    from .certificate import Certificate

Array = np.ndarray


class Enclosure(NamedTuple):
    """lower ≤ f* ≤ upper in exact arithmetic, and the two points that show it."""

    lower: float
    upper: float
    alpha: Array  # on a dyadic grid, exactly feasible; the dual point is shrink · alpha
    shrink: float
    stretch: float  # the primal point is stretch · (w, b)


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
    top = problem.formulation.feasible_scale(above)
    shrink = min(certificate.shrink, top if top == 1 else top * (1 - 16 * U))
    lower = -finite(lambda: -_lower(problem, alpha, above, shrink))
    if certificate.coefficients is not None:
        B = certificate.coefficients
        products = _Products(problem, B, problem.grams.apply(B), certificate)
    upper, stretch = _upper(problem, products, certificate.bias)
    return Enclosure(lower, upper, alpha, shrink, stretch)


def finite(bound: Callable[[], float]) -> float:
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
    with np.errstate(all="ignore"):  # finite judges what overflows
        f, error, u = products.predictions(bias)
        best = finite(partial(_value_above, problem, f, error, u)), 1.0
        for times in (1.02, 2.0) if np.max(error) < 1 else ():
            stretch = 1 + times * float(np.max(error))
            moved = error * stretch + 2 * U * np.abs(stretch * f)
            at = (stretch * f, moved, stretch * u * (1 + 4 * U))
            best = min(best, (finite(partial(_value_above, problem, *at)), stretch))
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


def _column(per_sample: Array, like: Array) -> Array:
    return per_sample if like.ndim == 1 else per_sample[:, None]
