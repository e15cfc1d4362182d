"""What solvers around an SVM solver cost: `make bench NAME=wrappers`.

Times are ratios to one pass over the kernels (harness.py); gaps are certified. Beside
ours a wrapper around scikit-learn's SVC, as many people write it, stopped when its
weights stop changing ("own stop"). Building the stack is timed apart, on memory that
has been used before. One thread.

    python -m benchmarks wrappers --quick      # the smallest problem only
"""

from __future__ import annotations

from functools import partial

from rich.table import Table

from benchmarks import harness
from benchmarks.rivals import svc_wrapper
from mklopt.certificates.certificate import certify
from mklopt.formulations import LpNorm
from mklopt.grams.stack import GramStack
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.solvers import solvers, that_can
from mklopt.util.tables import plain_table

LIMIT = 600.0  # passes that a slow solver may take
SMALL = [(1.0, 1.0), (4 / 3, 1.0), (4 / 3, 100.0), (4.0, 1.0)]  # (p, C)
LARGE = [(p, C) for C in (1.0, 100.0) for p in (4 / 3, 2.0, 4.0)]


def table(n: int, M: int, cases: list[tuple[float, float]], names: list[str]) -> Table:
    """All solvers of `names` on the problems (p, C) of one size."""
    K, y = harness.subset_gaussians(n, M)
    GramStack(K)  # touch the memory once
    (build,) = harness.medians(partial(GramStack, K), rounds=3)
    grams, one = GramStack(K), harness.pass_time(K)
    title = f"n = {n}, M = {M}: times in passes of {1e3 * one:.0f} ms; "
    title += f"building the stack: {build / one:.1f}"
    numbers = ("time", "of SVC", "passes", "SVMs", "gap", "")
    out = plain_table(title, ("problem", "solver"), numbers)
    for p, C in cases:
        problem = Problem(grams, y, "hinge", LpNorm(p), C)
        theirs = partial(svc_wrapper, K, y, problem.formulation, C)
        (theta, alpha), slow = harness.timed(theirs)
        gap = certify(problem, alpha, theta).relative_gap
        row = (f"{slow / one:.1f}", "1", "", "", f"{gap:.1e}", "own stop")
        out.add_row(f"p={p:.3g} C={C:g}", "SVC", *row)
        for name in [s for s in that_can(problem) if s in names]:
            out.add_row("", name, *measured(problem, name, one, slow))
    return out


def measured(problem: Problem, name: str, one: float, slow: float) -> list[str]:
    """The row of one solver: `one` is a pass, `slow` the time of the SVC wrapper."""
    tol = max(1e-6, solvers()[name].promise(problem))
    limit = LIMIT * one + 2
    run = partial(solve, problem, name, tol=tol, time_limit=limit)
    found, took = harness.timed(run)
    return [
        f"{took / one:.1f}",
        f"{took / slow:.2f}",
        f"{found.trace.last('passes'):.1f}",
        f"{found.trace.last('svm_solves'):.0f}",
        f"{found.relative_gap:.1e}",
        "" if found.converged else found.status,
    ]


def main() -> None:
    """Every solver at two small sizes, the two fastest at a large one."""
    parser = harness.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="n = 200 only")
    quick = parser.parse_args().quick
    everyone = list(solvers())
    tables = [table(200, 50, SMALL, everyone)]
    if not quick:
        tables.append(table(500, 100, SMALL, everyone))
        tables.append(table(1000, 300, LARGE, ["analytic", "lp_newton"]))
    harness.report(harness.console(), "wrappers", __doc__, tables)


if __name__ == "__main__":
    main()
