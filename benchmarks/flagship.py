"""What `auto` costs, and what others cost: `make bench`.

One pass-time is the time of K.reshape(M·n, n) @ α over the whole stack in full float64
storage. Ratio = wall time of `solve(problem, "auto", tol=1e-6)`, certificates included,
over one pass-time with as many threads in the same process, taken before and after;
medians. Every problem is solved with all cores, as users run it, and with one thread.
"reads" counts how often every stored number was read, without the rows of samples with
α_i = 0 where they are left out. Building the stack is shown apart. Competitors
(rivals.py) run once, in the same run, with all cores; their gap is what our certificate
finds. "× auto" is their time over that of `auto` with all cores.

Kernels are Gaussians on subsets of features. M grows by kernels of a fifth of the size
of the others, which stay out of use; n grows at M = 60. Exponents are slopes of
log time between the ends; 0.1 above the limit still passes, since times are noisy.

Written to figures-out/: bench.md, bench.json, bench.png, bench.pdf.

    python -m benchmarks flagship --quick              # n ≤ 500
    python -m benchmarks flagship --rounds 1           # one run, not the median of five
    python -m benchmarks flagship --alone              # without competitors
    python -m benchmarks flagship --sizes 1000x300     # and without growth
"""

from __future__ import annotations

import argparse
import gc
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks import harness
from benchmarks.harness import medians, pass_time, subset_gaussians, verdict
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
from mklopt.util.tables import plain_table, shown
from mklopt.util.threads import current, threads

Array = np.ndarray
TOL = 1e-6
SIZES = ((200, 10), (500, 100), (2000, 60), (1000, 300))
LARGEST = (1000, 300)  # where the limits hold; at n > 200 elsewhere twice as much
COSTS = (1.0, 100.0)
GROWING_M, GROWING_N = (100, 300, 1000, 3000), (250, 500, 1000, 2000)
FIXED_M, FIXED_N = 60, 200  # while the other one grows
LEAST_SECONDS, TIMES_AUTO = 20.0, 15.0  # an attempt of a competitor may take either
SLACK = 0.1  # of a measured exponent
OURS = {"auto": None, "auto, one thread": 1}  # and how many threads: None, all cores
SERIAL = 0.27  # the part of a solve that a second core may leave as it is
MOST_READS, SMALL = 2.5, 200
FOR_SMALL = 5  # times as many rounds for small problems: they take milliseconds


@dataclass(frozen=True)
class Case:
    """A formulation and a loss, and the most pass-times they may take."""

    formulation: Formulation
    loss: str
    most: tuple[float, float] | None = None  # with all cores, and with one thread
    bias: bool = True

    @property
    def sparse(self) -> bool:
        """Whether the formulation leaves kernels unused."""
        return "smooth_dual" not in self.formulation.traits


def cases(n: int, M: int) -> list[Case]:
    """Those with a limit, those for competitors that take factors, and two more."""
    tenths = [list(part) for part in np.array_split(np.arange(M), min(10, M))]
    found = [Case(LpNorm(p), "hinge", (5.6, 4.5)) for p in (4 / 3, 2.0, 4.0)]
    found += [Case(f, "hinge", (5.0, 4.0)) for f in (BlockL1(), GroupLasso())]
    found += [Case(GroupLasso(), l, (5.6, 4.5)) for l in ("logistic", "squared")]
    groups = (VSKL(tenths, 2.0), Composite(tenths), ElasticNet(0.5))
    found += [Case(f, "hinge", (7.5, 6.0)) for f in groups]
    if n <= 500:
        found += [Case(GroupLasso(), l, None, False) for l in ("logistic", "squared")]
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
    reads: float = math.nan  # of every stored number
    apart: float = 0.0  # factors, in pass-times
    most: float | None = None
    note: str = ""
    one: float = math.nan  # seconds of one pass with as many threads

    @property
    def what(self) -> str:
        """The problem in words."""
        bias = "" if self.bias else ", no bias"
        return f"{self.formulation}, {self.loss}, C={self.C:g}{bias}"


# ---- measuring ---------------------------------------------------------------


