"""The main job: every solver on every problem it supports, judged by references.

    problems   the contract problems (small, wdbc, twonorm), with committed references;
               kernels and labels from a file, with references solved on the way
    runs       every solver × problem within its promise, and the reference solver
               itself against the dual program derived from the declarations
    rows       one line of the ledger for each run, written as it ends
    points     what a row was computed from: `mklopt verify FOLDER` does it again

A row is written only for a run that was judged: a full disk, too little memory or a
killed worker says nothing about a solver, and its run is repeated by the next command.
What is in the ledger is not run again, as long as code, problem, promise and time limit
are the same. `quick` takes a covering slice: every solver with every formulation, loss,
C and data set that it supports, at least once; the reference with every formulation ×
loss.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .. import reference
from ..certificates.certificate import Certificate
from ..judge.verdict import Verdict, judge_run
from ..problem import Problem
from ..reference.contract_problems import STORE, Cell
from ..reference.store import Store
from ..run.loop import solve
from ..run.result import Result
from ..run.trace import COLUMNS as EVERY
from ..run.trace import Trace
from ..solvers import solvers
from ..util.tables import shown
from ..util.workers import ending_with_us, losses_reported
from .fingerprint import fingerprint
from .ledger import COLUMNS, Ledger, Row
from .problems import problems_by_name

AGREEMENT = 1e-8  # of the reference with its derived dual, relative
REFERENCE = "reference"  # its name among the solvers
REFERENCE_TOL = 2e-9  # of references that are not stored
MAX_CURVE_POINTS = 40
# A busy processor must not change a verdict: runs are limited in processor time. The
# clock on the wall stops only a run that waits for something.
WALL_PER_PROCESSOR_SECOND = 20


class NoReference(ValueError):
    """The problem has no reference: a solver cannot be judged on it."""


@dataclass(frozen=True)
class Run:
    """A solver on a problem, with what it promises there."""

    solver: str
    cell: Cell
    tol: float
    limit: float  # processor seconds
    folder: Path  # for references and certificates

    @property
    def id(self) -> str:
        """What a cached row is found by: code, problem, solver, promise and limit."""
        parts = [fingerprint(), self.cell.name, self.solver, self.tol, self.limit]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    @property
    def aspects(self) -> set[tuple]:
        """What a slice must cover."""
        kind, loss = type(self.cell.formulation).__name__, self.cell.loss.name
        seen = (kind, loss, self.cell.C, self.cell.data)
        return {(self.solver, what, part) for what, part in enumerate(seen)}

    def row(self) -> Row:
        """Run it; whatever the solver does becomes a row.

        OSError, MemoryError and NoReference say nothing about the solver: they are
        raised, and nothing is written.
        """
        problem = _with_own_counts(self.cell.problem())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what counts is the certificate
                return self.judged(problem)
        except (OSError, MemoryError, NoReference):
            raise
        except Exception as error:
            reason = f"it raised {type(error).__name__}: {error}"
            return self._row(problem, Verdict(False, reason[:500]))

    def judged(self, problem: Problem) -> Row:
        """Solve the problem, save the point, and judge it."""
        _reference(problem, self.folder)  # solved before the clock begins
        _warm(self.solver, problem)
        result = self._solved(problem)
        if result.status == "interrupted":
            raise KeyboardInterrupt
        if result.message.startswith("MemoryError"):  # inside the solver
            raise MemoryError
        result.save(point_of(self.folder, self.id))
        return replace(self.rated(result), certificate=self._certificate(result))

    def rated(self, result: Result) -> Row:
        """The row of a result, saved or new."""
        problem, certificate, trace = result.problem, result.certificate, result.trace
        found = _reference(problem, self.folder)
        return self._row(
            problem,
            judge_run(result, found, self.tol),
            status=result.status,
            gap=certificate.relative_gap,
            **_bounds(certificate),
            reference_lower=found.lower,
            reference_upper=found.upper,
            seconds=trace.last("seconds"),
            passes=trace.last("passes"),
            iterations=len(trace),
            trace=thinned(trace),
        )

    def _solved(self, problem: Problem) -> Result:
        begun = time.thread_time()
        result = solve(
            problem,
            self.solver,
            tol=self.tol,
            time_limit=WALL_PER_PROCESSOR_SECOND * self.limit,
            callback=lambda *_: time.thread_time() - begun > self.limit,
        )
        late = result.status == "stopped"
        return replace(result, status="time_limit") if late else result

    def _row(self, problem: Problem, verdict: Verdict, **measured: Any) -> Row:
        cell = self.cell
        return Row(
            id=self.id,
            code=fingerprint(),
            cell=cell.name,
            solver=self.solver,
            formulation=shown(cell.formulation),
            kind=type(cell.formulation).__name__,
            loss=cell.loss.name,
            data=cell.data,
            n=problem.grams.n,
            M=problem.grams.M,
            C=cell.C,
            bias=problem.bias,
            tol=self.tol,
            **asdict(verdict),
            **measured,
        )

    def _certificate(self, result: Result) -> str:
        """Write a certificate where the checker knows the pair; its name, or ""."""
        name = f"certificates/{self.id}.cert"
        try:
            result.save_certificate(self.folder / name)
        except ValueError:  # a loss or formulation that it does not know
            return ""
        return name


class ReferenceRun(Run):
    """The reference itself: its interval against the derived dual program."""

    @property
    def aspects(self) -> set[tuple]:
        """A slice covers every formulation × loss."""
        kind, loss = type(self.cell.formulation).__name__, self.cell.loss.name
        return {(self.solver, kind, loss)}

    def judged(self, problem: Problem) -> Row:
        """Solve the primal and the derived dual program, and compare them."""
        begun = time.perf_counter()
        found = reference.solve(problem)
        derived = reference.solve_dual(problem)
        trace = Trace(solver=REFERENCE, tol=math.inf)
        taken = time.perf_counter() - begun
        trace.append(**dict.fromkeys(EVERY, 0.0) | {"seconds": taken})
        parts = (found.solver, found.certificate, trace)
        result = Result(problem, REFERENCE, "converged", *parts)
        result.save(point_of(self.folder, self.id))
        return self.rated(result, derived)

    def rated(self, result: Result, derived: Any = None) -> Row:
        """The row of a reference, saved or new; the dual is solved where missing."""
        problem, found = result.problem, result.certificate
        derived = derived or reference.solve_dual(problem)
        scale = abs(found.upper)
        below = max(found.lower - derived.value, 0.0) / scale
        above = max(derived.value - found.upper, 0.0) / scale
        gap, off = found.width, max(above, below)
        reason = f"gap {gap:.1e}, the derived dual is {off:.1e} off the interval"
        holds = 0 <= gap <= self.tol and off <= self.tol
        if not holds:
            reason += f"; {self.tol:.0e} is asked of both"
        return self._row(
            problem,
            Verdict(holds, reason, above, below),
            status=result.message,
            gap=gap,
            **_bounds(found),
            reference_lower=derived.value,
            reference_upper=derived.value,
            seconds=result.trace.last("seconds"),
        )


def point_of(folder: Path, id: str) -> Path:
    """The file with the point behind a row."""
    return folder / "points" / f"{id}.npz"


def _bounds(found: Certificate) -> dict[str, Any]:
    """What is certified, as a row states it."""
    names = ("primal", "dual", "lower", "upper")
    sides = {name: getattr(found, name) for name in names}
    rests_on = "; ".join(found.assumptions)
    return {**sides, "theorem": not rests_on, "assumptions": rests_on}


def _reference(problem: Problem, folder: Path) -> Any:
    """The committed reference, or one of this folder, solved when it is missing."""
    try:
        found = STORE.load(problem)
        return found or Store(folder / "references").solve(problem, tol=REFERENCE_TOL)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        raise NoReference(f"it has no reference ({error})") from error


def _with_own_counts(problem: Problem) -> Problem:
    """The problem with a count of passes that no other run adds to."""
    return problem.with_(grams=problem.grams.apart())


_WARMED: set[tuple[str, str]] = set()


def _warm(solver: str, problem: Problem) -> None:
    """Load what is compiled, once in a process: it is no part of a run's time."""
    pair = (solver, problem.loss.name)
    if pair not in _WARMED:
        _WARMED.add(pair)
        with suppress(Exception):  # the run itself will tell
            solve(_with_own_counts(problem), solver, max_iter=3, time_limit=1.0)


