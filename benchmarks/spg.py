"""Spectral against plain projected gradient descent: `make bench-spg`.

The setting of Jain et al. (2012), section 5, on small UCI sets, 70 % for training,
standardized.

    sums       13 kernels on all and on each feature (SimpleMKL's recipe), unit trace,
               C = 1000, r(d) = Σd and ½‖d‖_p²: certified to a relative gap of 1e-3
    products   Π exp(−d_m D_m), one squared distance per feature, C = 10: to a projected
               gradient of 1e-2

    spg        spectral, non-monotone, tuned, in our metric
    plain      without our metric, and with λ_max = 10 as in the paper
    pgd        the rule of Armijo, precise machines; the others are divided by it
    pgd+       pgd whose searches begin near where the last one ended

All start from the same d and stop by the same rule. Where pgd ends at its limit
("late") it is counted with what it had used by then: the true ratio is smaller. The
last columns say how far each objective W is from that of pgd.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from mklopt import data, gmkl, kernels
from mklopt.formulations import GroupLasso, Tikhonov
from mklopt.gmkl.families import Product
from mklopt.gmkl.problem import KernelFamilyProblem
from mklopt.gmkl.regularizers import SquaredNorm, Total
from mklopt.grams.stack import GramStack
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.util import style

Array = np.ndarray
SETS = ("liver", "wpbc", "sonar", "ionosphere", "breast-w", "pima")
PRICES = (1.0, 1.1, 1.33, 1.66, 2.0)  # 1.0 stands for r(d) = Σd
LIMIT, C, C_PRODUCT = 20.0, 1000.0, 10.0
LONGEST = 10.0  # λ_max of the paper
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "spg": ("spg", {}),
    "plain": ("spg", {"scaled": False, "longest": LONGEST}),
    "pgd+": ("pgd", {"remember": True}),
    "pgd": ("pgd", {}),
}
OTHERS = ("spg", "plain", "pgd+")
ABLATION = {
    "PGD": (False, False, False),
    "+S": (True, False, False),
    "+N": (False, True, False),
    "+N+S": (True, True, False),
    "SPG": (True, True, True),
}


class Run(NamedTuple):
    machines: float
    seconds: float
    objective: float
    ended: bool
    lower: float  # a certified lower bound of the optimum; −inf for products
    history: tuple[Array, Array]  # machines and objective


class Task:
    """One problem and how each method solves it."""

    def __init__(self, kind: str, name: str, p: float, inputs: Any, y: Array):
        self.kind, self.name, self.p = kind, name, p
        if kind == "sum":
            form = GroupLasso() if p == 1 else Tikhonov(p, 0.5)
            cost = C / np.sqrt(2) if p == 1 else C
            self.problem: Any = Problem(inputs, y, "hinge", form, cost)
        else:
            price = Total() if p == 1 else SquaredNorm(p)
            self.problem = KernelFamilyProblem(inputs, y, "hinge", price, C_PRODUCT)

    def end(self, solver: str, **options: Any) -> Any:
        """The result of one solver; options are its switches and limits."""
        if self.kind == "product":
            return gmkl.solve(self.problem, solver, tol=1e-2, **options)
        return solve(self.problem, solver, tol=1e-3, **options)

    @property
    def unit(self) -> float:
        """W over the objective of the problem that is solved."""
        return float(np.sqrt(2)) if (self.kind, self.p) == ("sum", 1.0) else 1.0

    def run(self, solver: str, **switches: Any) -> Run:
        if self.kind == "product":
            end = self.end(solver, max_iter=10**6, time_limit=LIMIT, **switches)
            h = end.history
            cost = (h["svm_solves"][-1], h["seconds"][-1], end.value)
            path = (h["svm_solves"], np.minimum.accumulate(h["value"]))
            return Run(*cost, end.status == "stationary", -np.inf, path)
        end = self.end(solver, time_limit=LIMIT, **switches)
        trace, scale = end.trace, self.unit
        cost = (trace.last("svm_solves"), trace.last("seconds"),
                scale * end.certificate.primal)  # fmt: skip
        path = (trace.svm_solves, scale * np.minimum.accumulate(trace.primal))
        return Run(*cost, end.converged, scale * end.certificate.dual, path)


def tasks(name: str, seed: int) -> list[Task]:
    train, _ = data.load(name).split(0.7, seed=seed)
    train = train.standardized()
    recipe = kernels.rakotomamonjy().fit(train.X, normalize="unit_trace")
    inputs: dict[str, GramStack | Product] = {
        "sum": recipe.grams(),
        "product": Product.from_features(train.X),
    }
    return [Task(k, name, p, inputs[k], train.y) for k in inputs for p in PRICES]


def measure(splits: int, sets: list[str], console: Console) -> dict:
    found: dict = defaultdict(list)
    for name in sets:
        for seed in range(splits):
            for task in tasks(name, seed):
                runs = {m: task.run(s, **on) for m, (s, on) in METHODS.items()}
                found[task.kind, task.p, name].append(runs)
        console.print(f"[dim]{name} done[/]")
    return found


def ratios(runs: list[dict[str, Run]], method: str) -> list[float]:
    """Medians over splits of machines and of seconds, divided by those of pgd."""
    machines = [r[method].machines / r["pgd"].machines for r in runs]
    seconds = [r[method].seconds / r["pgd"].seconds for r in runs]
    return [float(np.median(machines)), float(np.median(seconds))]


def apart(runs: list[dict[str, Run]], method: str) -> str:
    """How far a method's objective is from that of pgd, relative, at worst."""
    gone = [r[method].objective / r["pgd"].objective - 1 for r in runs]
    return f"{gone[int(np.argmax(np.abs(gone)))]:+.0e}"


