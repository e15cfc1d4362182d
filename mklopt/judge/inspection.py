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
solvers         those that accept it with the hinge or the logistic loss

`convex` is a proof by the rules of DCP. `kind`, `increasing` and `curvature` are
judged at sample points, always the same ones: samples can refute them, not prove them.
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
from ..solvers import that_can
from .closed_forms import CHECKS, FormulationReport, check_closed_forms
from .unit_balls import draw, dual_norm

Array = np.ndarray
CLOSE = 1e-6  # relative: derived values are good to 1e-8
MIN_CURVATURE = 1e-4  # a smaller second difference is taken for 0
MAX_AXES = 5  # axes that are looked at, of many


@dataclass(frozen=True)
class Inspection:
    """What is known of a regularizer for M kernels; `print` shows all of it.

    Parameters
    ----------
    formulation : Formulation
        The regularizer Ω.
    M : int
        The number of kernels.
    why_not_convex : str
        Empty, or why CVXPY cannot see that it is convex. Then nothing else is known.
    degree : float or None
        d with Ω(tu) = t^d Ω(u); None where there is none.
    violation : str
        Empty, or a point where Ω falls as a block norm grows.
    kink : dict of int to float
        Ω'(0; e_m) along some of the axes m.
    dual : dict of str to float
        The dual norm (or Ω*) at sample points.
    curvature : float
        An upper bound of the modulus of strong convexity; 0 where it is 0.
    solvers : tuple of str
        The solvers that accept it with the hinge or the logistic loss.
    C_zero : float or array or None
        The largest C at which all weights are zero, of the problem that was given.
    """

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
        """Whether CVXPY can see that Ω is convex (DCP)."""
        return not self.why_not_convex

    @property
    def increasing(self) -> bool:
        """Whether Ω is convex and increases in each block norm, at sample points."""
        return self.convex and not self.violation

    @property
    def norm(self) -> bool:
        """Whether Ω is a norm."""
        return self.increasing and self.degree == 1

    @property
    def squared(self) -> bool:
        """Whether Ω is half the square of a norm."""
        return self.increasing and self.degree == 2

    @property
    def sparse(self) -> bool:
        """Whether kernels can be dropped: Ω has a kink at 0 along some axis."""
        return any(size > 0 for size in self.kink.values())

    @property
    def closed(self) -> tuple[str, ...]:
        """The operators with a closed form."""
        return tuple(n for n in CHECKS if self.formulation.closed(n))

    @property
    def derived(self) -> tuple[str, ...]:
        """The operators that are derived numerically."""
        return tuple(n for n in CHECKS if not self.formulation.closed(n))

    @property
    def kind(self) -> str:
        """A norm, half the square of one, or neither, in words."""
        if self.degree is None:
            return "not homogeneous: neither a norm nor its square"
        if self.norm:
            return "a norm"
        if self.squared:
            return "half the square of a norm"
        return f"homogeneous of degree {self.degree:.4g}"

    def draw(self, path: str | os.PathLike | None = None) -> Any:
        """Draw the unit ball, for M = 2 with its dual ball.

        Parameters
        ----------
        path : path, optional
            Where to write it: with an ending one file, without PNG and PDF.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ValueError
            If Ω is not convex and increasing, or M is neither 2 nor 3.
        """
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
        kinks = ", ".join(f"{size:.4g} at u_{m}" for m, size in self.kink.items())
        dropped = f"{kinks}; kernels below it are dropped"
        yield f"kink at 0: {dropped if self.sparse else 'none, no kernel is dropped'}"
        word = "Ω°" if self.norm or self.squared else "Ω*"
        yield "; ".join(f"{word}({v}) = {x:.6g}" for v, x in self.dual.items())
        strong = f"modulus at most {self.curvature:.3g}" if self.curvature else "no"
        yield f"strongly convex: {strong}"
        if self.C_zero is not None:
            yield f"all weights are zero up to C = {np.max(self.C_zero):.6g}"
        yield f"closed forms: {', '.join(self.closed) or 'none'}"
        yield f"derived numerically: {', '.join(self.derived) or 'none'}"
        yield f"solvers: {', '.join(self.solvers)}"


def inspect(
    formulation: Formulation, M: int | None = None, *, problem: Problem | None = None
) -> Inspection:
    """Compute what matters about a regularizer from its declaration.

    Parameters
    ----------
    formulation : Formulation
        An instance such as LpNorm(p=2), or a function with @mklopt.formulation.
    M : int, optional
        The number of kernels. By default that of the problem, or 3, or a number that
        the parameters of the formulation allow.
    problem : Problem, optional
        With it `C_zero` is computed, too; its own formulation is replaced.

    Returns
    -------
    Inspection
        Its properties are explained in mklopt.judge.inspection.

    Raises
    ------
    ValueError
        If the first argument is no formulation, or fits no number of kernels.

    Examples
    --------
    >>> import mklopt
    >>> from mklopt.formulations import GroupLasso
    >>> mklopt.inspect(GroupLasso()).kind
    'a norm'
    """
    if not isinstance(formulation, Formulation):
        raise ValueError(
            f"inspect takes a formulation, got {formulation!r}; make one with "
            "@mklopt.formulation, or call a class with its parameters"
        )
    if problem is not None:
        M = problem.grams.M
    M = fitting(formulation) if M is None else int(M)
    try:
        formulation.epigraph(M).cones  # noqa: B018
    except (ValueError, DerivationError) as error:
        return Inspection(formulation, M, str(error))
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
        C_zero=problem and C_zero(problem.with_(formulation=formulation)),
    )


