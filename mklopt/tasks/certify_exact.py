"""Bounds of the problem with exact kernels, from a solution with low-rank ones.

Problem. A result was computed with features φ_m, and its certificate bounds the optimum
of that approximated problem. Here f* is the optimum with the kernels k_m themselves:

    lower    the dual value of the result's α with ‖α‖² = Σ_ij α_iα_j k_m(x_i, x_j)
    upper    the primal value of the better of two points, with the best bias:
               sweep      w_m = θ_m Σ_i α_i ψ_m(x_i), weights θ corrected for K_mα
               landmarks  w_m = Σ_l β_ml ψ_m(landmark l), Nyström features alone; other
                          kernels as in the sweep

One sweep over the entries k_m(x_i, x_j) with α_j ≠ 0 gives both (exact_sweep.py).
Random features have no point in the span of a few kernel functions: their upper bound
is that of the sweep. `passes` improve α and θ by block steps on exact rows
(exact_improvement.py); every pass says what it bought.

Guarantee. lower ≤ f* ≤ upper in exact arithmetic for the kernels as functions of the
float64 points: rounding of entries, sums, losses and Ω is counted (kernels/entries.py,
certificates/enclosure.py). These kernels are positive semi-definite by theorems; a
user's own function is assumed to be, and to be exact.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..certificates.certificate import best_shrink, primal_at, relative
from ..certificates.enclosure import exact_point, lower_bound, upper_bound
from ..kernels.entries import Products
from ..kernels.feature_maps import Landmarks
from ..kernels.low_rank import LowRankKernels
from ..problem import Problem
from ..run.pace import Pace
from ..run.result import Result
from ..util.checks import check_flag, check_whole
from ..util.messages import say
from ..util.rounding import TINY, U, gamma, interval
from ..util.threads import with_blas_alone
from .exact_improvement import improved
from .exact_sweep import Cost, Sweep
from .exact_values import Images, corrected_weights

Array = np.ndarray


@dataclass(frozen=True)
class Step:
    """What was known after the sweep, or after a pass of improvement.

    Parameters
    ----------
    name : str
    lower, upper : float
        The best bounds so far.
    seconds : float
        That it took.
    """

    name: str
    lower: float
    upper: float
    seconds: float

    @property
    def relative_gap(self) -> float:
        """(upper − lower)/|upper|."""
        return relative(self.upper - self.lower, self.upper)

    def __str__(self) -> str:
        gap = 100 * self.relative_gap
        ends = f"{self.lower:.8g} to {self.upper:.8g}"
        return f"{self.name}: {ends}, gap {gap:.3g} %, {self.seconds:.1f} s"


@dataclass(frozen=True, eq=False)
class ExactBounds:
    """lower ≤ f* ≤ upper for the problem with exact kernels; made by `certify_exact`.

    Parameters
    ----------
    lower, upper : float
        Bounds in exact arithmetic.
    point : {"sweep", "landmarks"}
        Where the upper bound comes from.
    dual : array (n,) or (n, k)
        α of the lower bound.
    weights : array (M,)
        θ of the sweep's point.
    approximated : tuple of float
        The bounds of the approximated problem, which are no bounds of f*.
    lost_trace : array (M,)
        The share of each trace that the features do not have.
    names : list of str
        The kernels.
    steps : list of Step
        The sweep and the passes, and what each of them bought.
    assumptions : list of str
        What the bounds assume; nothing if it is empty.
    """

    lower: float
    upper: float
    point: str
    dual: Array = field(repr=False)
    weights: Array = field(repr=False)
    approximated: tuple[float, float] = field(repr=False)
    lost_trace: Array = field(repr=False)
    names: list = field(repr=False)
    steps: list[Step] = field(repr=False)
    assumptions: list[str] = field(repr=False)

    @property
    def relative_gap(self) -> float:
        """(upper − lower)/|upper|."""
        return relative(self.upper - self.lower, self.upper)

    def __str__(self) -> str:
        low, high = self.approximated
        gap = relative(high - low, high)
        said = interval(self.lower, self.upper, self.assumptions)
        lost = ", ".join(f"{100 * lost:.3g}" for lost in self.lost_trace[:12])
        more = ", …" if len(self.lost_trace) > 12 else ""
        lines = [
            f"exact kernels: {said}, relative gap {100 * self.relative_gap:.3g} %, all "
            f"rounding counted; upper bound from the {self.point}",
            f"approximated kernels, another problem: {interval(low, high)}, "
            f"relative gap {gap:.1e}",
            f"lost trace in %: {lost}{more}",
        ]
        return "\n".join([*lines, *map(str, self.steps)])


@with_blas_alone
def certify_exact(
    fitted: LowRankKernels,
    result: Result,
    *,
    passes: int = 0,
    progress: str | os.PathLike | None = None,
    dry_run: bool = False,
    verbose: bool = False,
) -> ExactBounds | Cost:
    """Bounds of the problem with exact kernels, from a result with low-rank ones.

    It computes every entry k_m(x_i, x_j) with α_j ≠ 0 once, and stores none.

    Parameters
    ----------
    fitted : LowRankKernels
        The features that the result was computed with.
    result : Result
        Of a problem with `fitted.grams()`.
    passes : int, default=0
        Passes of improvement on exact rows, each as expensive as n² entries.
    progress : str or path, optional
        A file for what is done of the sweep: after a kill, the same call goes on there.
    dry_run : bool, default=False
        Only estimate what the sweep takes.
    verbose : bool, default=False
        Say on stderr what it will take, how far it is, and what each pass bought.

    Returns
    -------
    ExactBounds
        Or Cost, with dry_run.

    Raises
    ------
    ValueError
        If the result is not one of these features, the file is one of another sweep,
        or the loss has no improvement passes.

    Examples
    --------
    >>> import mklopt
    >>> from mklopt import kernels
    >>> from mklopt.formulations import LpNorm
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> fitted = kernels.nystroem(kernels.gaussians([1, 3]), rank=20).fit(X)
    >>> problem = mklopt.Problem(fitted.grams(), np.sign(X[:, 0]), "hinge", LpNorm(p=2))
    >>> bounds = mklopt.certify_exact(fitted, mklopt.solve(problem))
    >>> bounds.lower <= bounds.upper, bounds.relative_gap < 0.1
    (True, True)
    """
    _check(fitted, result)
    check_flag(dry_run, "dry_run")
    check_flag(verbose, "verbose")
    count = check_whole(passes, "passes", 0)
    problem, pace = result.problem, Pace("", 1, False)
    alpha = exact_point(problem, result.dual)
    sweep = Sweep(fitted.entries, alpha)
    if dry_run:
        return sweep.cost()
    tell: Callable[[Any], None] = say if verbose else _be_silent
    if verbose:
        tell(f"exact kernels: {sweep.cost()}")
    images = Images(fitted.entries, sweep.run(progress, verbose), sweep.products.spread)
    best = _Best(fitted, problem, tell)
    best.sweep("sweep", alpha, result.weights, images, pace)
    best.landmarks(result, alpha, images)
    for number in range(count):
        pace = Pace("", 1, False)
        alpha, theta = improved(problem, alpha, best.theta, images)
        best.sweep(f"pass {number + 1}", alpha, theta, images, pace)
    return best.bounds(result)


def _check(fitted: Any, result: Any) -> None:
    if not isinstance(fitted, LowRankKernels):
        raise ValueError(
            f"certify_exact takes low-rank kernels first, got {type(fitted).__name__}; "
            "make them with kernels.nystroem(…).fit(X)"
        )
    if not isinstance(result, Result):
        raise ValueError(
            f"certify_exact takes a Result second, got {type(result).__name__}"
        )
    grams = result.problem.grams
    factored = grams.storage == "factors" and grams.n == fitted.n
    if not factored or not np.array_equal(grams.ranks, fitted.ranks):
        raise ValueError(
            "the result is of another problem: its stack is not the grams() of these "
            "low-rank kernels"
        )


def _be_silent(text: Any) -> None:
    pass


class _Best:
    """The best bounds so far, and the points that show them."""

    def __init__(self, fitted: LowRankKernels, problem: Problem, tell: Any):
        self.fitted, self.problem, self.tell = fitted, problem, tell
        self.lower, self.upper, self.point = -math.inf, math.inf, "sweep"
        self.alpha = np.zeros(problem.shape)
        self.theta = np.zeros(problem.grams.M)
        self.steps: list[Step] = []

    def sweep(
        self, name: str, alpha: Array, theta: Array, images: Images, pace: Pace
    ) -> None:
        """Bounds from α and θ ⊗ α, with K_mα known."""
        problem = self.problem
        v = images.norms_above(alpha)
        shrink = best_shrink(problem, alpha, v)[0]
        lower = lower_bound(problem, alpha, v, shrink)
        theta, bias = corrected_weights(problem, images.values, v, theta)
        f, error = images.predictions(theta, bias)
        u = theta * v * (1 + 4 * U) + TINY * (theta > 0)
        upper = upper_bound(problem, f, error, u)
        if lower > self.lower:
            self.lower, self.alpha = lower, alpha
        if upper < self.upper:
            self.upper, self.point = upper, "sweep"
        self.theta = theta
        self._add(name, pace)

    def landmarks(self, result: Result, alpha: Array, images: Images) -> None:
        """The upper bound of the point in the span of landmarks, if there are any."""
        pace = Pace("", 1, False)
        if not any(isinstance(one, Landmarks) for one in self.fitted.maps):
            return
        f, error, u = self._landmark_point(result, alpha, images)
        bias = primal_at(self.problem, _shaped(self.problem, f), u)[1]
        error = error + 4 * U * (np.abs(f) + np.abs(bias))
        upper = upper_bound(self.problem, f + bias, error, u)
        if upper < self.upper:
            self.upper, self.point = upper, "landmarks"
        self._add("landmarks", pace)

    def _landmark_point(
        self, result: Result, alpha: Array, images: Images
    ) -> tuple[Array, Array, Array]:
        """f without bias, a bound of its error, and upper bounds of the norms."""
        fitted, w, entries = self.fitted, result.features, self.fitted.entries
        near = [m for m, one in enumerate(fitted.maps) if isinstance(one, Landmarks)]
        which = fitted.landmarks
        beta = np.zeros((fitted.M, len(which), w.shape[1]))
        for m in near:
            own = w[fitted.ends[m] : fitted.ends[m + 1]]
            beta[m] = fitted.expansion(m, own)
        products = Products(entries, which, beta)
        theta = np.array(result.weights)
        theta[near] = 0.0
        f, error = images.predictions(theta, 0.0)
        spread = products.spread
        for first in range(0, fitted.n, 65536):
            rows = slice(first, min(first + 65536, fitted.n))
            f[rows] += products.at(rows)[near].sum(axis=0)
        for m in near:
            r = entries.root_squares(m)
            bound = np.abs(beta[m]).T @ r[which] + TINY
            error += np.outer(r, spread[m] + gamma(fitted.M + 4) * bound)
        u = theta * images.norms_above(alpha)
        inside = products.at(which)
        for m in near:
            r = entries.root_squares(m, which)
            quad = float(np.sum(beta[m] * inside[m]))
            sums = r @ np.abs(beta[m])
            lost = spread[m] @ sums + gamma(beta[m].size + 4) * float(sums @ sums)
            u[m] = math.sqrt(max(quad + lost * (1 + 1e-6), 0.0)) * (1 + 8 * U) + TINY
        return f, error * (1 + 1e-6), u

    def _add(self, name: str, pace: Pace) -> None:
        step = Step(name, self.lower, self.upper, pace.seconds)
        self.steps.append(step)
        self.tell(step)

    def bounds(self, result: Result) -> ExactBounds:
        """What was found."""
        found, fitted = result.certificate, self.fitted
        assumptions = []
        if fitted.entries.own:
            assumptions.append("your own kernel functions are exact and positive")
        for part in (self.problem.formulation, self.problem.loss):
            if not part.exact:
                assumptions.append(f"the numerically derived operators of {part.name}")
        return ExactBounds(
            self.lower,
            self.upper,
            self.point,
            self.alpha,
            self.theta,
            (found.lower, found.upper),
            fitted.lost_trace,
            fitted.names,
            self.steps,
            assumptions,
        )


def _shaped(problem: Problem, f: Array) -> Array:
    return f.reshape(problem.shape)
