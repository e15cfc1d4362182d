"""The exam: anybody's solver on graded problems, judged one by one, in words.

    mklopt.check_solver(solver).passed

A solver is a generator of iterates like ours, a function problem → (weights, dual), a
function problem → weights (α is then that of the SVM at these weights), or the name of
one of ours. It is tried on graded problems, which are always the same, and on fresh
ones, which nobody has seen before (plan.py), in a process of its own and with a time
limit for each (sandbox.py). Some are asked again in a second process.

A problem is passed when the candidate is certified to the relative gap `tol` here, by
the judge's own copy of the problem, α as it was given is within √tol, or 1e-3, of the
feasible set, the answer came in time, and the problem was not changed. `above` and
`below` say where the two values lie: how far the primal is above f*, and the dual below
it, at most; of graded problems measured against a reference that the solver has never
seen. Failures are diagnosed (diagnosis.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...reference.graded_problems import GRADES, reference_of
from .answer import PARTS, Answer
from .case import NOT_CERTIFIED, Case, certified, infeasibility
from .diagnosis import diagnose
from .fresh import facts
from .plan import DEFAULT_TOL, FRESH, Question, plan
from .report import ProblemResult, SolverReport
from .sandbox import Trials
from .target import find_solver
from .trial import INPUTS, hashes

Progress = Callable[[int, int], None]
WORST_PROMISE = 1e-2  # a larger gap is no solution, whatever a solver promises
TIME_LIMIT = 20.0  # seconds for each problem
MAX_HANGS = 3  # answers that did not come in time: then the exam is over
MAX_DIAGNOSED = 18  # failures, those with the fewest samples


# ---- the exam ----------------------------------------------------------------


def check_solver(
    solver: Any,
    *,
    time_limit: float = TIME_LIMIT,
    progress: Progress | None = None,
    **asked: Any,
) -> SolverReport:
    """Judge anybody's solver on graded and fresh problems, and diagnose its failures.

    Parameters
    ----------
    solver : callable or str or Solver
        A generator function of iterates, a function problem → (weights, dual) or
        → weights, "module:name", or the name of one of our solvers. A module given by
        name is imported in other processes alone.
    time_limit : float
        Seconds for each problem. A run that takes longer is killed and has failed.
    progress : callable, optional
        Called with (done, all) after each problem.
    **asked
        Which problems:

        problems : Problem, list or dict of Problem
            Own problems, in place of graded and fresh ones. Those with a formulation,
            loss or bias that the solver does not claim are left out, and so are those
            that it refuses, if it claims nothing.
        formulations, losses : list
            What it should solve: instances, names, "LpNorm(p=1.5)", or functions of
            M. A name without parameters stands for several. By default what its
            traits state; for a function, hinge with LpNorm(2) and whatever else it
            does not refuse with ValueError or NotImplementedError.
        grades : list of str
            Of easy, ill-conditioned, degenerate, edge, fresh; by default all.
        leave_out : list of str
            Names of problems it need not solve, such as "one C per sample".
        bias : bool
            For a solver that knows only problems with a bias, or without one.
        tol : float
            The relative gap asked for; by default what it promises, or 1e-6.
        seed : int
            Of the fresh problems; by default drawn anew, and shown in the report.
        quick : bool
            Ask fewer problems.

    Returns
    -------
    SolverReport
        `passed`, `failures`, `diagnosis`; `print` shows the table.

    Raises
    ------
    ValueError
        If the solver cannot be found or called, or no problem fits.

    Examples
    --------
    >>> import mklopt
    >>> mklopt.check_solver("analytic", grades=["easy"]).passed
    True
    """
    if not time_limit > 0:
        raise ValueError(f"time_limit = {time_limit!r}: give a positive number")
    target = find_solver(solver)
    made = plan(target.stated or target.solver, **asked)
    rows, refused = examine(target.solver, made.questions, time_limit, progress)
    if not rows:
        raise ValueError(f"{target.name} refused every problem: {refused[0]}")
    failed = [row.kind for row in rows if not row.passed and row.kind != UNNAMED]
    kind = max(failed, key=failed.count, default="")
    drawn = any(row.grade == FRESH for row in rows)
    left_out = (*made.left_out, *dict.fromkeys(refused))
    seed = made.seed if drawn else None
    return SolverReport(target.name, tuple(rows), left_out, kind, seed)


GIVEN_UP = Answer("not asked", f"{MAX_HANGS} answers before did not come in time")
UNNAMED = "fails, too"  # the kind of a failure that was not looked at


def examine(
    solver: Any,
    questions: Sequence[Question],
    time_limit: float = TIME_LIMIT,
    progress: Progress | None = None,
) -> tuple[list[ProblemResult], list[str]]:
    """Ask a solver all questions, judge its answers, and diagnose the failures.

    Returns the results, and the problems that it refused and may refuse.
    """
    pairs = [(q.problem, q.tol) for q in questions]
    again = [i for i, q in enumerate(questions) if q.again]
    first = [i for i, q in enumerate(questions) if not q.again]
    answers: dict[int, Answer] = {}
    for some in filter(None, (first, again[::-1])):
        with Trials(solver, pairs, time_limit) as trials:
            for i in some:
                late = sum(answer.ended == "hangs" for answer in answers.values())
                answers[i] = trials.run(i) if late < MAX_HANGS else GIVEN_UP
                if progress is not None:
                    progress(len(answers), len(questions))
    rows: list[ProblemResult] = []
    cases: dict[int, Case] = {}
    refused: list[str] = []
    for i, question in enumerate(questions):
        answer = answers[i]
        if answer.ended == "refused" and (question.optional or answer.tol == math.inf):
            what = f"{question.name} with {question.loss}, {question.formulation}"
            refused.append(f"{what} (refused)")
            continue
        row, case = judge_answer(question, answer)
        if case is not None:
            cases[len(rows)] = case
        rows.append(row)
    return _diagnosed(rows, cases), refused


def _diagnosed(
    rows: list[ProblemResult], cases: dict[int, Case]
) -> list[ProblemResult]:
    """The rows with diagnoses; of many failures the smallest problems are looked at."""
    small = sorted(cases, key=lambda i: cases[i].problem.grams.n)[:MAX_DIAGNOSED]
    for i, found in zip(small, diagnose([cases[i] for i in small])):
        rows[i] = replace(rows[i], kind=found.kind, diagnosis=found.words)
    for i in set(cases) - set(small):
        words = f"{UNNAMED}: the certified gap is {rows[i].gap:.1e}"
        rows[i] = replace(rows[i], kind=UNNAMED, diagnosis=words)
    return rows


def _point(answer: Answer) -> dict[str, Any]:
    """What came back, by the names that `mklopt.diagnose` takes."""
    if answer.given is None:
        return {}
    parts = {name: getattr(answer.given, name) for name in PARTS}
    return {name: part for name, part in parts.items() if part is not None}


def judge_answer(
    question: Question, answer: Answer
) -> tuple[ProblemResult, Case | None]:
    """The result of one problem, and the case where it needs a diagnosis."""
    problem = question.problem
    tol = min(answer.tol, WORST_PROMISE) if math.isnan(question.tol) else question.tol
    row = ProblemResult(
        question.grade, question.name, question.formulation, question.loss, tol, False,
        ended=answer.ended, seconds=answer.seconds, kind=answer.ended,
        diagnosis=f"{answer.ended}: {answer.words}", **facts(problem), asked=problem,
        point=_point(answer),
    )  # fmt: skip
    if answer.given is None or answer.last is None or answer.made is None:
        return row, None
    try:
        found, off = certified(problem, answer.made), 0.0
        if answer.given.dual is not None:
            off = infeasibility(problem, answer.given.dual)[0]
    except NOT_CERTIFIED as error:
        return replace(row, kind="bad answer", diagnosis=f"bad answer: {error}"), None
    row = replace(
        row,
        gap=found.relative_gap,
        lower=found.lower,
        upper=found.upper,
        infeasible=off,
        above=found.relative_gap,
        below=found.relative_gap,
    )
    if question.grade in GRADES:
        known = reference_of(problem)
        above = max(found.primal - known.lower, 0.0) / abs(known.upper)
        below = max(known.upper - found.dual, 0.0) / abs(known.upper)
        row = replace(row, above=above, below=below)
    if answer.ended == "raised":
        return row, None
    changed = [
        name for name, a, b in zip(INPUTS, hashes(problem), answer.inputs) if a != b
    ]
    if changed:
        words = f"changed its input: {' and '.join(changed)} of the problem"
        return replace(row, kind="changed its input", diagnosis=words), None
    near = off**2 <= max(tol, DEFAULT_TOL)  # iterates need not be feasible, but nearly
    good = found.relative_gap <= tol * (1 + 1e-6) + 1e-15 and near
    case = None if good else Case(problem, answer, tol, answer.last)
    return replace(row, passed=good, kind="", diagnosis=""), case
