"""The page of a paper: README.md with its statements, claims, figures and tables.

It is written from the records in results/ (quick.json, full.json; `records.py`). Beside
them: ledger.json and ledger.tex, figures as PNG and PDF, the data behind every curve as
CSV, tables as CSV and LaTeX.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..util.files import write_whole
from ..util.tables import latex, markdown, plain_table
from . import records, registry, statements
from .empirical import Empirical, final
from .items import Claim, Drawn, Item, Paper, Scale, Study, csv
from .records import Records

SIZES = ("quick", "full")
Entries = list[dict[str, Any]]  # of the ledger: one per claim
By = dict[str, Records]  # records by mode


def write_page(paper: Paper, new: Records, scale: Scale, home: Path) -> Path:
    """Write what a run came to, and the page; returns the path of the page."""
    results = home / paper.key / "results"
    _copy_data(paper, new, scale, results / "data")
    records.write(results, scale.mode, new, keep=[i.name for i in paper.items()])
    drawn = [name for name in new if name in {**paper.figures, **paper.sheets}]
    for mode in {*SIZES} - {scale.mode}:  # a figure has one file, of the last size
        records.forget(results, mode, drawn)
    modes = (scale.mode,) if scale.mode not in SIZES else SIZES
    known = {m: records.current(paper, records.read(results, m)) for m in modes}
    order = {scale.mode: known[scale.mode]} | known  # what was just run comes first
    entries = [entry(item, order) for item in paper.claims.values()]
    ledger = {"paper": paper.key, "mode": scale.mode, "claims": entries}
    text = json.dumps(ledger, ensure_ascii=False, indent=1)
    write_whole(results / "ledger.json", text.encode() + b"\n")
    write_whole(results / "ledger.tex", latex(_short(entries)).encode())
    page = home / paper.key / "README.md"
    write_whole(page, _page(paper, entries, order, results).encode())
    return page


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


def data_name(study: str, mode: str) -> str:
    """The file with the rows of a study; full size lies beside quick."""
    return f"{study}-full.csv" if mode == "full" else f"{study}.csv"


def _copy_data(paper: Paper, new: Records, scale: Scale, folder: Path) -> None:
    """The rows of studies that were needed; several seeds stand in one table."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {data_name(name, mode) for name in paper.studies for mode in SIZES}
    for path in folder.glob("*.csv"):
        if path.name not in names:
            path.unlink()
    for name, item in paper.studies.items():
        seeds = new.get(name, {}).get("seeds", ())
        files = {s: item.kept(Scale(scale.mode, s, scale.folder), "csv") for s in seeds}
        tables = {s: path for s, path in files.items() if path and path.exists()}
        target = folder / data_name(name, scale.mode)
        if len(tables) == 1:
            write_whole(target, next(iter(tables.values())).read_bytes())
        elif tables:
            whole = Study.over(item, scale, list(tables))
            write_whole(target, csv(whole).encode())


# ---- the ledger ------------------------------------------------------------------


def entry(item: Claim, known: By) -> dict[str, Any]:
    """A line of the ledger; known: what was run, by mode, the preferred one first."""
    found = {mode: rec[item.name] for mode, rec in known.items() if item.name in rec}
    line: dict[str, Any] = {
        "claim": item.name, "place": item.place, "statement": item.words,
        "figure": item.figure, "sizes": {m: one["verdict"] for m, one in found.items()},
    }  # fmt: skip
    first: dict[str, Any] = next(iter(found.values()), {})
    for name in ("numbers", "contrary", "contrary_evidence", "studies"):
        line[name] = first.get(name, "")
    if isinstance(item, Empirical):
        words = [control.statement for control in item.controls]
        line |= {
            "kind": "measured", "wrong": "; ".join(words), "measured": item.measured,
            "registration": first.get("registration", ""), "data": item.data,
            "seeds": {mode: one["seeds"] for mode, one in found.items()},
        }  # fmt: skip
        verdict, evidence = _measured(item, found)
    else:
        line |= {"kind": "derived", "wrong": item.wrong}
        verdict, evidence = _derived(found)
    return line | {"verdict": verdict, "evidence": evidence}


def _measured(item: Empirical, found: Records) -> tuple[str, str]:
    if not found:
        return "not run", "registered and not run yet, or not registered yet"
    if not any(one["intervals"] for one in found.values()):  # data that are not here
        first = next(iter(found.values()))
        return first["verdict"], first["evidence"]
    if "tiny" in found:
        return found["tiny"]["verdict"], found["tiny"]["evidence"]
    return final(item, found.get("quick"), found.get("full"))


