"""The loop of all solvers: it certifies, stops, measures time and writes the trace.

A solver is a generator of iterates. After each one the loop certifies the point, writes
a row of the trace and sends the certificate back to the solver. Whatever happens
(convergence, a limit, Ctrl-C, an error inside the solver), the best point so far is
certified again and returned, with a status that says what happened.

The certificate needs quad(α) and combine(θ). The stack remembers the last few of these
by content, so that nothing is computed twice that the solver has just computed. The
returned point has bounds in exact arithmetic, from products with the kernels in use and
from the last read of all others (certificates/pricing.py).
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate, certify, relative
from ..problem import Problem
from ..solvers import Iterate, Solver
from ..solvers.base import certify_iterate
from ..util.checks import check_flag, check_function, check_limit, check_whole
from ..util.sweeps import listening
from ..util.threads import with_blas_alone
from .checkpoint import Checkpoint, recording
from .clock import Clock
from .own_solver import solver_for
from .point import NUMERICAL, certified_again, meets, rounding_forbids
from .progress import progress
from .result import Result
from .trace import Trace

Array = np.ndarray
PATIENCE = 200  # certified iterates, or half of all if these are more, in which …
PROGRESS = 0.999  # … the gap must fall to this part of its value
GROWTH = 1.25  # stochastic solvers: the ratio of the numbers of two certified iterates
ACTIVE_SHARE = 1e-6  # of the largest weight: a kernel with more is active
EXTRA = 0.25  # more iterates, at most, until weights meet tol where coefficients do …
EXTRA_AT_LEAST = 5  # … or this many; they are tried …
RETRY = 0.3  # … when the gap has fallen to this part of its value at the last try


@dataclass
class Best:
    """The best bounds so far, and the points that have them."""

    primal: Certificate | None = None
    dual: Certificate | None = None
    single: Certificate | None = None  # the iterate with the smallest gap

    def offer(self, found: Certificate) -> None:
        """Keep a certificate where it is better than those before."""
        if self.primal is None or found.primal < self.primal.primal:
            self.primal = found
        if self.dual is None or found.dual > self.dual.dual:
            self.dual = found
        if self.single is None or found.relative_gap < self.single.relative_gap:
            self.single = found

    @property
    def gap(self) -> float:
        """The relative gap of the best primal and the best dual value.

        Of a large stack that of a single iterate: two points are not combined.
        """
        if self.primal is None or self.dual is None:
            return math.inf
        if self.single is not None and not self.single.combines:
            return self.single.relative_gap
        if self.primal.primal < self.dual.dual:  # crossed by rounding: proves nothing
            return math.inf if self.single is None else self.single.relative_gap
        return relative(self.primal.primal - self.dual.dual, self.primal.primal)

    def point(self, tol: float) -> Certificate | None:
        """The best single iterate if it is good enough, or the two best points.

        None if there is no iterate.
        """
        single, primal, dual = self.single, self.primal, self.dual
        if single is None or primal is None or dual is None:
            return None
        enough = single.relative_gap <= max(tol, 1.001 * self.gap)
        return single if enough else primal.best_of(dual)


class Run:
    """One run of a solver: advance and record, again and again; finish at the end."""

    def __init__(
        self,
        problem: Problem,
        method: Solver,
        generator: Any,
        limits: tuple[float, int | None, float | None],
        clock: Clock,
        checkpoint: Checkpoint | None = None,
    ):
        self.problem, self.method, self.generator = problem, method, generator
        self.tol, self.max_iter, self.time_limit = limits
        self.trace = Trace(solver=method.name, tol=self.tol, problem=repr(problem))
        self.best, self.sparse = Best(), method.draws
        self.final: Certificate | None = None  # the best point, certified again
        self.tried, self.last = math.inf, math.inf  # its gap then; the last iterate
        self.count, self.due, self.over = 0, 1.0, False
        self.clock, self.checkpoint, self.inside = clock, checkpoint, 0.0
        self.passes = problem.grams.passes
        self.status, self.message, self.choice = "finished", "", ""
        self.certificate: Any = None  # nothing to send before the first iterate

    def advance(self) -> bool:
        """Certify the next iterate; False if the solver has ended or failed."""
        entered = self.clock.seconds
        try:
            iterate = self._next()
            self.inside += self.clock.seconds - entered
            if iterate is None:
                return False
            self.certificate = certify_iterate(self.problem, iterate)
        except Exception as error:
            if self.best.single is None and not isinstance(error, NUMERICAL):
                raise
            self.status, self.message = "failed", f"{type(error).__name__}: {error}"
            return False
        self.best.offer(self.certificate)
        self.info = iterate.info
        self.choice = iterate.info.get("choice", self.choice)
        return True

    def _next(self) -> Iterate | None:
        """The next iterate to certify; None if there is none.

        All iterates are certified. Of stochastic solvers only those whose numbers grow
        geometrically, and the last one: an epoch costs about as much as a certificate.
        """
        most = math.inf if self.max_iter is None else self.max_iter
        limit = math.inf if self.time_limit is None else self.time_limit
        pending: Iterate | None = None
        while not self.over:
            try:
                pending = self.generator.send(self.certificate)
            except StopIteration:
                self.over = True
                break
            self.count += 1
            late = self.count >= most or self.clock.seconds >= limit
            if not self.sparse or self.count >= self.due or late:
                self.due = max(self.count + 1.0, GROWTH * self.count)
                break
        return pending

    def record(self) -> None:
        """Write a row of the trace for the newest iterate."""
        row = {
            "iteration": self.count - 1,
            "seconds": self.clock.seconds,
            "solver_seconds": self.inside,
            "passes": self.problem.grams.passes - self.passes,
            "svm_solves": self.info.get("svm_solves", 0),
            "rounds": self.info.get("rounds", 0),
            "primal": self.certificate.primal,
            "dual": self.certificate.dual,
            "gap": self.best.gap,
            "active": _active(self.certificate),
        }
        if self.checkpoint is not None:
            row = self.checkpoint.times(row)
            self.inside = row["solver_seconds"]
        self.trace.append(**row)

    def ends(self) -> bool:
        """Whether to stop after the newest iterate; the status says why."""
        trace, back = self.trace, max(PATIENCE, len(self.trace) // 2)
        gap, long_ago = trace.last("gap"), np.inf
        if len(trace) > back:
            long_ago = trace.last("gap", back)
        if gap <= self.tol and self._settled():
            return True
        if self.max_iter is not None and trace.last("iteration") + 1 >= self.max_iter:
            self.status = "max_iter"
        elif self.time_limit is not None and trace.last("seconds") >= self.time_limit:
            self.status = "time_limit"
        elif gap > PROGRESS * long_ago:
            self.status = "stagnated"
        else:
            return False
        return True

    def _settled(self) -> bool:
        """Whether the best point, certified again, is what the run returns.

        The gap of the loop is computed with rounding errors. Here all of them count, so
        that the gap can still be larger than tol; then the run goes on. It also goes on
        for a while if coefficients meet tol, and no weights near them do.
        """
        if self.best.gap > RETRY * self.tried and self.count < self.last:
            return False
        self.final, self.tried = self._best_point(), self.best.gap
        if not meets(self.final, self.tol):
            self.status = "rounding"
            return rounding_forbids(self.final, self.tol)
        self.status = "converged"
        if self.final.coefficients is not None and self.last == math.inf:
            self.last = self.count + max(EXTRA * self.count, EXTRA_AT_LEAST)
        return self.final.coefficients is None or self.count >= self.last

    def through(
        self,
        show: Callable[[Trace], None],
        callback: Callable[[Certificate, Trace], Any] | None,
    ) -> None:
        """Advance until the end; the status says why it has ended."""
        while self.advance():
            self.record()
            show(self.trace)
            if callback is not None and callback(self.certificate, self.trace):
                self.status = "stopped"
                break
            if self.ends():
                break

    def finish(self) -> Result:
        """The best point, certified again, and what happened."""
        final = self.final
        if final is None or self.best.gap < self.tried:
            final = self._best_point()
        if self.status not in ("stopped", "interrupted"):
            if meets(final, self.tol):
                self.status, self.message = "converged", ""
            elif self.best.gap <= self.tol:
                self.status, self.message = "rounding", _why_rounding(final)
        said = (self.method.name, self.status, self.message)
        return Result(self.problem, *said, final, self.trace, self.choice)

    def _best_point(self) -> Certificate:
        """The best point, certified again."""
        found = self.best.point(self.tol)
        if found is None:
            nothing = np.zeros(self.problem.grams.M)
            return certify(self.problem, np.zeros(self.problem.shape), nothing)
        return certified_again(found, self.tol)


def _why_rounding(found: Certificate) -> str:
    return found.enclosure.reason or (
        f"the gap is {found.relative_gap:.1e}, with all rounding errors counted "
        f"{found.width:.1e}"
    )


@with_blas_alone
def solve(
    problem: Problem,
    solver: Any = "auto",
    *,
    tol: float = 1e-6,
    max_iter: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    start: Any = None,
    callback: Callable[[Certificate, Trace], Any] | None = None,
    verbose: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Result:
    """Solve a problem to a certified relative gap of tol.

    Parameters
    ----------
    problem : Problem
        The problem.
    solver : str, Solver, or callable
        A name (see `mklopt list`). "auto" chooses a solver for the formulation and the
        loss; `Result.choice` says which one, and why. Or one of your own: a function
        problem → (weights, dual) or → weights, a generator function of iterates, an
        object with `fit`, or "module:name" (run/own_solver.py).
    tol : float
        The relative gap (primal − dual)/|primal| at which to stop.
    max_iter : int, optional
        The largest number of iterates.
    time_limit : float, optional
        The largest number of seconds.
    seed : int
        For stochastic solvers. Their iterates are epochs; only some are certified.
    start : Result or (weights, dual), optional
        The point to begin with.
    callback : function, optional
        Called with (certificate, trace) after each certified iterate; True stops the
        run.
    verbose : bool
        Show progress and the time left, on the standard error output.
    checkpoint : path, optional
        A file for what the kernels answer, at most 8 GB. The same call with the same
        file goes on after a kill or Ctrl-C, and ends with the same bits as without it.
        `tol`, `max_iter` and `time_limit` may change; `trace.seconds` goes on.
    **options
        Options of the solver.

    Returns
    -------
    Result
        The best point, certified again at the end, and a status that says what
        happened.

    Raises
    ------
    ValueError
        For a wrong limit, an unknown solver or an unknown option, or if the checkpoint
        belongs to another run.
    Unsupported
        If the solver cannot solve the problem. The message names those that can. It is
        a ValueError, too.

    Examples
    --------
    >>> result = solve(problem, "analytic", tol=1e-4)  # doctest: +SKIP
    >>> result.weights, result.relative_gap  # doctest: +SKIP
    """
    _check_limits(problem, tol, max_iter, time_limit)
    tol = float(tol)  # a float32 cannot be written to a file
    check_function(callback, "callback")
    check_flag(verbose, "verbose")
    check_whole(seed, "seed", 0, 2**64)
    method = solver if isinstance(solver, Solver) else solver_for(solver, problem)
    decides = {"solver": method.name, "seed": seed, "start": start}
    every = {**method.options(), **options}
    decides |= {f"option {name}": value for name, value in every.items()}
    given = _arguments(method, start, seed, options)
    limits, clock = (tol, max_iter, time_limit), Clock()
    with recording(checkpoint, problem, decides, clock) as kept:
        problem.grams.forget()  # a run pays for all of its products itself
        run = Run(problem, method, method.steps(problem, **given), limits, clock, kept)
        with progress(verbose, method.name, tol) as shown, listening(shown.sweep):
            try:
                run.through(shown.show, callback)
            except KeyboardInterrupt:
                run.status = "interrupted"
            finally:
                run.generator.close()
            return run.finish()


def _active(found: Certificate) -> int:
    size = found.norms if found.features is not None else found.weights
    if size is None:
        size = np.max(np.abs(found.expansion.reshape(len(found.expansion), -1)), axis=1)
    return int(np.sum(size > ACTIVE_SHARE * np.max(size, initial=0.0)))


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
        if value is not None or name == "tol":
            check_limit(value, name, least)
