"""Generalized MKL: the parameters d of a kernel family K(d), products included.

Problem. min over d in a convex set of

    W(d) = r(d) + max over α   −C Σ V*(−α_i/C) − ½ αᵀK(d)α

For sums with a convex r this is an ordinary Problem, and solvers/spg.py solves and
certifies it. For products it is not convex: what can be said of a d is how far it is
from stationary, and how well the machine at d was solved.

Algorithm (Jain, Vishwanathan and Varma 2012): projected gradient descent, spectral or
with the rule of Armijo (steps/spectral_descent.py), with the gradient of the envelope,
∇W = ∇r − ½∂(αᵀKα)/∂d at the α of the machine (Danskin).

Guarantee. `stationarity` is ‖d − P(d − ∇W)‖∞ at the returned d, with a machine solved
apart from the descent, to `machine.relative_gap`; the status is what follows from it.
K(d) + δI is proved positive semi-definite before the machine is certified, or the
status says that it is not. reference.envelope_agreement(result) compares ∇W with
differences of the value that OSQP finds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..certificates.certificate import certify
from ..formulations.fixed_weights import FixedWeights
from ..formulations.group_lasso import GroupLasso
from ..grams.stack import GramStack
from ..problem import Problem
from ..reference import equivalences as maps
from ..solvers.machines import svm
from ..solvers.steps.spectral_descent import Point, descend
from ..util.arrays import real_array
from .families import Sum
from .regularizers import Given, Regularizer, SquaredNorm, Total

Array = np.ndarray
PAPER = 0.04  # the projected gradient at which the paper stops
FAR = 1e12  # times where it began: d or −W beyond it have no end
SWITCHES = ("spectral", "nonmonotone", "tune", "scaled", "remember")
METHODS = {
    "spg": dict.fromkeys(SWITCHES, True) | {"remember": False},
    "pgd": dict.fromkeys(SWITCHES, False),
}
STATUS = {
    "stationary": "the projected gradient is at most tol",
    "max_iter": "the limit on steps came first",
    "time_limit": "the limit on time came first",
    "stalled": "no step along the gradient lowers W any more",
    "unbounded": "W falls without end: r(d) does not hold d back",
    "imprecise": "the projected gradient is at most tol for a loose machine only",
    "thresholded": "the projected gradient was at most tol before thresholding",
    "indefinite": "the kernel at d is not positive semi-definite",
    "interrupted": "interrupted; this is the best point so far",
    "failed": "an error came first; this is the best point before it",
    "empty": "every parameter is 0",
}


def nonnegative(d: Array) -> Array:
    """The projection onto d ≥ 0."""
    return np.maximum(d, 0.0)


@dataclass(frozen=True, eq=False)
class KernelFamilyProblem:
    """One learning problem over a kernel family, checked when it is made.

    family: Sum, Product, Polynomial (families.py), or anything with M, n, combine(d)
        and gradient(d, α)
    y, loss, C, bias: as in Problem; the loss needs a quadratic dual
    regularizer: r(d), see regularizers.py; or a pair of functions (r, its gradient)
    project: the projection onto the set of d, d ≥ 0 by default
    """

    family: Any
    y: Array
    loss: Any = "hinge"
    regularizer: Any = field(default_factory=Total)
    C: Any = 1.0
    bias: bool = True
    project: Callable[[Array], Array] = nonnegative
    shell: Problem = field(init=False, repr=False)  # loss, labels and C of the machine

    def __post_init__(self) -> None:
        for name in ("M", "n", "combine", "gradient"):
            if not hasattr(self.family, name):
                raise ValueError(
                    f"{self.family!r} is no kernel family: it has no {name}; give "
                    "mklopt.families.Product(distances) or the like"
                )
        if isinstance(self.regularizer, tuple) and len(self.regularizer) == 2:
            made = Given(*self.regularizer)
            object.__setattr__(self, "regularizer", made)
        if not isinstance(self.regularizer, Regularizer):
            raise ValueError(
                f"regularizer = {self.regularizer!r}; give one of "
                "mklopt.regularizers, or a pair of functions (r, its gradient)"
            )
        self.regularizer.validate(self.family.M)
        if not callable(self.project):
            raise ValueError(
                f"project = {self.project!r}; give a function d -> the nearest d of "
                "the set"
            )
        ones = GramStack.from_factors([np.ones((self.family.n, 1))])
        shell = Problem(ones, self.y, self.loss, FixedWeights([1.0]), self.C, self.bias)
        if shell.loss.quadratic(shell.y, shell.costs) is None:
            raise ValueError(
                f"the dual of {shell.loss.name} is not quadratic; choose hinge, "
                "squared, eps_insensitive, huber or quantile"
            )
        object.__setattr__(self, "shell", shell)
        object.__setattr__(self, "y", shell.y)

    def machine(self, d: Array) -> Problem:
        """The SVM at d, as an ordinary problem with one kernel."""
        K = np.asarray(self.family.combine(d))
        return self.shell.with_(grams=GramStack(K[None]))

    def as_problem(self) -> Problem:
        """The convex Problem with the same d, for sums with r(d) = wΣd or (w/2)‖d‖_p².

        With the first, W is √(2w) times the objective of that problem.
        """
        if not isinstance(self.family, Sum) or self.project is not nonnegative:
            raise ValueError(
                f"{self!r} is no ordinary Problem: only sums of kernels over d ≥ 0 "
                "are; solve it with mklopt.gmkl.solve"
            )
        plain = self.shell.with_(grams=self.family.stack, formulation=GroupLasso())
        price = self.regularizer
        if type(price) is Total:
            return maps.jain_l1(plain, weight=price.weight)
        if type(price) is SquaredNorm:
            return maps.jain_lp(plain, price.p, weight=price.weight)
        raise ValueError(
            f"there is no map for r(d) = {type(price).__name__}: Total and SquaredNorm "
            "have one; solve it with mklopt.gmkl.solve"
        )

    def __repr__(self) -> str:
        kind, loss = type(self.regularizer).__name__, self.shell.loss.name
        return f"KernelFamilyProblem({loss}, {self.family!r}, {kind}, C={self.C})"


class Envelope:
    """W(d) by one machine, warm-started; ∇W by Danskin. Serves `descend`."""

    def __init__(self, problem: KernelFamilyProblem, tune: bool):
        self.problem, self.tune, self.bias = problem, tune, 0.0
        self.solves, self.work = 0, 0.0
        shell = problem.shell
        zero = np.zeros(shell.shape)
        self.worst = float(shell.costs @ shell.loss.value(zero, shell.y))
        self.noise = (1e-3 if tune else 1e-9) * self.worst
        self.alpha: Array | None = None

    def value(self, d: Array) -> float:
        problem, self.d = self.problem, d
        K = problem.family.combine(d)
        found = svm.solve(problem.shell, K, self.alpha, tol=self.noise)
        self.alpha, self.bias = problem.shell.feasible(found.alpha), found.bias
        self.solves, self.work = self.solves + 1, self.work + found.work
        inner = problem.shell.dual_loss(self.alpha) - 0.5 * float(
            self.alpha @ K @ self.alpha
        )
        return problem.regularizer.value(d) + inner

    def gradient(self) -> Array:
        problem = self.problem
        bend = problem.family.gradient(self.d, self.alpha)
        return np.asarray(problem.regularizer.gradient(self.d) - 0.5 * bend)

    def project(self, d: Array) -> Array:
        return np.asarray(self.problem.project(d), float)

    def sharpen(self) -> None:
        self.noise = max(0.1 * self.noise, 1e-14 * self.worst)

    def set_tolerance(self, point: Point) -> None:
        """P: a machine is as precise as the decrease that the next step promises."""
        if self.tune:
            low, high = 1e-12 * self.worst, self.noise
            self.noise = float(np.clip(0.1 * point.falls, low, high))

    def stationarity(self, point: Point) -> float:
        """‖d − P(d − ∇W)‖∞; for d ≥ 0 it is min(d, ∇W), where nothing cancels."""
        if self.problem.project is nonnegative:
            gone = np.minimum(point.d, point.slope)
        else:
            gone = point.d - self.project(point.d - point.slope)
        return float(np.max(np.abs(gone)))

    def precisely(self, d: Array) -> tuple[float, Array, float]:
        """W, ∇W and the projected gradient at d, the machine solved to rounding."""
        self.noise = 1e-11 * self.worst
        value, slope = self.value(d), self.gradient()
        return value, slope, self.stationarity(Point(d, value, slope, slope))


@dataclass(frozen=True, eq=False)
class FamilyResult:
    """Where a descent ended, and what is known of that point.

    d, dual, bias: the point; value: W there
    stationarity: ‖d − P(d − ∇W)‖∞, 0 at a stationary point
    machine: the certificate of the SVM at d (not of d); None for an indefinite K(d)
    history: seconds, svm_solves, value and stationarity, one entry per step
    """

    problem: KernelFamilyProblem = field(repr=False)
    solver: str
    status: str
    message: str
    d: Array = field(repr=False)
    dual: Array = field(repr=False)
    bias: Any = field(repr=False)
    value: float
    stationarity: float
    machine: Any = field(repr=False)  # a Certificate, or None
    slope: Array = field(repr=False)
    history: dict[str, Array] = field(repr=False)

    def decision(self, test: Any) -> Array:
        """f at new points, from what the family's `cross` takes."""
        K = self.problem.family.cross(self.d, test)
        return np.asarray(K @ self.dual + self.bias)

    def __str__(self) -> str:
        used = int(np.sum(self.d > 1e-6 * np.max(self.d, initial=0.0)))
        solves = int(self.history["svm_solves"][-1])
        return (
            f"{self.solver}: {self.status} ({self.message or STATUS[self.status]})\n"
            f"  W = {self.value:.8g}, projected gradient {self.stationarity:.1e}, "
            f"{used} of {len(self.d)} parameters in use\n"
            f"  {self._machine()}\n"
            f"  {solves} machines, {self.history['seconds'][-1]:.2f} s"
        )

    def _machine(self) -> str:
        found = self.machine
        if found is None:
            return "machine at d: not certified"
        return (
            f"SVM at d: {found.dual:.8g} to {found.primal:.8g}, apart by "
            f"{found.relative_gap:.1e}, for K(d) + δI with δ = {found.shift[0]:.1e}"
        )


