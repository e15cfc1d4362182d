"""The page of a paper: README.md with the ledger of claims, the figures, the tables.

Beside it, in results/: ledger.json and ledger.tex, figures as PNG and PDF, the data
behind every curve as CSV, tables as CSV and LaTeX.
"""

import json
import platform
import re
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from ..util.files import write_whole
from ..util.tables import latex, markdown, plain_table
from .items import Claim, Item, Outcome, Paper, Scale, csv

PACKAGES = ("mklopt", "numpy", "scipy", "numba", "cvxpy", "scikit-learn")
Outcomes = dict[str, Outcome]
Entries = list[dict[str, Any]]  # of the ledger: one per claim


def write_page(paper: Paper, outcomes: Outcomes, scale: Scale, home: Path) -> Path:
    """Write results and page of a paper; returns the path of the page."""
    results = home / paper.key / "results"
    _copy_data(paper, scale, results / "data")
    entries = [_entry(item, outcomes[name]) for name, item in paper.claims.items()]
    ledger = {"paper": paper.key, **about(scale), "claims": entries}
    text = json.dumps(ledger, ensure_ascii=False, indent=1)
    write_whole(results / "ledger.json", text.encode() + b"\n")
    write_whole(results / "ledger.tex", latex(_short(entries)).encode())
    page = home / paper.key / "README.md"
    write_whole(page, _page(paper, entries, outcomes, scale, results).encode())
    return page


def about(scale: Scale) -> dict[str, Any]:
    """What a run depended on."""
    return {
        "mode": scale.mode,
        "seed": scale.seed,
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
    }


def write_sheet(rows: pd.DataFrame, target: Path) -> None:
    """A table as CSV and LaTeX."""
    write_whole(target.with_suffix(".csv"), csv(rows).encode())
    write_whole(target.with_suffix(".tex"), latex(_rich(rows)).encode())


def _rich(rows: pd.DataFrame) -> Any:
    numbers = set(rows.select_dtypes("number").columns)
    table = plain_table("", (), ())
    for name in rows.columns:
        table.add_column(str(name), justify="right" if name in numbers else "left")
    for row in rows.itertuples(index=False):
        table.add_row(*map(_cell, row))
    return table


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.4g}"
    return str(value)


def _copy_data(paper: Paper, scale: Scale, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, item in paper.studies.items():
        kept = item.kept(scale, "csv")
        if kept is not None and kept.exists():
            write_whole(folder / f"{name}.csv", kept.read_bytes())


def _entry(item: Claim, outcome: Outcome) -> dict[str, Any]:
    """A line of the ledger."""
    return {
        "claim": item.name,
        "place": item.place,
        "statement": item.words,
        "wrong": item.wrong,
        "verdict": outcome.judged,
        "evidence": outcome.evidence or outcome.why_not,
        "numbers": outcome.numbers,
        "contrary": outcome.contrary,
        "contrary_evidence": outcome.contrary_evidence,
        "studies": outcome.studies,
        "figure": item.figure,
    }


def _short(entries: Entries) -> Any:
    table = plain_table("", ("place", "claim", "verdict", "evidence"), ())
    shown = ("place", "statement", "verdict", "evidence")
    for entry in entries:
        table.add_row(*(entry[name] for name in shown))
    return table


def _page(
    paper: Paper, entries: Entries, outcomes: Outcomes, scale: Scale, results: Path
) -> str:
    known = about(scale)
    packages = ", ".join(f"{name} {v}" for name, v in known["packages"].items())
    parts = [
        f"# {paper.key}\n\n{plain(paper.title)}\n\n{plain(paper.about)}\n\n"
        f"Written by `mklopt paper {paper.key} --{scale.mode}` (seed {scale.seed}; "
        f"Python {known['python']}, {packages}); the same seed gives the same numbers, "
        "seconds excepted. Slips in print are in [ERRATA.md](../ERRATA.md).\n",
        f"## Claims\n\n{_counts(entries)}\n\n{markdown(_ledger(entries))}\n",
    ]
    parts += _shown("Figures", paper.figures, outcomes, _figure)
    parts += _shown("Tables", paper.sheets, outcomes, lambda i: _sheet(i, results))
    return "\n".join(parts)


def _counts(entries: Entries) -> str:
    verdicts = [entry["verdict"] for entry in entries]
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
    able = sum(bool(entry["contrary"]) for entry in entries)
    return (
        f"{len(entries)} claims: {counts}. To see that a check can fail it was given a "
        f"perturbed statement, too ({able} times): the last column, with its verdict."
    )


def _ledger(entries: Entries) -> Any:
    heads = ("place", "claim, in our words", "verdict", "evidence", "perturbed")
    table = plain_table("", heads, ())
    for entry in entries:
        said, other = plain(entry["evidence"]), "—"
        if entry["figure"]:
            said += f" ([figure](results/figures/{entry['figure']}.png))"
        if entry["contrary"]:
            other = plain(f"{entry['wrong']}: {entry['contrary']}")
        words, verdict = plain(entry["statement"]), f"**{entry['verdict']}**"
        cells = (entry["place"], words, verdict, said, other)
        table.add_row(*(cell.replace("|", "\\|").replace("\n", " ") for cell in cells))
    return table


def plain(text: str) -> str:
    """Words as Markdown shows them: stars and underscores outside of `code` stay."""
    parts = re.split(r"(`[^`]*`)", text)
    for k in range(0, len(parts), 2):
        parts[k] = re.sub(r"([*_])", r"\\\1", parts[k])
    return "".join(parts)


def _shown(title: str, items: dict[str, Any], outcomes: Outcomes, show: Any) -> list:
    if not items:
        return []
    parts = [f"## {title}\n"]
    for name, item in items.items():
        outcome = outcomes[name]
        why = outcome.why_not
        parts.append(f"### {item.place}\n\n{plain(item.words)}\n")
        parts.append(f"Left out: {why}\n" if why else show(item))
        if outcome.studies:
            links = (f"[{s}](results/data/{s}.csv)" for s in outcome.studies)
            parts.append(f"Data: {', '.join(links)}.\n")
    return parts


def _figure(item: Item) -> str:
    return f"![{item.place}](results/figures/{item.name}.png)\n"


def _sheet(item: Item, results: Path) -> str:
    rows = pd.read_csv(results / "tables" / f"{item.name}.csv")
    return markdown(_rich(rows)) + "\n"
