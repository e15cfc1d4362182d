"""The gap of any primal and dual candidate. It trusts no solver.

Problem. Given α and kernel weights θ (or coefficients), from anyone: two numbers with

    dual ≤ f* ≤ primal.

Feasibility is restored before a value is believed, in an order that keeps what was won:
clip α to the domain of V*; restore Σα = 0 inside it; shrink α towards 0 until Ω* is
finite, and as far as the dual value still rises. The primal point is w_m = θ_m Σ α_i
ψ_m(x_i) (or the coefficients), with the best bias for it.

Guarantee. `primal` and `dual` are plain float64. `lower` and `upper` count every
rounding error (enclosure.py). `assumptions` lists what the interval still rests on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ..formulations.derive.epigraph import DerivationError
from ..problem import Problem
from ..util.arrays import real_array
from ..util.rounding import U
from .enclosure import Enclosure, enclose, finite

Array = np.ndarray


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
    shrink, bound = best_shrink(problem, alpha, v)
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
        bias = problem.loss.best_bias(f, problem.y, problem.costs)
        bias = bias if np.all(np.isfinite(bias)) else np.zeros_like(bias)
    primal = finite(lambda: primal_value(problem, f + bias, u))
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
    return problem.dual_loss(alpha) - problem.formulation.conjugate(v)


def best_shrink(problem: Problem, alpha: Array, v: Array) -> tuple[float, float]:
    """The s in [0, reach] with the largest dual value at s·α (concave in s)."""

    def value(s: float) -> float:
        try:
            return -finite(lambda: -dual_value(problem, s * alpha, s * v))
        except DerivationError:  # no bound here: try closer to 0
            return -math.inf

    top = problem.formulation.feasible_scale(v)
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
