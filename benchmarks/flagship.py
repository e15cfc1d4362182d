"""What `auto` costs, and what others cost: `make bench`.

One pass-time is the time of K.reshape(M·n, n) @ α over the whole stack in full float64
storage. Ratio = wall time of `solve(problem, "auto", tol=1e-6)`, certificates included,
over one pass-time of the same process, taken before and after; medians. Building the
stack is shown apart. Competitors (rivals.py) run once, in the same run, at the gap
that our certificate finds; "× auto" is their time over that of `auto`.

Kernels are Gaussians on subsets of features. M grows by kernels of a fifth of the size
of the others, which stay out of use; n grows at M = 60. Exponents are slopes of
log time between the ends; one within 0.1 of its bar is not told from it.

Written to figures-out/: bench.md, bench.json, bench.png, bench.pdf.

    python -m mklopt.bench_auto --quick                # n ≤ 500
    python -m mklopt.bench_auto --rounds 1             # one run, not the median of five
    python -m mklopt.bench_auto --alone                # without competitors
    python -m mklopt.bench_auto --sizes 1000x300       # and without growth
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.certificate import medians, subset_gaussians
from benchmarks.rivals import EVERYONE, GOOD, Arena, measure
from mklopt.formulations import Formulation
from mklopt.formulations.block_norm import BlockL1
from mklopt.formulations.elastic_net import ElasticNet
from mklopt.formulations.group_lasso import GroupLasso
from mklopt.formulations.lp_norm import LpNorm
from mklopt.formulations.mixed_norm import VSKL, Composite
from mklopt.grams.stack import GramStack
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.util import style
from mklopt.util.tables import markdown, plain_table, shown

Array = np.ndarray
TOL = 1e-6
SIZES = ((200, 10), (500, 100), (2000, 60), (1000, 300))
WHOLE = (1000, 300)  # where the bars hold as they are; elsewhere twice
COSTS = (1.0, 100.0)
MANY, DEEP = (100, 300, 1000, 3000), (250, 500, 1000, 2000)  # M and n
FEW, FLAT = 60, 200  # … at this M and this n
SOME, PATIENT = 20.0, 15.0  # seconds for an attempt at least, and times auto's time
SLACK = 0.1  # of a measured exponent
VERSIONS = (
    "mklopt", "numpy", "scipy", "numba", "scikit-learn", "cvxpy", "clarabel", "ecos",
    "scs", "skglm", "celer", "MKLpy",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A formulation and a loss, and the most pass-times they may take."""

    formulation: Formulation
    loss: str
    most: float | None = None
    bias: bool = True

    @property
    def sparse(self) -> bool:
        return "smooth_dual" not in self.formulation.traits


def cases(n: int, M: int) -> list[Case]:
    """Those with a bar, those that the factor methods take, and two more."""
    tenths = [list(part) for part in np.array_split(np.arange(M), min(10, M))]
    found = [Case(LpNorm(p), "hinge", 8.0) for p in (4 / 3, 2.0, 4.0)]
    found += [Case(BlockL1(), "hinge", 15.0), Case(GroupLasso(), "hinge", 15.0)]
    found += [Case(GroupLasso(), loss, 12.0) for loss in ("logistic", "squared")]
    found += [Case(VSKL(tenths, 2.0), "hinge", 18.0)]
    if n <= 500:
        found += [Case(GroupLasso(), l, None, False) for l in ("logistic", "squared")]
    if n <= 1000:
        found += [Case(f, "hinge") for f in (ElasticNet(0.5), Composite(tenths))]
    return found


@dataclass(frozen=True)
class Row:
    """One solver on one problem."""

    n: int
    M: int
    formulation: str
    loss: str
    C: float
    bias: bool
    sparse: bool
    who: str
    seconds: float
    ratio: float  # over one pass-time
    multiple: float  # over the time of auto
    gap: float
    passes: float = math.nan
    apart: float = 0.0  # factors, in pass-times
    most: float | None = None
    note: str = ""

    @property
    def what(self) -> str:
        bias = "" if self.bias else ", no bias"
        return f"{self.formulation}, {self.loss}, C={self.C:g}{bias}"


# ---- measuring ---------------------------------------------------------------


def pass_time(K: Array, y: Array, rounds: int = 5) -> float:
    M, n = K.shape[:2]
    return medians(partial(np.matmul, K.reshape(M * n, n), y), rounds=rounds)[0]


def timed(problem: Problem, K: Array, rounds: int) -> tuple[Any, float, float, float]:
    """auto's result, its median time, the pass-time beside it, and full passes."""
    solve(problem, tol=TOL)  # compiles, and touches the memory
    begun = problem.grams.passes
    found: list[Any] = []
    before = pass_time(K, problem.y)
    (took,) = medians(lambda: found.append(solve(problem, tol=TOL)), rounds=rounds)
    one = (before + pass_time(K, problem.y)) / 2
    return found[-1], took, one, (problem.grams.passes - begun) / rounds


