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

import io
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from ...formulations import formulations, losses_by_name
from ...problem import Problem
from ...reference.graded_problems import GRADES, reference_of
from ...util.tables import mark, plain_table
from .answer import PARTS, Answer
from .case import NOT_CERTIFIED, Case, certified, infeasibility
from .diagnosis import diagnose
from .fresh import facts
from .pattern import pattern
from .plan import DEFAULT_TOL, FRESH, OWN, Question, plan
from .sandbox import Trials
from .target import find_solver
from .trial import INPUTS, hashes

Progress = Callable[[int, int], None]
WORST_PROMISE = 1e-2  # a larger gap is no solution, whatever a solver promises
MAX_SHOWN = 8  # problems with one diagnosis, or not asked, by name
TIME_LIMIT = 20.0  # seconds for each problem
MAX_HANGS = 3  # answers that did not come in time: then the exam is over
MAX_DIAGNOSED = 18  # failures, those with the fewest samples


@dataclass(frozen=True)
class ProblemResult:
    """What a solver reached on one graded problem.

    Parameters
    ----------
    grade, problem, formulation, loss : str
        Which problem it was.
    tol : float
        The relative gap asked for.
    passed : bool
        Whether the candidate is certified to tol, and α nearly feasible as given.
    gap : float
        The certified relative gap.
    lower, upper : float
        lower ≤ f* ≤ upper, shown by the candidate.
    above, below : float
        How far the primal is above f*, and the dual below it, at most; relative.
    infeasible : float
        The distance of α from the feasible set as it was given; relative.
    ended : str
        How the run ended: "returned", "raised", "hangs", "converged", …
    seconds : float
        How long it took.
    kind, diagnosis : str
        Of a failure: its kind, and what is wrong, in words.
    n, M : int
        The numbers of samples and of kernels.
    C : float
        The largest C of a sample.
    storage : str
        How the kernels are stored: packed, full, factors; and float32, where it is.
    bias : bool
        Whether the problem has a bias.
    asked : Problem or None
        The problem itself.
    point : dict
        What was returned: `mklopt.diagnose(row.asked, **row.point)` looks at it again.
    """

    grade: str
    problem: str
    formulation: str
    loss: str
    tol: float
    passed: bool
    gap: float = math.inf
    lower: float = -math.inf
    upper: float = math.inf
    above: float = math.inf
    below: float = math.inf
    infeasible: float = 0.0
    ended: str = ""
    seconds: float = 0.0
    kind: str = ""
    diagnosis: str = ""
    n: int = 0
    M: int = 0
    C: float = math.nan
    storage: str = ""
    bias: bool = True
    asked: Problem | None = field(default=None, repr=False, compare=False)
    point: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def values(self) -> dict[str, Any]:
        """All but the problem and the point, which are no numbers and no words.

        Returns
        -------
        dict
        """
        names = [f.name for f in fields(self) if f.name not in ("asked", "point")]
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, repr=False)
class SolverReport:
    """What `mklopt.check_solver` found; `print` shows the table and the diagnosis.

    Parameters
    ----------
    solver : str
        The name of the solver.
    rows : tuple of ProblemResult
        One for each problem.
    left_out : tuple of str
        Problems that were not asked, or do not fit the solver.
    kind : str
        The kind of most failures; empty when there are none.
    seed : int
        Of the fresh problems; the same seed draws the same ones.
    """

    solver: str
    rows: tuple[ProblemResult, ...]
    left_out: tuple[str, ...] = ()
    kind: str = ""
    seed: int | None = None

    @property
    def failures(self) -> tuple[ProblemResult, ...]:
        """The problems that were not passed."""
        return tuple(row for row in self.rows if not row.passed)

    @property
    def passed(self) -> bool:
        """Whether every problem was passed, and there was at least one."""
        return bool(self.rows) and not self.failures

    @property
    def diagnosis(self) -> str:
        """What explains most of the failures, in words; empty when there are none."""
        return _most_common([row for row in self.failures if row.kind == self.kind])

    def _count(self) -> str:
        return f"{len(self.rows) - len(self.failures)} of {len(self.rows)}"

    def __repr__(self) -> str:
        kind = f", {self.kind}" if self.kind else ""
        return f"SolverReport({self.solver}: {self._count()} certified{kind})"

    def __str__(self) -> str:
        from rich.console import Console

        text = io.StringIO()
        self.show(Console(file=text, width=100))
        return text.getvalue().rstrip()

    def show(self, console: Any) -> None:
        """Print the table, the diagnoses, the most frequent first, and one sentence.

        Parameters
        ----------
        console : rich.console.Console
            Where to print.
        """
        for table in _tables(self.rows):
            console.print(table)
        say = partial(console.print, markup=False, highlight=False)
        for kind, count in Counter(row.kind for row in self.failures).most_common():
            rows = [row for row in self.failures if row.kind == kind]
            names = "; ".join(list(dict.fromkeys(map(_called, rows)))[:MAX_SHOWN])
            say(f"{kind} ({count}): {names}\n    {_most_common(rows)}")
        if found := pattern(self.rows):
            say(found)
        if any(row.grade != OWN for row in self.rows):
            say(_asked(self.rows))
        if self.left_out:
            some = "; ".join(self.left_out[:MAX_SHOWN])
            more = len(self.left_out) - MAX_SHOWN
            say(f"not asked: {some}" + (f"; and {more} more" if more > 0 else ""))
        if self.seed is not None:
            say(f"fresh problems were drawn with seed {self.seed}")
        say(self._verdict())

    def _verdict(self) -> str:
        verdict = "passed" if self.passed else f"FAILED, most likely: {self.kind}"
        return f"{self.solver}: {self._count()} problems certified: {verdict}"

    def to_frame(self) -> Any:
        """All results as a table.

        Returns
        -------
        pandas.DataFrame
            One row per problem.
        """
        import pandas as pd

        return pd.DataFrame([row.values() for row in self.rows])

    def html(self, path: str | os.PathLike | None = None) -> str:
        """The report as a page.

        Parameters
        ----------
        path : str or path, optional
            Where to write it.

        Returns
        -------
        str
            HTML that needs no other file.
        """
        page = f"<!doctype html><meta charset='utf-8'>{self._repr_html_()}"
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _repr_html_(self) -> str:
        names = ("grade", "problem", "formulation", "loss", "passed", "gap", "seconds")
        shown = {**dict.fromkeys(names, str), "gap": _short, "seconds": _short}
        head = "".join(f"<th>{name}</th>" for name in (*names, "diagnosis"))
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td>{escape(show(getattr(row, name)))}</td>"
                for name, show in shown.items()
            )
            + f"<td>{escape(row.diagnosis)}</td></tr>"
            for row in self.rows
        )
        return f"<p>{escape(self._verdict())}</p><table><tr>{head}</tr>{rows}</table>"

    def to_json(self) -> str:
        """Everything as JSON.

        Returns
        -------
        str
            What is not a finite number is null.
        """
        found: dict[str, Any] = {"passed": self.passed, "diagnosis": self.diagnosis}
        found |= {f.name: getattr(self, f.name) for f in fields(self)}
        found["rows"] = [row.values() for row in self.rows]
        for row in found["rows"]:
            for name, value in row.items():
                if isinstance(value, float) and not math.isfinite(value):
                    row[name] = None
        return json.dumps(found, ensure_ascii=False, indent=1)


