"""Multi-class problems: figure 1 of Orabona et al. (2012), and mfeat.

    make bench-multiclass

First the synthetic problem of section 5.2 (data.load("orabona_toy")): 300 samples of
three classes, four kernels, of which 1 to 3 tell one class from the others and 4 tells
all of them apart. Sparse MKL (½(Σ‖w_m‖)², C = 6/n), one class against the rest and all
classes at once, both certified to 1e-8; drawn are the kernels and the weights. Then,
where the data are (MKLOPT_DATA), mfeat: n = 2000, ten classes, one Gaussian on each of
six views, the paper's p and C, time also in passes K.reshape(M·n, n) @ α.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.certificate import medians
from mklopt import data, kernels
from mklopt.formulations.block_norm import BlockL1, BlockNorm
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.run.result import Result
from mklopt.tasks.one_vs_rest import OneVsRest, kept, one_vs_rest
from mklopt.util import style

EXPONENTS = (1.01, 1.1, 1.25, 1.5, 1.75, 2.0)
COSTS = (1.0, 100.0, 1000.0)
BARS = "#0072b2"


def toy(n: int = 300, seed: int = 0) -> Problem:
    """The problem of section 5.2, all classes at once."""
    found = data.load("orabona_toy", n=n, seed=seed)
    fitted = kernels.views(kernels.gaussians("mean"), found.views).fit(found.views)
    grams = fitted.grams()
    loss = "multiclass_hinge"
    return Problem(grams, found.y, loss, BlockL1(), C=6 / n, bias=False)


def solved(problem: Problem, tol: float = 1e-8) -> tuple[Result, OneVsRest]:
    """All classes at once, and one against the rest."""
    together = solve(problem, "hessian", tol=tol)
    apart = one_vs_rest(problem.with_(bias=True), "hessian", tol=tol)
    return together, apart


@style.styled
def draw(problem: Problem, together: Result, apart: OneVsRest) -> list:
    """Kernels above, weights below, as in figure 1."""
    figure, axes = style.panels(8, columns=4, height=3.4)
    for m, axis in enumerate(axes[:4]):
        axis.imshow(problem.grams.kernel(m), cmap="gray", vmin=0, vmax=1)
        axis.set(title=f"kernel {m + 1}", xticks=[], yticks=[])
        axis.grid(False)
    names = [f"class {c + 1} against the rest" for c in range(3)]
    weights = [*apart.weights, together.weights]
    for axis, name, theta in zip(axes[4:], [*names, "all classes at once"], weights):
        axis.bar(np.arange(1, 5), theta / np.sum(theta), color=BARS, width=0.6)
        axis.set(title=name, xticks=range(1, 5), xlabel="kernel", ylim=(0, 1))
    axes[4].set_ylabel("share of the weight")
    return style.save(figure, "multiclass_toy")


def mfeat() -> tuple[Any, np.ndarray, float]:
    """The stack, the classes and the time of one pass."""
    found = data.load("mfeat").standardized()
    grams = kernels.views(kernels.gaussians("mean"), found.views).fit(found.views)
    stack = grams.grams()
    flat = np.array(stack.dense()).reshape(-1, stack.n)
    (one,) = medians(partial(np.matmul, flat, np.ones(stack.n)), rounds=7)
    return stack, found.y, one


def timed(problem: Problem, tol: float) -> tuple[Result, float]:
    begun = time.perf_counter()
    found = solve(problem, "analytic", tol=tol, time_limit=120.0)
    return found, time.perf_counter() - begun


def batch(tol: float) -> Table:
    """The batch solver on mfeat for every p and C of the paper."""
    stack, y, one = mfeat()
    title = (
        f"mfeat, multi-class hinge, analytic to {tol:g}; a pass is {1e3 * one:.0f} ms"
    )
    out = Table(box=SIMPLE, title=title, title_justify="left")
    for name in ("p", "C", "gap", "seconds", "passes of time", "passes", "iterates"):
        out.add_column(name, justify="right", no_wrap=True)
    for p in EXPONENTS:
        for C in COSTS:
            at = Problem(stack, y, "multiclass_hinge", BlockNorm(p), C, bias=False)
            found, took = timed(at, tol)
            passes = f"{found.trace.last('passes'):.0f}"
            numbers = [f"{found.relative_gap:.0e}", f"{took:.2f}", f"{took / one:.0f}"]
            out.add_row(f"{p:g}", f"{C:g}", *numbers, passes, str(len(found.trace)))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=style.positive, default=300, help="toy samples")
    parser.add_argument("--tol", type=float, default=1e-6, help="gap on mfeat")
    options = parser.parse_args()
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    say = partial(console.print, highlight=False)
    try:
        problem = toy(options.n)
    except ValueError as error:
        parser.error(str(error))
    together, apart = solved(problem)
    for name, theta, gap in [
        *(
            (f"class {c + 1}", r.weights, r.relative_gap)
            for c, r in enumerate(apart.results)
        ),
        ("all at once", together.weights, together.relative_gap),
    ]:
        share = np.round(theta / np.sum(theta), 3)
        say(f"{name}: weights {share}, kernels {kept(theta) + 1}, gap {gap:.0e}")
    sparser = len(kept(together.weights)) == 1 < len(kept(apart.weights))
    say(f"one kernel all at once, more one by one: {'met' if sparser else 'MISSED'}")
    for where in draw(problem, together, apart):
        say(f"drawn: {where}")
    try:
        say(batch(options.tol))
    except data.DataNotFound as error:
        say(str(error))


if __name__ == "__main__":
    main()
