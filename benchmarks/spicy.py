"""SpicyMKL and the number of kernels, and its bars: `make bench-spicy`.

The setting of Suzuki and Tomioka (2009), section 5.2 and figure 3: ringnorm, n = 200,
Gaussians on random subsets of features with σ = 5χ² + 0.1, M from 50 to 6000, here
with unit trace and C_s = 0.5 (so C = 2). Time, also in passes K.reshape(M·n, n) @ α of
the same process, and kernels in use:

    spicy     hinge and logistic, to 1e-6
    hessian   hinge, to 1e-6, and simple, hinge, to 1e-4: the squared form ½(Σu)² with
              the C at which it has the same solution (equivalences.py)
    fista     logistic, to 1e-6

A competitor that hits its limit of time is left out for larger M. Then one problem with
n = 500, M = 300, and a path of 20 values of C over a factor of 100.

    python -m mklopt.bench_spicy --largest 1000      # a shorter run
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.certificate import medians
from mklopt import data, kernels
from mklopt.formulations.block_norm import BlockL1
from mklopt.formulations.group_lasso import GroupLasso
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.run.result import Result
from mklopt.tasks.path import path
from mklopt.util import style
from mklopt.util.tables import plain_table

SIZES = (50, 200, 1000, 3000, 6000)
LIMIT = 40.0  # seconds for each competitor
RUNS = (
    ("spicy", "hinge", 1e-6),
    ("spicy", "logistic", 1e-6),
    ("hessian", "hinge", 1e-6),
    ("simple", "hinge", 1e-4),
    ("fista", "logistic", 1e-6),
)
Row = tuple[str, str, int, float, int, float, Result]


def problem(n: int, M: int, loss: str) -> tuple[Problem, float]:
    """The problem, and the time of one pass over its kernels in full storage."""
    train, _ = data.load("ringnorm", n=2 * n).standardized().split(n, seed=0)
    fitted = kernels.subset_gaussians(M, seed=0).fit(train.X, normalize="unit_trace")
    grams = fitted.grams()
    flat = np.array(grams.dense()).reshape(M * n, n)
    (one,) = medians(partial(np.matmul, flat, train.y), rounds=7)
    return Problem(grams, train.y, loss, GroupLasso(), 2.0), one


def timed(at: Problem, solver: str, tol: float) -> tuple[Result, float]:
    begun = time.perf_counter()
    found = solve(at, solver, tol=tol, time_limit=LIMIT)
    return found, time.perf_counter() - begun


def scaling(sizes: tuple[int, ...], console: Console) -> list[Row]:
    rows: list[Row] = []
    hopeless: set[tuple[str, str]] = set()
    for M in sizes:
        at, one = problem(200, M, "hinge")
        solution = solve(at, "spicy", tol=1e-8, time_limit=LIMIT)
        shared = float(np.sum(solution.certificate.norms))
        squared = at.with_(formulation=BlockL1(), C=2.0 * shared)
        for solver, loss, tol in RUNS:
            if (solver, loss) in hopeless:
                continue
            mine = squared if solver in ("hessian", "simple") else at.with_(loss=loss)
            found, took = timed(mine, solver, tol)
            if not found.converged:
                hopeless.add((solver, loss))
            used = int(np.sum(found.certificate.norms > 1e-6))
            rows.append((solver, loss, M, took, used, took / one, found))
        console.print(f"M = {M}: one pass {1e3 * one:.1f} ms", highlight=False)
    return rows


def table(rows: list[Row]) -> Table:
    times = ("M", "seconds", "ms/kernel", "passes of time", "passes", "gap", "used")
    out = plain_table("n = 200, unit trace, C = 2", ("solver", "loss"), times)
    out.add_column("", no_wrap=True)
    for solver, loss, M, took, used, ratio, found in rows:
        out.add_row(
            solver,
            loss,
            str(M),
            f"{took:.2f}",
            f"{1e3 * took / M:.2f}",
            f"{ratio:.1f}",
            f"{found.trace.last('passes'):.1f}",
            f"{found.relative_gap:.1e}",
            str(used),
            "" if found.converged else found.status,
        )
    return out


@style.styled
def draw(rows: list[Row]) -> list:
    figure, (left, right) = style.panels(2, height=3.2)
    for place, (solver, loss) in enumerate(dict.fromkeys(row[:2] for row in rows)):
        mine = [row for row in rows if row[:2] == (solver, loss)]
        sizes, name = [row[2] for row in mine], f"{solver}, {loss}"
        left.loglog(sizes, [row[3] for row in mine], label=name, **style.look(place))
        right.semilogx(sizes, [row[4] for row in mine], **style.look(place))
        for row in mine:
            if not row[-1].converged:  # hollow: out of time
                hollow = {**style.look(place), "markerfacecolor": "white"}
                left.plot(row[2], row[3], **hollow)
                right.plot(row[2], row[4], **hollow)
    left.set(xlabel="kernels M", ylabel="seconds")
    right.set(xlabel="kernels M", ylabel="kernels in use")
    left.legend(frameon=False, fontsize=7)
    return style.save(figure, "spicy")


def bars(rows: list[Row], console: Console) -> None:
    """The numbers the solver is held to, one line each."""

    def say(what: str, number: float, most: float) -> None:
        verdict = "met" if number <= most else "MISSED"
        line = f"{what}: {number:.1f} (at most {most:g}) {verdict}"
        console.print(line, highlight=False)

    spicy = [row for row in rows if row[0] == "spicy"]
    largest = max(row[2] for row in spicy)
    for row in spicy:
        if row[2] == largest:
            say(f"n = 200, M = {largest}, {row[1]}: time in passes", row[5], 40.0)
    for loss in ("hinge", "logistic"):
        per = [row[3] / row[2] for row in spicy if row[1] == loss]
        say(f"time per kernel, {loss}: last over first", per[-1] / per[0], 1.0)
        at, one = problem(500, 300, loss)
        found, took = timed(at, "spicy", 1e-6)
        gap = f"gap {found.relative_gap:.1e}"
        say(f"n = 500, M = 300, {loss} ({gap}): time in passes", took / one, 60.0)
        begun = time.perf_counter()
        whole = path(at, solver="spicy", tol=1e-6)
        took = time.perf_counter() - begun
        last = [timed(whole[-1].problem, "spicy", 1e-6)[1] for _ in range(3)]
        what = f"path of 20, {loss} ({whole!r}): times the last point"
        say(what, took / float(np.median(last)), 6.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="largest M")
    most = parser.parse_args().largest
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    sizes = tuple(M for M in SIZES if most >= M) or SIZES[:1]
    rows = scaling(sizes, console)
    console.print(table(rows))
    bars(rows, console)
    for where in draw(rows):
        console.print(f"drawn: {where}")


if __name__ == "__main__":
    main()
