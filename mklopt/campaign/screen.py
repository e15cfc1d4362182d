"""The main job on a terminal: a bar, the newest runs, one line per solver.

Failures are printed as they come; where there is no terminal, they are all there is
before the table at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

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

from ..util.tables import mark, plain_table
from .audit import Audit
from .job import Certification
from .ledger import Row
from .report import Tally, number, outcome, tallies, write_report

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


def certify_everything(
    job: Certification, jobs: int, backend: str, console: Console | None = None
) -> bool:
    """Run what is left of the main job and write its report; True when all holds."""
    console = console or Console()
    console.print(_beginning(job))
    try:
        watch(job.run(jobs, backend), job.rows, len(job.runs), console)
    except KeyboardInterrupt:
        console.print("[bold]interrupted[/]: the same command goes on from here")
    rows, planned = job.rows, len(job.runs)
    write_report(job)
    console.print(table(tallies(rows)))
    console.print(outcome(rows, planned))
    console.print(f"report: {escape(str(job.folder / 'report.html'))}")
    return len(rows) == planned and all(row.holds for row in rows)


def _beginning(job: Certification) -> str:
    problems = len({run.cell.name for run in job.runs})
    solvers = len({run.solver for run in job.runs})
    said = f"{len(job.runs)} runs: {solvers} solvers on {problems} problems"
    done = len(job.runs) - len(job.todo)
    if done:
        said += f"; {done} of them are done already"
    return said + (" (a torn last row is run again)" if job.ledger.torn else "")


def recompute_everything(
    folder: Path, files: tuple[str, ...], console: Console | None = None
) -> bool:
    """Compute the numbers of a folder again; True when all are what they were."""
    from rich.progress import track

    console, job = console or Console(), Audit(folder, files)
    rows = track(
        job.complaints(), "verify", len(job.rows), console=console, transient=True,
        disable=not console.is_terminal,
    )  # fmt: skip
    wrong = 0
    for found in rows:
        wrong += bool(found)
        for complaint in found:
            console.print(f"[bold red]refused[/]: {escape(complaint)}")
    proved = sum(bool(row.certificate) for row in job.rows)
    said = f"{len(job.rows) - wrong} of {len(job.rows)} rows are what their points say"
    said += f"; {proved} certificates were checked in exact arithmetic"
    if job.other:
        said += f"; {job.other} rows are of other code and were left out"
    console.print(said + ".")
    return wrong == 0