class Timed(NamedTuple):
    """auto's result, its median time, the pass-time beside it, and reads."""

    result: Any
    seconds: float
    one: float
    reads: float


def timed(problem: Problem, K: Array, rounds: int) -> list[Timed]:
    """auto with each number of threads of OURS, in turn."""
    found: dict[int | None, list[Any]] = {k: [] for k in OURS.values()}
    passes = problem.grams.passes

    def run(k: int | None) -> None:
        with threads(k):
            found[k].append(solve(problem, tol=TOL))

    def one_pass(k: int | None) -> float:
        with threads(k), threadpool_limits(current(), user_api="blas"):
            return pass_time(K, rounds=5)

    run(None)  # compiles, and touches the memory
    reads = (problem.grams.passes - passes) / problem.grams.full_read
    before = [one_pass(k) for k in found]
    rounds *= FOR_SMALL if problem.grams.n <= SMALL else 1
    took = medians(*(partial(run, k) for k in found), rounds=rounds)
    ones = [(a + one_pass(k)) / 2 for a, k in zip(before, found)]
    return [
        Timed(results[-1], seconds, one, reads)
        for results, seconds, one in zip(found.values(), took, ones)
    ]


def contest(
    case: Case, C: float, grams: GramStack, K: Array, y: Array, how: Any
) -> list[Row]:
    """auto and everyone who takes the problem."""
    problem = Problem(grams, y, case.loss, case.formulation, C, case.bias)
    about: dict[str, Any] = dict(
        n=grams.n, M=grams.M, formulation=shown_briefly(case.formulation),
        loss=case.loss, C=C, bias=case.bias, sparse=case.sparse,
    )  # fmt: skip
    rows: list[Row] = []
    many = timed(problem, K, how.rounds)
    for (who, k), (result, took, one, reads) in zip(OURS.items(), many):
        own = many[0].seconds
        picked = (getattr(result, "choice", "") or result.solver).split(":")[0]
        picked += "" if result.converged else f": {result.status}"
        most = limit_of(case, grams, k)
        cost: dict[str, Any] = dict(seconds=took, ratio=took / one, multiple=took / own)
        cost |= dict(gap=result.relative_gap, reads=reads, most=most, one=one)
        rows.append(Row(**about, **cost, who=who, note=picked))
    if how.alone:
        return rows
    arena = Arena(problem, K, result.certificate.dual)
    return [*rows, *competition(arena, about, rows[0].seconds, rows[0].one)]


def limit_of(case: Case, grams: GramStack, k: int | None) -> float | None:
    """The most pass-times; twice as many at sizes other than the largest."""
    if case.most is None or grams.n <= 200:
        return None
    times = 1 if (grams.n, grams.M) == LARGEST else 2
    return times * case.most[0 if k is None else 1]


def competition(
    arena: Arena, about: dict[str, Any], own: float, one: float
) -> Iterable[Row]:
    """A row for each competitor that takes the problem."""
    limit = max(LEAST_SECONDS, TIMES_AUTO * own)
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
    """A formulation without its groups."""
    return shown(formulation).replace("groups=…, ", "").replace("()", "")


def at_size(n: int, M: int, how: Any, console: Console) -> tuple[list[Row], str]:
    """All cases of one size; one stack in memory at a time."""
    K, y = subset_gaussians(n, M)
    GramStack(K)  # touch the memory once
    grams, build = harness.timed(partial(GramStack, K))
    one = pass_time(K, rounds=5)
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
        """The slope of log time between the ends."""
        (a, *_, b), (s, *_, t) = self.sizes, self.seconds
        return math.log(t / s) / math.log(b / a)


def more_kernels(n: int, first: int, M: int) -> tuple[Array, Array]:
    """The first kernels, and others a fifth of their size that nobody will use."""
    K, _ = subset_gaussians(n, M)
    K[first:] *= 0.2
    return K, subset_gaussians(n, first)[1]  # the same labels for every M


STACKS: dict[str, Callable[[int, int], tuple[Array, Array]]] = {
    "M": lambda M, first: more_kernels(FIXED_N, first, M),
    "n": lambda n, first: subset_gaussians(n, FIXED_M),
}


