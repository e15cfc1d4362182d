"""Generalized MKL: descent over the parameters d of a kernel family.

Algorithm (Jain, Vishwanathan and Varma 2012): projected gradient descent, spectral or
with the rule of Armijo (solvers/steps/spectral_descent.py), with the gradient of the
envelope W (problem.py).

Guarantee. `stationarity` is ‖d − P(d − ∇W)‖∞ at the returned d, with an SVM solved
apart from the descent, to `machine.relative_gap`; the status is what follows from it.
K(d) + δI is proved positive semi-definite before the SVM is certified, or the status
says that it is not. reference.envelope_agreement(result) compares ∇W with differences
of the value that OSQP finds.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..certificates.certificate import certify
from ..solvers.steps.spectral_descent import Point, descend
from ..util.arrays import Array, real_array
from ..util.checks import check_choice, check_limit, short
from ..util.threads import with_blas_alone
from .problem import Envelope, KernelFamilyProblem, nonnegative

PAPER_TOL = 0.04  # the projected gradient at which the paper stops
UNBOUNDED = 1e12  # d beyond it, or −W beyond it times its scale, have no end
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
    "imprecise": "the projected gradient is at most tol only for a loosely solved SVM",
    "thresholded": "the projected gradient was at most tol before thresholding",
    "indefinite": "the kernel at d is not positive semi-definite",
    "interrupted": "interrupted; this is the best point so far",
    "failed": "an error came first; this is the best point before it",
    "empty": "every parameter is 0",
}
LEAST = {"max_iter": 1, "longest": 1e-30}  # the other limits are at least 0
NOT_STATIONARY = {  # after thresholding or not
    True: "thresholding raised the projected gradient to {}: threshold less, or start "
    "again from this d",
    False: "with a precise SVM the projected gradient is {}: raise tol, or start again "
    "from this d",
}
NOTHING_LEFT = {
    True: "every parameter was thresholded away and no kernel is left: threshold less",
    False: "every parameter went to 0 and no kernel is left: weigh the regularizer "
    "less, or raise C",
}
HISTORY = ("seconds", "svm_solves", "value", "stationarity")


@dataclass(frozen=True, eq=False)
class FamilyResult:
    """Where a descent ended, and what is known of that point.

    Parameters
    ----------
    problem : KernelFamilyProblem
    solver : str
    status, message : str
        One of `STATUS`, and what else there is to say.
    d : array of shape (M,)
        The parameters of the kernel.
    dual : array of shape (n,)
        α of the SVM at d.
    bias : float
    value : float
        W(d).
    stationarity : float
        ‖d − P(d − ∇W)‖∞, 0 at a stationary point.
    machine : Certificate or None
        Of the SVM at d (not of d); None for an indefinite K(d).
    slope : array of shape (M,)
        ∇W(d).
    history : dict of arrays
        seconds, svm_solves, value and stationarity, one entry per step.
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
    machine: Any = field(repr=False)
    slope: Array = field(repr=False)
    history: dict[str, Array] = field(repr=False)

    def decision(self, test: Any) -> Array:
        """f at new points.

        Parameters
        ----------
        test : array of shape (M, n_test, n)
            What the family's `cross` takes: one matrix per parameter between test
            points (rows) and training points.

        Returns
        -------
        array of shape (n_test,)
        """
        K = self.problem.family.cross(self.d, test)
        return np.asarray(K @ self.dual + self.bias)

    def __str__(self) -> str:
        used = int(np.sum(self.d > 1e-6 * np.max(self.d, initial=0.0)))
        solves, found = int(self.history["svm_solves"][-1]), self.machine
        inner = "not certified" if found is None else (
            f"{found.dual:.8g} to {found.primal:.8g}, apart by "
            f"{found.relative_gap:.1e}, for K(d) + δI with δ = {found.shift[0]:.1e}"
        )  # fmt: skip
        return (
            f"{self.solver}: {self.status} ({self.message or STATUS[self.status]})\n"
            f"  W = {self.value:.8g}, projected gradient {self.stationarity:.1e}, "
            f"{used} of {len(self.d)} parameters in use\n"
            f"  SVM at d: {inner}\n"
            f"  {solves} SVMs solved, {self.history['seconds'][-1]:.2f} s"
        )


