"""OBSCURE against Pegasos, UFO-MKL and a batch solver: `make bench-obscure`.

The settings of Orabona, Jie and Caputo (2012), with the canonical C = 1/(λN):

    cost     one epoch at n = 2000, k = 10, M = 6, labels without any pattern so that
             nearly every step is an update, in passes K.reshape(M·n, n) @ α
    mfeat    six views of digits, a Gaussian kernel each, half of the 2000 samples for
             training: objective and test error against epochs and time, for p and C;
             stage 1 takes a quarter of the epochs, or less if it ends by itself, and in
             a second comparison the published 5
    scale    5000 steps on MNIST-5k, four quadrants × (linear, cubic, Gaussian), n from
             500 to 5000: the slope of log time against log n
    theorem  theorem 3 against the mean over 20 seeds: its bound, what a test would have
             refuted, and where it says less than f(0) does

The objective of ufo contains its term a‖w‖_{2,1}, a = 0.01/λ, and so is its own.

    python -m mklopt.bench_obscure --only cost theorem --quick
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.certificate import medians
from mklopt import data, kernels
from mklopt.certificates.certificate import certify, primal_value
from mklopt.formulations import BlockNorm, Formulation, SparseBlockNorm
from mklopt.grams.stack import GramStack
from mklopt.judge.rates import uncertainty
from mklopt.kernels.fitted import FittedKernels
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.solvers import solvers
from mklopt.solvers.obscure import theorem_3
from mklopt.solvers.steps.epochs import TIME, UPDATES, Descent
from mklopt.util import style

Array = np.ndarray
PS, CS = (1.01, 1.1, 1.25, 1.5, 1.75, 2.0), (1.0, 100.0, 1000.0)
SOLVERS = ("obscure", "pegasos", "ufo", "analytic")
PUBLISHED = "obscure, 5 epochs of stage 1"
LIMIT = 120.0  # seconds for the batch solver


def descent(problem: Problem, seed: int = 0) -> Descent:
    return Descent(
        problem, problem.formulation.strongly_convex, np.random.default_rng(seed)
    )


def say(console: Console, what: str, number: float, most: float) -> None:
    verdict = "met" if number <= most else "MISSED"
    line = f"{what}: {number:.2f} (at most {most:g}) {verdict}"
    console.print(line, highlight=False)


# ---- the cost of an epoch ------------------------------------------------------------


def cost(console: Console, n: int = 2000, k: int = 10, M: int = 6) -> None:
    """Epochs of both stages on labels that mean nothing, and a pass, in turns."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(M, n, 10)), rng.permutation(np.arange(n) % k)
    squares = np.sum(X**2, axis=2)
    apart = squares[:, :, None] + squares[:, None] - 2 * X @ X.transpose(0, 2, 1)
    K = np.exp(-np.maximum(apart, 0.0) / 2)
    grams, flat = GramStack(K, storage="full"), K.reshape(M * n, n)
    problem = Problem(grams, y, "multiclass_hinge", BlockNorm(1.25), 1.0, bias=False)
    first, second = descent(problem), descent(problem)
    steps = (partial(first.epoch, eta=1e-3), partial(second.epoch, R=1.0))
    one, *both = medians(partial(np.matmul, flat, rng.normal(size=n)), *steps, rounds=9)
    for run, name, took in zip((first, second), ("stage 1", "stage 2"), both):
        updates = run.tally[UPDATES] / run.tally[TIME]
        what = f"{name}, n = {n}, k = {k}, M = {M}, {updates:.0%} updates: passes"
        say(console, what, took / one, 6.0)


# ---- mfeat ---------------------------------------------------------------------------


@dataclass
class Curve:
    """What a run showed: best objective so far and test error, by epoch and second."""

    epochs: list[float]
    seconds: list[float]
    objective: list[float]
    error: list[float]
    lower: float = 0.0

    def at(self, epoch: float) -> float:
        """The best objective up to an epoch."""
        seen = [v for e, v in zip(self.epochs, self.objective) if e <= epoch]
        return seen[-1] if seen else np.inf


def digits(half: int) -> tuple[FittedKernels, Array, Array, Array]:
    train, test = data.load("mfeat").standardized().split(half, seed=0)
    family = kernels.views(kernels.gaussians("mean"), train.views)
    fitted = family.fit(train.views)
    return fitted, fitted.cross(test.views), train.y, test.y


