"""Kernels on the fly against kernels in memory: `make bench NAME=streaming`.

The setting of Orabona et al. (2012), section 5.8: MNIST-5k (in the folder MKLOPT_DATA),
images cut into four quadrants, on each a linear, a quadratic and a Gaussian kernel of
mean width, 12 kernels in all, here of variance one. The same problem on a stack in
packed triangles and on a LazyStack with 500 MB of cache:

    analytic   digits below five against the others, hinge, ℓp with p = 4/3, to 1e-6
    obscure    all ten digits, multi-class hinge, block norm q = 1.25, a few epochs

Each run has a process of its own, so that its peak of memory can be told; times are of
the processor. The objectives must agree to 1e-9.

Sweeps over up to 10⁶ kernels are timed by `make bench NAME=million`.

    python -m benchmarks streaming --samples 2000 --cache 80MB
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks import harness
from mklopt import data, kernels
from mklopt.formulations.block_norm import BlockNorm
from mklopt.formulations.lp_norm import LpNorm
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.util.tables import plain_table

AGREE = 1e-9
RUNS: dict[str, dict[str, Any]] = {
    "analytic": {"tol": 1e-6},
    "obscure": {"tol": 1e-3, "max_iter": 6},
}


@dataclass
class Row:
    """One run: what it cost and what it reached."""

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
    """Four parts of n images, every digit as often as any other; and the digits."""
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
    """What a solver solves; cache None: kernels in memory."""
    parts, y = quadrants(n)
    three = kernels.linear() + kernels.polynomials(2) + kernels.gaussians("mean")
    fitted = kernels.views(three, range(4)).fit(parts, normalize="multiplicative")
    grams = fitted.grams() if cache is None else fitted.lazy(cache)
    if solver == "obscure":
        return Problem(grams, y, "multiclass_hinge", BlockNorm(1.25), 1.0, bias=False)
    return Problem(grams, np.where(y < 5, 1.0, -1.0), "hinge", LpNorm(p=4 / 3), 1.0)


def run(n: int, solver: str, cache: str | None) -> Row:
    """Build the kernels and solve, in this process."""
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
    """One line for each run."""
    numbers = ("build", "solve", "passes", "objective", "gap", "peak MB")
    out = plain_table(f"n = {n}, M = 12", ("solver", "storage"), numbers)
    out.add_column("cache")
    for r in rows:
        times = (f"{r.build:.1f} s", f"{r.took:.1f} s", f"{r.passes:.1f}")
        point = (f"{r.primal:.12g}", f"{r.gap:.1e}", f"{r.memory:.0f}")
        out.add_row(r.solver, r.storage, *times, *point, r.cache)
    return out


def comparison(stored: Row, lazy: Row) -> str:
    """Whether the objectives agree, and how much longer it takes on the fly."""
    off = abs(lazy.primal - stored.primal) / abs(stored.primal)
    longer = (lazy.build + lazy.took) / (stored.build + stored.took)
    line = f"{stored.solver}: objectives differ by {off:.1e} ≤ {AGREE:g}; on the fly"
    line += f" it takes {longer:.1f} times as long, with the time to build the kernels"
    return harness.verdict(off <= AGREE, line)


@harness.needs_data
def main() -> None:
    """Every solver on both kinds of stack."""
    parser = harness.parser(__doc__)
    count, most = harness.positive, "n, at most 5000"
    parser.add_argument("--samples", type=count, default=5000, help=most)
    parser.add_argument("--cache", default="500MB", help="of the LazyStack")
    given = parser.parse_args()
    data.load("mnist5k")  # missing data are noticed here, not in a child
    rows, lines = [], []
    for solver in RUNS:
        both = [alone(given.samples, solver, cache) for cache in (None, given.cache)]
        lines.append(comparison(*both))
        rows += both
    tables = [table(rows, given.samples)]
    harness.report(harness.console(150), "streaming", __doc__, tables, lines)


if __name__ == "__main__":
    main()