def cells(runs: list[dict[str, Run]], method: str) -> list[str]:
    """Both ratios; a star for a run that ended at its limit."""
    machines, seconds = ratios(runs, method)
    late = "" if all(r[method].ended for r in runs) else "*"
    return [f"{machines:.2f}{late}", f"{seconds:.2f}"]


def table(found: dict, kind: str) -> Table:
    out = Table(box=SIMPLE, title=f"{kind}s: over pgd", title_justify="left")
    for name in ("r(d)", "data"):
        out.add_column(name, no_wrap=True)
    heads = [h for m in OTHERS for h in (m, "time")]
    for name in (*heads, "pgd SVMs", *(f"W {method}" for method in OTHERS)):
        out.add_column(name, justify="right", no_wrap=True)
    for p in PRICES:
        here = {n: runs for (k, q, n), runs in found.items() if (k, q) == (kind, p)}
        for name, runs in here.items():
            late = "" if all(r["pgd"].ended for r in runs) else "*"
            calls = f"{np.mean([r['pgd'].machines for r in runs]):.0f}{late}"
            row = [cell for method in OTHERS for cell in cells(runs, method)]
            objectives = [apart(runs, method) for method in OTHERS]
            out.add_row(price(p), name, *row, calls, *objectives)
        all_ratios = [[x for m in OTHERS for x in ratios(r, m)] for r in here.values()]
        shown = [f"[bold]{x:.2f}[/]" for x in np.median(all_ratios, axis=0)]
        out.add_row("", "[bold]median[/]", *shown, end_section=True)
    out.caption = f"*: some run ended at its limit of {LIMIT:g} s"
    return out


def price(p: float) -> str:
    return "Σd" if p == 1 else f"½‖d‖²_{p:g}"


def criteria(found: dict) -> list[str]:
    """One line for each thing that was to be shown, with what was found."""
    lines = []
    for kind in ("sum", "product"):
        for p in PRICES:
            here = [r for (k, q, _), r in found.items() if (k, q) == (kind, p)]
            if here and (kind == "product" or p <= 1.33):
                ratio = float(np.median([ratios(runs, "spg")[0] for runs in here]))
                good = "pass" if ratio <= 0.5 else "FAIL"
                name = f"{kind}s, {price(p)}: SVMs of spg over those of pgd"
                lines.append(f"{good}  {name}, median {ratio:.2f} ≤ 0.5")
    for (kind, p, name), runs in found.items():
        gone = [r["spg"].objective / r["pgd"].objective - 1 for r in runs]
        worst = gone[int(np.argmax(np.abs(gone)))]
        if abs(worst) > 1e-3:
            lines.append(f"differs  {kind}, {price(p)}, {name}: W by {worst:+.1e}")
    if not any(line.startswith("differs") for line in lines):
        lines.append("pass  objectives of spg and pgd are equal to 1e-3 everywhere")
    return lines