def contest(
    case: Case, C: float, grams: GramStack, K: Array, y: Array, how: Any
) -> list[Row]:
    """auto and everyone who takes the problem."""
    problem = Problem(grams, y, case.loss, case.formulation, C, case.bias)
    result, own, one, passes = timed(problem, K, how.rounds)
    about: dict[str, Any] = dict(
        n=grams.n, M=grams.M, formulation=shown_briefly(case.formulation),
        loss=case.loss, C=C, bias=case.bias, sparse=case.sparse,
    )  # fmt: skip
    picked = (getattr(result, "choice", "") or result.solver).split(":")[0]
    picked += "" if result.converged else f": {result.status}"
    most = case.most
    if most is not None and (grams.n, grams.M) != WHOLE:
        most = 2 * most if grams.n > 200 else None
    cost: dict[str, Any] = dict(seconds=own, ratio=own / one, multiple=1.0)
    gap = result.relative_gap
    ours = Row(
        **about, **cost, who="auto", gap=gap, passes=passes, most=most, note=picked
    )
    if how.alone:
        return [ours]
    arena = Arena(problem, K, result.certificate.dual)
    return [ours, *competition(arena, about, own, one)]


def competition(
    arena: Arena, about: dict[str, Any], own: float, one: float
) -> Iterable[Row]:
    limit = max(SOME, PATIENT * own)
    for rival in EVERYONE:
        if rival.why_not(arena.problem):
            continue
        if not rival.installed:
            took, gap, apart, note = math.nan, math.nan, 0.0, "not installed"
        else:
            took, gap, apart, note = measure(rival, arena, limit)
        cost: dict[str, Any] = dict(seconds=took, ratio=took / one, multiple=took / own)
        cost |= dict(gap=gap, apart=apart / one)
        yield Row(**about, **cost, who=rival.name, note=note)


def shown_briefly(formulation: Formulation) -> str:
    return shown(formulation).replace("groups=…, ", "").replace("()", "")


def at_size(n: int, M: int, how: Any, console: Console) -> tuple[list[Row], str]:
    """All cases of one size; one stack in memory at a time."""
    K, y = subset_gaussians(n, M)
    GramStack(K)  # touch the memory once
    begun = time.perf_counter()
    grams = GramStack(K)
    build = time.perf_counter() - begun
    one = pass_time(K, y)
    head = f"n = {n}, M = {M}: one pass {1e3 * one:.1f} ms, "
    head += f"building the stack {build / one:.1f} passes"
    rows = []
    for case in cases(n, M):
        for C in COSTS:
            rows += contest(case, C, grams, K, y, how)
            console.print(f"[dim]{head[: head.index(':')]}: {rows[-1].what}[/]")
    return rows, head


@dataclass(frozen=True)
class Growth:
    """Times along one axis, and how many kernels were in use."""

    axis: str
    case: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    active: tuple[int, ...]

    @property
    def exponent(self) -> float:
        (a, *_, b), (s, *_, t) = self.sizes, self.seconds
        return math.log(t / s) / math.log(b / a)


def more_kernels(n: int, first: int, M: int) -> tuple[Array, Array]:
    """The first kernels, and others a fifth of their size that nobody will use."""
    K, _ = subset_gaussians(n, M)
    K[first:] *= 0.2
    return K, subset_gaussians(n, first)[1]  # the same labels for every M


STACKS: dict[str, Callable[[int, int], tuple[Array, Array]]] = {
    "M": lambda M, first: more_kernels(FLAT, first, M),
    "n": lambda n, first: subset_gaussians(n, FEW),
}


def growth(axis: str, case: Case, sizes: tuple[int, ...], rounds: int) -> Growth:
    seconds, active = [], []
    for size in sizes:
        K, y = STACKS[axis](size, sizes[0])
        problem = Problem(GramStack(K), y, case.loss, case.formulation)
        result, took, *_ = timed(problem, K, rounds)
        seconds.append(took)
        active.append(int(np.sum(result.certificate.norms > 1e-6)))
        del K, problem, result
        gc.collect()
    what = f"{shown_briefly(case.formulation)}, {case.loss}"
    return Growth(axis, what, sizes, tuple(seconds), tuple(active))


# ---- bars --------------------------------------------------------------------


def bars(rows: list[Row], grown: list[Growth]) -> list[str]:
    """One line for each thing that was promised: pass or FAIL."""
    return [*ratio_bars(rows), *rival_bars(rows), *growth_bars(grown)]


