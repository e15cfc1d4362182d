"""Where the report is written: tallies by solver, summary.md and report.html.

report.html is one page that needs nothing else: no network, no other file. The rows are
put into it as JSON; the page sorts, filters and draws them (templates/report.html).
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.resources import files

from ..util.files import write_whole
from .fingerprint import fingerprint
from .job import Certification
from .ledger import Row


@dataclass(frozen=True)
class Tally:
    """The rows of one solver."""

    solver: str
    holds: int
    fails: int
    gap: float | None  # the worst
    tol: float  # the weakest promise
    weight_error: float | None
    seconds: float
    longest: float
    certificates: int


def tallies(rows: Iterable[Row]) -> list[Tally]:
    by_solver: dict[str, list[Row]] = {}
    for row in rows:
        by_solver.setdefault(row.solver, []).append(row)
    return [_tally(name, by_solver[name]) for name in sorted(by_solver)]


def _tally(solver: str, rows: list[Row]) -> Tally:
    holds = sum(row.holds for row in rows)
    seconds = [row.seconds or 0.0 for row in rows]
    return Tally(
        solver,
        holds,
        len(rows) - holds,
        _worst(row.gap for row in rows),
        max(row.tol for row in rows),
        _worst(row.weight_error for row in rows),
        sum(seconds),
        max(seconds),
        sum(bool(row.certificate) for row in rows),
    )


def _worst(values: Iterable[float | None]) -> float | None:
    return max((v for v in values if v is not None), default=None)


def number(value: float | None) -> str:
    """A measured number as tables show it."""
    return "–" if value is None else f"{value:.1e}" if value else "0"


def outcome(rows: list[Row], planned: int) -> str:
    """All in one sentence."""
    fails = sum(not row.holds for row in rows)
    theorems = sum(row.theorem for row in rows)
    said = f"{len(rows) - fails} of {len(rows)} verdicts hold"
    said += f"; {theorems} intervals are theorems"
    if planned > len(rows):
        said += f"; {planned - len(rows)} runs are still to be done"
    return said + "."


def markdown(rows: list[Row], planned: int, about: dict[str, str]) -> str:
    """The summary: tallies, then every failure with its reason."""
    lines = ["# mklopt certify", "", outcome(rows, planned), ""]
    lines += [f"* {name}: {value}" for name, value in about.items()]
    lines += ["", *_table_of(tallies(rows)), "", "## Verdicts that fail", ""]
    failed = [row for row in rows if not row.holds]
    lines += [
        f"* **{row.solver}** on `{row.cell}`: {_inline(row.reason)}" for row in failed
    ]
    lines += [] if failed else ["None."]
    lines += ["", "Every run with its curve is in `report.html`, every row in"]
    lines += ["`rows.jsonl`. A file in `certificates/` is checked, apart from all"]
    lines += ["solvers, with `mklopt verify FILE`; with `mklopt verify FOLDER` every"]
    lines += ["number is computed again from the points in `points/`.", ""]
    return "\n".join(lines)


def _table_of(found: list[Tally]) -> list[str]:
    names = [
        *("solver", "holds", "fails", "worst gap", "weakest promise"),
        *("worst weight error", "seconds", "longest", "certificates"),
    ]
    lines = ["| " + " | ".join(names) + " |", "|---|" + "---:|" * (len(names) - 1)]
    for t in found:
        worst = (number(t.gap), number(t.tol), number(t.weight_error))
        spent = (f"{t.seconds:.1f}", f"{t.longest:.1f}", t.certificates)
        parts = (t.solver, t.holds, t.fails, *worst, *spent)
        lines.append("| " + " | ".join(map(str, parts)) + " |")
    return lines


def _inline(text: str) -> str:
    """One line that Markdown takes as plain words."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


LEFT_OUT = ("code",)  # the same in every row


def html(rows: list[Row], planned: int, about: dict[str, str]) -> str:
    """The page with these rows."""
    content = {
        "about": about,
        "planned": planned,
        "rows": [
            {k: v for k, v in asdict(row).items() if k not in LEFT_OUT} for row in rows
        ],
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    # A "</script>" or "<!--" inside a row must not end the element that holds it.
    safe = text.replace("<", "\\u003c").replace("\u2028", "\\u2028")
    page = files(__package__).joinpath("templates/report.html")
    return page.read_text(encoding="utf-8").replace("@CONTENT@", safe)


def write_report(job: Certification) -> None:
    """summary.md and report.html of what is finished."""
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