def watched(
    problem: Problem, solver: str, cross: Array, y: Array, most: int, **options: Any
) -> Curve:
    """Run a solver and look at each certified iterate from outside."""
    curve = Curve([], [], [], [])

    def look(certificate, trace) -> None:  # type: ignore[no-untyped-def]
        batch = not solvers()[solver].draws
        curve.epochs.append(trace.last("iteration" if batch else "rounds"))
        curve.seconds.append(trace.last("seconds"))
        curve.objective.append(float(np.min(trace.primal)))
        f = sum(K @ B for K, B in zip(cross, certificate.expansion))
        curve.error.append(100 * float(np.mean(np.argmax(f, axis=1) != y)))
        curve.lower = float(np.max(trace.dual))

    limits: dict = {"tol": 0.0, "max_iter": most}
    if not solvers()[solver].draws:
        limits = {"tol": 1e-3, "time_limit": LIMIT}
    solve(problem, solver, callback=look, **limits, **options)
    return curve


def curves(
    console: Console,
    ps: Sequence[float],
    Cs: Sequence[float],
    most: int,
    half: int = 1000,
) -> dict[tuple[float, float, str], Curve]:
    fitted, cross, y, new = digits(half)
    grams = fitted.grams(storage="full")
    found = {}
    for p in ps:
        for C in Cs:
            for name in [s for s in SOLVERS if s in solvers()]:
                a = 0.01 * C * grams.n  # the published α, times 1/λ
                sparse: Formulation = SparseBlockNorm(p, a)
                form = sparse if name == "ufo" else BlockNorm(p)
                problem = Problem(grams, y, "multiclass_hinge", form, C, bias=False)
                stages = {"T1": most // 4} if name == "obscure" else {}
                run = partial(watched, problem, name, cross, new, most)
                found[p, C, name] = run(**stages)
                if name == "obscure" and C >= 100:
                    found[p, C, PUBLISHED] = run(T1=5)
        console.print(f"[dim]mfeat, p = {p:g} done[/]")
    return found


def mfeat_table(found: dict[tuple[float, float, str], Curve], most: int) -> Table:
    names = [s for s in SOLVERS if any(key[2] == s for key in found)]
    title = f"mfeat after {most} epochs: objective, test error in %, seconds"
    out = Table(box=SIMPLE, title=title, title_justify="left")
    for name in ("p", "C", *(f"{s} {w}" for s in names for w in ("f", "%", "s"))):
        out.add_column(name, justify="right", no_wrap=True)
    for p, C in dict.fromkeys(key[:2] for key in found):
        row = [f"{p:g}", f"{C:g}"]
        for name in names:
            c = found[p, C, name]
            row += [f"{c.objective[-1]:.5g}", f"{c.error[-1]:.1f}"]
            row.append(f"{c.seconds[-1]:.1f}")
        out.add_row(*row)
    return out


@style.styled
def mfeat_draw(found: dict[tuple[float, float, str], Curve]) -> None:
    """By epochs and by time; above what is left of the objective, below test errors."""
    ps = sorted({key[0] for key in found})
    some = [p for p in (1.01, 1.25, 2.0) if p in ps] or ps[:3]
    Cs = [C for C in sorted({key[1] for key in found}) if C >= 100]
    cells = [(p, C) for C in Cs for p in some]
    for kind in ("epochs", "seconds"):
        figure, axes = style.panels(2 * len(cells), columns=len(some))
        for at, cell in enumerate(cells):
            above, below = axes[at], axes[at + len(cells)]
            _draw_cell(found, cell, kind, above, below)
            if at % len(some) == 0:
                above.set(ylabel="objective / lower − 1")
                below.set(ylabel="test error, %")
        lines, labels = axes[len(cells)].get_legend_handles_labels()
        where = {"loc": "upper center", "bbox_to_anchor": (0.5, 1.03)}
        figure.legend(lines, labels, ncols=len(labels), frameon=False, **where)
        style.save(figure, f"obscure-mfeat-{kind}")


def _draw_cell(
    found: dict[tuple[float, float, str], Curve],
    cell: tuple[float, float],
    kind: str,
    above: Any,
    below: Any,
) -> None:
    """One p and C. A batch solver has no epochs, and ufo another objective."""
    mine = {s: found[*cell, s] for s in SOLVERS if (*cell, s) in found}
    lower = max(c.lower for s, c in mine.items() if s != "ufo")
    for k, (name, curve) in enumerate(mine.items()):
        if kind == "epochs" and not solvers()[name].draws:
            continue
        x = getattr(curve, kind)
        off = np.maximum(np.array(curve.objective) / lower - 1, 1e-6)
        if name != "ufo":
            above.plot(x, off, **style.look(k))
        below.plot(x, curve.error, label=name, **style.look(k))
    scale = "log" if kind == "epochs" else "linear"
    for axis in (above, below):
        axis.set(title="p = {:g}, C = {:g}".format(*cell), xlabel=kind, xscale=scale)
    above.set_yscale("log")


def mfeat(console: Console, quick: bool) -> None:
    ps, most = ((1.1, 2.0), 20) if quick else (PS, 60)
    found = curves(console, ps, CS, most)
    console.print(mfeat_table(found, most))
    for name in ("obscure", PUBLISHED):
        for C in [C for C in CS if C >= 100]:
            pairs = [(found[p, C, name], found[p, C, "pegasos"]) for p in ps]
            for last in (most // 2, most):
                common = [e for e in pairs[0][1].epochs if e <= last]
                worst = max(a.at(e) / b.at(e) for a, b in pairs for e in common)
                what = f"mfeat, C = {C:g}, all p, up to {last} epochs"
                say(console, f"{what}: {name} / pegasos, worst", worst, 1.0)
    mfeat_draw(found)


# ---- linear in n ---------------------------------------------------------------------


def quadrants(side: int = 28) -> list[list[int]]:
    """The pixels of four squares that an image of side² pixels is cut into."""
    pixel, half = np.arange(side**2).reshape(side, side), side // 2
    parts = [pixel[i : i + half, j : j + half] for i in (0, half) for j in (0, half)]
    return [part.ravel().tolist() for part in parts]


def scale(console: Console, quick: bool) -> None:
    """Seconds for T steps of stage 2, and their slope against n on log scales.

    Once as it comes, and once inside a ball so small that every step is an update:
    the larger n is, the more of the T samples are new, and the more steps are updates.
    """
    sizes = (500, 1000, 2000) if quick else (500, 1000, 2000, 3500, 5000)
    digits = data.load("mnist5k")
    family = kernels.linear() + kernels.polynomials([3]) + kernels.gaussians("mean")
    family = kernels.views(family, quadrants())
    took: dict[str, list[float]] = {"as it comes": [], "updates only": []}
    for n in sizes:
        train, _ = digits.split(n, seed=0) if n < len(digits.y) else (digits, None)
        fitted = family.fit(train.X / 255, normalize="multiplicative")
        grams = fitted.grams(storage="full")
        form = BlockNorm(1.25)
        problem = Problem(grams, train.y, "multiclass_hinge", form, 100.0, bias=False)
        for name, column in took.items():
            seconds, updates = seconds_of(problem, 1e-3 if name[0] == "u" else None)
            column.append(seconds)
            line = f"n = {n}, M = {grams.M}, {name}: {1e6 * seconds:.1f} µs per step"
            console.print(f"{line}, {updates:.0%} updates", highlight=False)
        del problem, grams, fitted
    for name, column in took.items():
        slope = float(np.polyfit(np.log(sizes), np.log(column), 1)[0])
        say(console, f"slope of log time against log n, {name}", slope, 1.1)


def seconds_of(
    problem: Problem, R: float | None, T: int = 5000, rounds: int = 3
) -> tuple[float, float]:
    """Processor time per step of T steps, the best of some rounds; updates per step."""
    found = []
    for seed in range(rounds):
        run = descent(problem, seed)
        run.epoch(eta=1.0)
        ball = run.radius if R is None else R
        run.begin()
        begun = time.process_time()
        while run.tally[TIME] < T:
            run.epoch(R=ball)
        steps = run.tally[TIME]
        seconds = (time.process_time() - begun) / steps
        found.append((float(seconds), float(run.tally[UPDATES] / steps)))
    return min(found)


# ---- theorem 3 -----------------------------------------------------------------------


@dataclass
class Verdict:
    """Theorem 3 at some checkpoints, in the paper's units."""

    bound: Array
    mean: Array
    refuted: Array  # the bound itself, by a one-sided t-test with Bonferroni
    power: Array  # a claim so many times smaller would have been refuted
    vacuous: Array  # the bound is no better than f(0) − f*


def means(
    problem: Problem, epochs: Sequence[int], seeds: int, which: str = "average"
) -> Array:
    """[seed, epoch]: the objective at the mean of w_1 … w_T, or at the last of them.

    Stage 2 alone, from w = 0, in the ball that is known beforehand.
    """
    values = np.empty((seeds, len(epochs)))
    for seed in range(seeds):
        run = descent(problem, seed)
        R = run.radius
        for place, epoch in enumerate(epochs):
            while run.stage < epoch:
                run.epoch(R=R)
            B = run.coefficients(which)
            found = certify(problem, np.zeros(problem.shape), coefficients=B)
            values[seed, place] = found.primal
    return values


def against_theorem_3(
    problem: Problem, lower: float, epochs: Sequence[int], seeds: int = 20
) -> Verdict:
    """f(mean of w_1 … w_T) − lower over seeds, beside the bound; lower ≤ f*."""
    run = descent(problem)
    off = run.lam * (means(problem, epochs, seeds) - lower)
    T = problem.grams.n * np.array(epochs)
    bound = theorem_3(T, run.q, run.lam, run.radius, run.steepest)
    least = np.mean(off, axis=0) - uncertainty(off)
    nothing = primal_value(problem, np.zeros(problem.shape), np.zeros(problem.grams.M))
    with np.errstate(divide="ignore"):
        power = np.where(least > 0, bound / least, np.inf)
    vacuous = bound >= run.lam * (nothing - lower)
    return Verdict(bound, np.mean(off, axis=0), least > bound, power, vacuous)


def theorem(console: Console, quick: bool) -> None:
    rng = np.random.default_rng(0)
    n, k = 60, 3
    y = np.arange(n) % k
    factors = [rng.normal(size=(n, 5)) + np.eye(k, 5)[y] for _ in range(4)]
    grams = GramStack.from_factors([L / np.sqrt(5) for L in factors])
    epochs = [int(e) for e in np.geomspace(1, 64 if quick else 2048, 10)]
    title = "theorem 3: bound, mean over 20 seeds, and how much less would be refuted"
    out = Table(box=SIMPLE, title=title, title_justify="left")
    for name in ("p", "C", "epochs", "bound", "mean", "refuted from bound /", ""):
        out.add_column(name, justify="right", no_wrap=True)
    for p, C in ((1.1, 0.01), (1.5, 0.01), (1.5, 1.0), (1.5, 100.0)):
        problem = Problem(grams, y, "multiclass_hinge", BlockNorm(p), C, bias=False)
        lower = solve(problem, "spicy", tol=1e-8).certificate.lower
        found = against_theorem_3(problem, lower, epochs)
        for j, epoch in enumerate(epochs):
            verdict = "FAILS" if found.refuted[j] else "holds"
            verdict += ", vacuous" if found.vacuous[j] else ""
            numbers = (found.bound[j], found.mean[j], found.power[j])
            cells = [f"{p:g}", f"{C:g}"] if j == 0 else ["", ""]
            out.add_row(*cells, str(epoch), *(f"{x:.2g}" for x in numbers), verdict)
    console.print(out)


def main() -> None:
    parts = {
        "cost": lambda console, quick: cost(console),
        "mfeat": mfeat,
        "scale": scale,
        "theorem": theorem,
    }
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", default=list(parts), choices=list(parts))
    parser.add_argument("--quick", action="store_true", help="fewer p, n and epochs")
    options = parser.parse_args()
    console = Console()
    if not console.is_terminal:
        console = Console(width=140)
    for name in options.only:
        try:
            parts[name](console, options.quick)
        except data.DataNotFound as missing:
            raise SystemExit(str(missing)) from None
    if "mfeat" in options.only:
        console.print(f"figures are in {style.FOLDER}/")


if __name__ == "__main__":
    main()
