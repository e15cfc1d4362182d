"""What matters about a regularizer, computed from its declaration.

    print(mklopt.inspect(elastic))                     # for M = 3 kernels
    found = mklopt.inspect(elastic, problem=problem)   # for its kernels, with C_zero
    found.draw("ball.png")                             # unit balls, M = 2 or 3

convex          whether CVXPY can see it (DCP), or why not
kind            a norm (Ω(tu) = tΩ(u)), half the square of one, or neither
increasing      in each u_m: without it the problem in w is not convex; a violation
                comes with the point that shows it
kink            the largest s with s e_m ∈ ∂Ω(0): kernel m is dropped while ‖α‖_{K_m}
                stays below; 0: kernels are never dropped
dual            the dual norm at sample points (Ω* where Ω is neither norm nor square)
curvature       a bound on the modulus μ of strong convexity, Ω − (μ/2)‖u‖² convex: the
                smallest second difference among sample points; 0: not strongly convex
closed, derived the operators with closed forms, and those derived numerically
solvers         those that take it with the hinge or the logistic loss

Convexity and kind are exact up to rounding where they say yes to sample points drawn
once and for all; `increasing` and `curvature` can be refuted by samples, not proved.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ..formulations import Declared, Formulation
from ..formulations.derive.epigraph import DerivationError
from ..grams.stack import GramStack
from ..problem import Problem
from ..reference.c_zero import C_zero
from ..solvers import solvers
from .closed_forms import judge
from .unit_balls import draw, dual_norm

Array = np.ndarray
OPERATORS = ("value", "conjugate", "weights", "dual_weights", "prox", "prox_slope",
             "feasible_scale")  # fmt: skip
CLOSE = 1e-6  # relative: derived values are good to 1e-8


@dataclass(frozen=True)
class Inspection:
    """What is known of a regularizer for M kernels; see mklopt.judge.inspection."""

    formulation: Formulation = field(repr=False)
    M: int
    why_not_convex: str = ""
    degree: float | None = None
    violation: str = ""
    kink: dict[int, float] = field(default_factory=dict)
    dual: dict[str, float] = field(default_factory=dict)
    curvature: float = 0.0
    solvers: tuple[str, ...] = ()
    C_zero: Any = None

    @property
    def convex(self) -> bool:
        return not self.why_not_convex

    @property
    def increasing(self) -> bool:
        return self.convex and not self.violation

    @property
    def norm(self) -> bool:
        return self.increasing and self.degree == 1

    @property
    def squared(self) -> bool:
        return self.increasing and self.degree == 2

    @property
    def sparse(self) -> bool:
        """Whether kernels can be dropped: Ω has a kink at 0 along some axis."""
        return any(size > 0 for size in self.kink.values())

    @property
    def closed(self) -> tuple[str, ...]:
        return tuple(n for n in OPERATORS if self.formulation.closed(n))

    @property
    def derived(self) -> tuple[str, ...]:
        return tuple(n for n in OPERATORS if not self.formulation.closed(n))

    @property
    def kind(self) -> str:
        if self.degree is None:
            return "not homogeneous: neither a norm nor its square"
        names = {1.0: "a norm", 2.0: "half the square of a norm"}
        named = names.get(self.degree) if self.increasing else None
        return named or f"homogeneous of degree {self.degree:.4g}"

    def draw(self, path: str | os.PathLike | None = None) -> Any:
        """The unit ball and its dual for M = 2, the unit ball for M = 3; a figure."""
        return draw(self, path)

    def __str__(self) -> str:
        name = f"{self.formulation!r}, M = {self.M}"
        return "\n  ".join([name, *self._lines()])

    def _lines(self) -> Iterator[str]:
        if not self.convex:
            yield f"not convex: {self.why_not_convex}"
            return
        yield f"convex (DCP), {self.kind}"
        if self.violation:
            yield f"not increasing: {self.violation}"
            return
        yield "increasing"
        yield "kink at 0: " + self._kinks()
        word = "Ω°" if self.norm or self.squared else "Ω*"
        yield "; ".join(f"{word}({v}) = {x:.6g}" for v, x in self.dual.items())
        strong = f"modulus at most {self.curvature:.3g}" if self.curvature else "no"
        yield f"strongly convex: {strong}"
        if self.C_zero is not None:
            yield f"all weights are zero up to C = {np.max(self.C_zero):.6g}"
        yield f"closed forms: {', '.join(self.closed) or 'none'}"
        yield f"derived numerically: {', '.join(self.derived) or 'none'}"
        yield f"solvers: {', '.join(self.solvers)}"

    def _kinks(self) -> str:
        if not self.sparse:
            return "none, no kernel is ever dropped"
        sizes = ", ".join(f"{size:.4g} at u_{m}" for m, size in self.kink.items())
        return f"{sizes}; kernels below it are dropped"


def inspect(
    formulation: Formulation, M: int | None = None, *, problem: Problem | None = None
) -> Inspection:
    """What matters about a regularizer; see mklopt.judge.inspection.

    M: how many kernels; by default those of the problem, or 3, or what fits
    problem: with it `C_zero` is found, too (its formulation is replaced)
    """
    if not isinstance(formulation, Formulation):
        raise ValueError(
            f"inspect takes a formulation, got {formulation!r}; make one with "
            "@mklopt.formulation, or call a class with its parameters"
        )
    if problem is not None:
        M = problem.grams.M
    M = fitting(formulation) if M is None else int(M)
    why = _why_not_convex(formulation, M)
    if why:
        return Inspection(formulation, M, why)
    degree, violation = _degree(formulation, M), _violation(formulation, M)
    if violation:
        return Inspection(formulation, M, degree=degree, violation=violation)
    return Inspection(
        formulation,
        M,
        degree=degree,
        kink=dict(_kink(formulation, M, degree)),
        dual=dict(_dual(formulation, M, degree)),
        curvature=_curvature(formulation, M, degree),
        solvers=_solvers(formulation, M),
        C_zero=_C_zero(formulation, problem),
    )


def fitting(formulation: Formulation) -> int:
    """A number of kernels that the parameters of a formulation allow: 3 if it can."""
    for M in (3, 2, *range(4, 257), 1):
        if _fits(formulation, M):
            return M
    raise ValueError(f"{formulation!r} fits no number of kernels up to 256; give M")


def _fits(formulation: Formulation, M: int) -> bool:
    """Whether groups, priors and whatever else it refers to are those of M kernels."""
    import cvxpy as cp

    try:
        if not isinstance(formulation, Declared):  # which would be judged, too
            formulation.validate(M)
        formulation.penalty(cp.Variable(M, nonneg=True))
    except (IndexError, ValueError):
        return False
    return True


def _why_not_convex(formulation: Formulation, M: int) -> str:
    try:
        formulation.epigraph(M).cones  # noqa: B018
    except (ValueError, DerivationError) as error:
        return str(error)
    return ""


def _samples(M: int, count: int = 6) -> Array:
    """Points of the orthant: drawn, and drawn with zeros; always the same ones."""
    rng = np.random.default_rng(0)
    drawn = rng.uniform(0.1, 2.0, size=(count, M))
    drawn[1::2] *= rng.random((len(drawn[1::2]), M)) < 0.7
    return drawn


def _degree(formulation: Formulation, M: int) -> float | None:
    """d with Ω(t u) = t^d Ω(u), if there is one."""
    if abs(formulation.value(np.zeros(M))) > CLOSE:
        return None
    found = []
    for u in _samples(M):
        here = formulation.value(u)
        for t in (0.5, 3.0):
            there = formulation.value(t * u)
            if not (np.isfinite(here + there) and here > 0 and there > 0):
                return None
            found.append(np.log(there / here) / np.log(t))
    d = float(np.median(found))
    whole = float(np.rint(d))
    d = whole if abs(d - whole) < CLOSE else d
    return d if np.max(np.abs(np.array(found) - d)) < CLOSE else None


def _violation(formulation: Formulation, M: int) -> str:
    """A sentence with the point where Ω falls as a block norm grows, or nothing."""
    corners = [np.zeros(M), np.ones(M), *np.eye(M)[: min(M, 5)]]
    for u in (*corners, *_samples(M)):
        here = formulation.value(u)
        for m in range(M):
            for h in (0.1, 1.0):
                there = formulation.value(u + h * (np.arange(M) == m))
                if there < here - CLOSE * (1 + abs(here)):
                    at = np.array2string(u, precision=3)
                    return (
                        f"at u = {at} it falls from {here:.6g} to {there:.6g} when "
                        f"u_{m} grows by {h:g}; a longer w_{m} must not be cheaper"
                    )
    return ""


def _kink(f: Formulation, M: int, degree: float | None) -> Iterator[tuple[int, float]]:
    """∂Ω(0) along some of the axes: Ω'(0; e_m)."""
    for m in np.unique(np.linspace(0, M - 1, min(M, 5)).astype(int)).tolist():
        axis = np.eye(M)[m]
        if degree is not None:
            yield m, float(f.value(axis)) if degree == 1 else 0.0
        else:
            yield m, _slope_at_0(f, axis)


