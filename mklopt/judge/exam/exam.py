"""The kit that judges anybody's solver, problem by problem, in words.

    mklopt.check_solver(solver).passed

A solver is a generator of iterates like ours, a function problem → (weights, dual), a
function problem → weights (α is then that of the machine at these weights), or the name
of one of ours. It is tried on the graded problems (reference/graded_problems.py), each
in a process of its own and with a time limit (sandbox.py).

A problem is passed when the candidate is certified to the relative gap `tol`, and α as
it was given is within √tol of the feasible set. `above` and `below` say where the two
values lie: how far the primal is above f*, and the dual below it, at most, measured
against the interval of a reference that the solver has never seen. Failures are
diagnosed (diagnosis.py).
"""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

from ...certificates.certificate import Certificate, certify
from ...formulations.derive.epigraph import DerivationError
from ...problem import Problem
from ...reference.graded_problems import reference_of
from ...util.tables import mark, plain_table
from .case import Case, distance, machine
from .diagnosis import diagnose
from .plan import Question, find_solver, name_of, plan
from .sandbox import Answer, Point, Task, Trials


@dataclass(frozen=True)
class Row:
    """One problem, judged."""

    grade: str
    problem: str
    formulation: str
    loss: str
    tol: float
    passed: bool
    gap: float = math.inf  # certified, relative
    lower: float = -math.inf  # lower ≤ f* ≤ upper, shown by the candidate
    upper: float = math.inf
    above: float = math.inf  # primal above f*, dual below it, relative, at most
    below: float = math.inf
    infeasible: float = 0.0  # how far α was from feasible as given, relative
    ended: str = ""
    seconds: float = 0.0
    kind: str = ""  # of failure
    diagnosis: str = ""


@dataclass(frozen=True, repr=False)
class Report:
    """What the kit found."""

    solver: str
    rows: tuple[Row, ...]
    left_out: tuple[str, ...] = ()  # problems that were not asked for, or do not fit
    kind: str = ""  # of failure, overall
    failures: tuple[Row, ...] = field(init=False)

    def __post_init__(self) -> None:
        failed = tuple(row for row in self.rows if not row.passed)
        object.__setattr__(self, "failures", failed)

    @property
    def passed(self) -> bool:
        return bool(self.rows) and not self.failures

    @property
    def diagnosis(self) -> str:
        """What explains most of the failures, in words; empty when there are none."""
        return _most_common([row for row in self.failures if row.kind == self.kind])

    def __repr__(self) -> str:
        good = len(self.rows) - len(self.failures)
        told = f", {self.kind}" if self.kind else ""
        return f"Report({self.solver}: {good} of {len(self.rows)} certified{told})"

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(file=io.StringIO(), width=100)
        self.show(console)
        return console.file.getvalue().rstrip()  # type: ignore[attr-defined]

    def show(self, console: Any) -> None:
        """The table, the diagnoses, the most frequent first, and one sentence."""
        for table in verdicts(self.rows):
            console.print(table)
        say = partial(console.print, markup=False, highlight=False)
        for kind, _ in Counter(row.kind for row in self.failures).most_common():
            rows = [row for row in self.failures if row.kind == kind]
            names = "; ".join(dict.fromkeys(row.problem for row in rows))
            say(f"{kind} ({len(rows)}): {names}\n    {_most_common(rows)}")
        if self.left_out:
            say(f"left out: {'; '.join(self.left_out)}")
        good = len(self.rows) - len(self.failures)
        verdict = "passed" if self.passed else f"FAILED, most likely: {self.kind}"
        say(f"{self.solver}: {good} of {len(self.rows)} problems certified: {verdict}")

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row per problem."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])

    def to_json(self) -> str:
        """Everything as JSON; what is not a finite number is null."""

        def plain(row: Row) -> dict[str, Any]:
            return {
                k: None if isinstance(v, float) and not math.isfinite(v) else v
                for k, v in asdict(row).items()
            }

        return json.dumps(
            {
                "solver": self.solver,
                "passed": self.passed,
                "kind": self.kind,
                "diagnosis": self.diagnosis,
                "left_out": list(self.left_out),
                "rows": [plain(row) for row in self.rows],
            },
            ensure_ascii=False,
            indent=1,
        )


def _most_common(rows: list[Row]) -> str:
    words = [row.diagnosis for row in rows]
    return max(words, key=words.count, default="")


# ---- judging -----------------------------------------------------------------