def _derived(found: Records) -> tuple[str, str]:
    """Theorems and formulas: the same at both sizes, or inconclusive."""
    if not found:
        return "not testable", "not run"
    first = next(iter(found.values()))
    if len({one["verdict"] for one in found.values()}) == 1:
        return first["verdict"], first["evidence"]
    said = [
        f"{mode}: {one['verdict']}: {one['evidence']}" for mode, one in found.items()
    ]
    return "inconclusive", "; ".join(said)


def _short(entries: Entries) -> Any:
    table = plain_table("", ("place", "claim", "verdict", "evidence"), ())
    shown = ("place", "statement", "verdict", "evidence")
    for entry in entries:
        table.add_row(*(entry[name] for name in shown))
    return table


# ---- the page --------------------------------------------------------------------


def _page(paper: Paper, entries: Entries, known: By, results: Path) -> str:
    covered = statements.read(paper.key)
    verdicts = {entry["claim"]: entry["verdict"] for entry in entries}
    parts = [f"# {paper.key}\n\n{plain(paper.title)}\n\n{plain(paper.about)}\n"]
    if covered.version:
        parts.append(f"Version of the paper: {plain(covered.version)}.\n")
    parts.append(
        "Slips in print are in [ERRATA.md](../ERRATA.md). How the numbers were made is "
        "at the end.\n"
    )
    if covered.statements:
        parts.append(_statements(covered, verdicts))
    parts.append(
        f"## Claims\n\n{_counts(entries)}\n\n{markdown(_ledger(entries, results))}\n"
    )
    if changed := _changes(paper):
        parts.append(changed)
    parts += _shown("Figures", paper.figures, known, results, _figure)
    parts += _shown("Tables", paper.sheets, known, results, _sheet)
    parts.append(_made(paper, known, covered.data))
    return "\n".join(parts)


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], numbers=()) -> str:
    table = plain_table("", heads, numbers)
    for row in rows:
        table.add_row(*(cell.replace("|", "\\|").replace("\n", " ") for cell in row))
    return markdown(table)


def _statements(covered: statements.Coverage, verdicts: dict[str, str]) -> str:
    rows = []
    for one in covered.statements:
        seen = [f"**{verdicts.get(name, 'not run')}**" for name in one.claims]
        said = ", ".join(dict.fromkeys(seen)) or f"no claim: {plain(one.reason)}"
        rows.append((plain(one.place), plain(one.says), said))
    able = sum(bool(one.claims) for one in covered.statements)
    return (
        f"## What the paper says\n\n{len(rows)} statements, {able} of them checked.\n\n"
        f"{_table(('place', 'statement, in our words', 'verdict'), rows)}\n"
    )


def _counts(entries: Entries) -> str:
    verdicts = [entry["verdict"] for entry in entries]
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
    measured = sum(entry["kind"] == "measured" for entry in entries)
    able = sum(bool(entry["contrary"]) for entry in entries)
    said = (
        f"{len(entries)} claims: {counts}. To see that a check can fail, the same data "
        f"judged another statement ({able} times): the last column, with its verdict."
    )
    if measured:
        said += (
            f" {measured} claims are measured: their rule was registered before it was "
            "run ([registry.jsonl](registry.jsonl); the first digits of its hash are "
            "shown). Numbers come with intervals over seeds. Where quick and full size "
            "disagree, or one of them was not run, a claim is inconclusive."
        )
    return said


def _ledger(entries: Entries, results: Path) -> Any:
    heads = ("place", "claim, in our words", "verdict", "evidence", "control")
    rows = []
    for entry in entries:
        said, other = plain(entry["evidence"]), "—"
        figure = f"figures/{entry['figure']}.png"
        if entry["figure"] and (results / figure).exists():
            said += f" ([figure](results/{figure}))"
        if entry["contrary"]:
            other = plain(f"{entry['wrong']}: {entry['contrary']}")
        if entry.get("registration"):
            said += f" [{entry['registration'][:8]}]"
        words, verdict = plain(entry["statement"]), f"**{entry['verdict']}**"
        rows.append((entry["place"], words, verdict, said, other))
    table = plain_table("", heads, ())
    for row in rows:
        table.add_row(*(cell.replace("|", "\\|").replace("\n", " ") for cell in row))
    return table


