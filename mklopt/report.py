"""Tables for people: the main job and the list of rooms."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

from .reference.contract import Cell

VERSIONS = (
    "mklopt", "numpy", "scipy", "numba", "scikit-learn", "cvxpy", "clarabel", "ecos",
    "scs", "skglm", "celer", "MKLpy",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One formulation × loss, solved and checked."""

    formulation: str
    loss: str
    lower: float
    upper: float
    gap: float  # relative width of the enclosure
    duality: float  # |derived dual − interval|, relative
    solver: str
    seconds: float
    theorem: bool

    def passed(self, tol: float) -> bool:
        return 0 <= self.gap <= tol and self.duality <= tol


def check(cell: Cell) -> Row:
    """Primal program, derived dual program, and the interval that judges both."""
    from . import reference

    problem = cell.problem()
    start = time.perf_counter()
    found = reference.solve(problem)
    derived = reference.solve_dual(problem)
    below, above = found.lower - derived.value, derived.value - found.upper
    return Row(
        formulation=shown(cell.formulation),
        loss=shown(cell.loss, cell.loss.name),
        lower=found.lower,
        upper=found.upper,
        gap=found.relative_gap,
        duality=max(below, above, 0.0) / abs(found.upper),
        solver=found.solver,
        seconds=time.perf_counter() - start,
        theorem=not found.certificate.assumptions,
    )


def shown(part: object, name: str = "") -> str:
    """A formulation or loss with its parameters, short enough for a table."""

    def short(value: object) -> str:
        if isinstance(value, float):
            return f"{value:.4g}"
        text = str(value).replace(" ", "")
        return text if len(text) <= 12 else "…"

    pairs = [f"{f.name}={short(getattr(part, f.name))}" for f in fields(part)]  # type: ignore[arg-type]
    return f"{name or type(part).__name__}({', '.join(pairs)})"


def certify_everything(
    jobs: int,
    losses: Iterable[str] = (),
    kinds: Iterable[str] = (),
    tol: float = 1e-8,
    console: Console | None = None,
) -> bool:
    """Run the main job; print the table; True when every cell holds."""
    from joblib import Parallel, delayed

    from .reference.contract import small_cells

    console = console or Console()
    losses, kinds = set(losses), set(kinds)
    todo = [
        cell
        for cell in small_cells()
        if (not losses or cell.loss.name in losses)
        and (not kinds or type(cell.formulation).__name__ in kinds)
    ]
    console.print(
        f"{len(todo)} pairs of loss and formulation, n = 40, M = 6: primal against the "
        "dual derived from the declarations"
    )
    rows = []
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress("certify", *columns, console=console) as progress:
        task = progress.add_task("certify", total=len(todo))
        pool = Parallel(n_jobs=jobs, return_as="generator")
        for row in pool(delayed(check)(cell) for cell in todo):
            rows.append(row)
            progress.advance(task)
    console.print(table(rows, tol))
    failed = [row for row in rows if not row.passed(tol)]
    theorems = sum(row.theorem for row in rows)
    console.print(
        f"{len(rows) - len(failed)} of {len(rows)} hold to {tol:g}; "
        f"{theorems} intervals are theorems; worst gap {max(r.gap for r in rows):.1e}, "
        f"worst distance of the derived dual {max(r.duality for r in rows):.1e}"
    )
    return not failed


def table(rows: list[Row], tol: float) -> Table:
    found = Table(
        title="gap: width of the interval around f*; dual off: derived dual from it",
        title_justify="left",
        box=SIMPLE,
        pad_edge=False,
    )
    found.add_column("", no_wrap=True, min_width=5)
    found.add_column("loss, formulation", no_wrap=True)
    for name, width in (("f* ≥", 9), ("gap", 7), ("dual off", 8), ("s", 4)):
        found.add_column(name, justify="right", no_wrap=True, min_width=width)
    for loss, group in groupby(rows, key=lambda row: row.loss):
        found.add_section()
        found.add_row("", f"[bold]{escape(loss)}[/]")
        for row in group:
            found.add_row(
                "[green]holds[/]" if row.passed(tol) else "[bold red]FAILS[/]",
                f"  {row.formulation}",
                f"{row.lower:.6g}",
                f"{row.gap:.1e}",
                f"{row.duality:.1e}",
                f"{row.seconds:.1f}",
            )
    return found


def plain_table(title: str, words: Iterable[str], numbers: Iterable[str]) -> Table:
    """An empty table: columns of words to the left, of numbers to the right."""
    found = Table(title=title, title_justify="left", box=SIMPLE)
    for name in words:
        found.add_column(name, no_wrap=True)
    for name in numbers:
        found.add_column(name, justify="right", no_wrap=True)
    return found


def markdown(table: Table) -> str:
    """A table as it is written in Markdown."""
    columns = [
        [str(column.header), *map(str, column.cells)] for column in table.columns
    ]
    lines = [f"| {' | '.join(row)} |" for row in zip(*columns, strict=True)]
    marks = ["--:" if c.justify == "right" else "---" for c in table.columns]
    lines.insert(1, f"|{'|'.join(marks)}|")
    return "\n".join(lines)


def machine() -> dict[str, str]:
    """What a benchmark ran on: processor, threads, versions."""
    import os
    import platform
    from importlib import metadata

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


def _children(root: type) -> dict[str, type]:
    known: list[type] = root.__subclasses__()
    return {c.__name__: c for c in known if c.__module__.startswith("mklopt.")}


def print_rooms(console: Console | None = None) -> None:
    """Everything that is found by scanning, with the first line of its docstring."""
    from .families import KernelFamily
    from .formulations import formulations, losses_by_name
    from .regularizers import Regularizer
    from .solvers import solvers

    console = console or Console()
    homes = {name: sys.modules[s.steps.__module__] for name, s in solvers().items()}
    for title, known in (
        ("formulations", formulations()),
        ("losses", losses_by_name()),
        ("solvers", homes),
        ("kernel families", _children(KernelFamily)),
        ("their regularizers", _children(Regularizer)),
    ):
        found = Table(title=title, title_justify="left", show_header=False, box=None)
        for name, item in known.items():
            first = (item.__doc__ or "").strip().split("\n")[0]
            found.add_row(f"[bold]{name}[/]", escape(first))
        console.print(found)
        console.print()