def verdict(good: bool, line: str) -> str:
    return f"{'pass' if good else 'FAIL'}  {line}"


def ratio_bars(rows: list[Row]) -> list[str]:
    found = []
    for row in rows:
        if row.who == "auto" and row.most is not None:
            good = row.ratio <= row.most and row.gap <= TOL * (1 + 1e-6)
            where = f"n={row.n}, M={row.M}: {row.what}"
            cost = f"ratio {row.ratio:.1f} ≤ {row.most:g} at gap {row.gap:.0e}"
            found.append(verdict(good, f"{where}: {cost}"))
    return found


def rival_bars(rows: list[Row]) -> list[str]:
    """Sparse: 10 times faster than all that arrive; dense: half the time of SVC."""
    there = [r for r in rows if r.who != "auto" and r.gap <= GOOD]
    sparse = [r for r in there if r.sparse]
    dense = [r for r in there if not r.sparse and r.who == "SVC analytic"]
    found = []
    for name, arrived, least in (
        ("sparse: nearest competitor at 1e-3", sparse, 10.0),
        ("dense ℓp: SVC analytic at 1e-3", dense, 2.0),
    ):
        for size in dict.fromkeys((r.n, r.M) for r in arrived):
            near = min(
                (r for r in arrived if (r.n, r.M) == size), key=lambda r: r.multiple
            )
            line = f"{name} takes {near.multiple:.1f} ≥ {least:g} × the time of auto"
            place = f"n={near.n}, M={near.M}: {near.what}, {near.who}"
            found.append(verdict(near.multiple >= least, f"{line} ({place})"))
    return found


def growth_bars(grown: list[Growth]) -> list[str]:
    found = []
    for g in grown:
        most = 1.0 if g.axis == "M" else 2.0
        line = f"{g.case}: time grows like {g.axis}^{g.exponent:.2f}, at most {most:g}"
        ends = f"{g.axis} = {g.sizes[0]} to {g.sizes[-1]}"
        used = f"{g.active[0]} to {g.active[-1]} kernels in use"
        found.append(verdict(g.exponent <= most + SLACK, f"{line} ({ends}, {used})"))
    return found


# ---- showing -----------------------------------------------------------------


def table(rows: list[Row], title: str) -> Table:
    numbers = ("ratio", "× auto", "passes", "gap", "factors")
    out = plain_table(title, ("problem", "solver"), numbers)
    out.add_column("", no_wrap=False)
    what = ""
    for row in rows:
        ours = row.who == "auto"
        late = ">" if math.isinf(row.gap) and not math.isnan(row.ratio) else ""
        bar = f" (≤ {row.most:g})" if row.most is not None else ""
        out.add_row(
            "" if row.what == what else row.what,
            row.who,
            late + number(row.ratio) + bar,
            "" if ours else late + number(row.multiple),
            number(row.passes),
            "" if not math.isfinite(row.gap) else f"{row.gap:.0e}",
            number(row.apart) if row.apart else "",
            row.note,
        )
        what = row.what
    return out


def number(x: float) -> str:
    return "" if math.isnan(x) else f"{x:.1f}" if x < 100 else f"{x:.0f}"


@style.styled
def draw(rows: list[Row], grown: list[Growth]) -> list:
    figure, axes = style.panels(4, height=3.4)
    draw_ratios(axes[0], [r for r in rows if r.who == "auto"])
    draw_rivals(axes[1], [r for r in rows if r.who != "auto" and r.gap < 1])
    for axis, letter in zip(axes[2:], "Mn"):
        for place, g in enumerate(x for x in grown if x.axis == letter):
            label = f"{g.case}: {letter}^{g.exponent:.2f}"
            axis.loglog(g.sizes, g.seconds, label=label, **style.look(place))
            axis.set_xticks(g.sizes, map(str, g.sizes))
            axis.tick_params("x", which="minor", bottom=False, labelbottom=False)
        axis.set(xlabel=f"{letter}", ylabel="seconds of auto")
        if axis.get_legend_handles_labels()[0]:
            axis.legend(frameon=False, fontsize=7)
    return style.save(figure, "bench")


def draw_ratios(axis: Any, rows: list[Row]) -> None:
    names = list(dict.fromkeys(f"{r.formulation}, {r.loss}" for r in rows if r.most))
    for place, size in enumerate(dict.fromkeys((r.n, r.M) for r in rows if r.most)):
        mine = [r for r in rows if (r.n, r.M) == size and r.most]
        where = [names.index(f"{r.formulation}, {r.loss}") for r in mine]
        shift = 0.2 * (place - 1)
        look = style.look(place) | {"linestyle": "none"}
        label = f"n={size[0]}, M={size[1]}"
        axis.plot([r.ratio for r in mine], np.array(where) + shift, label=label, **look)
        limits = [r.most for r in mine]
        axis.plot(limits, np.array(where) + shift, "|", color="0.4", markersize=9)
    axis.set_yticks(range(len(names)), names, fontsize=7)
    axis.set(xlabel="pass-times to 1e-6; strokes: the most allowed")
    axis.set_xlim(left=0)
    if names:
        legend_above(axis)