def _short(number: float) -> str:
    return f"{number:.2g}"


def _most_common(rows: list[ProblemResult]) -> str:
    words = [row.diagnosis for row in rows]
    return max(words, key=words.count, default="")


def _called(row: ProblemResult) -> str:
    if row.grade != FRESH:
        return row.problem
    bias = "" if row.bias else ", no bias"
    size = f"n = {row.n}, M = {row.M}, C ≤ {row.C:.4g}, {row.storage}{bias}"
    return f"{row.problem} ({size})"


def _asked(rows: Sequence[ProblemResult]) -> str:
    """Which losses and formulations were asked for, and which were not."""
    said = []
    names: dict[str, Any] = {"losses": losses_by_name(), "formulations": formulations()}
    for part, known in names.items():
        shown = [row.loss if part == "losses" else row.formulation for row in rows]
        asked = dict.fromkeys(words.partition("(")[0] for words in shown)
        others = [name for name in known if name not in asked]
        rest = f" (not {', '.join(others)})" if others else ""
        said.append(f"{part} {', '.join(asked)}{rest}")
    return f"asked: {'; '.join(said)}"


def _tables(rows: Sequence[ProblemResult]) -> Iterator[Any]:
    """A table of graded problems for each loss and formulation, and one of fresh."""
    from rich.markup import escape

    numbers = ("gap", "above", "below", "α off", "s")
    for title, group in groupby(rows, key=_title):
        found = plain_table(escape(title), ("", "problem"), numbers)
        for grade, some in groupby(group, key=lambda row: row.grade):
            found.add_section()
            found.add_row("", f"[bold]{grade}[/]")
            for row in some:
                values = (row.gap, row.above, row.below, row.infeasible)
                cells = (*(f"{x:.1e}" for x in values), f"{row.seconds:.1f}")
                other = grade in (FRESH, OWN)
                what = f", {row.loss}, {row.formulation}" if other else ""
                name = escape(f"  {row.problem}{what}")
                found.add_row(mark(row.passed), name, *cells)
        yield found


def _title(row: ProblemResult) -> str:
    about = "certified gap, primal above and dual below f*"
    if row.grade == FRESH:
        return f"fresh problems: {about}"
    if row.grade == OWN:
        return f"own problems: {about}"
    return f"{row.loss}, {row.formulation}: {about}"


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
