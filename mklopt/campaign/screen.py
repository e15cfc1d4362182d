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
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn, track
from rich.table import Table

from ..util.tables import headless_table, mark
from .audit import Audit
from .job import Campaign
from .ledger import Row
from .report import number, outcome, tally_table, write_report

AGAIN = "the same command goes on from here"
NEWEST = 5  # runs shown while others go on
COLUMNS = ("holds", "fails", "worst gap", "promised", "seconds")


def certify_everything(
    job: Campaign, jobs: int, backend: str, console: Console | None = None
) -> bool:
    """Run what is left of the main job and write its report; True when all holds."""
    console = console or Console()
    console.print(_beginning(job))
    try:
        watch(job.run(jobs, backend), job.rows, len(job.runs), console)
    except KeyboardInterrupt:
        console.print(f"[bold]interrupted[/]: {AGAIN}")
    except OSError as error:  # of the disk or of a worker
        console.print(f"[bold red]stopped[/]: {escape(str(error))}; {AGAIN}")
    for what in job.not_judged:
        console.print(f"[bold]not judged[/]: {escape(what)}; {AGAIN}")
    rows, planned = job.rows, len(job.runs)
    write_report(job)
    console.print(tally_table(rows, COLUMNS))
    console.print(outcome(rows, planned))
    console.print(f"report: {escape(str(job.folder / 'report.html'))}")
    return len(rows) == planned and all(row.holds for row in rows)


def _beginning(job: Campaign) -> str:
    problems = len({run.cell.name for run in job.runs})
    solvers = len({run.solver for run in job.runs})
    said = f"{len(job.runs)} runs: {solvers} solvers on {problems} problems"
    done = len(job.runs) - len(job.todo)
    if done:
        said += f"; {done} of them are done already"
    return said + (" (a torn last row is run again)" if job.ledger.torn else "")


def watch(
    rows: Iterable[Row], finished: list[Row], total: int, console: Console
) -> None:
    """Show rows as they come, on top of those that were there before."""
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    bar = Progress(*columns, TimeElapsedColumn(), console=console)
    task = bar.add_task("certify", total=total, completed=len(finished))
    found = list(finished)
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        for row in rows:
            found.append(row)
            if not row.holds:
                what = f"{row.solver} on {row.cell}: {row.reason}"
                live.console.print(f"[bold red]FAILS[/] {escape(what)}")
            bar.advance(task)
            if console.is_terminal:
                live.update(Group(bar, newest(found), tally_table(found, COLUMNS)))


def newest(rows: list[Row]) -> Table:
    """The runs that ended last."""
    found = headless_table("")
    for row in rows[-NEWEST:]:
        what = f"{row.loss}, {row.formulation}, C={row.C:g}, {row.data}"
        gap = f"gap {number(row.gap)}"
        found.add_row(mark(row.holds), row.solver, escape(what), gap)
    return found


def recompute_everything(
    folder: Path, files: tuple[str, ...], console: Console | None = None
) -> bool:
    """Compute the numbers of a folder again; True when all are what they were."""
    console, audit = console or Console(), Audit(folder, files)
    wrong, count, quiet = 0, len(audit.rows), not console.is_terminal
    complaints = audit.complaints()
    for found in track(complaints, "verify", count, console=console, disable=quiet):
        wrong += bool(found)
        for complaint in found:
            console.print(f"[bold red]refused[/]: {escape(complaint)}")
    proved = sum(bool(row.certificate) for row in audit.rows)
    said = f"{count - wrong} of {count} rows are what their points say"
    said += f"; {proved} certificates were checked in exact arithmetic"
    if audit.other:
        said += f"; {audit.other} rows are of other code and were left out"
    console.print(f"{said}.")
    return wrong == 0
