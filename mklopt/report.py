"""What people see: the main job from beginning to end, and the list of rooms."""

from __future__ import annotations

import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from .files import write_whole

if TYPE_CHECKING:
    from .certification import Certification


def certify_everything(
    job: Certification, jobs: int, backend: str, console: Console | None = None
) -> bool:
    """Run what is left of the main job and write its report; True when all holds."""
    from .live import table, watch
    from .summary import outcome, tallies

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


def write_report(job: Certification) -> None:
    """summary.md and report.html of what is finished."""
    from .certification import fingerprint
    from .html_report import html
    from .summary import markdown

    packages = ("mklopt", "numpy", "numba", "cvxpy")
    about = {
        "scope": "quick: a covering slice" if job.choice.quick else "full",
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "code": fingerprint(),
        "with": ", ".join(f"{name} {version(name)}" for name in packages),
        "on": f"Python {platform.python_version()}, {platform.machine()}",
        "time limit": f"{job.choice.limit:g} s of a processor for a run",
    }
    parts = (job.rows, len(job.runs), about)
    write_whole(job.folder / "summary.md", markdown(*parts).encode())
    write_whole(job.folder / "report.html", html(*parts).encode())


def recompute_everything(
    folder: Path, files: tuple[str, ...], console: Console | None = None
) -> bool:
    """Compute the numbers of a folder again; True when all are what they were."""
    from rich.progress import track

    from .recompute import Audit

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
