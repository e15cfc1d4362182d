"""Where the report is written: tallies by solver, summary.md and report.html.

report.html is one page that needs nothing else: no network, no other file. The rows are
put into it as JSON; the page sorts, filters and draws them (templates/report.html).
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib.metadata import version
from importlib.resources import files

from rich.table import Table

from ..util.files import write_whole
from ..util.tables import markdown, plain_table
from .fingerprint import fingerprint
from .job import Campaign
from .ledger import Row

SAME_IN_ALL = ("code",)  # columns that the page does not need in every row
MORE = """
Every run with its curve is in `report.html`, every row in `rows.jsonl`. `mklopt verify
FILE` checks a file in `certificates/` without any solver; `mklopt verify FOLDER`
computes every number again from the points in `points/`.
"""


def number(value: float | None) -> str:
    """A measured number as tables show it."""
    return "–" if value is None else f"{value:.1e}" if value else "0"


def _worst(values: Iterable[float | None]) -> str:
    return number(max((v for v in values if v is not None), default=None))


def _seconds(rows: list[Row]) -> list[float]:
    return [row.seconds or 0.0 for row in rows]


TALLIES: dict[str, Callable[[list[Row]], str]] = {
    "holds": lambda rows: str(sum(row.holds for row in rows)),
    "fails": lambda rows: str(sum(not row.holds for row in rows)),
    "worst gap": lambda rows: _worst(row.gap for row in rows),
    "promised": lambda rows: _worst(row.tol for row in rows),
    "seconds": lambda rows: f"{sum(_seconds(rows)):.1f}",
    "longest": lambda rows: f"{max(_seconds(rows)):.1f}",
    "certificates": lambda rows: str(sum(bool(row.certificate) for row in rows)),
}


def tally_table(rows: Iterable[Row], columns: Iterable[str] = tuple(TALLIES)) -> Table:
    """One line per solver; red where a verdict fails."""
    by_solver: dict[str, list[Row]] = {}
    for row in rows:
        by_solver.setdefault(row.solver, []).append(row)
    table = plain_table("", ("solver",), columns)
    for solver, mine in sorted(by_solver.items()):
        style = None if all(row.holds for row in mine) else "bold red"
        table.add_row(solver, *(TALLIES[name](mine) for name in columns), style=style)
    return table


def outcome(rows: list[Row], planned: int) -> str:
    """All in one sentence."""
    holds = sum(row.holds for row in rows)
    theorems = sum(row.theorem for row in rows)
    said = f"{holds} of {len(rows)} verdicts hold; {theorems} intervals are theorems"
    if planned > len(rows):
        said += f"; {planned - len(rows)} runs are still to be done"
    return said + "."


def summary(rows: list[Row], planned: int, about: dict[str, str]) -> str:
    """The summary in Markdown: tallies, then every failure with its reason."""
    failed = [
        f"* **{row.solver}** on `{row.cell}`: {_inline(row.reason)}"
        for row in rows
        if not row.holds
    ]
    lines = ["# mklopt certify", "", outcome(rows, planned), ""]
    lines += [f"* {name}: {value}" for name, value in about.items()]
    lines += ["", markdown(tally_table(rows)), "", "## Verdicts that fail", ""]
    return "\n".join([*lines, *(failed or ["None."]), MORE])


def _inline(text: str) -> str:
    """One line that Markdown takes as plain words."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def html(rows: list[Row], planned: int, about: dict[str, str]) -> str:
    """The page with these rows."""
    shown = [
        {k: v for k, v in asdict(row).items() if k not in SAME_IN_ALL} for row in rows
    ]
    content = {"about": about, "planned": planned, "rows": shown}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    # A "</script>" or "<!--" inside a row must not end the element that holds it.
    safe = text.replace("<", "\\u003c").replace("\u2028", "\\u2028")
    page = files(__package__).joinpath("templates/report.html")
    return page.read_text(encoding="utf-8").replace("@CONTENT@", safe)


def write_report(job: Campaign) -> None:
    """Write summary.md and report.html of what is finished."""
    packages = ("mklopt", "numpy", "numba", "cvxpy")
    about = {
        "scope": "quick: a covering slice" if job.selection.quick else "full",
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "code": fingerprint(),
        "with": ", ".join(f"{name} {version(name)}" for name in packages),
        "on": f"Python {platform.python_version()}, {platform.machine()}",
        "time limit": f"{job.selection.limit:g} s of a processor for a run",
    }
    parts = (job.rows, len(job.runs), about)
    write_whole(job.folder / "summary.md", summary(*parts).encode())
    write_whole(job.folder / "report.html", html(*parts).encode())