def _slope_at_0(f: Formulation, axis: Array) -> float:
    """The limit of (Ω(h e) − Ω(0))/h; 0 where these still fall by a power of h."""
    zero = f.value(0 * axis)
    coarse, fine = ((f.value(h * axis) - zero) / h for h in (1e-3, 1e-4))
    if fine < 0.97 * coarse or fine < 10 * CLOSE:
        return 0.0
    return float(fine + (fine - coarse) / 9)


def _dual(f: Formulation, M: int, degree: float | None) -> Iterator[tuple[str, float]]:
    points = {"e_0": np.eye(M)[0], "1": np.ones(M)}
    if M <= 5:
        ramp = np.arange(1.0, M + 1)
        points[f"({', '.join(f'{x:g}' for x in ramp)})"] = ramp
    for name, v in points.items():
        yield name, dual_norm(f, v, degree)


def _curvature(formulation: Formulation, M: int, degree: float | None) -> float:
    """The smallest 8 (½Ω(a) + ½Ω(b) − Ω(½a + ½b)) / ‖a − b‖² that was found."""
    if degree == 1:
        return 0.0  # it is linear along rays
    points = _samples(M, 12)
    pairs = [*pairwise(points), *((a, 2 * a) for a in points)]
    pairs += [(a, a + 0.2 * e) for a in points[:4] for e in np.eye(M)[: min(M, 8)]]
    found, a, b = min(((_bend(formulation, *p), *p) for p in pairs), key=lambda t: t[0])
    rng = np.random.default_rng(1)
    for _ in range(60):  # a random walk from the best pair
        near = np.abs(np.array([a, b]) + rng.normal(0, 0.2, size=(2, M)))
        bend = _bend(formulation, *near)
        if bend < found:
            found, (a, b) = bend, near
    return float(found) if found > 1e-4 else 0.0


