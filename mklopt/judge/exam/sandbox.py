"""Somebody's solver, tried in a process of its own.

What comes back is what the solver gave, untouched: α and weights or coefficients as
they are, before any repair. For a generator these are the iterate with the smallest
certified gap of its run in the one loop (run.py), the last one (where it was going),
and the point that the loop made of all. Nothing of it is believed: whoever asked
certifies it again.

An error, an exit, a crash of the interpreter or a hang ends a trial, never the judge.
A process that does not answer in time is killed and replaced. Where processes cannot be
forked (Windows), trials run in the judge's own process: then a hang is a hang.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numpy as np

from ...problem import Problem
from ...run.loop import solve
from ...solvers import Iterate, Solver

Array = np.ndarray
PACKAGE = Path(__file__).parents[2]
EARLIER = 5  # iterates before the last one whose weights are kept


@dataclass(frozen=True, eq=False)
class Point:
    """A candidate as it was given; without a dual it is the machine's at the weights.

    single: whether everything was given in single precision
    """

    dual: Array | None
    weights: Array | None = None
    coefficients: Array | None = None
    single: bool = False


@dataclass(frozen=True, eq=False)
class Answer:
    """What became of one trial."""

    ended: str  # returned, raised, bad answer, hangs, died, or a status of the loop
    words: str = ""
    given: Point | None = None  # as the solver gave it: of iterates the best,
    last: Point | None = None  # and the last
    made: Point | None = None  # what the loop made of all iterates
    gaps: tuple[float, ...] = ()  # certified along the run
    earlier: list[Array] = field(default_factory=list)  # weights before the last
    seconds: float = 0.0


class BadAnswer(Exception):
    """What came back is not what a solver returns."""


@dataclass(frozen=True)
class Task:
    problem: Problem
    tol: float


def attempt(solver: Any, task: Task, limit: float) -> Answer:
    """Run the solver here, whatever it is, and whatever happens."""
    begun = time.perf_counter()
    try:
        if isinstance(solver, Solver):
            answer = _in_the_loop(solver, task, limit)
        else:
            answer = _call(solver, task, limit)
    except KeyboardInterrupt:
        raise
    except BadAnswer as error:
        answer = Answer("bad answer", str(error))
    except BaseException as error:  # a solver may even try to exit
        answer = Answer("raised", _told(error))
    return replace(answer, seconds=time.perf_counter() - begun)


def _call(function: Callable, task: Task, limit: float) -> Answer:
    returned = function(task.problem)
    if hasattr(returned, "send"):
        name = getattr(function, "__name__", "solver")
        anything = frozenset({"any"}), frozenset({True, False})
        found = Solver(name, lambda p: returned, frozenset(), *anything, 0.0, "", "")
        return _in_the_loop(found, task, limit)
    point = _point(returned, task.problem)
    return Answer("returned", "", point, point, point)


def _in_the_loop(solver: Solver, task: Task, limit: float) -> Answer:
    """The one loop with every iterate looked at as it comes."""
    seen: deque[Iterate] = deque(maxlen=EARLIER + 1)
    best: list[tuple[float, Iterate]] = []

    @wraps(solver.steps)
    def steps(*arguments: Any, **options: Any) -> Any:
        inner: Any = solver.steps(*arguments, **options)
        certificate = None
        try:
            while True:
                try:
                    seen.append(_iterate(inner.send(certificate)))
                except StopIteration:
                    return
                certificate = yield seen[-1]
        finally:
            inner.close()

    def look(certificate: Any, trace: Any) -> bool:
        if not best or certificate.relative_gap < best[0][0]:
            best[:] = [(certificate.relative_gap, seen[-1])]
        return False

    watched = replace(solver, steps=steps)
    options = {"tol": task.tol, "time_limit": limit, "callback": look}
    result = solve(task.problem, watched, **options)  # type: ignore[arg-type]
    if not best:
        raise BadAnswer("it ended without a single iterate")
    final = result.certificate
    return Answer(
        "raised" if result.status == "failed" else result.status,
        result.message,
        _as_given(best[0][1]),
        _as_given(seen[-1]),
        Point(final.alpha, final.weights, final.coefficients),
        tuple(result.trace.gap),
        [np.array(i.weights, float) for i in seen if i.weights is not None][:-1],
    )


def _iterate(given: Any) -> Iterate:
    """An iterate whose functions are called once, when it is certified."""
    if not isinstance(given, Iterate):
        raise BadAnswer(
            f"the generator yielded a {type(given).__name__}; yield "
            "mklopt.solvers.Iterate(dual=…, weights=…)"
        )
    parts = {name: getattr(given, name) for name in ("dual", "coefficients")}
    once: dict[str, Any] = {k: cache(v) for k, v in parts.items() if callable(v)}
    return replace(given, **once)


def _as_given(iterate: Iterate) -> Point:
    parts = (iterate.dual, iterate.weights, iterate.coefficients)
    return _made_of(*(part() if callable(part) else part for part in parts))


def _point(returned: Any, problem: Problem) -> Point:
    """(weights, dual), weights alone, or anything with these two attributes."""
    n, M = problem.grams.n, problem.grams.M
    if hasattr(returned, "weights") and hasattr(returned, "dual"):
        returned = (returned.weights, returned.dual)
    sequence = isinstance(returned, tuple | list) and len(returned) == 2
    pair = sequence and np.ndim(returned[0]) > 0
    weights, dual = returned if pair else (returned, None)
    if pair and [np.shape(a) for a in returned] == [problem.shape, (M,)]:
        raise BadAnswer("it returned (dual, weights); return (weights, dual)")
    _fits(weights, (M,), f"weights, one for each of the {M} kernels")
    if dual is not None:
        _fits(dual, problem.shape, f"dual variables for the {n} samples")
    return _made_of(dual, weights, None)


def _fits(given: Any, shape: tuple[int, ...], what: str) -> None:
    try:
        array = np.asarray(given, float)
    except (TypeError, ValueError):
        kind = type(given).__name__
        raise BadAnswer(f"it returned a {kind} where {what}, were expected") from None
    if array.shape != shape:
        raise BadAnswer(f"it returned an array {array.shape}; expected {shape}: {what}")


def _made_of(dual: Any, weights: Any, coefficients: Any) -> Point:
    given = [a for a in (dual, weights, coefficients) if a is not None]
    single = all(getattr(a, "dtype", None) in (np.float32, np.float16) for a in given)

    def plain(a: Any) -> Array | None:
        return None if a is None else np.array(a, float)

    return Point(plain(dual), plain(weights), plain(coefficients), single)


def _told(error: BaseException) -> str:
    """One line: what was raised, and the last line of the solver it went through."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    of_solver = [f for f in frames if not _ours(f.filename)]
    if of_solver:
        last = of_solver[-1]
        said += f" ({os.path.basename(last.filename)}, line {last.lineno})"
    return " ".join(said.split())