def ablation(name: str, console: Console) -> None:
    """What each part of the method contributes, in SVM evaluations and seconds."""
    out = Table(box=SIMPLE, title=f"switches one by one, {name}", title_justify="left")
    out.add_column("problem", no_wrap=True)
    for method in (*ABLATION, "SPG, our metric"):
        out.add_column(method, justify="right")
    for task in tasks(name, 0):
        if task.p not in (1.0, 1.33):
            continue
        row: list[str] = []
        for on in (*ABLATION.values(), (True, True, True)):
            switches = dict(zip(("spectral", "nonmonotone", "tune"), on))
            ours = len(row) == len(ABLATION)
            length = None if ours else LONGEST
            run = task.run("spg", scaled=ours, longest=length, **switches)
            row.append(f"{run.machines:.0f}{'' if run.ended else '*'}")
        out.add_row(f"{task.kind}, {price(task.p)}", *row)
    out.caption = f"SVM evaluations; *: not there within {LIMIT:g} s"
    console.print(out)


@style.styled
def draw(found: dict, sets: list[str]) -> None:
    draw_ratios(found, sets)
    draw_descent(found, "sonar" if "sonar" in sets else sets[-1])


def draw_ratios(found: dict, sets: list[str]) -> None:
    figure, axes = style.panels(2, height=3.4)
    for axis, kind in zip(axes, ("sum", "product")):
        for k, method in enumerate(OTHERS):
            values = [[ratios(found[kind, p, n], method)[0] for n in sets]
                      for p in PRICES]  # fmt: skip
            where = np.repeat(np.arange(len(PRICES)) + 0.22 * (k - 1), len(sets))
            look = style.look(k) | {"linestyle": "none"}
            axis.plot(where, np.ravel(values), label=method, **look)
        axis.axhline(0.5, color="0.4", linestyle="--", linewidth=1)
        axis.set(yscale="log", title=f"{kind}s", ylabel="SVMs, over those of pgd")
        axis.set_xticks(range(len(PRICES)), ["Σd", *(f"{p:g}" for p in PRICES[1:])])
        axis.set_xlabel("r(d): Σd, or ½‖d‖² in the p-norm")
    axes[1].legend(frameon=False, fontsize=8)
    style.save(figure, "spg-ratios")


def floor(runs: dict[str, Run]) -> tuple[float, str]:
    """What objectives are compared with: a certified bound where there is one."""
    lower = max(run.lower for run in runs.values())
    if np.isfinite(lower):
        return lower, "above the certified bound, relative"
    best = min(run.objective for run in runs.values())
    return best, "above the best of these runs, relative"


def draw_descent(found: dict, name: str) -> None:
    """The objective over SVM evaluations, of two problems."""
    figure, axes = style.panels(2, height=3.4)
    for axis, (kind, p) in zip(axes, (("sum", 1.33), ("product", 1.0))):
        runs = found[kind, p, name][0]
        best, label = floor(runs)
        for k, (method, run) in enumerate(runs.items()):
            machines, values = run.history
            look = style.look(k) | {"marker": None}
            above = np.maximum(values / best - 1, 1e-6)
            axis.plot(machines, above, label=method, **look)
        axis.set(xscale="log", yscale="log", xlabel="SVM evaluations")
        axis.set(ylabel=label)
        norm = "Σd" if p == 1 else f"p = {p:g}"
        axis.set_title(f"{name}: {kind}, {norm}", fontsize=10)
    axes[0].legend(frameon=False)
    style.save(figure, "spg-descent")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=style.positive, default=1)
    parser.add_argument("--data", nargs="+", default=list(SETS), choices=SETS)
    options = parser.parse_args()
    console = Console(width=130)
    try:
        found = measure(options.splits, options.data, console)
    except data.DataNotFound as missing:
        raise SystemExit(str(missing)) from None
    for kind in ("sum", "product"):
        console.print(table(found, kind))
    for line in criteria(found):
        console.print(line)
    ablation("wpbc" if "wpbc" in options.data else options.data[0], console)
    draw(found, options.data)
    console.print(f"figures are in {style.FOLDER}/")


if __name__ == "__main__":
    main()