def _bend(formulation: Formulation, a: Array, b: Array) -> float:
    ends = 0.5 * formulation.value(a) + 0.5 * formulation.value(b)
    size = float(np.sum((a - b) ** 2))
    if not np.isfinite(ends) or size < 1e-2:  # closer, rounding would have its say
        return np.inf
    return 8 * (ends - formulation.value(0.5 * (a + b))) / size


def _solvers(formulation: Formulation, M: int) -> tuple[str, ...]:
    kernels, y = GramStack([np.eye(4)] * M), np.array([1.0, -1, 1, -1])
    problems = [
        Problem(kernels, y, loss, formulation, bias=bias)
        for loss in ("hinge", "logistic")
        for bias in (True, False)
    ]
    known = solvers().values()
    return tuple(s.name for s in known if not all(s.why_not(p) for p in problems))


def _C_zero(formulation: Formulation, problem: Problem | None) -> Any:
    return problem and C_zero(problem.with_(formulation=formulation))


def check_formulation(formulation: Formulation, M: int | None = None) -> Any:
    """Judge the closed forms of a formulation by its declaration.

    Each operator with a closed form is compared with what `penalty` gives at sample
    points; the report has `passed`, and prints the largest error of each.
    """
    if not isinstance(formulation, Formulation):
        raise ValueError(f"check_formulation takes a formulation, got {formulation!r}")
    return judge(formulation, fitting(formulation) if M is None else int(M))
