"""The multi-class hinge on mfeat: `make bench NAME=multiclass`.

n = 2000 handwritten digits of ten classes, one Gaussian on each of six views, no bias,
block norms with the p and C of Orabona, Jie and Caputo (2012). Time of `analytic` to a
certified gap, also in passes over the kernels (harness.py). The comparison with the
paper's stochastic solver is papers/orabona2012/studies.py.

    python -m benchmarks multiclass --tol 1e-2
"""

from __future__ import annotations

from functools import partial

import numpy as np
from rich.table import Table

from benchmarks import harness
from mklopt import data, kernels
from mklopt.formulations.block_norm import BlockNorm
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.util.tables import plain_table

EXPONENTS = (1.01, 1.1, 1.25, 1.5, 1.75, 2.0)
COSTS = (1.0, 100.0, 1000.0)
LIMIT = 120.0  # seconds for each problem


def batch(tol: float) -> Table:
    """The batch solver on mfeat for every p and C."""
    found = data.load("mfeat").standardized()
    family = kernels.views(kernels.gaussians("mean"), found.views)
    grams = family.fit(found.views).grams()
    one = harness.pass_time(np.array(grams.dense()))
    pass_is = f"a pass takes {1e3 * one:.0f} ms"
    title = f"mfeat, multi-class hinge, analytic to {tol:g}; {pass_is}"
    names = ("p", "C", "gap", "seconds", "passes of time", "passes", "iterates")
    out = plain_table(title, (), names)
    for p in EXPONENTS:
        for C in COSTS:
            form = BlockNorm(p)
            at = Problem(grams, found.y, "multiclass_hinge", form, C, bias=False)
            run = partial(solve, at, "analytic", tol=tol, time_limit=LIMIT)
            result, took = harness.timed(run)
            out.add_row(
                f"{p:g}",
                f"{C:g}",
                f"{result.relative_gap:.0e}",
                f"{took:.2f}",
                f"{took / one:.0f}",
                f"{result.trace.last('passes'):.0f}",
                str(len(result.trace)),
            )
    return out


@harness.needs_data
def main() -> None:
    """The table."""
    parser = harness.parser(__doc__)
    parser.add_argument("--tol", type=float, default=1e-6, help="the gap to reach")
    tables = [batch(parser.parse_args().tol)]
    harness.report(harness.console(), "multiclass", __doc__, tables)


if __name__ == "__main__":
    main()
