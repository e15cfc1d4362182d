"""One run of the main job: a solver on a problem, judged by the reference.

A row is made only of a run that was judged. `fingerprint` hashes this file and what it
imports: how runs are chosen and executed is in job.py, where an edit voids no row.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
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
from ..util.tables import shown
from .fingerprint import fingerprint
from .ledger import COLUMNS, Row

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
        """Write a certificate where a file can state the problem; its name, or ""."""
        name = f"certificates/{self.id}.cert"
        try:
            result.save_certificate(self.folder / name)
        except ValueError:  # a declared loss or formulation, or too large
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