def solve(
    problem: KernelFamilyProblem,
    solver: str = "spg",
    *,
    tol: float = 1e-3,
    start: Any = None,
    max_iter: int | None = 1000,
    time_limit: float | None = None,
    threshold: float = 0.0,
    stop: str | None = None,
    longest: float | None = None,
    **switches: bool,
) -> FamilyResult:
    """Descend to a stationary d.

    solver: "spg", or "pgd" (Armijo, precise machines)
    tol: the projected gradient to stop at; stop="paper": 0.04, as in the paper
    start: d to begin with, 1/M each by default
    max_iter, time_limit: stop after so many steps, or seconds; None: no limit
    threshold: parameters below this part of the largest are set to 0 at the end
    longest: λ_max of the spectral step, 10 in the paper; None: it may grow
    switches: spectral, nonmonotone, tune: S, N and P one by one; scaled, our metric,
        where the set is d ≥ 0; remember, for searches without S (spectral_descent.py)

    Ctrl-C, or an error on the way, brings back the best point so far.
    """
    _check(problem, tol, max_iter, time_limit, threshold, stop, longest)
    chosen = _switches(problem, solver, switches)
    tol = PAPER if stop == "paper" else tol
    envelope = Envelope(problem, chosen.pop("tune"))
    rows: list[tuple[float, ...]] = []
    begun, status, message, best = time.perf_counter(), "max_iter", "", None
    try:
        first = _start(problem, start)
        for point in descend(envelope, first, longest=longest, **chosen):
            size, now = envelope.stationarity(point), time.perf_counter() - begun
            if size <= tol:
                size = _confirmed(envelope, point.d, tol)
            rows.append((now, envelope.solves, point.value, size))
            if best is None or point.value <= best.value:
                best = point
            verdict = _verdict(rows, point, envelope, tol, max_iter, time_limit)
            if verdict:
                status, best = verdict, point if verdict == "stationary" else best
                break
            envelope.set_tolerance(point)
    except (KeyboardInterrupt, Exception) as error:
        if best is None:
            raise
        stopped = isinstance(error, KeyboardInterrupt)
        status = "interrupted" if stopped else "failed"
        message = "" if stopped else f"{type(error).__name__}: {error}"
    assert best is not None
    history = dict(zip(("seconds", "svm_solves", "value", "stationarity"), zip(*rows)))
    columns = {name: np.array(column) for name, column in history.items()}
    d = _thresholded(problem, best.d, threshold)
    cut = not np.array_equal(d, best.d)
    return _judged(problem, solver, (status, message), d, cut, tol, columns)


