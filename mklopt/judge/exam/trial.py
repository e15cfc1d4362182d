"""In the process of the candidate: import it, run it, and tell what it gave.

What is told is what the solver gave, untouched: α and weights or coefficients as they
are, before any repair. For a generator these are the iterate with the smallest
certified gap of its run in the one loop (run/loop.py), the last one (where it was
going), and the point that the loop made of all. Whoever asked believes none of it.

A solver should not behave better because it is examined. So this file is run from its
source under a neutral name (sandbox.py): it imports by full names, and defines no class
that must be found again.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial, wraps
from typing import Any

import numpy as np

import mklopt
from mklopt.certificates.certificate import Certificate
from mklopt.judge.exam.answer import PARTS, Answer, Candidate, pack
from mklopt.problem import Problem, describe
from mklopt.run.loop import Best, solve
from mklopt.run.own_solver import (
    BadAnswer,
    callable_with_a_problem,
    checked_iterates,
    imported,
    point_of,
)
from mklopt.solvers import Iterate, Solver
from mklopt.util.extras import if_there

Array = np.ndarray
INPUTS = ("y", "C", "the kernels", "the loss, Ω or the bias")
MAX_MESSAGE = 300  # characters of an error message
MAX_EARLIER = 5  # iterates before the last one whose weights are kept
RETURNED: list[tuple[Array, Array]] = []  # arrays of the last answer, and copies
MAX_MEMORY = 4 << 30  # bytes that a candidate may take
HIDDEN = ("judge", "exam", "pytest", "mklopt.cli", "xdist")  # parts of names
PACKAGE = os.path.dirname(mklopt.__file__)


# ---- the candidate ------------------------------------------------------------


def statement(path: str) -> dict[str, Any]:
    """What a solver states about itself, or why there is none, as plain words."""
    try:
        found = callable_with_a_problem(imported(path))
    except ValueError as error:
        return {"error": str(error)}
    if not isinstance(found, Solver):
        return {}
    promise = None if callable(found.accuracy) else float(found.accuracy)
    return {
        "name": str(found.name),
        "needs": sorted(map(str, found.needs)),
        "losses": sorted(map(str, found.losses)),
        "bias": sorted(map(bool, found.bias)),
        "accuracy": promise,
    }


# ---- answering ---------------------------------------------------------------


def hashes(problem: Problem) -> tuple[str, ...]:
    """Hashes of what a solver is given, one for each of INPUTS."""
    grams, words = problem.grams, [repr(problem.bias)]
    words += [
        json.dumps(describe(x, problem)) for x in (problem.loss, problem.formulation)
    ]
    kernels = grams.factors or map(grams.kernel, range(grams.M))
    arrays = ([problem.y], [problem.C, problem.costs], [*kernels, grams.shift])
    parts = [
        b"".join(np.ascontiguousarray(a, "<f8").tobytes() for a in x) for x in arrays
    ]
    return tuple(
        hashlib.sha256(part).hexdigest() for part in (*parts, "".join(words).encode())
    )


def answered(solver: Any, problem: Problem, tol: float, limit: float) -> Answer:
    """Run the solver in this process, whatever it is, and whatever happens.

    tol: NaN where the solver says itself how exact it is
    """
    try:
        if np.isnan(tol):
            tol = float(solver.promise(problem))
        if not tol < np.inf:
            answer = Answer("refused", "it promises nothing here")
        elif isinstance(solver, Solver):
            answer = _in_the_loop(solver, problem, tol, limit)
        else:
            answer = _called(solver, problem, tol, limit)
    except BadAnswer as error:
        answer = Answer("bad answer", str(error))
    except BaseException as error:  # a solver may even try to exit
        refused = isinstance(error, NotImplementedError | ValueError)
        answer = Answer("refused" if refused else "raised", _described(error))
    try:
        after = hashes(problem)
    except Exception:  # changed so much that it is a problem no more
        after = ("",) * len(INPUTS)
    return replace(answer, tol=tol, inputs=after)


def _called(function: Callable, problem: Problem, tol: float, limit: float) -> Answer:
    returned = function(problem)
    if hasattr(returned, "send"):
        name = getattr(function, "__name__", "solver")
        anything = frozenset({"any"}), frozenset({True, False})
        found = Solver(name, lambda p: returned, frozenset(), *anything, 0.0, "", "")
        return _in_the_loop(found, problem, tol, limit)
    weights, dual = point_of(returned, problem)
    candidate = Candidate(dual, weights)
    changed = any(not np.array_equal(now, then) for now, then in RETURNED)
    parts = returned if isinstance(returned, tuple | list) else [returned]
    RETURNED[:] = [(a, a.copy()) for a in parts if isinstance(a, np.ndarray)]
    if changed:
        raise BadAnswer("an array that it returned before has changed; return copies")
    return Answer("returned", "", candidate, candidate, candidate)


def _in_the_loop(solver: Solver, problem: Problem, tol: float, limit: float) -> Answer:
    """The one loop, with every iterate looked at as it comes."""
    seen: deque[Iterate] = deque(maxlen=MAX_EARLIER + 1)
    best, given = Best(), Candidate(None)

    @wraps(solver.steps)
    def steps(*arguments: Any, **options: Any) -> Any:
        certificate: Any = None
        inner: Any = checked_iterates(solver.steps(*arguments, **options), problem)
        with closing(inner), suppress(StopIteration):
            while True:
                seen.append(inner.send(certificate))
                certificate = yield seen[-1]

    def look(certificate: Any, trace: Any) -> None:
        nonlocal given
        best.offer(certificate)
        if best.single is certificate:
            given = _as_given(seen[-1])

    watched = replace(solver, steps=steps)
    limits: Any = {"tol": tol, "time_limit": limit}
    result = solve(problem, watched, callback=look, **limits)
    made = best.point(tol)  # of its own iterates: the result may have better weights
    if made is None:
        raise BadAnswer("it ended without a single iterate")
    return Answer(
        "raised" if result.status == "failed" else result.status,
        result.message,
        given,
        _as_given(seen[-1]),
        _of_certificate(made),
        tuple(result.trace.gap),
        [np.array(i.weights, float) for i in seen if i.weights is not None][:-1],
    )


def _of_certificate(made: Certificate) -> Candidate:
    """Weights where there are some: then feature weights follow from them."""
    features = made.features if made.weights is None else None
    return Candidate(made.alpha, made.weights, made.coefficients, features)


def _as_given(iterate: Iterate) -> Candidate:
    """Copies: a solver may go on working in its arrays."""
    parts = (getattr(iterate, name) for name in PARTS)
    called = (part() if callable(part) else part for part in parts)
    return Candidate(*(None if a is None else np.array(a, float) for a in called))


def _described(error: BaseException) -> str:
    """One line: what was raised, and the last line of the solver it went through."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    said = said if len(said) <= MAX_MESSAGE else f"{said[:MAX_MESSAGE]}…"
    frames = traceback.extract_tb(error.__traceback__)
    of_solver = [f for f in frames if not _ours(f.filename)]
    if of_solver:
        path, line = of_solver[-1].filename, of_solver[-1].lineno
        said += f" ({os.path.basename(path)}, line {line})"
    return " ".join(said.split())