def check_formulation(
    formulation: Formulation, M: int | None = None
) -> FormulationReport:
    """Check the closed forms of a formulation against its declaration.

    Each operator with a closed form is compared with what `penalty` gives at sample
    points. One call tells which of them is wrong.

    Parameters
    ----------
    formulation : Formulation
        An instance, with closed forms or without.
    M : int, optional
        The number of kernels; by default 3, or a number that its parameters allow.

    Returns
    -------
    FormulationReport
        `passed`, `failures`, and a table with the largest error of each operator.

    Raises
    ------
    ValueError
        If the first argument is no formulation, or does not fit M kernels.

    Examples
    --------
    >>> import mklopt
    >>> from mklopt.formulations import GroupLasso
    >>> mklopt.check_formulation(GroupLasso()).passed
    True
    """
    if not isinstance(formulation, Formulation):
        raise ValueError(f"check_formulation takes a formulation, got {formulation!r}")
    return check_closed_forms(
        formulation, fitting(formulation) if M is None else int(M)
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
        if not isinstance(formulation, Declared):  # its validate asks for more
            formulation.validate(M)
        formulation.penalty(cp.Variable(M, nonneg=True))
    except (IndexError, ValueError):
        return False
    return True


def _samples(M: int, count: int = 6) -> Array:
    """Points of the orthant, every second one with zeros; always the same ones."""
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
            if not (0 < here < np.inf and 0 < there < np.inf):
                return None
            found.append(np.log(there / here) / np.log(t))
    d = float(np.median(found))
    d = round(d) if abs(d - round(d)) < CLOSE else d
    return float(d) if np.max(np.abs(np.array(found) - d)) < CLOSE else None


def _violation(formulation: Formulation, M: int) -> str:
    """A sentence with the point where Ω falls as a block norm grows, or nothing."""
    corners = [np.zeros(M), np.ones(M), *np.eye(M)[:MAX_AXES]]
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
    for m in np.unique(np.linspace(0, M - 1, min(M, MAX_AXES)).astype(int)).tolist():
        axis = np.eye(M)[m]
        if degree is None:
            yield m, _slope_at_0(f, axis)
        else:
            yield m, float(f.value(axis)) if degree == 1 else 0.0


def _slope_at_0(f: Formulation, axis: Array) -> float:
    """The limit of (Ω(h e) − Ω(0))/h; 0 where these still fall by a power of h."""
    zero = f.value(0 * axis)
    coarse, fine = ((f.value(h * axis) - zero) / h for h in (1e-3, 1e-4))
    if fine < 0.97 * coarse or fine < 10 * CLOSE:
        return 0.0
    return float(fine + (fine - coarse) / 9)  # extrapolated to h = 0


def _dual(f: Formulation, M: int, degree: float | None) -> Iterator[tuple[str, float]]:
    """The dual norm at an axis, at 1, and for few kernels at (1, 2, …)."""
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
    pairs += [(a, a + 0.2 * e) for a in points[:4] for e in np.eye(M)[:8]]
    found, a, b = min(
        ((_second_difference(formulation, *p), *p) for p in pairs), key=lambda t: t[0]
    )
    rng = np.random.default_rng(1)
    for _ in range(60):  # a random walk from the best pair
        near = np.abs(np.array([a, b]) + rng.normal(0, 0.2, size=(2, M)))
        bend = _second_difference(formulation, *near)
        if bend < found:
            found, (a, b) = bend, near
    return float(found) if found > MIN_CURVATURE else 0.0


def _second_difference(formulation: Formulation, a: Array, b: Array) -> float:
    ends = 0.5 * formulation.value(a) + 0.5 * formulation.value(b)
    size = float(np.sum((a - b) ** 2))
    if not np.isfinite(ends) or size < 1e-2:  # closer points differ by rounding errors
        return np.inf
    return 8 * (ends - formulation.value(0.5 * (a + b))) / size


def _solvers(formulation: Formulation, M: int) -> tuple[str, ...]:
    kernels, y = GramStack([np.eye(4)] * M), np.array([1.0, -1, 1, -1])
    found = {
        name
        for loss in ("hinge", "logistic")
        for bias in (True, False)
        for name in that_can(Problem(kernels, y, loss, formulation, bias=bias))
    }
    return tuple(sorted(found))