def _confirmed(envelope: Envelope, d: Array, tol: float) -> float:
    """The projected gradient of a precise machine; where it is not small, sharpen."""
    sharp = Envelope(envelope.problem, tune=False)
    sharp.alpha = envelope.alpha
    size = sharp.precisely(d)[2]
    envelope.solves += 1
    if size > tol:
        envelope.sharpen()
    return size


def _verdict(
    rows: list,
    point: Point,
    envelope: Envelope,
    tol: float,
    most: int | None,
    limit: float | None,
) -> str:
    first, (seconds, _, _, size) = rows[0][2], rows[-1]
    if size <= tol:
        return "stationary"
    low = -FAR * max(envelope.worst, abs(first))
    if np.max(np.abs(point.d)) > FAR or point.value < low:
        return "unbounded"
    if most is not None and len(rows) >= most:
        return "max_iter"
    if limit is not None and seconds >= limit:
        return "time_limit"
    stuck = envelope.noise <= 2e-14 * envelope.worst
    return "stalled" if stuck else ""


def _thresholded(problem: KernelFamilyProblem, d: Array, threshold: float) -> Array:
    """Small parameters set to 0, and the rest back in the set."""
    if threshold == 0:
        return d
    size = np.abs(d)
    kept = np.where(size < threshold * np.max(size, initial=0.0), 0.0, d)
    return np.asarray(problem.project(kept), float)


