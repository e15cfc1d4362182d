"""Somebody's solver, run in a process of its own that can be killed.

What comes back is what the solver gave, untouched: α and weights or coefficients as
they are, before any repair. For a generator these are the iterate with the smallest
certified gap of its run in the one loop (run/loop.py), the last one (where it was
going), and the point that the loop made of all. Nothing of it is believed: whoever
asked certifies it again.

An error, an exit, a crash of the interpreter or a hang ends one trial, never the exam.
A process that does not answer in time is killed and replaced. Where processes cannot be
forked (Windows), trials run in the process of the exam: then a hang is a hang.
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
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numpy as np

from ...problem import Problem
from ...run.loop import solve
from ...solvers import Iterate, Solver
from .plan import Question

Array = np.ndarray
PACKAGE = Path(__file__).parents[2]
MAX_EARLIER = 5  # iterates before the last one whose weights are kept


@dataclass(frozen=True, eq=False)
class Candidate:
    """A point as it was given; without a dual, α is that of the SVM at the weights."""

    dual: Array | None
    weights: Array | None = None
    coefficients: Array | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """What became of one trial."""

    ended: str  # returned, raised, bad answer, hangs, died, or a status of the loop
    words: str = ""
    given: Candidate | None = None  # as the solver gave it: of iterates the best,
    last: Candidate | None = None  # and the last
    made: Candidate | None = None  # what the loop made of all iterates
    gaps: tuple[float, ...] = ()  # certified along the run
    earlier: list[Array] = field(default_factory=list)  # weights before the last
    seconds: float = 0.0


class BadAnswer(Exception):
    """What came back is not what a solver returns."""


def attempt(solver: Any, question: Question, limit: float) -> Answer:
    """Run the solver in this process, whatever it is, and whatever happens."""
    begun = time.perf_counter()
    try:
        if isinstance(solver, Solver):
            answer = _in_the_loop(solver, question, limit)
        else:
            answer = _call(solver, question, limit)
    except KeyboardInterrupt:
        raise
    except BadAnswer as error:
        answer = Answer("bad answer", str(error))
    except BaseException as error:  # a solver may even try to exit
        answer = Answer("raised", _describe(error))
    return replace(answer, seconds=time.perf_counter() - begun)


def _call(function: Callable, question: Question, limit: float) -> Answer:
    returned = function(question.problem)
    if hasattr(returned, "send"):
        name = getattr(function, "__name__", "solver")
        anything = frozenset({"any"}), frozenset({True, False})
        found = Solver(name, lambda p: returned, frozenset(), *anything, 0.0, "", "")
        return _in_the_loop(found, question, limit)
    candidate = _returned(returned, question.problem)
    return Answer("returned", "", candidate, candidate, candidate)


def _in_the_loop(solver: Solver, question: Question, limit: float) -> Answer:
    """The one loop, with every iterate looked at as it comes."""
    seen: deque[Iterate] = deque(maxlen=MAX_EARLIER + 1)
    best: list[tuple[float, Iterate]] = []

    @wraps(solver.steps)
    def steps(*arguments: Any, **options: Any) -> Any:
        certificate: Any = None
        inner: Any = solver.steps(*arguments, **options)
        with closing(inner), suppress(StopIteration):
            while True:
                seen.append(_iterate(inner.send(certificate)))
                certificate = yield seen[-1]

    def look(certificate: Any, trace: Any) -> None:
        if not best or certificate.relative_gap < best[0][0]:
            best[:] = [(certificate.relative_gap, seen[-1])]

    watched = replace(solver, steps=steps)
    limits: Any = {"tol": question.tol, "time_limit": limit}
    result = solve(question.problem, watched, callback=look, **limits)
    if not best:
        raise BadAnswer("it ended without a single iterate")
    final = result.certificate
    return Answer(
        "raised" if result.status == "failed" else result.status,
        result.message,
        _as_given(best[0][1]),
        _as_given(seen[-1]),
        Candidate(final.alpha, final.weights, final.coefficients),
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


def _as_given(iterate: Iterate) -> Candidate:
    """Copies: a solver may go on working in its arrays."""
    parts = (iterate.dual, iterate.weights, iterate.coefficients)
    called = (part() if callable(part) else part for part in parts)
    return Candidate(*(None if a is None else np.array(a, float) for a in called))


def _returned(given: Any, problem: Problem) -> Candidate:
    """(weights, dual), weights alone, or anything with these two attributes."""
    n, M = problem.grams.n, problem.grams.M
    if hasattr(given, "weights") and hasattr(given, "dual"):
        given = (given.weights, given.dual)
    sequence = isinstance(given, tuple | list) and len(given) == 2
    pair = sequence and np.ndim(given[0]) > 0
    weights, dual = given if pair else (given, None)
    if pair and [np.shape(a) for a in given] == [problem.shape, (M,)]:
        raise BadAnswer("it returned (dual, weights); return (weights, dual)")
    weights = _array(weights, (M,), f"weights, one for each of the {M} kernels")
    if dual is not None:
        dual = _array(dual, problem.shape, f"dual variables for the {n} samples")
    return Candidate(dual, weights)


def _array(given: Any, shape: tuple[int, ...], what: str) -> Array:
    try:
        array = np.array(given, float)
    except (TypeError, ValueError):
        kind = type(given).__name__
        raise BadAnswer(f"it returned a {kind} where {what}, were expected") from None
    if array.shape != shape:
        raise BadAnswer(f"it returned an array {array.shape}; expected {shape}: {what}")
    return array


def _describe(error: BaseException) -> str:
    """One line: what was raised, and the last line of the solver it went through."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    of_solver = [f for f in frames if not _ours(Path(f.filename))]
    if of_solver:
        path, line = of_solver[-1].filename, of_solver[-1].lineno
        said += f" ({os.path.basename(path)}, line {line})"
    return " ".join(said.split())


def _ours(path: Path) -> bool:
    """Whether a file is of this package, and of none of its solvers."""
    return PACKAGE in path.parents and PACKAGE / "solvers" not in path.parents


class Trials:
    """All trials of one solver, one after the other in one other process."""

    def __init__(self, solver: Any, questions: Sequence[Question], limit: float):
        self.solver, self.questions, self.limit = solver, questions, limit
        self.process: Any = None

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *_: Any) -> None:
        self._end()

    def run(self, which: int) -> Answer:
        """The answer to one question; a process that takes too long is killed."""
        if "fork" not in multiprocessing.get_all_start_methods():
            return attempt(self.solver, self.questions[which], self.limit)
        if self.process is None:
            self._begin()
        patience = 1.5 * self.limit + 1
        try:
            self.line.send(which)
            if self.line.poll(patience):
                return self.line.recv()
            words = f"no answer within {patience:.3g} s: its process was ended"
            answer = Answer("hangs", words, seconds=patience)
        except (EOFError, ConnectionError):
            self.process.join(1)
            code = self.process.exitcode
            answer = Answer("died", f"its process ended with exit code {code}")
        self._end()
        return answer

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
        """In the other process: answer until nobody asks any more."""
        self.line.close()
        sys.stdout.flush()
        os.dup2(2, 1)  # what a solver prints does not belong into a report
        try:
            while True:
                which = line.recv()
                answer = attempt(self.solver, self.questions[which], self.limit)
                sys.stdout.flush()
                line.send(answer)
        except (EOFError, KeyboardInterrupt):
            os._exit(0)
