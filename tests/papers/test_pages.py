"""The pages in papers/ say what the code says: no claim is missing, none is stale."""

from __future__ import annotations

import json
import re

import pytest

from mklopt.claims import items as papers
from mklopt.claims import records, registry, statements
from mklopt.claims.empirical import Empirical, final, judged
from mklopt.claims.items import CONTRARY, ROOT, VERDICTS

ROOM = ROOT / "papers"
TESTS = {
    found
    for path in (ROOT / "tests").rglob("test_*.py")
    for found in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
}


@pytest.mark.parametrize("key", papers.known())
def test_the_ledger_has_every_claim_with_a_verdict_that_can_fail(key):
    ledger = json.loads((ROOM / key / "results/ledger.json").read_text("utf-8"))
    claims = papers.load(key).claims
    assert [entry["claim"] for entry in ledger["claims"]] == list(claims)
    for entry in ledger["claims"]:
        assert entry["statement"] == claims[entry["claim"]].words
        assert entry["verdict"] in VERDICTS and entry["evidence"]
        derived = entry["kind"] == "derived" and entry["verdict"] != "inconclusive"
        if derived and entry["contrary"]:
            assert entry["contrary"] in CONTRARY[entry["verdict"]]


@pytest.mark.parametrize("key", papers.known())
def test_every_published_verdict_was_registered_as_it_is_now(key):
    """And follows from the published numbers by the rule."""
    paper = papers.load(key)
    ledger = json.loads((ROOM / key / "results/ledger.json").read_text("utf-8"))
    entries = {entry["claim"]: entry for entry in ledger["claims"]}
    lines = registry.registrations(key)
    assert all(registry.digest(line) == line["registration"] for line in lines)
    for claim in registry.empirical_of(paper):
        entry, found = entries[claim.name], {}
        for mode in entry["seeds"]:
            record = records.read(ROOM / key / "results", mode)[claim.name]
            assert record["registration"] == registry.check(claim)
            if record["intervals"]:
                assert tuple(record["seeds"]) == claim.seeds_of(mode)
                assert rejudged(claim, record) == record["verdict"]
                found[mode] = record
        if found:
            both = final(claim, found.get("quick"), found.get("full"))
            assert (entry["verdict"], entry["evidence"]) == both
        else:
            assert entry["verdict"] in ("not testable", "not run")


def rejudged(claim: Empirical, record: dict) -> str:
    numbers = {
        name: [float(v) for v in values] for name, values in record["numbers"].items()
    }
    return judged(numbers, claim.rule, claim.kind, claim.measured).verdict


@pytest.mark.parametrize("key", papers.known())
def test_every_statement_has_a_claim_or_a_reason(key):
    assert statements.gaps(papers.load(key), statements.read(key)) == []


@pytest.mark.parametrize("key", papers.known())
def test_every_link_of_a_page_leads_somewhere(key):
    page = ROOM / key / "README.md"
    links = re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8"))
    assert len(links) > 5
    assert not [link for link in links if not (page.parent / link).exists()]


def errata() -> list[list[str]]:
    rows = (ROOM / "ERRATA.md").read_text("utf-8").splitlines()
    cells = [re.split(r"(?<!\\)\|", row)[1:-1] for row in rows if row.startswith("| ")]
    return [[cell.strip() for cell in row] for row in cells[1:]]


@pytest.mark.parametrize("row", errata(), ids=lambda row: f"{row[0]}, {row[1]}")
def test_every_erratum_names_a_proof_that_exists_or_what_to_read(row):
    paper, place, printed, right, shown = row
    assert paper in papers.known() and place and printed and right
    names = re.findall(r"test_\w+", shown)
    assert names or shown.startswith("reading: "), f"no test shows it: {shown}"
    assert not [name for name in names if name not in TESTS]
