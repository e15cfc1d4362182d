"""Kernels on the fly against kernels in memory: `make bench NAME=streaming`.

The setting of Orabona et al. (2012), section 5.8: MNIST-5k (in the folder MKLOPT_DATA),
images cut into four quadrants, on each a linear, a quadratic and a Gaussian kernel of
mean width, 12 kernels in all, here of variance one. The same problem on a stack in
packed triangles and on a LazyStack with 500 MB of cache:

    analytic   digits below five against the others, hinge, ℓp with p = 4/3, to 1e-6
    obscure    all ten digits, multi-class hinge, block norm q = 1.25, a few epochs

Each run has a process of its own, so that its peak of memory can be told; times are of
the processor. The objectives must agree to 1e-9.

Then sweeps over 10³, 10⁴, … up to 10⁶ Gaussians on random subsets of the 60 features of
sonar (208 points), of unit trace, with all cores and a wall clock. A quad over 10⁶ has
to take at most 25 s on two cores, and a kernel 1.5 times as long for one M as for
another.

    python -m benchmarks streaming --samples 2000 --cache 80MB --kernels 10000
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
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
from mklopt.util.threads import available, threads

AGREE = 1e-9
PART = 40_000  # kernels whose products are in memory at a time
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
    return apart(run, *arguments)


def apart(work: Callable, *arguments: Any) -> Any:
    """work(…) in a process of its own, on all cores."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


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


# ---- sweeps --------------------------------------------------------------------------


@dataclass
class Sweep:
    """Seconds of one sweep over M kernels."""

    M: int
    fit: float
    first: float  # the first quad, which measures the sizes of kernels, too
    quad: float
    combine: float
    matvec: float
    memory: float  # MB at the peak


def seconds(work: Callable[[], Any]) -> float:
    """How long it takes, by the clock on the wall."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def sweep(M: int) -> Sweep:
    """Subset Gaussians on sonar: fit, then one sweep of each operation."""
    threads(available())  # in a process of its own, too
    X = data.load("sonar").standardized().X
    warm = kernels.subset_gaussians(8).fit(X, "unit_trace").lazy(0)
    for operation in (warm.quad, warm.matvec):
        operation(X[:, 0])
    warm.combine(np.ones(8))
    begun = time.perf_counter()
    grams = kernels.subset_gaussians(M).fit(X, "unit_trace").lazy(0)
    fit, parts = time.perf_counter() - begun, range(0, M, PART)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, grams.n))
    some = [grams.subset(np.arange(i, min(i + PART, M))) for i in parts]
    return Sweep(
        M,
        fit,
        seconds(lambda: grams.quad(a)),
        seconds(lambda: grams.quad(b)),
        seconds(lambda: grams.combine(rng.uniform(size=M))),
        seconds(lambda: [len(part.matvec(b)) for part in some]),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    )


def sweeps_table(rows: list[Sweep]) -> Table:
    """One line for each number of kernels."""
    numbers = ("fit", "first quad", "quad", "combine", "matvec", "peak MB")
    out = plain_table("sonar, n = 208: seconds of a sweep", ("M",), numbers)
    for r in rows:
        times = (r.fit, r.first, r.quad, r.combine, r.matvec)
        out.add_row(f"{r.M:,}", *(f"{x:.3g}" for x in times), f"{r.memory:.0f}")
    return out


def sweep_verdicts(rows: list[Sweep]) -> list[str]:
    """Time per kernel, and of 10⁶ kernels."""
    each = [row.quad / row.M for row in rows]
    ratio, last = max(each) / min(each), rows[-1]
    line = f"quad: a kernel takes up to {ratio:.2f} ≤ 1.5 times as long for other M"
    lines = [harness.verdict(ratio <= 1.5, line)]
    if last.M == 10**6:
        line = f"quad over 10⁶ kernels: {last.quad:.1f} s ≤ 25 s"
        lines.append(harness.verdict(last.quad <= 25, line))
    return lines


@harness.needs_data
def main() -> None:
    """Every solver on both kinds of stack."""
    parser = harness.parser(__doc__)
    count, most = harness.positive, "n, at most 5000"
    parser.add_argument("--samples", type=count, default=5000, help=most)
    parser.add_argument("--cache", default="500MB", help="of the LazyStack")
    parser.add_argument("--kernels", type=count, default=10**6, help="most of a sweep")
    given = parser.parse_args()
    data.load("mnist5k")  # missing data are noticed here, not in a child
    rows, lines = [], []
    for solver in RUNS:
        both = [alone(given.samples, solver, cache) for cache in (None, given.cache)]
        lines.append(comparison(*both))
        rows += both
    counts = [M for M in (10**3, 10**4, 10**5, 10**6) if given.kernels >= M]
    swept = [apart(sweep, M) for M in counts]
    lines += sweep_verdicts(swept) if swept else []
    tables = [table(rows, given.samples), sweeps_table(swept)]
    harness.report(harness.console(150), "streaming", __doc__, tables, lines)


if __name__ == "__main__":
    main()
