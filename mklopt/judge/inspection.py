"""What matters about a regularizer, computed from its declaration.

    print(mklopt.inspect(elastic))                     # for M = 3 kernels
    found = mklopt.inspect(elastic, problem=problem)   # for its kernels, with C_zero
    found.draw("ball.png")                             # unit balls, M = 2 or 3
    found.html("elastic.html")                         # all of it on one page

convex          whether CVXPY can see it (DCP), or why not
kind            a norm (Ω(tu) = tΩ(u)), half the square of one, or neither
increasing      in each u_m: without it the problem in w is not convex; a violation
                comes with the point that shows it
kink            the largest s with s e_m ∈ ∂Ω(0). Where all are positive, w = 0 is
                optimal for small C
drop            a point u, a kernel m and a slope s: with the other norms as in u, ‖w_m‖
                stays next to 0 while ‖α‖_{K_m} < s. None: no such point was found
dual            the dual norm at sample points (Ω* where Ω is neither norm nor square)
curvature       a bound on the modulus μ of strong convexity, Ω − (μ/2)‖u‖² convex: the
                smallest second difference among sample points; 0: not strongly convex
known           a known regularizer that is equal to it, read off its expression tree
support         which kernels can vanish, alone or together: proved from known terms
limits          how it grows next to 0 and far away, and what it is for parameters of 0
closed, derived the operators with closed forms, and those derived numerically
solvers         those that accept it with the hinge or the logistic loss

`convex` is a proof by the rules of DCP. `kind`, `increasing` and `curvature` are
judged at sample points, always the same ones: samples can refute them, not prove them.
A drop is shown by its point: Ω is convex, so (Ω(u + h e_m) − Ω(u))/h = s says that no
‖α‖_{K_m} < s makes u_m larger than h.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from inspect import getsource
from itertools import pairwise
from typing import Any

import numpy as np

from ..formulations import Declared, Formulation
from ..formulations.derive.epigraph import DerivationError
from ..grams.stack import GramStack
from ..problem import Problem
from ..reference.c_zero import C_zero
from ..solvers import that_can
from ..util.checks import short
from ..util.files import write_whole
from ..util.tables import bold, facts
from .closed_forms import CHECKS, FormulationReport, check_closed_forms
from .inspection_page import page
from .support import limits, support
from .unit_balls import draw, dual_norm

Array = np.ndarray
CLOSE = 1e-6  # relative: derived values are good to 1e-8
MIN_CURVATURE = 1e-4  # a smaller second difference is taken for 0
MAX_KERNELS = 10_000  # for more, declarations do not fit in memory
MAX_AXES = 5  # axes that are looked at, of many


@dataclass(frozen=True)
class Drop:
    """A point that shows how a kernel is dropped.

    Parameters
    ----------
    u : array of shape (M,)
        The other block norms; that of the kernel is 0.
    kernel : int
        Its number m.
    slope : float
        s: with the others as in u, ‖w_m‖ ≤ h while ‖α‖_{K_m} < s.
    h : float
        A small number.
    """

    u: Array
    kernel: int
    slope: float
    h: float

    def __str__(self) -> str:
        m, at = self.kernel, np.array2string(self.u, precision=3, threshold=8)
        while_below = f"while ‖α‖_K{m} < {self.slope:.4g}"
        return f"at u = {at}, ‖w_{m}‖ stays below {self.h:g} {while_below}"


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
    drop : Drop or None
        A point that shows how a kernel is dropped; None where none was found.
    dual : dict of str to float
        The dual norm (or Ω*) at sample points.
    curvature : float
        An upper bound of the modulus of strong convexity; 0 where it is 0.
    solvers : tuple of str
        The solvers that accept it with the hinge or the logistic loss.
    C_zero : float or array or None
        The largest C at which all weights are zero, of the problem that was given.
    known : str
        A known regularizer that is equal to it; empty where there is none.
    support : str
        Which kernels can vanish while others are used, proved; empty: not known.
    limits : dict of str to str
        Limit cases, and what Ω is there.
    """

    formulation: Formulation = field(repr=False)
    M: int
    why_not_convex: str = ""
    degree: float | None = None
    violation: str = ""
    kink: dict[int, float] = field(default_factory=dict)
    drop: Drop | None = None
    dual: dict[str, float] = field(default_factory=dict)
    curvature: float = 0.0
    solvers: tuple[str, ...] = ()
    C_zero: Any = None
    known: str = ""
    support: str = ""
    limits: dict[str, str] = field(default_factory=dict)

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
        """Whether kernels can be dropped; `drop` shows how."""
        return self.drop is not None

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
            return "neither a norm nor half the square of one"
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

    def html(self, path: str | os.PathLike | None = None) -> str:
        """Everything on one page of HTML, with the unit ball for M = 2 or 3.

        Parameters
        ----------
        path : path, optional
            Where to write it.

        Returns
        -------
        str
            The page.
        """
        made = page(self)
        if path is not None:
            write_whole(path, made.encode())
        return made

    def _repr_html_(self) -> str:
        name = f"{self.formulation!r}, M = {self.M}"
        return f"{bold(escape(name))}{facts(dict(self.facts()))}"

    @property
    def source(self) -> str:
        """The lines that declare it; empty where they are not at hand."""
        function = getattr(self.formulation, "function", None)
        try:
            return textwrap.dedent(getsource(function)) if function else ""
        except (OSError, TypeError):  # typed into an interpreter, or of a library
            return ""

    def __str__(self) -> str:
        name = f"{self.formulation!r}, M = {self.M}"
        return "\n  ".join([name, *(f"{fact}: {said}" for fact, said in self.facts())])

    def facts(self) -> Iterator[tuple[str, str]]:
        """What is known, as pairs of a name and a sentence.

        Yields
        ------
        tuple of str
        """
        if not self.convex:
            yield "not known to be convex", self.why_not_convex
            return
        yield "convex (DCP)", f"at sample points {self.kind}"
        if self.violation:
            yield "not increasing", self.violation
            return
        yield "increasing", "at sample points"
        if self.known:
            yield "known as", self.known
        yield from self._sparsity()
        for case, said in self.limits.items():
            yield f"limit {case}", said
        word = "Ω°" if self.norm or self.squared else "Ω*"
        values = "; ".join(f"{word}({v}) = {x:.6g}" for v, x in self.dual.items())
        yield "dual norm" if word == "Ω°" else "conjugate", values
        largest = 1.001 * self.curvature + MIN_CURVATURE  # derived values are inexact
        modulus = "0" if self.norm else f"at most {largest:.3g}"
        yield "modulus of strong convexity", modulus
        if self.C_zero is not None:
            yield "all weights are zero up to C", f"{np.max(self.C_zero):.6g}"
        yield "closed forms", ", ".join(self.closed) or "none"
        yield "derived numerically", ", ".join(self.derived) or "none"
        yield "solvers (hinge or logistic loss)", ", ".join(self.solvers)

    def _sparsity(self) -> Iterator[tuple[str, str]]:
        kinks = [f"{s:.4g} in u_{m}" for m, s in self.kink.items() if s > 0]
        all_zero = "; w = 0 is optimal for small C" * (len(kinks) == self.M)
        yield "kink at 0", f"{', '.join(kinks) or 'none found'}{all_zero}"
        if self.support:
            yield "can vanish, proved", self.support
        seen = str(self.drop or "not seen at sample points")
        yield "kernels can be dropped", seen


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
        If the first argument is no formulation, M is not a whole number from 1 on, or
        the formulation fits no number of kernels.

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
    if problem is not None and not isinstance(problem, Problem):
        raise ValueError(f"problem = {problem!r}; give a Problem, or leave it out")
    M = _count(formulation, M if problem is None else problem.grams.M)
    try:
        formulation.epigraph(M).cones  # noqa: B018
    except (ValueError, DerivationError) as error:
        return Inspection(formulation, M, str(error))
    formulation = formulation.bound(M)
    degree, violation = _degree(formulation, M), _violation(formulation, M)
    if violation:
        return Inspection(formulation, M, degree=degree, violation=violation)
    return Inspection(
        formulation,
        M,
        degree=degree,
        kink=dict(_kink(formulation, M, degree)),
        drop=next(_drops(formulation, M), None),
        dual=dict(_dual(formulation, M, degree)),
        curvature=_curvature(formulation, M, degree),
        solvers=_solvers(formulation, M),
        C_zero=problem and C_zero(problem.with_(formulation=formulation)),
        known=_known(formulation, M),
        support=support(formulation, M),
        limits=limits(formulation, M, degree),
    )


