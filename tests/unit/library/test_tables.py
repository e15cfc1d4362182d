"""Tables: the digits of f*, the order of the leaderboard."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mklopt import library
from mklopt.library import tables
from mklopt.library.stored_records import Run
from mklopt.util.tables import markdown

RECORD = library.records()["tiny-hinge"]


def test_only_digits_that_are_known_are_shown():
    assert tables.optimum(replace(RECORD, lower=1.0, upper=1.5)) == "1 … 1.5"
    assert tables.optimum(replace(RECORD, lower=1.23456, upper=1.23457)) == "1.2346"
    assert tables.optimum(RECORD) == f"{RECORD.lower:.10g}"


def test_every_problem_has_a_line_and_facts():
    text = markdown(tables.overview(library.names()))
    assert len(text.splitlines()) == len(library.names()) + 2
    for name in library.names():
        found = tables.facts_of(name)
        assert found["hash"] == library.records()[name].digest
        assert "≤ f* ≤" in found["f*"]
        assert tables.summary(name)["n"] == library.records()[name].n


def test_the_leaderboard_counts_what_was_certified(monkeypatch):
    fast, slow = Run(0.1, 0.2, 1e-7), Run(0.1, 0.8, 1e-7)
    never = Run(0.3, None, 1e-4, "ended after 5 s")
    known = {
        "tiny-hinge": replace(RECORD, runs={"a": fast, "b": slow}),
        "toy-p4": replace(RECORD, runs={"a": fast, "c": never}),
        "toy-p1": replace(RECORD, runs={}),
    }
    monkeypatch.setattr(tables, "records", lambda: known)
    rows = tables.standings()
    assert rows["a"] == {"problems": 2, "to_3": 2, "to_6": 2, "fastest": 2, "ratio": 1}
    assert rows["b"]["ratio"] == pytest.approx(4) and rows["b"]["fastest"] == 0
    assert rows["c"]["to_6"] == 0 and rows["c"]["to_3"] == 1
    lines = markdown(tables.leaderboard()).splitlines()[2:]
    assert [line.split()[1] for line in lines] == ["a", "b", "c"]
    assert "ended after 5 s" in markdown(tables.times("toy-p4"))
