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

import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ..reference.contract_problems import Cell
from ..solvers import solvers
from ..util.extras import need
from ..util.workers import ending_with_us, losses_reported
from .ledger import Ledger, Row
from .problems import problems_by_name
from .runs import AGREEMENT, REFERENCE, NoReference, ReferenceRun, Run


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
    need("distributed")
    from distributed import Client

    return Client(set_as_default=True)


CLUSTERS: dict[str, Callable[[], AbstractContextManager]] = {"dask": _dask}


class NoBackend(ValueError):
    """joblib has no such backend here."""


def execute(runs: Iterable[Run], jobs: int, backend: str) -> Iterator[Row | str]:
    """The rows as they are finished, by any backend of joblib."""
    need("joblib")
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