def draw_rivals(axis: Any, rows: list[Row]) -> None:
    for place, who in enumerate(dict.fromkeys(r.who for r in rows)):
        mine = [r for r in rows if r.who == who]
        look = style.look(place) | {"linestyle": "none"}
        axis.plot([r.gap for r in mine], [r.multiple for r in mine], label=who, **look)
    axis.plot([TOL], [1.0], "*", color="black", markersize=9, label="auto")
    axis.axvline(GOOD, color="0.4", linestyle="--", linewidth=1)
    axis.axhline(10.0, color="0.4", linestyle=":", linewidth=1)
    axis.set(xscale="log", yscale="log", xlabel="gap reached", ylabel="time over auto")
    legend_above(axis)


def legend_above(axis: Any) -> None:
    where = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    axis.legend(frameon=False, fontsize=7, ncols=3, **where)


def write(
    tables: list[tuple[str, Table]],
    lines: list[str],
    rows: list[Row],
    grown: list[Growth],
    rounds: int,
) -> None:
    """bench.md for people, bench.json for programs."""
    about = machine() | {"rounds": str(rounds), "day": time.strftime("%Y-%m-%d")}
    parts = [f"{name} {value}" for name, value in about.items()]
    text = [f"Measured with: {', '.join(parts)}.", __doc__.split("\n\n")[1]]
    for title, one in tables:
        text += [f"**{title}**", markdown(one)]
    text += ["\n".join(f"* {line}" for line in lines)]
    style.FOLDER.mkdir(parents=True, exist_ok=True)
    (style.FOLDER / "bench.md").write_text("\n\n".join(text) + "\n")
    data = {
        "machine": about,
        "rows": [finite(asdict(row)) for row in rows],
        "growth": [asdict(g) | {"exponent": g.exponent} for g in grown],
        "bars": lines,
    }
    (style.FOLDER / "bench.json").write_text(
        json.dumps(data, indent=1, allow_nan=False) + "\n"
    )


def finite(row: dict[str, Any]) -> dict[str, Any]:
    """JSON knows neither NaN nor infinity: null."""
    lost = {k for k, v in row.items() if isinstance(v, float) and not math.isfinite(v)}
    return row | dict.fromkeys(lost)


def a_size(text: str) -> tuple[int, int]:
    n, _, M = text.partition("x")
    if not (n.isdigit() and M.isdigit() and int(n) > 1 and int(M) > 0):
        raise argparse.ArgumentTypeError(f"{text} is not a size such as 1000x300")
    return int(n), int(M)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="n ≤ 500 only")
    parser.add_argument("--alone", action="store_true", help="without competitors")
    parser.add_argument(
        "--sizes", type=a_size, nargs="+", help="n x M, such as 500x100"
    )
    parser.add_argument("--rounds", type=style.positive, default=5)
    options = parser.parse_args()
    console = Console(width=140)
    rows: list[Row] = []
    tables: list[tuple[str, Table]] = []
    sizes = options.sizes or [s for s in SIZES if s[0] <= 500 or not options.quick]
    for n, M in sizes:
        found, head = at_size(n, M, options, console)
        rows += found
        tables.append((head, table(found, head)))
        console.print(tables[-1][1])
        gc.collect()
    grown = [] if options.sizes else grows(options)
    lines = bars(rows, grown)
    for line in lines:
        console.print(line, highlight=False, markup=False)
    write(tables, lines, rows, grown, options.rounds)
    draw(rows, grown)
    console.print(f"bench.md, bench.json and bench.png are in {style.FOLDER}/")


def grows(how: Any) -> list[Growth]:
    """Time against M, and against n."""
    grown = [growth("M", Case(GroupLasso(), "hinge"), MANY, how.rounds)]
    deep = tuple(n for n in DEEP if n <= 500 or not how.quick)
    for case in (Case(GroupLasso(), "hinge"), Case(LpNorm(2.0), "hinge")):
        grown.append(growth("n", case, deep, how.rounds))
    return grown


def machine() -> dict[str, str]:
    """What a benchmark ran on: processor, threads, versions."""
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = [
        line.split(":")[1].strip() for line in info.split("\n") if "model name" in line
    ]
    found = {
        "processor": model[0] if model else platform.processor() or platform.machine(),
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    for name in VERSIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


if __name__ == "__main__":
    main()