def growth(axis: str, case: Case, sizes: tuple[int, ...], rounds: int) -> Growth:
    """Times of auto along one axis."""
    seconds, active = [], []
    for size in sizes:
        K, y = STACKS[axis](size, sizes[0])
        problem = Problem(GramStack(K), y, case.loss, case.formulation)
        result, took, *_ = timed(problem, K, rounds)[0]
        seconds.append(took)
        active.append(int(np.sum(result.certificate.norms > 1e-6)))
        del K, problem, result
        gc.collect()
    what = f"{shown_briefly(case.formulation)}, {case.loss}"
    return Growth(axis, what, sizes, tuple(seconds), tuple(active))


# ---- requirements ------------------------------------------------------------


def requirements(rows: list[Row], grown: list[Growth]) -> list[str]:
    """One line for each thing that is required: pass or FAIL."""
    found = [*ratio_lines(rows), *core_lines(rows), *read_lines(rows)]
    return [*found, *rival_lines(rows), *growth_lines(grown)]


def ratio_lines(rows: list[Row]) -> list[str]:
    """auto takes at most so many pass-times."""
    found = []
    for row in rows:
        if row.most is not None:
            good = row.ratio <= row.most and row.gap <= TOL * (1 + 1e-6)
            where = f"n={row.n}, M={row.M}: {row.what}, {row.who}"
            cost = f"ratio {row.ratio:.1f} ≤ {row.most:g} at gap {row.gap:.0e}"
            found.append(verdict(good, f"{where}: {cost}"))
    return found


def core_lines(rows: list[Row]) -> list[str]:
    """All cores against one thread: what is serial and what is not, at a pass's gain.

    Everywhere else, too, more cores are never slower than one by more than 5 %.
    """
    found = []
    for many, one in pairwise(rows):
        if (many.who, one.who) != tuple(OURS):
            continue
        gain = one.one / many.one
        large = (many.n, many.M) == LARGEST and many.most is not None
        most = SERIAL + (1 - SERIAL) / max(gain, 1.0) if large else 1.05
        share = many.seconds / one.seconds
        line = f"n={many.n}, M={many.M}: {many.what}: all cores take {share:.2f} of one"
        found.append(verdict(share <= most, f"{line}, at most {most:.2f}"))
    return found


def read_lines(rows: list[Row]) -> list[str]:
    """Sparse formulations read the stack at most so many times."""
    mine = [r for r in rows if r.sparse and r.who == "auto" and r.most is not None]
    large = [r for r in mine if (r.n, r.M) == LARGEST]
    return [
        harness.at_most(f"n={r.n}, M={r.M}: {r.what}: reads", r.reads, MOST_READS)
        for r in large
    ]


def rival_lines(rows: list[Row]) -> list[str]:
    """Sparse: 10 times faster than all that reach 1e-3; dense: twice as fast as SVC.

    Small problems, n ≤ 200: no slower than SVC on any formulation.
    """
    there = [r for r in rows if r.who not in OURS and r.gap <= GOOD]
    small = [r for r in there if r.n <= SMALL and r.who == "SVC analytic"]
    there = [r for r in there if r.n > SMALL]
    sparse = [r for r in there if r.sparse]
    dense = [r for r in there if not r.sparse and r.who == "SVC analytic"]
    found = []
    for name, arrived, least in (
        ("sparse: nearest competitor at 1e-3", sparse, 10.0),
        ("dense ℓp: SVC analytic at 1e-3", dense, 2.0),
        ("small: SVC analytic at 1e-3", small, 1.0),
    ):
        for size in dict.fromkeys((r.n, r.M) for r in arrived):
            near = min(
                (r for r in arrived if (r.n, r.M) == size), key=lambda r: r.multiple
            )
            line = f"{name} takes {near.multiple:.1f} ≥ {least:g} × the time of auto"
            place = f"n={near.n}, M={near.M}: {near.what}, {near.who}"
            found.append(verdict(near.multiple >= least, f"{line} ({place})"))
    return found