@with_blas_alone
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

    Ctrl-C, or an error on the way, brings back the best point so far.

    Parameters
    ----------
    problem : KernelFamilyProblem
    solver : "spg" or "pgd", default="spg"
        Spectral steps, or the rule of Armijo with precise SVMs.
    tol : float, default=1e-3
        The projected gradient to stop at.
    start : array of shape (M,), optional
        d to begin with, 1/M each by default.
    max_iter : int or None, default=1000
        Stop after so many steps; None: no limit.
    time_limit : float, optional
        Stop after so many seconds.
    threshold : float, default=0
        Parameters below this part of the largest are set to 0 at the end.
    stop : "paper", optional
        Stop at a projected gradient of 0.04, as the paper does.
    longest : float, optional
        λ_max of the spectral step, 10 in the paper; None: it may grow.
    **switches : bool
        The parts of the method one by one: spectral (S), nonmonotone (N), tune (P);
        scaled, our metric, where the set is d ≥ 0; remember, for searches without S.
        See solvers/steps/spectral_descent.py.

    Returns
    -------
    FamilyResult

    Raises
    ------
    ValueError
        Where an argument is wrong.
    """
    limits = {"max_iter": max_iter, "time_limit": time_limit, "longest": longest}
    _check(problem, stop, tol=tol, threshold=threshold, **limits)
    chosen = _switches(problem, solver, switches)
    tol = PAPER_TOL if stop == "paper" else tol
    envelope = Envelope(problem, chosen.pop("tune"))
    rows: list[tuple[float, ...]] = []
    begun, status, message, best = time.perf_counter(), "", "", None
    try:
        first = _start(problem, start)
        for point in descend(envelope, first, longest=longest, **chosen):
            size = envelope.stationarity(point.d, point.slope)
            now = time.perf_counter() - begun
            if size <= tol:
                size = _confirmed(envelope, point.d, tol)
            rows.append((now, envelope.solves, point.value, size))
            if best is None or point.value <= best.value:
                best = point
            if status := _verdict(rows, point, envelope, tol, limits):
                best = point if status == "stationary" else best
                break
            envelope.set_tolerance(point)
    except (KeyboardInterrupt, Exception) as error:
        if best is None:
            raise
        stopped = isinstance(error, KeyboardInterrupt)
        status = "interrupted" if stopped else "failed"
        message = "" if stopped else f"{type(error).__name__}: {error}"
    assert best is not None
    history = dict(zip(HISTORY, map(np.array, zip(*rows))))
    d = _thresholded(problem, best.d, threshold)
    cut = not np.array_equal(d, best.d)
    judged = _judged(problem, (status, message), d, cut, tol)
    return FamilyResult(problem, solver, *judged, history)


def _confirmed(envelope: Envelope, d: Array, tol: float) -> float:
    """The projected gradient of a precise SVM; where it is not small, sharpen."""
    sharp = Envelope(envelope.problem, tune=False)
    sharp.alpha = envelope.alpha
    size = sharp.precisely(d)[2]
    envelope.solves += 1
    if size > tol:
        envelope.sharpen()
    return size


def _verdict(
    rows: list, point: Point, envelope: Envelope, tol: float, limits: dict
) -> str:
    """Why to stop after the newest step; empty: go on."""
    first, (seconds, _, _, size) = rows[0][2], rows[-1]
    if size <= tol:
        return "stationary"
    low = -UNBOUNDED * max(envelope.worst, abs(first))
    if np.max(np.abs(point.d)) > UNBOUNDED or point.value < low:
        return "unbounded"
    for name, now in (("max_iter", len(rows)), ("time_limit", seconds)):
        if limits[name] is not None and now >= limits[name]:
            return name
    # A search that ends in vain sharpens the SVM: at rounding there is nothing left.
    return "stalled" if envelope.noise <= 2e-14 * envelope.worst else ""


def _thresholded(problem: KernelFamilyProblem, d: Array, threshold: float) -> Array:
    """Small parameters set to 0, and the rest back in the set."""
    if threshold == 0:
        return d
    size = np.abs(d)
    kept = np.where(size < threshold * np.max(size, initial=0.0), 0.0, d)
    return np.asarray(problem.project(kept), float)


def _judged(
    problem: KernelFamilyProblem,
    ended: tuple[str, str],
    d: Array,
    cut: bool,
    tol: float,
) -> tuple[str, str, Array, Array, Any, float, float, Any, Array]:
    """The status that a point earns with its SVM solved to rounding, and the rest."""
    status, message = ended
    envelope = Envelope(problem, tune=False)
    value, slope, size = envelope.precisely(d)
    if size <= tol and status not in ("interrupted", "failed", "unbounded"):
        status = "stationary"
    elif status == "stationary":
        status = "thresholded" if cut else "imprecise"
        message = NOT_STATIONARY[cut].format(f"{size:.1e}, above tol = {tol:.1e}")
    if not np.any(d):
        status, message = "empty", NOTHING_LEFT[cut]
    alpha, bias, inner = np.asarray(envelope.alpha), envelope.bias, None
    try:
        machine = problem.machine(d)
        machine.grams.verify_psd()
        inner = certify(machine, alpha, np.ones(1))
        alpha, bias = inner.alpha, inner.bias
    except ValueError as error:
        if status not in ("unbounded", "failed"):
            status, message = "indefinite", f"at this d, {error}"
    return status, message, d, alpha, bias, value, size, inner, slope


def _check(problem: Any, stop: Any, **limits: Any) -> None:
    if not isinstance(problem, KernelFamilyProblem):
        raise ValueError(
            f"gmkl.solve takes a KernelFamilyProblem first, got "
            f"{type(problem).__name__}; a Problem is for mklopt.solve"
        )
    for name, value in limits.items():
        if value is not None or name not in ("max_iter", "time_limit", "longest"):
            check_limit(value, name, LEAST.get(name, 0))
    if stop is not None and not (isinstance(stop, str) and stop == "paper"):
        raise ValueError(f"stop = {short(stop)}; choose 'paper' or None")


def _switches(
    problem: KernelFamilyProblem, solver: str, given: dict[str, bool]
) -> dict[str, bool]:
    check_choice(solver, "solver", METHODS)
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
    r = problem.regularizer
    value, slope = r.value(projected), r.gradient(projected)
    if not np.isfinite(value) or not np.all(np.isfinite(slope)):
        raise ValueError(
            f"r(d) = {value} at the start, with gradient {slope}; both must be finite: "
            "begin with another d"
        )
    return d
