"""The one loop: it alone certifies, stops, keeps time and logs.

A solver is a generator of iterates; after each one the loop certifies the point, writes
a row of the trace and sends the certificate back in. Whatever happens — convergence, a
limit, Ctrl-C, an error inside the solver — the best point so far comes back, certified
afresh, with a status that says what happened.

The loop asks the stack for quad(α) and combine(θ), which remembers the last few by
content: what the solver has just computed costs nothing twice. The returned point is
certified without that memory.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate, certify, relative
from ..problem import Problem
from ..solvers import Iterate, Solver, find
from ..solvers.base import certify_iterate
from .progress import progress
from .result import Result
from .trace import Trace

Array = np.ndarray
PATIENCE = 200  # iterates, or half of the run if that is longer, …
GROWTH = 1.25  # from one certified iterate to the next, of solvers that draw
STANDSTILL = 0.999  # … over which the gap must fall below this part of itself


@dataclass
class Best:
    """The best bounds so far, and the points that show them."""

    primal: Certificate | None = None
    dual: Certificate | None = None
    single: Certificate | None = None  # the one iterate with the smallest gap

    def offer(self, found: Certificate) -> None:
        if self.primal is None or found.primal < self.primal.primal:
            self.primal = found
        if self.dual is None or found.dual > self.dual.dual:
            self.dual = found
        if self.single is None or found.relative_gap < self.single.relative_gap:
            self.single = found

    @property
    def gap(self) -> float:
        if self.primal is None or self.dual is None:
            return math.inf
        if self.primal.primal < self.dual.dual:  # crossed by rounding: no evidence
            return math.inf if self.single is None else self.single.relative_gap
        return relative(self.primal.primal - self.dual.dual, self.primal.primal)


class Schedule:
    """Which iterates are certified: all, or of a solver that draws random numbers those
    whose numbers grow geometrically, and whichever is the last.

    An epoch costs about as much as a certificate, and many say nothing new.
    """

    def __init__(self, sparse: bool, max_iter: int | None, time_limit: float | None):
        self.sparse, self.most = sparse, max_iter or math.inf
        self.end = time.perf_counter() + (
            math.inf if time_limit is None else time_limit
        )
        self.count, self.due, self.over = 0, 1.0, False

    def next(self, generator: Any, certificate: Any) -> Iterate:
        """The next iterate to certify; StopIteration when there is none."""
        pending: Iterate | None = None
        while not self.over:
            try:
                pending = generator.send(certificate)
            except StopIteration:
                self.over = True
                break
            self.count += 1
            late = self.count >= self.most or time.perf_counter() >= self.end
            if not self.sparse or self.count >= self.due or late:
                self.due = max(self.count + 1.0, GROWTH * self.count)
                return pending
        if pending is None:
            raise StopIteration
        return pending


def solve(
    problem: Problem,
    solver: str | Solver = "auto",
    *,
    tol: float = 1e-6,
    max_iter: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    start: Any = None,
    callback: Callable[[Certificate, Trace], Any] | None = None,
    verbose: bool = False,
    **options: Any,
) -> Result:
    """Solve a problem to a certified relative gap of tol.

    solver: a name (see `mklopt list`); "auto" picks by what the formulation and the
        loss state, and `Result.choice` says what and why
    max_iter, time_limit: stop after so many iterates, or seconds
    seed: for solvers that draw random numbers; an iterate of theirs is an epoch, and
        they are certified now and then, see Schedule
    start: a result, or (weights, dual), to begin from
    callback: called with (certificate, trace) after each iterate; True stops the run
    verbose: show progress
    options: whatever else the solver takes
    """
    _check_limits(problem, tol, max_iter, time_limit)
    problem.grams.forget()  # what an earlier run computed is not free for this one
    method = solver if isinstance(solver, Solver) else find(solver, problem)
    generator = method.steps(problem, **_arguments(method, start, seed, options))
    trace = Trace(solver=method.name, tol=tol, problem=repr(problem))
    best = Best()
    begun, inside, passes = time.perf_counter(), 0.0, problem.grams.passes
    status, message, choice = "finished", "", ""
    certificate: Any = None  # nothing to send before the first iterate
    schedule = Schedule(method.draws, max_iter, time_limit)
    shown = progress(verbose, method.name, tol)
    try:
        with shown:
            while True:
                entered = time.perf_counter()
                try:
                    iterate = schedule.next(generator, certificate)
                    inside += time.perf_counter() - entered
                    certificate = certify_iterate(problem, iterate)
                except StopIteration:
                    break
                except Exception as error:
                    if best.single is None:
                        raise
                    status, message = "failed", f"{type(error).__name__}: {error}"
                    break
                best.offer(certificate)
                choice = iterate.info.get("choice", choice)
                trace.append(
                    iteration=schedule.count - 1,
                    seconds=time.perf_counter() - begun,
                    solver_seconds=inside,
                    passes=problem.grams.passes - passes,
                    svm_solves=iterate.info.get("svm_solves", 0),
                    rounds=iterate.info.get("rounds", 0),
                    primal=certificate.primal,
                    dual=certificate.dual,
                    gap=best.gap,
                    active=_active(certificate),
                )
                shown.show(trace)
                if callback is not None and callback(certificate, trace):
                    status = "stopped"
                    break
                verdict = _verdict(trace, tol, max_iter, time_limit)
                if verdict:
                    status = verdict
                    break
    except KeyboardInterrupt:
        status = "interrupted"
    finally:
        generator.close()
    final = _afresh(problem, best, tol)
    if status == "converged" and final.relative_gap > tol * (1 + 1e-6) + 1e-15:
        status = "rounding"
        message = f"certified afresh, the gap is {final.relative_gap:.1e}"
    return Result(problem, method.name, status, message, final, trace, choice)


def _afresh(problem: Problem, best: Best, tol: float) -> Certificate:
    """The best point, certified without any memory."""
    single, primal, dual = best.single, best.primal, best.dual
    if single is None or primal is None or dual is None:
        nothing = np.zeros(problem.grams.M)
        return certify(problem, np.zeros(problem.shape), nothing)
    if single.relative_gap <= max(tol, 1.001 * best.gap):
        points = (single.alpha, single.weights)
        return certify(problem, *points, coefficients=single.coefficients)
    return certify(problem, dual.alpha, coefficients=primal.expansion)


def _active(found: Certificate) -> int:
    size = found.weights
    if size is None:
        size = np.max(np.abs(found.expansion.reshape(len(found.expansion), -1)), axis=1)
    return int(np.sum(size > 1e-6 * np.max(size, initial=0.0)))


def _verdict(
    trace: Trace, tol: float, max_iter: int | None, time_limit: float | None
) -> str:
    """Why to stop after the newest iterate; empty: go on."""
    if trace.last("gap") <= tol:
        return "converged"
    if max_iter is not None and trace.last("iteration") + 1 >= max_iter:
        return "max_iter"
    if time_limit is not None and trace.last("seconds") >= time_limit:
        return "time_limit"
    return "stagnated" if _stands_still(trace) else ""


def _stands_still(trace: Trace) -> bool:
    back = max(PATIENCE, len(trace) // 2)
    if len(trace) <= back:
        return False
    return trace.last("gap") > STANDSTILL * trace.last("gap", back)


def _arguments(method: Solver, start: Any, seed: int, options: dict) -> dict[str, Any]:
    takes = inspect.signature(method.steps).parameters
    unknown = sorted(set(options) - set(takes))
    if unknown:
        known = ", ".join(method.options()) or "none"
        raise ValueError(
            f"{method.name} has no option {', '.join(unknown)}; it has: {known}"
        )
    if "rng" in takes:
        options["rng"] = np.random.default_rng(seed)
    if start is not None:
        options["start"] = start
    return options


def _check_limits(problem: Any, tol: Any, max_iter: Any, time_limit: Any) -> None:
    if not isinstance(problem, Problem):
        kind = type(problem).__name__
        other = "; mklopt.gmkl.solve takes it" if hasattr(problem, "family") else ""
        raise ValueError(f"solve takes a Problem first, got {kind}{other}")
    limits = {"tol": (tol, 0), "max_iter": (max_iter, 1), "time_limit": (time_limit, 0)}
    for name, (value, least) in limits.items():
        if value is None and name != "tol":
            continue
        number = isinstance(value, int | float | np.integer | np.floating)
        if not number or isinstance(value, bool) or not value >= least:
            raise ValueError(f"{name} = {value!r}; give a number ≥ {least}")