def _known(formulation: Formulation, M: int) -> str:
    """The twin of a declaration, in words."""
    twin = formulation.twin(M) if isinstance(formulation, Declared) else None
    if twin is None:
        return ""
    same = twin.exact if twin.form is None else twin.form.exact
    rounded = "" if same else ", up to rounded constants"
    return f"{twin.words}{rounded}"


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
    M = _count(formulation, M)
    return check_closed_forms(formulation.bound(M), M)


def _count(formulation: Formulation, M: Any) -> int:
    """The number of kernels that was given, or one that fits."""
    if M is None:
        return fitting(formulation)
    whole = isinstance(M, int | np.integer) and not isinstance(M, bool)
    if not whole or not 1 <= M <= MAX_KERNELS:
        raise ValueError(f"M = {short(M)}; give a whole number from 1 to {MAX_KERNELS}")
    return int(M)


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
    except Exception:  # a mistake of another kind, which `inspect` tells
        return True
    return True


def _samples(M: int, count: int = 6) -> Array:
    """Points of the orthant, every second one with zeros; always the same ones."""
    rng = np.random.default_rng(0)
    drawn = rng.uniform(0.1, 2.0, size=(count, M))
    drawn[1::2] *= rng.random((len(drawn[1::2]), M)) < 0.7
    return drawn


