"""The kit that judges anybody's solver, problem by problem, in words.

    mklopt.check_solver(solver).passed

A solver is a generator of iterates like ours, a function problem → (weights, dual), a
function problem → weights (α is then that of the machine at these weights), or the name
of one of ours. It is tried on the graded problems (reference/graded.py), each in a
process of its own and with a time limit (trial.py).

A problem is passed when the candidate is certified to the relative gap `tol`, and α as
it was given is within √tol of the feasible set. `above` and `below` say where the two
values lie: how far the primal is above f*, and the dual below it, at most, measured
against the interval of a reference that the solver has never seen. Failures are
diagnosed (diagnosis.py).
"""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from .certificate import Certificate, certify
from .diagnosis import Case, diagnose, distance, machine
from .formulations import Formulation, Loss, formulations, losses_by_name
from .formulations.epigraph import DerivationError
from .formulations.lp_norm import LpNorm
from .problem import Problem
from .reference import Reference
from .reference.graded import GRADED, GRADES, Graded, reference_of
from .solvers import Solver, solvers
from .trial import Answer, Point, Task, Trials

TOL = 1e-6
FIRST = ("LpNorm", "BlockL1", "GroupLasso", "VSKL", "Tikhonov")  # what is tried first,
USUAL = ("hinge", "squared", "logistic", "eps_insensitive")  # of all a solver supports
MOST = 3  # formulations of a solver that states what it supports, and two losses


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


@dataclass(frozen=True)
class Report:
    """What the kit found."""

    solver: str
    rows: tuple[Row, ...]
    left_out: tuple[str, ...] = ()  # problems that were not asked for, or do not fit
    kind: str = ""  # of failure, overall
    failures: tuple[Row, ...] = field(init=False, repr=False)

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

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(file=io.StringIO(), width=100)
        self.show(console)
        return console.file.getvalue().rstrip()  # type: ignore[attr-defined]

    def show(self, console: Any) -> None:
        """The table, the diagnoses, the most frequent first, and one sentence."""
        from .report import verdicts

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


# ---- what is asked -----------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """One problem to be solved, and how well."""

    grade: str
    name: str
    problem: Problem
    tol: float

    @property
    def title(self) -> str:
        """Grade, problem, loss and formulation in one line."""
        return f"{self.grade}: {self.name}, {self.loss}, {self.formulation}"

    @property
    def formulation(self) -> str:
        from .report import shown

        return shown(self.problem.formulation)

    @property
    def loss(self) -> str:
        from .report import shown

        return shown(self.problem.loss, self.problem.loss.name)


@dataclass(frozen=True)
class Plan:
    questions: tuple[Question, ...]
    left_out: tuple[str, ...]


Spec = str | Formulation | Callable[[int], Formulation]


def plan(
    solver: Any,
    *,
    formulations: Iterable[Spec] | None = None,
    losses: Iterable[str | Loss] | None = None,
    grades: Iterable[str] | None = None,
    leave_out: Iterable[str] = (),
    bias: bool | None = None,
    tol: float | None = None,
) -> Plan:
    """The questions that a solver is asked; see check_solver."""
    _check(grades, leave_out, tol)
    traits = solver if isinstance(solver, Solver) else None
    kinds = None if formulations is None else [_formulation(f) for f in _list(formulations)]
    some = None if losses is None else [_loss(x) for x in _list(losses)]
    questions, dropped = [], []
    for kind, loss in _pairs(traits, kinds, some):
        for graded in GRADED:
            if graded.grade not in (set(grades) if grades else GRADES):
                continue
            problem = _problem(graded, kind, loss, traits, bias)
            if graded.name in leave_out or problem is None:
                dropped.append(graded.name)
                continue
            promise = traits.promise(problem) if traits else TOL
            if tol is None and promise == math.inf:
                dropped.append(graded.name)
                continue
            goal = tol or promise
            questions.append(Question(graded.grade, graded.name, problem, goal))
    if not questions:
        name = getattr(solver, "name", getattr(solver, "__name__", "the solver"))
        raise ValueError(
            f"no graded problem fits {name} with these formulations, losses and grades"
        )
    return Plan(tuple(questions), tuple(dict.fromkeys(dropped)))


def _pairs(
    traits: Solver | None, kinds: list | None, losses: list | None
) -> Iterator[tuple[Any, Loss]]:
    """All that was asked for; by default what a solver states, or the usual SVM."""
    if traits is None or (kinds is not None and losses is not None):
        for kind in kinds or [lambda M: LpNorm(2.0)]:
            for loss in losses or [_loss("hinge")]:
                yield kind, loss
        return
    stated = _supported(traits, kinds, losses)
    if not stated:
        raise ValueError(f"{traits.name} supports none of these formulations and losses")
    first_kind, first_loss = stated[0]
    yield from [(k, x) for k, x in stated if x == first_loss][:MOST]
    others = [(k, x) for k, x in stated if k is first_kind and x != first_loss]
    yield from others[:1]


def _supported(traits: Solver, kinds: list | None, losses: list | None) -> list:
    """The pairs a solver states to support, tried on the first graded problem."""
    names = sorted(formulations(), key=lambda n: FIRST.index(n) if n in FIRST else 9)
    known = [*USUAL, *(n for n in losses_by_name() if n not in USUAL)]
    some_losses = losses or [_loss(n) for n in known]
    some_kinds = kinds or [_formulation(n) for n in names]
    return [
        (kind, loss)
        for loss in some_losses
        for kind in some_kinds
        if _problem(GRADED[0], kind, loss, traits, None) is not None
    ]


