"""What the rows of the main job come to: tallies by solver, and a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