def _ours(path: str) -> bool:
    """Whether a file is of this package, and of none of its solvers; or has no name."""
    solvers = os.path.join(PACKAGE, "solvers", "")
    inside = path.startswith(os.path.join(PACKAGE, "")) and not path.startswith(solvers)
    return inside or path.startswith("<")


def serve(solver: Any, questions: Any, limit: float, receive: Any, send: Any) -> None:
    """Answer one question after the other, until nobody asks any more."""
    path = solver if isinstance(solver, str) else ""
    while line := receive():
        if int(line) < 0:
            send(json.dumps(statement(path)).encode())
            continue
        problem, tol = questions[int(line)]
        try:
            if isinstance(solver, str):
                solver = callable_with_a_problem(imported(path))
            answer = answered(solver, problem, tol, limit)
        except ValueError as error:
            answer = Answer("raised", str(error))
        send(pack(answer))


# ---- the process -------------------------------------------------------------


def fork(pids: list[int], line: Any, of_judge: Any, *work: Any) -> None:
    """Begin another process that serves; its number goes into `pids`."""
    pid = os.fork()
    if pid:
        pids.append(pid)
        return
    with suppress(BaseException):
        of_judge.close()
        os.setsid()  # so that it can be killed with all that it starts
        begin(line, *work)
    os._exit(1)


def begin(line: Any, solver: Any, questions: Any, limit: float) -> None:
    """Serve on this line, in a process that is there for nothing else."""
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # what a solver prints does not belong into a report
    sys.stdout = sys.stderr
    line.settimeout(None)
    limit_memory()
    hide()
    lines = line.makefile("rb")
    serve(solver, questions, limit, lines.readline, partial(send_whole, line))


def send_whole(line: Any, message: bytes) -> None:
    """A message with its length before it."""
    sys.stdout.flush()
    line.sendall(struct.pack("<Q", len(message)) + message)


def limit_memory() -> None:
    """From here on a process may take MAX_MEMORY more than it has."""
    resource = if_there("resource")  # Windows has none
    if resource is not None:
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        used *= 1 if sys.platform == "darwin" else 1024  # bytes there, else kilobytes
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (used + MAX_MEMORY,) * 2)


def hide() -> None:
    """No trace of an exam in the places where a solver may look for one."""
    sys.argv[:] = sys.orig_argv[:] = [sys.executable]
    for name in [k for k in os.environ if "PYTEST" in k]:
        del os.environ[name]
    for name in [k for k in sys.modules if any(x in k for x in HIDDEN)]:
        del sys.modules[name]