def check_solver(
    solver: Any,
    *,
    time_limit: float = 10.0,
    progress: Callable[[int, int], None] | None = None,
    **asked: Any,
) -> Report:
    """Judge anybody's solver on the graded problems; `print` shows the table.

    solver: a generator function of iterates, a function problem → (weights, dual) or
        → weights, or "module:name", or the name of one of ours
    formulations, losses: what it should solve; by default what its traits state, or
        hinge with LpNorm(2). Instances, names, "LpNorm(p=1.5)", or functions of M
    grades: easy, ill-conditioned, degenerate, edge; all by default
    leave_out: names of problems it need not solve, such as "one C per sample"
    bias: True or False for a solver that knows only problems with or without one
    tol: the relative gap asked for; by default what it promises, or 1e-6
    time_limit: seconds for each problem
    progress: called with (done, all) after each problem
    """
    if not time_limit > 0:
        raise ValueError(f"time_limit = {time_limit!r}: give a positive number")
    found = find_solver(solver)
    asks = plan(found, **asked)
    name = str(solver if isinstance(solver, str) else name_of(found))
    tasks = [Task(q.problem, q.tol) for q in asks.questions]
    rows, cases = [], {}
    with Trials(found, tasks, time_limit) as trials:
        for i, question in enumerate(asks.questions):
            row, case = judge(question, trials.run(i))
            rows.append(row)
            if case is not None:
                cases[i] = case
            if progress is not None:
                progress(i + 1, len(tasks))
    for i, finding in zip(cases, diagnose(list(cases.values()))):
        rows[i] = replace(rows[i], kind=finding.kind, diagnosis=finding.words)
    failed = [row.kind for row in rows if not row.passed]
    kind = max(failed, key=failed.count, default="")
    return Report(name, tuple(rows), asks.left_out, kind)


def judge_alone(solver: Any, question: Question, time_limit: float = 10.0) -> Row:
    """One question, asked, judged and diagnosed by itself."""
    with Trials(solver, [Task(question.problem, question.tol)], time_limit) as trials:
        row, case = judge(question, trials.run(0))
    if case is not None:
        (finding,) = diagnose([case])
        row = replace(row, kind=finding.kind, diagnosis=finding.words)
    return row


def judge(question: Question, answer: Answer) -> tuple[Row, Case | None]:
    """The verdict on an answer, and the case where it needs a diagnosis."""
    problem, tol = question.problem, question.tol
    row = Row(
        question.grade, question.name, question.formulation, question.loss, tol, False,
        ended=answer.ended, seconds=answer.seconds,
    )  # fmt: skip
    if answer.given is None or answer.last is None or answer.made is None:
        return replace(row, kind=answer.ended, diagnosis=_said(answer)), None
    try:
        found, off = _certified(problem, answer.made), 0.0
        if answer.given.dual is not None:
            off = distance(problem, answer.given.dual)[0]
    except (ValueError, ArithmeticError, DerivationError) as error:
        return replace(row, kind="bad answer", diagnosis=f"bad answer: {error}"), None
    reference = reference_of(problem)
    good = found.relative_gap <= tol * (1 + 1e-6) + 1e-15 and off**2 <= tol
    row = replace(
        row,
        passed=good and answer.ended != "raised",
        gap=found.relative_gap,
        lower=found.lower,
        upper=found.upper,
        infeasible=off,
        above=max(found.primal - reference.lower, 0.0) / abs(reference.upper),
        below=max(reference.upper - found.dual, 0.0) / abs(reference.upper),
    )
    if answer.ended == "raised":
        return replace(row, kind="raised", diagnosis=_said(answer)), None
    return row, None if good else Case(problem, answer, tol, reference, answer.last)


def _said(answer: Answer) -> str:
    return f"{answer.ended}: {answer.words}"


def _certified(problem: Problem, point: Point) -> Certificate:
    dual = machine(problem, point.weights) if point.dual is None else point.dual
    if dual is None:
        raise ValueError("no machine can be solved at these weights")
    if point.coefficients is not None:
        return certify(problem, dual, coefficients=point.coefficients)
    return certify(problem, dual, point.weights)


def verdicts(rows: Sequence[Row]) -> Iterator[Any]:
    """A table for each loss and formulation."""
    from rich.markup import escape

    numbers = ("gap", "above", "below", "α off", "s")
    for pair, some in groupby(rows, key=lambda row: (row.loss, row.formulation)):
        title = f"{escape(', '.join(pair))}: certified gap, primal above and dual below"
        found = plain_table(f"{title} f*", ("", "problem"), numbers)
        for grade, group in groupby(some, key=lambda row: row.grade):
            found.add_section()
            found.add_row("", f"[bold]{grade}[/]")
            for row in group:
                values = (row.gap, row.above, row.below, row.infeasible)
                cells = (*(f"{x:.1e}" for x in values), f"{row.seconds:.1f}")
                found.add_row(mark(row.passed), f"  {escape(row.problem)}", *cells)
        yield found