def _changes(paper: Paper) -> str:
    """Rules that were changed after a result, and claims that were taken back."""
    lines = registry.registrations(paper.key)
    again = [line for line in lines if line.get("before")]
    said = [
        f"* `{line['claim']}`: {line['before'][:8]} became {line['registration'][:8]}: "
        f"{plain(line['why'])}"
        for line in again
        if line.get("seen")
    ]
    verdicts = registry.published(paper.key)
    gone = {line["claim"] for line in lines} - paper.claims.keys()
    said += [
        f"* `{name}` was registered and taken back ({verdicts.get(name, 'not run')})"
        for name in sorted(gone)
    ]
    if early := sum(not line.get("seen") for line in again):
        said.append(f"* before any result was known: {early} changes of rules")
    return "## Rules that changed\n\n" + "\n".join(said) + "\n" if said else ""


def plain(text: str) -> str:
    """Words as Markdown shows them: stars and underscores outside of `code` stay."""
    parts = re.split(r"(`[^`]*`)", text)
    for k in range(0, len(parts), 2):
        parts[k] = re.sub(r"([*_])", r"\\\1", parts[k])
    return "".join(parts)


def _shown(
    title: str, items: dict[str, Any], known: By, results: Path, show: Any
) -> list[str]:
    if not items:
        return []
    parts = [f"## {title}\n"]
    for name, item in items.items():
        mode, record = _record(name, known)
        parts.append(f"### {item.place}\n\n{plain(_caption(item, mode))}\n")
        why = record.get("left_out", "not drawn yet")
        parts.append(f"Left out: {why}\n" if why else show(item, results))
        files = {s: data_name(s, mode) for s in record.get("studies", ())}
        links = [
            f"[{study}](results/data/{file})"
            for study, file in files.items()
            if (results / "data" / file).exists()
        ]
        if links:
            parts.append(f"Data: {', '.join(links)}.\n")
    return parts


def _record(name: str, known: By) -> tuple[str, dict[str, Any]]:
    """The latest record of a figure or a table: its file is the one that is there."""
    found = [(mode, rec[name]) for mode, rec in known.items() if name in rec]
    return found[0] if found else ("", {})


def _caption(item: Drawn, mode: str) -> str:
    size = {"quick": "Drawn at quick size.", "full": "Drawn at full size."}
    return f"{item.caption(mode)} {size.get(mode, '')}".rstrip()


def _figure(item: Item, results: Path) -> str:
    return f"![{item.place}](results/figures/{item.name}.png)\n"


def _sheet(item: Item, results: Path) -> str:
    rows = pd.read_csv(results / "tables" / f"{item.name}.csv")
    return markdown(_rich(rows)) + "\n"


# ---- provenance ------------------------------------------------------------------


def _made(paper: Paper, known: By, data: dict[str, str]) -> str:
    said = [
        "## How the numbers were made\n",
        f"By `mklopt paper {paper.key}`, with `--quick` and `--full`. The same seeds "
        "give the same numbers, seconds excepted.\n",
        *(_runs(mode, found) for mode, found in known.items() if found),
    ]
    if data:
        rows = [(plain(name), plain(source)) for name, source in data.items()]
        said.append(f"{_table(('data', 'from'), rows)}\n")
    spent = [row for mode, found in known.items() for row in _spent(paper, mode, found)]
    if spent:
        heads = ("study", "size", "seeds")
        counts = ("parts", "minutes, all", "minutes, longest part")
        said.append(f"{_table(heads, spent, counts)}\n")
    return "\n".join(said)


def _runs(mode: str, found: Records) -> str:
    """Commits, days and processors of the records of a mode."""
    names = ("commit", "date", "cpu", "versions")
    ways = sorted({tuple(r[name] for name in names) for r in found.values()})
    said = [
        f"* commit {made_on or 'not recorded'}, {day}, {cpu}; {versions}"
        for made_on, day, cpu, versions in ways
    ]
    return f"Size {mode}:\n\n" + "\n".join(said) + "\n"


def _spent(paper: Paper, mode: str, found: Records) -> list[tuple[str, ...]]:
    rows = []
    for name in paper.studies:
        if record := found.get(name):
            seeds = ", ".join(map(str, record["seeds"]))
            minutes = (f"{record[k] / 60:.1f}" for k in ("seconds", "longest"))
            rows.append((f"`{name}`", mode, seeds, str(record["parts"]), *minutes))
    return rows
