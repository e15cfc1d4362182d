"""SpicyMKL and the number of kernels: `make bench NAME=spicy`.

The setting of Suzuki and Tomioka (2009), figure 3: ringnorm, n = 200, Gaussians on
random subsets of features with σ = 5χ² + 0.1, M from 50 to 6000, here with unit trace
and C = 2. Time to a gap of 1e-6, also in passes (harness.py), of `spicy` and, for the
logistic loss, of `fista`. Then `spicy` on one problem with n = 500, M = 300, and along
20 values of C over a factor of 100. The paper's own rivals, HessianMKL and SimpleMKL,
are measured by papers/suzuki2009/studies.py.

    python -m benchmarks spicy --largest 1000      # a shorter run
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import harness
from mklopt import data, kernels
from mklopt.formulations.group_lasso import GroupLasso
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.run.result import Result
from mklopt.tasks.path import path
from mklopt.util.tables import plain_table

TOL = 1e-6
SIZES = (50, 200, 1000, 3000, 6000)
LIMIT = 40.0  # seconds for each run
RUNS = (("spicy", "hinge"), ("spicy", "logistic"), ("fista", "logistic"))


@dataclass(frozen=True)
class Row:
    """One run: seconds, and the seconds of one pass beside it."""

    solver: str
    loss: str
    M: int
    seconds: float
    one: float
    found: Result


def problem(n: int, M: int, loss: str) -> tuple[Problem, float]:
    """The problem, and the time of one pass over its kernels in full storage."""
    train, _ = data.load("ringnorm", n=2 * n).standardized().split(n, seed=0)
    fitted = kernels.subset_gaussians(M, seed=0).fit(train.X, normalize="unit_trace")
    grams = fitted.grams()
    one = harness.pass_time(np.array(grams.dense()))
    return Problem(grams, train.y, loss, GroupLasso(), 2.0), one


def timed(at: Problem, solver: str) -> tuple[Result, float]:
    """A run to the tolerance, and its seconds."""
    run = partial(solve, at, solver, tol=TOL, time_limit=LIMIT)
    return harness.timed(run)


def scaling(sizes: tuple[int, ...], console: Console, n: int = 200) -> list[Row]:
    """Every run at every M; a solver that ran out of time is left out after that."""
    rows: list[Row] = []
    late: set[tuple[str, str]] = set()
    at, _ = problem(n, sizes[0], "hinge")
    for solver, loss in RUNS:
        solve(at.with_(loss=loss), solver, tol=0.1, max_iter=5)  # compiles
    for M in sizes:
        at, one = problem(n, M, "hinge")
        for solver, loss in RUNS:
            if (solver, loss) not in late:
                found, took = timed(at.with_(loss=loss), solver)
                late |= set() if found.converged else {(solver, loss)}
                rows.append(Row(solver, loss, M, took, one, found))
        console.print(f"[dim]M = {M} done[/]")
    return rows


def table(rows: list[Row]) -> Table:
    """Times and kernels in use, one line for each run."""
    times = ("M", "seconds", "ms/kernel", "passes of time", "passes", "gap", "used")
    out = plain_table("n = 200, unit trace, C = 2", ("solver", "loss"), times)
    out.add_column("", no_wrap=True)
    for row in rows:
        found = row.found
        out.add_row(
            row.solver,
            row.loss,
            str(row.M),
            f"{row.seconds:.2f}",
            f"{1e3 * row.seconds / row.M:.2f}",
            f"{row.seconds / row.one:.1f}",
            f"{found.trace.last('passes'):.1f}",
            f"{found.relative_gap:.1e}",
            str(int(np.sum(found.certificate.norms > 1e-6))),
            "" if found.converged else found.status,
        )
    return out


def requirements(rows: list[Row], n: int = 500, M: int = 300) -> list[str]:
    """One line for each limit that the solver has to keep."""
    lines = []
    for loss in ("hinge", "logistic"):
        mine = [row for row in rows if (row.solver, row.loss) == ("spicy", loss)]
        last, per = mine[-1], [row.seconds / row.M for row in mine]
        if SIZES[-1] == last.M:  # few kernels cost more passes each
            what = f"n = 200, M = {last.M}, {loss}: time in passes"
            lines.append(harness.at_most(what, last.seconds / last.one, 40.0))
            what = f"time per kernel, {loss}: largest M over smallest M"
            lines.append(harness.at_most(what, per[-1] / per[0], 1.0))
        at, one = problem(n, M, loss)
        found, took = timed(at, "spicy")
        what = f"n = {n}, M = {M}, {loss} (gap {found.relative_gap:.1e})"
        lines.append(harness.at_most(f"{what}: time in passes", took / one, 60.0))
        whole, took = harness.timed(partial(path, at, solver="spicy", tol=TOL))
        point = np.median([timed(whole[-1].problem, "spicy")[1] for _ in range(3)])
        what = f"path of 20, {loss} ({whole!r}): times the last point alone"
        lines.append(harness.at_most(what, took / float(point), 6.0))
    return lines


@harness.needs_data
def main() -> None:
    """Growth with M, then the limits."""
    parser = harness.parser(__doc__)
    largest = SIZES[-1]
    parser.add_argument("--largest", type=harness.positive, default=largest, help="M")
    most, console = parser.parse_args().largest, harness.console()
    rows = scaling(tuple(M for M in SIZES if most >= M) or SIZES[:1], console)
    lines = requirements(rows)
    harness.report(console, "spicy", __doc__, [table(rows)], lines)


if __name__ == "__main__":
    main()