def growth_lines(grown: list[Growth]) -> list[str]:
    """Time grows at most like M, and like n²."""
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
    """One line for each solver on each problem."""
    numbers = ("ratio", "× auto", "reads", "gap", "factors")
    out = plain_table(title, ("problem", "solver"), numbers)
    out.add_column("", no_wrap=False)
    what = ""
    for row in rows:
        ours = row.who in OURS
        late = ">" if math.isinf(row.gap) and not math.isnan(row.ratio) else ""
        limit = f" (≤ {row.most:g})" if row.most is not None else ""
        out.add_row(
            "" if row.what == what else row.what,
            row.who,
            late + number(row.ratio) + limit,
            "" if ours else late + number(row.multiple),
            number(row.reads),
            "" if not math.isfinite(row.gap) else f"{row.gap:.0e}",
            number(row.apart) if row.apart else "",
            row.note,
        )
        what = row.what
    return out


def number(x: float) -> str:
    """Short, and empty where there is none."""
    return "" if math.isnan(x) else f"{x:.1f}" if x < 100 else f"{x:.0f}"


@style.styled
def draw(rows: list[Row], grown: list[Growth]) -> list:
    """Ratios, competitors, and growth along both axes."""
    figure, axes = style.panels(4, height=3.4)
    draw_ratios(axes[0], [r for r in rows if r.who == "auto"])
    draw_rivals(axes[1], [r for r in rows if r.who not in OURS and r.gap < 1])
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
    """Pass-times of auto, and the limits."""
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
    """Gap and time of every competitor."""
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
    """A legend above the axis."""
    where = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    axis.legend(frameon=False, fontsize=7, ncols=3, **where)


def save_json(
    rows: list[Row], grown: list[Growth], lines: list[str], rounds: int
) -> None:
    """bench.json, for programs."""
    found = {
        "machine": harness.machine(),
        "rounds": rounds,
        "rows": [finite(asdict(row)) for row in rows],
        "growth": [asdict(g) | {"exponent": g.exponent} for g in grown],
        "requirements": lines,
    }
    harness.write("bench.json", json.dumps(found, indent=1, allow_nan=False))


def finite(row: dict[str, Any]) -> dict[str, Any]:
    """Null for NaN and infinity, which JSON does not know."""
    lost = {k for k, v in row.items() if isinstance(v, float) and not math.isfinite(v)}
    return row | dict.fromkeys(lost)


def a_size(text: str) -> tuple[int, int]:
    """n and M from a word such as 1000x300."""
    n, _, M = text.partition("x")
    if not (n.isdigit() and M.isdigit() and int(n) > 1 and int(M) > 0):
        raise argparse.ArgumentTypeError(f"{text} is not a size such as 1000x300")
    return int(n), int(M)


def main() -> None:
    """All sizes, then growth; tables, requirements and figures."""
    parser = harness.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="n ≤ 500 only")
    parser.add_argument("--alone", action="store_true", help="without competitors")
    parser.add_argument(
        "--sizes", type=a_size, nargs="+", help="n x M, such as 500x100"
    )
    parser.add_argument("--rounds", type=harness.positive, default=5)
    options = parser.parse_args()
    console = harness.console(140)
    rows: list[Row] = []
    tables: list[Table] = []
    sizes = options.sizes or [s for s in SIZES if s[0] <= 500 or not options.quick]
    for n, M in sizes:
        found, head = at_size(n, M, options, console)
        rows += found
        tables.append(table(found, head))
        console.print(tables[-1])
        gc.collect()
    grown = [] if options.sizes else grows(options)
    lines = requirements(rows, grown)
    for line in lines:
        console.print(line, markup=False)
    harness.save("bench", __doc__, tables, lines, rounds=options.rounds)
    save_json(rows, grown, lines, options.rounds)
    draw(rows, grown)
    console.print(f"bench.md, bench.json and bench.png are in {style.FOLDER}/")


def grows(how: Any) -> list[Growth]:
    """Time against M, and against n."""
    grown = [growth("M", Case(GroupLasso(), "hinge"), GROWING_M, how.rounds)]
    deep = tuple(n for n in GROWING_N if n <= 500 or not how.quick)
    for case in (Case(GroupLasso(), "hinge"), Case(LpNorm(2.0), "hinge")):
        grown.append(growth("n", case, deep, how.rounds))
    return grown


if __name__ == "__main__":
    main()
