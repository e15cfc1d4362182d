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

    def __post_init__(self) -> None:
        for array in (self.alpha, self.weights, self.coefficients, self.bias):
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
        """lower and upper with the points that show them; computed on first use.

        Raises
        ------
        ValueError
            If lower > upper: then an assumption of weak duality does not hold.
        """
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
        if self.coefficients is not None:
            return self.coefficients
        return np.multiply.outer(np.asarray(self.weights), self.alpha)

    @cached_property
    def norms(self) -> Array:
        """The block norms u_m = ‖w_m‖ of the primal point, (M,), in K_m + δ_m I."""
        u = _products(self.problem, self.expansion, self.shift)[1]
        u.flags.writeable = False
        return u

    def best_of(self, other: Certificate) -> Certificate:
        """The better primal point of the two with the better dual point.

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
        points = (dual.alpha, dual.shrink, None, low.expansion, low.bias)
        return _judged(low.problem, low.primal, dual.dual, *points)

    def __str__(self) -> str:
        return (
            f"{self.lower:.12g} ≤ f* ≤ {self.upper:.12g}  "
            f"(relative gap {self.relative_gap:.1e}, enclosed {self.width:.1e})"
        )


def relative(difference: float, value: float) -> float:
    """difference/|value|; 0/0 is 0, and what is not finite gives ∞."""
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
    """Two bounds dual ≤ f* ≤ primal from candidates of any solver.

    The dual candidate is made feasible first, and the best bias is computed here.
    `lower` and `upper` of the result hold in exact arithmetic; they are computed on
    first use.

    Parameters
    ----------
    problem : Problem
    dual : array (n,) or (n, k)
        α, with the sign of the label; any finite numbers are allowed.
    weights : array (M,), optional
        θ ≥ 0, for the primal point w_m = θ_m Σ_i α_i ψ_m(x_i).
    coefficients : array (M, n) or (M, n, k), optional
        Instead of weights, for w_m = Σ_i coefficients[m, i] ψ_m(x_i).
    remembered : bool
        Whether products that the stack remembers may be used; it saves passes.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If a candidate has the wrong shape or is not finite, if weights are negative,
        or if not exactly one of weights and coefficients is given.

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
    alpha = _checked(dual, problem.shape, "dual")
    if (weights is None) == (coefficients is None):
        raise ValueError("give either weights= or coefficients=, not both or neither")
    alpha, grams = problem.feasible(alpha), problem.grams
    KA = None if remembered else grams.matvec(alpha)
    v = grams.norms(alpha, KA)
    shrink, bound = best_shrink(problem, alpha, v)
    if weights is not None:
        weights = _checked(weights, (grams.M,), "weights", nonneg=True)
        u = weights * v
        if KA is None:
            f = grams.combine(weights) @ alpha
        else:
            f = np.tensordot(weights, KA, axes=1)
        f = f + float(weights @ grams.shift) * alpha
    else:
        shape = (grams.M, *problem.shape)
        coefficients = _checked(coefficients, shape, "coefficients")
        KB, u = _products(problem, coefficients, grams.shift)
        f = np.sum(KB, axis=0)
    bias: Any = 0.0
    if problem.bias:
        bias = problem.loss.best_bias(f, problem.y, problem.costs)
        bias = bias if np.all(np.isfinite(bias)) else np.zeros_like(bias)
    primal = finite(lambda: primal_value(problem, f + bias, u))
    points = (alpha, shrink, weights, coefficients, bias)
    return _judged(problem, primal, bound, *points)


def _judged(problem: Problem, primal: float, dual: float, *points: Any) -> Certificate:
    """A certificate; if rounding makes dual > primal, with lower and upper instead."""
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
    """The s ≤ 1 with the largest dual value at s·α, and this value.

    v are the block norms of α. The dual value is concave in s.
    """

    def value(s: float) -> float:
        try:
            return -finite(lambda: -dual_value(problem, s * alpha, s * v))
        except DerivationError:  # no value here: a smaller s may have one
            return -math.inf

    top = problem.formulation.feasible_scale(v)
    if top < 1:
        top *= 1 - 8 * U  # stay inside the domain of Ω* after rounding
    points = [top, top * (1 - 1e-4), 0.0]
    values = [value(s) for s in points]
    if top > 0 and values[1] > values[0]:  # else, by concavity, `top` is the maximum
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


def _products(problem: Problem, B: Array, shift: Array) -> tuple[Array, Array]:
    """((K_m + δ_m I) B_m)_m, and the norms of the blocks B_m in these kernels."""
    KB = problem.grams.apply(B)
    KB = KB + shift.reshape(-1, *[1] * (KB.ndim - 1)) * B
    squares = np.sum((B * KB).reshape(len(B), -1), axis=1)
    return KB, np.sqrt(np.maximum(squares, 0.0))


def _checked(given: Any, shape: tuple, name: str, nonneg: bool = False) -> Array:
    array = real_array(given, name, f"numbers of shape {shape}")
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; expected {shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} has NaN or infinite entries; give finite candidates")
    if nonneg and np.any(array < 0):
        raise ValueError(f"{name} has negative entries; kernel weights are ≥ 0")
    return array
