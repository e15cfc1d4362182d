"""The main job on a terminal: a bar, the newest runs, one line per solver.

Failures are printed as they come; where there is no terminal, they are all there is
before the table at the end.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from .ledger import Row
from .summary import Tally, number, tallies
from .tables import mark, plain_table

NEWEST = 5


def watch(
    rows: Iterable[Row], finished: list[Row], total: int, console: Console
) -> None:
    """Show rows as they come, on top of those that were there before."""
    bar = Progress(
        TextColumn("certify"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    )
    task = bar.add_task("certify", total=total, completed=len(finished))
    found = list(finished)
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        for row in rows:
            found.append(row)
            if not row.holds:
                live.console.print(failure(row))
            bar.advance(task)
            if console.is_terminal:
                live.update(Group(bar, newest(found), table(tallies(found))))


def table(tallied: list[Tally]) -> Table:
    """One line per solver."""
    names = ("holds", "fails", "worst gap", "promised", "weights off", "seconds")
    found = plain_table("", ("solver",), names)
    for t in tallied:
        fails = f"[bold red]{t.fails}[/]" if t.fails else "0"
        worst = map(number, (t.gap, t.tol, t.weight_error))
        found.add_row(t.solver, str(t.holds), fails, *worst, f"{t.seconds:.1f}")
    return found


def newest(rows: list[Row]) -> Table:
    found = Table(box=None, show_header=False, pad_edge=False)
    for row in rows[-NEWEST:]:
        what = f"{row.loss}, {row.formulation}, C={row.C:g}, {row.data}"
        found.add_row(
            mark(row.holds), row.solver, escape(what), f"gap {number(row.gap)}"
        )
    return found


def failure(row: Row) -> str:
    return (
        f"[bold red]FAILS[/] {row.solver} on {escape(row.cell)}: {escape(row.reason)}"
    )
