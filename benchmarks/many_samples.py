"""Many samples, exact kernels, no n × n matrix: `make bench NAME=many_samples`.

MNIST, odd against even digits, the first n of 60,000 samples in their order, pixels
divided by 255; Gaussians on all 784 pixels, with widths σ spaced geometrically from 2.5
to 40 (the median distance of two digits is about 10); hinge loss with a bias, C = 1,
solver "auto", LazyStack(cache=…) as said below, positive semi-definite by theorem. Each
case has a process of its own, so that its peak of memory can be told; the time is that
of `solve`, certificate and enclosure included, compiling not. Settings and limits were
written before the first run:

    n = 20,000, 50 Gaussians    ℓ4/3 and ℓ1 to 1e-3: at most 10 min and 10 GB, on two
                                cores, cache 4 GB
    n = 60,000, 5 Gaussians     ℓ4/3 to 1e-2: at most 10 GB, cache 6 GB; its time is
                                shown, and decides nothing

    python -m benchmarks many_samples --samples 4000 --cases l1
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from rich.table import Table

from benchmarks import harness
from benchmarks.harness import at_most, verdict
from mklopt import data, kernels
from mklopt.formulations import LpNorm
from mklopt.kernels import by_rows
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.util.tables import plain_table

NARROW, WIDE = 2.5, 40.0
LONGEST, PEAK_GB = 3600.0, 10.0  # of one run in seconds; of memory


class Case(NamedTuple):
    """One problem and its limits."""

    n: int
    M: int
    p: float
    tol: float
    cache: str
    seconds: float


CASES = {
    "l4/3": Case(20_000, 50, 4 / 3, 1e-3, "4GB", 600.0),
    "l1": Case(20_000, 50, 1.0, 1e-3, "4GB", 600.0),
    "all": Case(60_000, 5, 4 / 3, 1e-2, "6GB", np.inf),
}


class Run(NamedTuple):
    """What a process measured; time in seconds, memory in GB."""

    name: str
    n: int
    status: str
    took: float
    cpu: float
    gap: float
    bounds: tuple[float, float]
    passes: float
    svms: int
    used: int
    support: int
    peak: float


def problem_of(case: Case, n: int) -> Problem:
    """The problem of a case on its first n samples."""
    mnist = data.load("mnist")
    y = np.where(np.asarray(mnist.y[:n], int) % 2 == 1, 1.0, -1.0)
    widths = np.geomspace(NARROW, WIDE, case.M).tolist()
    grams = kernels.gaussians(widths).fit(mnist.X[:n] / 255).lazy(cache=case.cache)
    grams.verify_psd()
    return Problem(grams, y, "hinge", LpNorm(case.p), C=1.0)


def run(name: str, samples: int) -> Run:
    """Solve one case in this process."""
    case = CASES[name]
    n = min(case.n, samples)
    by_rows.MATRIX_BYTES = min(by_rows.MATRIX_BYTES, 8 * n**2 - 1)
    warm = problem_of(case, 200)
    solve(warm, tol=case.tol)  # compiles
    problem = problem_of(case, n)
    begun, cpu = time.perf_counter(), time.process_time()
    result = solve(problem, tol=case.tol, time_limit=LONGEST)
    took, cpu = time.perf_counter() - begun, time.process_time() - cpu
    found, trace = result.certificate, result.trace
    used, support = map(np.count_nonzero, (result.weights, result.dual))
    passes, svms = problem.grams.passes, int(trace.last("svm_solves"))
    peak = harness.peak_memory() / 1e9
    measured = (took, cpu, found.width, (found.lower, found.upper), passes, svms)
    return Run(name, n, result.status, *measured, int(used), int(support), peak)


def shown(rows: list[Run]) -> Table:
    """One line for each case."""
    names = ("n", "M", "seconds", "CPU s", "gap", "passes", "SVMs", "kernels", "α ≠ 0")
    out = plain_table("MNIST, odd against even", ("case", "status"), (*names, "GB"))
    for r in rows:
        times = (f"{r.took:.0f}", f"{r.cpu:.0f}", f"{r.gap:.1e}", f"{r.passes:.1f}")
        counts = (f"{r.svms}", f"{r.used}", f"{r.support:,}", f"{r.peak:.1f}")
        size = (f"{r.n:,}", f"{CASES[r.name].M}")
        out.add_row(r.name, r.status, *size, *times, *counts)
    return out


def judged(rows: list[Run]) -> list[str]:
    """The lines that say which limits are kept."""
    lines = []
    for r in rows:
        case, what = CASES[r.name], f"{r.name}, n = {r.n:,}"
        if case.seconds < np.inf:
            lines.append(at_most(f"{what}: seconds", r.took, case.seconds))
        line = f"{what}: gap {r.gap:.1e} ≤ {case.tol:g}"
        lines += [verdict(r.gap <= case.tol, line)]
        lines += [at_most(f"{what}: GB", r.peak, PEAK_GB)]
    return lines


@harness.needs_data
def main() -> None:
    """All cases, or some of them, on all or fewer samples."""
    parser = harness.parser(__doc__)
    parser.add_argument("--samples", type=harness.positive, default=60_000)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    given = parser.parse_args()
    data.load("mnist")  # missing data are noticed here, not in a child
    console, rows = harness.console(150), []
    for name in given.cases:
        rows.append(harness.alone(run, name, given.samples))
        console.print(f"{name}: {rows[-1].took:.0f} s, {rows[-1].bounds}")
    harness.report(console, "many_samples", __doc__, [shown(rows)], judged(rows))


if __name__ == "__main__":
    main()