def _judged(
    problem: KernelFamilyProblem,
    solver: str,
    ended: tuple[str, str],
    d: Array,
    cut: bool,
    tol: float,
    history: dict[str, Array],
) -> FamilyResult:
    """The point with its machine solved to rounding, and the status that it earns."""
    status, message = ended
    envelope = Envelope(problem, tune=False)
    value, slope, size = envelope.precisely(d)
    if size <= tol and status not in ("interrupted", "failed", "unbounded"):
        status = "stationary"
    elif status == "stationary":
        status = "thresholded" if cut else "imprecise"
        message = _why(size, tol, cut)
    if not np.any(d):
        status, message = "empty", _nothing_left(cut)
    alpha, bias, inner = np.asarray(envelope.alpha), envelope.bias, None
    try:
        machine = problem.machine(d)
        machine.grams.verify_psd()
        inner = certify(machine, alpha, np.ones(1))
        alpha, bias = inner.alpha, inner.bias
    except ValueError as error:
        if status not in ("unbounded", "failed"):
            status, message = "indefinite", f"at this d, {error}"
    point = (d, alpha, bias, value, size, inner, slope, history)
    return FamilyResult(problem, solver, status, message, *point)


def _why(size: float, tol: float, cut: bool) -> str:
    if cut:
        return (
            f"thresholding raised the projected gradient to {size:.1e}, above tol = "
            f"{tol:.1e}: threshold less, or start again from this d"
        )
    return (
        f"with a precise machine the projected gradient is {size:.1e}, above tol = "
        f"{tol:.1e}: raise tol, or start again from this d"
    )


def _nothing_left(cut: bool) -> str:
    how = "was thresholded away" if cut else "went to 0"
    return (
        f"every parameter {how} and no kernel is left: weigh the regularizer less, "
        "threshold less, or raise C"
    )


def _check(
    problem: Any,
    tol: Any,
    max_iter: Any,
    time_limit: Any,
    threshold: Any,
    stop: Any,
    longest: Any,
) -> None:
    if not isinstance(problem, KernelFamilyProblem):
        raise ValueError(
            f"gmkl.solve takes a KernelFamilyProblem first, got "
            f"{type(problem).__name__}; a Problem is for mklopt.solve"
        )
    limits = {
        "tol": (tol, 0),
        "max_iter": (max_iter, 1),
        "time_limit": (time_limit, 0),
        "threshold": (threshold, 0),
        "longest": (longest, 1e-30),
    }
    for name, (value, least) in limits.items():
        if value is None and name not in ("tol", "threshold"):
            continue
        number = isinstance(value, int | float | np.integer | np.floating)
        if not number or isinstance(value, bool) or not value >= least:
            raise ValueError(f"{name} = {value!r}; give a number ≥ {least}")
    if stop not in (None, "paper"):
        raise ValueError(f"stop = {stop!r}; choose 'paper' or None")


def _switches(
    problem: KernelFamilyProblem, solver: str, given: dict[str, bool]
) -> dict[str, bool]:
    if solver not in METHODS:
        raise ValueError(f"solver = {solver!r}; choose one of {', '.join(METHODS)}")
    unknown = sorted(set(given) - set(SWITCHES))
    if unknown:
        known = ", ".join(SWITCHES)
        raise ValueError(f"{solver} has no option {', '.join(unknown)}; it has {known}")
    found = METHODS[solver] | given
    if problem.project is not nonnegative:  # its projection is of another metric
        found["scaled"] = given.get("scaled", False)
    return found


def _start(problem: KernelFamilyProblem, start: Any) -> Array:
    """Where to begin, in the set, with a finite r and gradient there."""
    M = problem.family.M
    many = f"{M} finite numbers, one per parameter"
    d = np.full(M, 1 / M) if start is None else real_array(start, "start", many)
    if d.shape != (M,) or not np.all(np.isfinite(d)):
        raise ValueError(f"start has shape {d.shape}; give {many}")
    projected = real_array(problem.project(d), "project(d)", many)
    if projected.shape != (M,) or not np.all(np.isfinite(projected)):
        raise ValueError(f"project(d) has shape {projected.shape}; expected {many}")
    if not np.any(projected):
        raise ValueError(
            "start: every parameter is 0, no kernel is left; begin with some d > 0"
        )
    price = problem.regularizer
    value, slope = price.value(projected), price.gradient(projected)
    if not np.isfinite(value) or not np.all(np.isfinite(slope)):
        raise ValueError(
            f"r(d) = {value} at the start, with gradient {slope}; both must be finite: "
            "begin with another d"
        )
    return d
