"""Records of what was run: merged, and dropped when a claim changes."""

from __future__ import annotations

from mklopt.claims import items as papers
from mklopt.claims import records
from mklopt.claims.items import Outcome, Scale


def of(paper, name: str) -> dict:
    good = Outcome(paper.key, "claim", name, verdict="confirmed", evidence="seen")
    item = paper.claims[name]
    return records.of_outcome(item, good, records.made("2026-01-01"))


def test_a_run_replaces_what_it_ran(toy, tmp_path):
    paper = papers.load(toy)
    assert records.read(tmp_path, "quick") == {}
    records.write(tmp_path, "quick", {"broken": of(paper, "broken"), "x": {"kind": ""}})
    found = records.write(tmp_path, "quick", {"x": {"kind": "new"}})
    assert found == records.read(tmp_path, "quick") and found["x"] == {"kind": "new"}
    assert list(records.current(paper, found)) == ["broken"]
    found["broken"]["source"] = "another one"
    assert records.current(paper, found) == {}


def test_a_record_names_commit_day_processor_and_versions(toy):
    found = of(papers.load(toy), "broken")
    assert (
        found["date"] == "2026-01-01" and found["cpu"] and "numpy" in found["versions"]
    )
    assert found["verdict"] == "confirmed" and found["source"]


def test_a_study_has_its_parts_and_what_they_took(toy, tmp_path):
    study = papers.load(toy).studies["squares"]
    scale = Scale("tiny", 0, tmp_path)
    study(scale)
    found = records.of_study(study, scale, {1, 0}, records.made("today"))
    assert found["seeds"] == [0, 1] and found["parts"] == 1 and found["seconds"] >= 0
