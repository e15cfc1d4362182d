"""Static pages: the index, one page for each problem, and the leaderboard."""

from __future__ import annotations

import os
from collections.abc import Iterable
from html import escape
from pathlib import Path

from ..util.files import write_whole
from ..util.tables import facts, html
from .declarations import INSTANCES
from .stored_records import records
from .tables import facts_of, leaderboard, overview, times

TEMPLATE = Path(__file__).parent / "page.html"
RULES = (
    "Every number was certified by mklopt, outside of the clock for solvers of other "
    "people. They have the time of the first attempt, from loose to tight tolerances, "
    "that reached the gap; ours the time until an iterate reached it, certificates "
    "included. One thread, compilation is not timed. An empty cell: it did not get "
    "there. A solver is listed with the problems that it takes and was given (ECOS, "
    "SCS, SVC SILP and proximal_newton: not all of them). A ratio is its time to 1e-6 "
    "over that of the fastest solver on the same problem; it is infinite where it did "
    "not get there."
)


def write_pages(folder: str | os.PathLike) -> list[str]:
    """Write all pages; the names of the files."""
    pages = {"index.html": _index(), "leaderboard.html": _leaderboard()}
    pages |= {f"{name}.html": _page(name) for name in INSTANCES}
    for name, text in pages.items():
        write_whole(Path(folder) / name, text.encode())
    return sorted(pages)


def _whole(title: str, *parts: str) -> str:
    text = TEMPLATE.read_text(encoding="utf-8")
    body = "\n".join([f"<h1>{escape(title)}</h1>", *parts])
    return text.replace("[[title]]", escape(title)).replace("[[body]]", body)


def _paragraphs(*texts: str) -> str:
    return "\n".join(f"<p>{escape(text)}</p>" for text in texts)


def _index() -> str:
    table = html(overview(INSTANCES))
    for name in INSTANCES:
        cell = f">{escape(name)}<"
        table = table.replace(cell, f'><a href="{name}.html">{escape(name)}</a><', 1)
    solved = len(records())
    about = (
        f"{len(INSTANCES)} problems of multiple kernel learning, {solved} of them with "
        "an interval around f* that is proved. Write one as text: mklopt library get "
        "NAME. Judge a solution: mklopt library submit FILE. Check all proofs: mklopt "
        "library check."
    )
    return _whole("Solved problems", _paragraphs(about), table)


def _page(name: str) -> str:
    parts = [_paragraphs(INSTANCES[name].about), facts(facts_of(name))]
    files = f"The problem as text: mklopt library get {name}."
    known = records().get(name)
    if known is not None:
        files += f" The certificate file: mklopt library get {name} --certificate."
    parts.append(_paragraphs(files))
    if known is not None and known.runs:
        parts += ["<h2>Solvers</h2>", html(times(name), *_processors([name]))]
    return _whole(name, *parts)


def _leaderboard() -> str:
    table = html(leaderboard(), RULES, *_processors(INSTANCES))
    return _whole("Leaderboard", table)


def _processors(names: Iterable[str]) -> list[str]:
    """On what processors the times were measured, in a sentence."""
    known = [records()[name] for name in names if name in records()]
    found = {run.cpu for record in known for run in record.runs.values() if run.cpu}
    return [f"Processor: {'; '.join(sorted(found))}."] if found else []