def thinned(trace: Trace, points: int = MAX_CURVE_POINTS) -> dict[str, list]:
    """The columns of a curve, denser at the beginning, the last iterate included."""
    keep = np.unique(np.rint(np.geomspace(1, len(trace), points)).astype(int)) - 1
    found = {name: trace[name][keep] for name in COLUMNS}
    digits = {name: [float(f"{v:.4g}") for v in found[name]] for name in COLUMNS}
    return digits | {"iteration": found["iteration"].tolist()}


@dataclass(frozen=True)
class Selection:
    """What to run; an empty set means everything."""

    quick: bool = False
    limit: float = 30.0  # processor seconds for a run
    solver: frozenset[str] = frozenset()
    loss: frozenset[str] = frozenset()
    formulation: frozenset[str] = frozenset()
    data: frozenset[str] = frozenset()  # contract sets by name, or files

    def problems(self) -> list[Cell]:
        """The problems that were selected."""
        files = {name: Path(name).stem for name in self.data if name.endswith(".npz")}
        sets = {files.get(name, name) for name in self.data}
        asked = (self.loss, self.formulation, sets)

        def selected(cell: Cell) -> bool:
            given = (cell.loss.name, type(cell.formulation).__name__, cell.data)
            return all(not some or part in some for some, part in zip(asked, given))

        return list(filter(selected, problems_by_name(sorted(files)).values()))

    def runs(self, folder: Path) -> list[Run]:
        """All runs of this selection, those of one problem side by side."""
        found: list[Run] = []
        for cell in self.problems():
            problem = cell.problem()
            for name, solver in solvers().items():
                tol = math.inf if solver.why_not(problem) else solver.promise(problem)
                if tol < math.inf:
                    found.append(Run(name, cell, tol, self.limit, folder))
            if cell.data == "small":
                found.append(ReferenceRun(REFERENCE, cell, AGREEMENT, math.inf, folder))
        found = [r for r in found if not self.solver or r.solver in self.solver]
        return covering(found, lambda run: run.aspects) if self.quick else found


