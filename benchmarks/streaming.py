"""Kernels on the fly against kernels in memory: `make bench-lazy`.

The setting of Orabona et al. (2012), section 5.8: MNIST-5k (in the folder MKLOPT_DATA),
images cut into four quadrants, on each a linear, a quadratic and a Gaussian kernel of
mean width, 12 kernels in all, here of variance one. The same problem on a stack in
packed triangles and on a LazyStack with 500 MB of cache:

    analytic   digits below five against the others, hinge, ℓp with p = 4/3, to 1e-6
    obscure    all ten digits, multi-class hinge, block norm q = 1.25, a few epochs,
               where the solver is there

Each run has a process of its own, so that its peak of memory can be told; times are of
the processor. The objectives must agree to 1e-9.

    python -m mklopt.bench_lazy --samples 2000 --cache 80MB      # a shorter run
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from mklopt import data, kernels
from mklopt.formulations.block_norm import BlockNorm
from mklopt.formulations.lp_norm import LpNorm
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.solvers import solvers

AGREE = 1e-9
RUNS: dict[str, dict[str, Any]] = {
    "analytic": {"tol": 1e-6},
    "obscure": {"tol": 1e-3, "max_iter": 6},
}


@dataclass
class Row:
    solver: str
    storage: str
    build: float  # seconds
    took: float
    passes: float
    primal: float
    gap: float
    memory: float  # MB at the peak
    cache: str


def quadrants(n: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Every digit as often as any other."""
    digits = data.load("mnist5k")
    place = np.zeros(len(digits.y))
    for digit in np.unique(digits.y):
        place[digits.y == digit] = np.arange(np.sum(digits.y == digit))
    rows = np.sort(np.argsort(place, kind="stable")[:n])
    images = digits.X[rows].reshape(-1, 28, 28) / 255
    corners = [(a, b) for a in (0, 14) for b in (0, 14)]
    parts = [images[:, a : a + 14, b : b + 14].reshape(-1, 196) for a, b in corners]
    return parts, digits.y[rows]


def problem(n: int, solver: str, cache: str | None) -> Problem:
    parts, y = quadrants(n)
    three = kernels.linear() + kernels.polynomials(2) + kernels.gaussians("mean")
    fitted = kernels.views(three, range(4)).fit(parts, normalize="multiplicative")
    grams = fitted.grams() if cache is None else fitted.lazy(cache)
    if solver == "obscure":
        return Problem(grams, y, "multiclass_hinge", BlockNorm(1.25), 1.0, bias=False)
    return Problem(grams, np.where(y < 5, 1.0, -1.0), "hinge", LpNorm(p=4 / 3), 1.0)


def run(n: int, solver: str, cache: str | None) -> Row:
    begun = time.process_time()
    at = problem(n, solver, cache)
    built = time.process_time()
    found = solve(at, solver, **RUNS[solver])
    return Row(
        solver,
        at.grams.storage,
        built - begun,
        time.process_time() - built,
        found.trace.last("passes"),
        found.certificate.primal,
        found.relative_gap,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        repr(getattr(at.grams, "cache", "")).strip("'"),
    )


def alone(*arguments: Any) -> Row:
    """run(…) in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(run, arguments)


def table(rows: list[Row], n: int) -> Table:
    out = Table(box=SIMPLE, title=f"n = {n}, M = 12", title_justify="left")
    for name in ("solver", "storage"):
        out.add_column(name, no_wrap=True)
    for name in ("build", "solve", "passes", "objective", "gap", "peak MB"):
        out.add_column(name, justify="right", no_wrap=True)
    out.add_column("")
    for r in rows:
        times = (f"{r.build:.1f} s", f"{r.took:.1f} s", f"{r.passes:.1f}")
        point = (f"{r.primal:.12g}", f"{r.gap:.1e}", f"{r.memory:.0f}")
        out.add_row(r.solver, r.storage, *times, *point, r.cache)
    return out


def comparison(stored: Row, lazy: Row) -> str:
    off = abs(lazy.primal - stored.primal) / abs(stored.primal)
    verdict = "met" if off <= AGREE else "MISSED"
    longer = (lazy.build + lazy.took) / (stored.build + stored.took)
    return (
        f"{stored.solver}: objectives differ by {off:.1e} (at most {AGREE:g}) "
        f"{verdict}; on the fly it takes {longer:.1f} times as long, kernels and all"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=5000, help="n, at most 5000")
    parser.add_argument("--cache", default="500MB", help="of the LazyStack")
    given = parser.parse_args()
    console, rows = Console(), []
    if not console.is_terminal:
        console = Console(width=150)
    try:
        quadrants(given.samples)
    except data.DataNotFound as missing:
        raise SystemExit(str(missing)) from None
    for solver in (name for name in RUNS if name in solvers()):
        both = [alone(given.samples, solver, cache) for cache in (None, given.cache)]
        console.print(comparison(*both), highlight=False)
        rows += both
    console.print(table(rows, given.samples))


if __name__ == "__main__":
    main()
