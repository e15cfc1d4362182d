"""The page of a paper: the ledger of claims, the figures, the tables."""

from __future__ import annotations

import json

import pandas as pd

from mklopt.claims import items as papers
from mklopt.claims import records
from mklopt.claims.items import Scale
from mklopt.claims.page import plain, write_page, write_sheet
from mklopt.claims.run import Outcome


def test_a_run_writes_ledger_figures_data_and_page(toy, run, tmp_path):
    done, shown = run(toy)
    home = tmp_path / "papers" / toy
    assert not done  # one check cannot fail, one is broken
    assert "its perturbed form is confirmed" in shown and "ZeroDivisionError" in shown
    entries = json.loads((home / "results/ledger.json").read_text())["claims"]
    verdicts = {entry["claim"]: entry["verdict"] for entry in entries}
    assert verdicts == {
        "squares_are_positive": "confirmed",
        "cannot_fail": "confirmed",
        "without_data": "not testable",
        "broken": "failed",
    }
    assert entries[0]["contrary"] == "refuted" and entries[0]["studies"] == ["squares"]
    page = (home / "README.md").read_text()
    assert page.startswith(f"# {toy}\n\nNobody, A toy, 2026.\n\nSquares.\n")
    assert "No square \\| of a real" in page and "![Figure 1]" in page
    assert "point MKLOPT\\_DATA at it" in page and "| k | square | who |" in page
    kinds = {path.suffix for path in (home / "results").rglob("*.*")}
    assert kinds == {".json", ".tex", ".csv", ".png", ".pdf"}


def outcomes(paper: papers.Paper, **changes: Outcome) -> dict[str, Outcome]:
    good = {"verdict": "confirmed", "evidence": "seen", "contrary": "refuted"}
    known = {}
    for item in paper.items():
        more = good if item.name in paper.claims else {"missing": "no data"}
        known[item.name] = Outcome(paper.key, "", item.name, **more)  # type: ignore
    return known | changes


def test_the_page_counts_verdicts_and_says_what_is_left_out(toy, tmp_path):
    paper = papers.load(toy)
    broken = Outcome(toy, "claim", "broken", error="Traceback\nKeyError: 3")
    new = {
        item.name: records.of_outcome(item, outcome, records.made("today"))
        for item in paper.items()
        if (outcome := outcomes(paper, broken=broken)[item.name])
        if item.name not in paper.studies
    }
    page = write_page(paper, new, Scale("tiny"), tmp_path)
    text = page.read_text("utf-8")
    assert "4 claims: 3 confirmed, 1 failed." in text and "(3 times)" in text
    assert "| **failed** | KeyError: 3 |" in text and "Left out: no data" in text
    assert "nothing: refuted |" in text
    assert f"`mklopt paper {toy}`" in text and "today" in text and "numpy" in text


def test_a_table_is_written_for_machines_and_for_papers(tmp_path):
    rows = pd.DataFrame({"who": ["a_b"], "error": [1 / 3], "missing": [float("nan")]})
    write_sheet(rows, tmp_path / "sheet")
    assert pd.read_csv(tmp_path / "sheet.csv").error[0] == 1 / 3
    text = (tmp_path / "sheet.tex").read_text()
    assert "lrr" in text and "0.3333 &" in text and r"a\_b" in text


def test_markdown_shows_stars_and_underscores_outside_of_code():
    assert plain("a_b * `c_d`") == r"a\_b \* `c_d`"