def covering(items: list, aspects: Callable[[Any], set]) -> list:
    """Greedily few items that show every aspect which all of them show together."""
    shows = [aspects(item) for item in items]
    left = set().union(*shows)
    chosen: set[int] = set()
    while left:
        best = max(range(len(items)), key=lambda i: len(shows[i] & left))
        chosen.add(best)
        left -= shows[best]
    return [item for i, item in enumerate(items) if i in chosen]


def _do(run: Run) -> Row | str:
    """The row of a run, or a sentence that says why it was not judged."""
    try:
        return run.row()
    except (MemoryError, NoReference) as error:
        why = str(error) if isinstance(error, NoReference) else "out of memory"
        return f"{run.solver} on {run.cell.name}: {why}"


def _dask() -> AbstractContextManager:
    """The cluster that Dask's own settings name (DASK_SCHEDULER_ADDRESS), or here."""
    from distributed import Client

    return Client(set_as_default=True)


CLUSTERS: dict[str, Callable[[], AbstractContextManager]] = {"dask": _dask}


class NoBackend(ValueError):
    """joblib has no such backend here."""


def execute(runs: Iterable[Run], jobs: int, backend: str) -> Iterator[Row | str]:
    """The rows as they are finished, by any backend of joblib."""
    from joblib import Parallel, delayed, parallel_config

    tasks = (delayed(_do)(run) for run in runs)
    more = ending_with_us(backend)
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())  # joblib's remark on Ctrl-C
        warnings.filterwarnings("ignore", "(?s).*still being processed by the workers")
        try:
            stack.enter_context(CLUSTERS.get(backend, nullcontext)())
            stack.enter_context(parallel_config(backend, n_jobs=jobs, **more))
        except (ImportError, ValueError) as error:
            raise NoBackend(f"backend {backend!r} cannot be used: {error}") from None
        pool = None
        with suppress(ValueError):  # some backends return lists only
            pool = Parallel(batch_size=1, return_as="generator_unordered")
        stack.enter_context(losses_reported())
        if pool is not None:
            yield from pool(tasks)
        while batch := list(islice(tasks, 4 * jobs)):
            yield from Parallel(batch_size=1)(batch)


class Campaign:
    """A folder with a ledger, and what is still to be done for a selection."""

    def __init__(self, folder: str | os.PathLike[str], selection: Selection):
        self.folder, self.selection = Path(folder), selection
        self.ledger = Ledger(self.folder / "rows.jsonl")
        self.runs = selection.runs(self.folder.absolute())
        self.todo = [run for run in self.runs if run.id not in self.ledger.rows]
        self.not_judged: list[str] = []  # runs without a row, and why

    @property
    def rows(self) -> list[Row]:
        """The finished rows of this selection."""
        known = self.ledger.rows
        return [known[run.id] for run in self.runs if run.id in known]

    def run(self, jobs: int = 1, backend: str = "loky") -> Iterator[Row]:
        """Do what is left; each row is on disk before it is handed on.

        OSError: the disk or a worker failed; rows that are finished are on disk.
        """
        for found in execute(self.todo, jobs, backend):
            if isinstance(found, Row):
                yield self.ledger.append(found)
            else:
                self.not_judged.append(found)