def _ours(filename: str) -> bool:
    """Whether a frame is of this package, and of none of its solvers."""
    path = Path(filename)
    return PACKAGE in path.parents and PACKAGE / "solvers" not in path.parents


class Trials:
    """All trials of one solver, one after the other in one other process."""

    def __init__(self, solver: Any, tasks: Sequence[Task], limit: float):
        self.solver, self.tasks, self.limit = solver, tasks, limit
        self.process: Any = None

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *_: Any) -> None:
        self._end()

    def run(self, which: int) -> Answer:
        """The answer to one task; a process that owes one too long is killed."""
        if "fork" not in multiprocessing.get_all_start_methods():
            return attempt(self.solver, self.tasks[which], self.limit)
        if self.process is None:
            self._begin()
        patience = 1.5 * self.limit + 1
        try:
            self.line.send(which)
            if self.line.poll(patience):
                return self.line.recv()
        except (EOFError, ConnectionError):
            self.process.join(1)
            return self._died()
        self._end()
        words = f"no answer within {patience:.3g} s: its process was ended"
        return Answer("hangs", words, seconds=patience)

    def _died(self) -> Answer:
        code = self.process.exitcode
        self._end()
        return Answer("died", f"its process ended with exit code {code}")

    def _begin(self) -> None:
        context = multiprocessing.get_context("fork")
        self.line, other = context.Pipe()
        self.process = context.Process(target=self._serve, args=(other,), daemon=True)
        with warnings.catch_warnings():
            # Threads of numerical libraries survive a fork: they are idle here.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        other.close()

    def _end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.line.close()
        self.process = None

    def _serve(self, line: Any) -> None:
        self.line.close()
        sys.stdout.flush()
        os.dup2(2, 1)  # what a solver prints does not belong into a report
        try:
            while True:
                which = line.recv()
                answer = attempt(self.solver, self.tasks[which], self.limit)
                sys.stdout.flush()
                line.send(answer)
        except (EOFError, KeyboardInterrupt):
            os._exit(0)