def _problem(
    graded: Graded, kind: Any, loss: Loss, traits: Solver | None, bias: bool | None
) -> Problem | None:
    """A graded problem with this formulation and loss; None where it does not fit."""
    if bias is not None and bias and not graded.bias:
        return None
    try:
        made = kind(graded.draw()[0].M)
        problem = graded.problem(made, loss, bias is not False)
    except ValueError:
        return None
    if traits is None or not traits.why_not(problem):
        return problem
    if problem.bias and bias is None:
        return _problem(graded, kind, loss, traits, False)
    return None


def _list(given: Any) -> list:
    single = isinstance(given, str | Formulation | Loss) or callable(given)
    return [given] if single else list(given)


def _formulation(spec: Any) -> Callable[[int], Formulation]:
    """A formulation for M kernels, from an instance, a class or text."""
    if isinstance(spec, Formulation):
        return lambda M: spec
    if isinstance(spec, str):
        return _named(spec)
    if isinstance(spec, type) and issubclass(spec, Formulation):
        return lambda M: _usual(spec, M)
    if callable(spec):
        return spec
    raise ValueError(
        f"formulation {spec!r}: give an instance such as LpNorm(p=2), its name, or a "
        "function of the number of kernels"
    )


def _usual(kind: type[Formulation], M: int) -> Formulation:
    try:
        return kind()
    except TypeError:  # it has parameters without a default
        return kind.examples(M)[0]


def _named(text: str) -> Callable[[int], Formulation]:
    """"LpNorm" or "LpNorm(p=1.5)": a name, and literals for its parameters."""
    name, _, rest = text.partition("(")
    known = formulations()
    if name.strip() not in known:
        raise ValueError(
            f"formulation {name.strip()!r} is not known; choose one of {', '.join(known)}"
        )
    kind = known[name.strip()]
    if not rest:
        return lambda M: _usual(kind, M)
    try:
        call = ast.parse(text.strip(), mode="eval").body
        assert isinstance(call, ast.Call)
        values = [_literal(a) for a in call.args]
        made = kind(*values, **{str(k.arg): _literal(k.value) for k in call.keywords})
    except (SyntaxError, AssertionError, TypeError, ValueError) as error:
        raise ValueError(f"formulation {text!r} cannot be read: {error}") from None
    return lambda M: made


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and node.id == "inf":
        return math.inf
    try:
        return ast.literal_eval(node)
    except ValueError:
        said = ast.unparse(node)
        raise ValueError(f"{said} is no plain number, tuple or inf") from None


def _loss(given: Any) -> Loss:
    from .problem import _loss as found

    return found(given)


def _check(grades: Any, leave_out: Any, tol: Any) -> None:
    for grade in grades or ():
        if grade not in GRADES:
            raise ValueError(
                f"grade {grade!r} is not known; choose from {', '.join(GRADES)}"
            )
    names = [graded.name for graded in GRADED]
    for name in leave_out:
        if name not in names:
            raise ValueError(f"no problem {name!r} to leave out; there are: {', '.join(names)}")
    if tol is not None and not 0 < tol < 1:
        raise ValueError(f"tol = {tol!r}: a relative gap between 0 and 1")


# ---- the solver --------------------------------------------------------------


def find_solver(given: Any) -> Any:
    """A solver from "module:name", from the name of one of ours, or as it is."""
    if isinstance(given, str):
        given = _imported(given) if ":" in given else _registered(given)
    if isinstance(given, Solver):
        return given
    if not callable(given):
        raise ValueError(
            f"{given!r:.40} is no solver; give a generator function of "
            "iterates, or a function problem → (weights, dual) or → weights"
        )
    try:
        inspect.signature(given).bind(None)
    except TypeError as error:
        name = getattr(given, "__name__", given)
        raise ValueError(
            f"{name} cannot be called with a problem and nothing else: {error}"
        ) from None
    except ValueError:  # built-in functions have no signature to look at
        pass
    return given


def _registered(name: str) -> Solver:
    known = solvers()
    if name not in known:
        raise ValueError(
            f"{name!r} is neither module:name nor one of our solvers: {', '.join(known)}"
        )
    return known[name]


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == module
        said = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"there is no module {module!r} here or installed"
            if missing or not module
            else f"importing {module} raised {said}"
        ) from None
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"module {module!r} has no {name!r}")
        found = getattr(found, part)
    return found


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
    name = solver if isinstance(solver, str) else getattr(found, "name", None)
    name = name or getattr(found, "__name__", type(found).__name__)
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
    kind = ""
    told = diagnose(list(cases.values()))
    for (i, _), (finding, kind) in zip(cases.items(), told):
        rows[i] = replace(rows[i], kind=finding.kind, diagnosis=finding.words)
    failed = [row.kind for row in rows if not row.passed]
    if failed and (not kind or failed.count(kind) < len(failed) / 2):
        kind = max(failed, key=failed.count)
    return Report(name, tuple(rows), asks.left_out, kind)


def judge_alone(solver: Any, question: Question, time_limit: float = 10.0) -> Row:
    """One question, asked, judged and diagnosed by itself."""
    with Trials(solver, [Task(question.problem, question.tol)], time_limit) as trials:
        row, case = judge(question, trials.run(0))
    if case is not None:
        ((finding, _),) = diagnose([case])
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
        **_place(found, reference),
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


def _place(found: Certificate, reference: Reference) -> dict[str, float]:
    """How far both values are from f*, at most, relative."""
    size = max(abs(reference.upper), 1e-300)
    return {
        "above": max(found.primal - reference.lower, 0.0) / size,
        "below": max(reference.upper - found.dual, 0.0) / size,
    }
