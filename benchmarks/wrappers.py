"""What the wrapper solvers cost: `make bench-wrappers`.

Times are ratios to one pass, K.reshape(M·n, n) @ α over the full stack in float64,
measured in the same process; gaps are certified afresh. Beside them a wrapper around
scikit-learn's SVC, as many people write it, stopped when its weights stop changing.

One thread. Building the stack is timed apart, on memory that has been touched before.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.certificate import medians, subset_gaussians
from benchmarks.rivals import svc_wrapper
from mklopt.certificates.certificate import certify
from mklopt.formulations import LpNorm
from mklopt.grams.stack import GramStack
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.solvers import solvers, that_can
from mklopt.util.tables import plain_table

Array = np.ndarray
LIMIT = 600.0  # passes of patience for the slow ones


def table(n: int, M: int, cases: list[tuple[float, float]], names: list[str]) -> Table:
    K, y = subset_gaussians(n, M)
    flat = K.reshape(M * n, n)
    GramStack(K)  # touch the memory once
    (build,) = medians(partial(GramStack, K), rounds=3)
    grams = GramStack(K)
    (one,) = medians(partial(np.matmul, flat, y), rounds=7)
    title = f"n = {n}, M = {M}: times in passes of {1e3 * one:.0f} ms; "
    title += f"building the stack: {build / one:.1f}"
    numbers = ("time", "of SVC", "passes", "machines", "gap", "")
    out = plain_table(title, ("problem", "solver"), numbers)
    for p, C in cases:
        problem = Problem(grams, y, "hinge", LpNorm(p), C)
        begun = time.perf_counter()
        theta, alpha = svc_wrapper(K, y, problem.formulation, C)
        theirs = time.perf_counter() - begun
        gap = certify(problem, alpha, theta).relative_gap
        what = f"p={p:.3g} C={C:g}"
        row = (f"{theirs / one:.1f}", "1", "", "", f"{gap:.1e}", "own stop")
        out.add_row(what, "[dim]SVC[/dim]", *row)
        for name in [s for s in that_can(problem) if s in names]:
            tol = max(1e-6, solvers()[name].promise(problem))
            begun = time.perf_counter()
            found = solve(problem, name, tol=tol, time_limit=LIMIT * one + 2)
            took = time.perf_counter() - begun
            out.add_row(
                "",
                name,
                f"{took / one:.1f}",
                f"{took / theirs:.2f}",
                f"{found.trace.last('passes'):.1f}",
                f"{found.trace.last('svm_solves'):.0f}",
                f"{found.relative_gap:.1e}",
                "" if found.converged else found.status,
            )
    return out


def main() -> None:
    console = Console()
    everyone = list(solvers())
    small = [(1.0, 1.0), (4 / 3, 1.0), (4 / 3, 100.0), (4.0, 1.0)]
    console.print(table(200, 50, small, everyone))
    console.print(table(500, 100, small, everyone))
    large = [(p, C) for C in (1.0, 100.0) for p in (4 / 3, 2.0, 4.0)]
    console.print(table(1000, 300, large, ["analytic", "lp_newton"]))


if __name__ == "__main__":
    main()
