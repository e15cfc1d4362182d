"""Generalized MKL: the parameters d of a kernel family K(d), products included.

Problem. min over d in a convex set of

    W(d) = r(d) + max over α   −C Σ V*(−α_i/C) − ½ αᵀK(d)α

For sums with a convex r this is an ordinary Problem, and solvers/spg.py solves and
certifies it. For products it is not convex: what can be said of a d is how far it is
from stationary, and how well the machine at d was solved.

Algorithm (Jain, Vishwanathan and Varma 2012): projected gradient descent, spectral or
with the rule of Armijo (solvers/spectral.py), with the gradient of the envelope,
∇W = ∇r − ½∂(αᵀKα)/∂d at the α of the machine (Danskin).

Guarantee. `stationarity` is ‖d − P(d − ∇W)‖∞ at the returned d, with a machine solved
to `machine.relative_gap`. reference.envelope_agreement(result) compares ∇W with
differences of the value that OSQP finds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .certificate import Certificate, certify
from .formulations.fixed_weights import FixedWeights
from .grams import GramStack
from .problem import Problem
from .regularizers import Given, Regularizer, Total
from .solvers import svm
from .solvers.spectral import Point, descend

Array = np.ndarray
PAPER = 0.04  # the projected gradient at which the paper stops
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
    "empty": "every parameter was thresholded away",
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

    def __repr__(self) -> str:
        kind, loss = type(self.regularizer).__name__, self.shell.loss.name
        return f"KernelFamilyProblem({loss}, {self.family!r}, {kind}, C={self.C})"


class Envelope:
    """W(d) by one machine, warm-started; ∇W by Danskin. Serves `descend`."""

    def __init__(self, problem: KernelFamilyProblem, tune: bool):
        self.problem, self.tune, self.solves = problem, tune, 0
        shell = problem.shell
        zero = np.zeros(shell.shape)
        self.worst = float(shell.costs @ shell.loss.value(zero, shell.y))
        self.noise = (1e-3 if tune else 1e-9) * self.worst
        self.alpha: Array | None = None

    def value(self, d: Array) -> float:
        problem, self.d = self.problem, d
        K = problem.family.combine(d)
        found = svm.solve(problem.shell, K, self.alpha, tol=self.noise)
        self.alpha = problem.shell.feasible(found.alpha)
        self.solves += 1
        inner = problem.shell.gain(self.alpha) - 0.5 * float(
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

    def heed(self, point: Point) -> None:
        """P: a machine is as precise as the decrease that the next step promises."""
        if self.tune:
            low, high = 1e-12 * self.worst, self.noise
            self.noise = float(np.clip(0.1 * point.falls, low, high))

    def stationarity(self, point: Point) -> float:
        """‖d − P(d − ∇W)‖∞."""
        gone = point.d - self.project(point.d - point.slope)
        return float(np.max(np.abs(gone)))


@dataclass(frozen=True, eq=False)
class FamilyResult:
    """Where a descent ended, and what is known of that point.

    d, dual, bias: the point; value: W there
    stationarity: ‖d − P(d − ∇W)‖∞, 0 at a stationary point
    machine: the certificate of the SVM at d (not of d)
    history: seconds, svm_solves, value and stationarity, one entry per step
    """

    problem: KernelFamilyProblem = field(repr=False)
    solver: str
    status: str
    message: str
    d: Array = field(repr=False)
    value: float
    stationarity: float
    machine: Certificate = field(repr=False)
    slope: Array = field(repr=False)
    history: dict[str, Array] = field(repr=False)

    @property
    def dual(self) -> Array:
        return self.machine.alpha

    @property
    def bias(self) -> Any:
        return self.machine.bias

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
            f"  machine at d: {self.machine.dual:.8g} to {self.machine.primal:.8g}, "
            f"apart by {self.machine.relative_gap:.1e}\n"
            f"  {solves} machines, {self.history['seconds'][-1]:.2f} s"
        )


def solve(
    problem: KernelFamilyProblem,
    solver: str = "spg",
    *,
    tol: float = 1e-3,
    start: Any = None,
    max_iter: int = 1000,
    time_limit: float | None = None,
    threshold: float = 0.0,
    stop: str | None = None,
    **switches: bool,
) -> FamilyResult:
    """Descend to a stationary d.

    solver: "spg", or "pgd" (Armijo, precise machines)
    tol: the projected gradient to stop at; stop="paper": 0.04, as in the paper
    start: d to begin with, 1/M each by default
    threshold: parameters below this part of the largest are set to 0 at the end
    switches: spectral, nonmonotone, tune: S, N and P one by one; scaled, our metric,
        where the set is d ≥ 0; remember, for searches without S (spectral.py)
    """
    chosen = _switches(problem, solver, switches)
    if stop not in (None, "paper"):
        raise ValueError(f"stop = {stop!r}; choose 'paper' or None")
    tol = PAPER if stop == "paper" else tol
    envelope = Envelope(problem, chosen.pop("tune"))
    rows: list[tuple[float, ...]] = []
    begun, status, best = time.perf_counter(), "max_iter", None
    for point in descend(envelope, _start(problem, start), **chosen):
        size, now = envelope.stationarity(point), time.perf_counter() - begun
        rows.append((now, envelope.solves, point.value, size))
        if best is None or point.value <= best.value:
            best = point
        verdict = _verdict(rows, envelope, tol, max_iter, time_limit)
        if verdict:
            status, best = verdict, point if verdict == "stationary" else best
            break
        envelope.heed(point)
    assert best is not None
    history = dict(zip(("seconds", "svm_solves", "value", "stationarity"), zip(*rows)))
    columns = {name: np.array(column) for name, column in history.items()}
    return _judged(problem, solver, status, best.d, threshold, columns)


def _verdict(
    rows: list, envelope: Envelope, tol: float, most: int, limit: float | None
) -> str:
    seconds, _, _, size = rows[-1]
    if size <= tol:
        return "stationary"
    if len(rows) >= most:
        return "max_iter"
    if limit is not None and seconds >= limit:
        return "time_limit"
    stuck = envelope.noise <= 2e-14 * envelope.worst
    return "stalled" if stuck else ""


def _judged(
    problem: KernelFamilyProblem,
    solver: str,
    status: str,
    d: Array,
    threshold: float,
    history: dict[str, Array],
) -> FamilyResult:
    """The point with its machine solved to rounding, apart from the descent."""
    d = np.where(d < threshold * np.max(d, initial=0.0), 0.0, d)
    envelope = Envelope(problem, tune=False)
    envelope.noise = 1e-11 * envelope.worst
    value = envelope.value(d)
    slope = envelope.gradient()
    size = envelope.stationarity(Point(d, value, slope, slope))
    inner = certify(problem.machine(d), np.asarray(envelope.alpha), np.ones(1))
    message = ""
    if not np.any(d):
        status = "empty"
        message = (
            "every parameter was thresholded away and no kernel is left: weigh the "
            "regularizer less, or raise C"
        )
    points = (d, value, size, inner, slope, history)
    return FamilyResult(problem, solver, status, message, *points)


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
    M = problem.family.M
    d = np.full(M, 1 / M) if start is None else np.array(start, float)
    if d.shape != (M,) or not np.all(np.isfinite(d)):
        raise ValueError(
            f"start has shape {d.shape}; give {M} finite numbers, one per parameter"
        )
    projected = np.asarray(problem.project(d), float)
    if projected.shape != (M,) or not np.all(np.isfinite(projected)):
        raise ValueError(
            f"project(d) has shape {projected.shape}; expected {M} finite numbers"
        )
    if not np.any(projected):
        raise ValueError(
            "start: every parameter is 0, no kernel is left; begin with some d > 0"
        )
    return d