def _degree(formulation: Formulation, M: int) -> float | None:
    """d with Ω(t u) = t^d Ω(u), if there is one."""
    if not abs(formulation.value(np.zeros(M))) <= CLOSE:
        return None
    found = []
    for u in (*np.eye(M), *_samples(M)):
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
                if here - there > CLOSE * (1 + abs(there)):  # also from infinity
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
    if zero == 0 and f.has_sharp_values(len(axis)):  # nothing cancels
        coarse, fine = (f.value(h * axis) / h for h in (1e-100, 1e-200))
        return float(fine) if fine >= 0.999 * coarse else 0.0
    coarse, fine = ((f.value(h * axis) - zero) / h for h in (1e-3, 1e-4))
    if fine < 0.97 * coarse or fine < 10 * CLOSE:
        return 0.0
    return float(fine + (fine - coarse) / 9)  # extrapolated to h = 0


def _drops(f: Formulation, M: int) -> Iterator[Drop]:
    """Points where the slope at u_m = 0 is positive: others at 1, one at 1, or 0."""
    axes = np.unique(np.linspace(0, M - 1, min(M, MAX_AXES)).astype(int))
    # Derived values are good to 1e-9, others to 1e-15: so is h times a slope.
    near, far = (1e-6, 1e-3) if f.has_sharp_values(M) else (1e-4, 1e-2)
    for m in axes.tolist():
        away = np.eye(M)[m]
        for u in (1 - away, *np.eye(M)[axes[axes != m]], 0 * away):
            here = f.value(u)
            if not np.isfinite(here):
                continue
            small, large = ((f.value(u + h * away) - here) / h for h in (near, far))
            if small > max(0.9 * large, 1e-3 * (1 + abs(here))) or np.isinf(small):
                yield Drop(u, m, float(small), near)


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
