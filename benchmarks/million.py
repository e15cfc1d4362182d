"""Up to a million kernels, computed on the fly: `make bench NAME=million`.

Sonar, standardized, hinge loss with a bias, Gaussians on random subsets of features
(kernels.subset_gaussians), unit trace, streamed (LazyStack with its default memory).
Times are in quads: one quad(α) over all kernels, measured in the same process after a
first one that compiles. Each run has a process of its own, so that its peak of memory
can be told. The settings and limits were written before the first run:

    fit        at most 10 s and 300 MB at M = 10^6; a quad at most 25 s on two cores
    ℓ1         to 1e-3 within 6 quads, ℓp (p = 4/3, 2) within 12; peak memory 2 GB
    growth     seconds of a quad per kernel, M = 10^3 … 10^6: constant within 1.5 times,
               with no memory for kernels (1000 kernels fit into it and are computed
               once: four times as fast). This sentence was added after the first runs,
               and so was the repeating of short quads: of two quads of 0.1 s each the
               shorter one says little while other programs run
    spg        the paper's rule, an absolute gap of 1e-3, Tikhonov (p = 4/3, μ = ½):
               SVM solves and time are shown, and decide nothing

    python -m benchmarks million --largest 100000
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks import harness
from benchmarks.harness import at_most, verdict
from mklopt import data, kernels
from mklopt.formulations import LpNorm, Tikhonov
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.util.tables import plain_table

SIZES = (1_000, 10_000, 100_000, 1_000_000)
PENALTIES = (1e2, 1e4)
SHORTEST, MOST_ROUNDS = 2.0, 1000  # seconds and rounds that the shortest is taken from
TOL, LONGEST = 1e-3, 3600.0  # the gap that is asked for; seconds of one run
FIT_SECONDS, FIT_MB, QUAD_SECONDS, PEAK_MB, GROWTH = 10.0, 300.0, 25.0, 2000.0, 1.5
CASES: dict[str, tuple[Any, str, dict, float]] = {  # Ω, solver, options, limit in quads
    "ℓ1": (LpNorm(1.0), "auto", {"tol": TOL}, 6.0),
    "ℓ4/3": (LpNorm(4 / 3), "auto", {"tol": TOL}, 12.0),
    "ℓ2": (LpNorm(2.0), "auto", {"tol": TOL}, 12.0),
    "spg": (Tikhonov(4 / 3, 0.5), "spg", {"stop": "paper", "tol": 0.0}, np.inf),
}


@dataclass
class Run:
    """What a process measured; times in seconds, memory in MB."""

    M: int
    case: str = ""
    C: float = 0.0
    fit: float = 0.0
    fit_mb: float = 0.0
    quad: float = 0.0
    computed: float = 0.0  # a quad with no memory for kernels
    took: float = 0.0
    gap: float = np.inf
    lower: float = -np.inf
    upper: float = np.inf
    status: str = ""
    used: int = 0
    svms: int = 0
    wrong: float = 1.0  # the training error
    peak_mb: float = 0.0


def run(M: int, case: str = "", C: float = 1.0) -> Run:
    """Fit, one quad, and a case, if one is named, in this process."""
    sonar = data.load("sonar").standardized()
    kernels.subset_gaussians(10).fit(sonar.X, "unit_trace").lazy().quad(sonar.y)
    found, before = Run(M, case, C), harness.peak_memory()
    fitted, found.fit = harness.timed(
        lambda: kernels.subset_gaussians(M).fit(sonar.X, "unit_trace")
    )
    found.fit_mb = (harness.peak_memory() - before) / 1e6
    grams = fitted.lazy()
    points = [sonar.y, np.roll(sonar.y, 1) / 2]
    found.quad = fastest_quad(grams, points)
    if not case:
        found.computed = fastest_quad(fitted.lazy(0), points)
    if case:
        formulation, solver, options, _ = CASES[case]
        problem = Problem(grams, sonar.y, "hinge", formulation, C)
        begun = time.perf_counter()
        result = solve(problem, solver, time_limit=LONGEST, **options)
        found.took = time.perf_counter() - begun
        bounds = result.certificate
        found.gap, found.status = bounds.width, result.status
        found.lower, found.upper = bounds.lower, bounds.upper
        found.used = int(np.count_nonzero(result.weights))
        found.svms = int(result.trace.last("svm_solves"))
        f = grams.combine(result.weights) @ result.dual + result.bias
        found.wrong = float(np.mean(np.sign(f) != sonar.y))
    found.peak_mb = harness.peak_memory() / 1e6
    return found


def fastest_quad(grams: Any, points: list[np.ndarray]) -> float:
    """The shortest time of a quad, in seconds; short ones are repeated."""
    shortest, spent = np.inf, 0.0
    for k in range(1, MOST_ROUNDS + 1):
        for point in points:
            # Other points each time: the last results are remembered.
            took = harness.timed(partial(grams.quad, point / k))[1]
            shortest, spent = min(shortest, took), spent + took
        if spent >= SHORTEST:
            break
    return shortest


def growth(rows: list[Run]) -> Table:
    """Fit and quad for every number of kernels."""
    names = ("fit s", "fit MB", "quad s", "without memory", "µs a kernel", "peak MB")
    out = plain_table("sonar, n = 208: fit and one quad", ("M",), names)
    for r in rows:
        times = (f"{r.quad:.3f}", f"{r.computed:.3f}", f"{1e6 * r.computed / r.M:.1f}")
        fit = (f"{r.fit:.2f}", f"{r.fit_mb:.0f}")
        out.add_row(f"{r.M:,}", *fit, *times, f"{r.peak_mb:.0f}")
    return out


def solves(rows: list[Run]) -> Table:
    """One line for each case and C."""
    names = ("C", "seconds", "quads", "gap", "kernels", "SVMs", "errors %", "peak MB")
    out = plain_table(f"solving, M = {rows[0].M:,}", ("case", "status"), names)
    for r in rows:
        time_ = (f"{r.took:.1f}", f"{r.took / r.quad:.1f}", f"{r.gap:.1e}")
        end = (f"{r.used:,}", f"{r.svms}", f"{100 * r.wrong:.1f}", f"{r.peak_mb:.0f}")
        out.add_row(r.case, r.status, f"{r.C:g}", *time_, *end)
    return out


def judged(rows: list[Run], cases: list[Run]) -> list[str]:
    """The lines that say which limits are kept."""
    last, each = rows[-1], [r.computed / r.M for r in rows]
    lines = [
        at_most(f"fit of {last.M:,} kernels: seconds", last.fit, FIT_SECONDS),
        at_most(f"fit of {last.M:,} kernels: MB", last.fit_mb, FIT_MB),
        at_most(f"quad over {last.M:,} kernels: seconds", last.quad, QUAD_SECONDS),
        at_most("growth of a quad per kernel", max(each) / min(each), GROWTH),
    ]
    for r in cases:
        most = CASES[r.case][3]
        if most < np.inf:
            what = f"{r.case}, C = {r.C:g}"
            lines.append(at_most(f"{what}: quads", r.took / r.quad, most))
            proved = verdict(r.gap <= TOL, f"{what}: gap {r.gap:.1e} ≤ {TOL:g}")
            lines += [proved, at_most(f"{what}: MB", r.peak_mb, PEAK_MB)]
    return lines


@harness.needs_data
def main() -> None:
    """Fit and quad at every size, then all cases at the largest one."""
    parser = harness.parser(__doc__)
    parser.add_argument("--largest", type=harness.positive, default=SIZES[-1])
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    given = parser.parse_args()
    data.load("sonar")  # missing data are noticed here, not in a child
    shown = harness.console(150)
    rows = [harness.alone(run, M) for M in SIZES if given.largest >= M] or [
        harness.alone(run, given.largest)
    ]
    cases = []
    for case in given.cases:
        for C in PENALTIES:
            cases.append(harness.alone(run, rows[-1].M, case, C))
            shown.print(f"{case}, C = {C:g}: {cases[-1].took:.1f} s")
    tables = [growth(rows)] + ([solves(cases)] if cases else [])
    harness.report(shown, "million", __doc__, tables, judged(rows, cases))


if __name__ == "__main__":
    main()
