"""Records are written and read, and own ones go before those of the package."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mklopt import library
from mklopt.library.stored_records import (
    Run,
    joined,
    points_in,
    record_of,
    records,
    reference_of,
    write_records,
)

PROBLEM = library.get("wdbc-lasso-logistic")
RECORD = records()["wdbc-lasso-logistic"]


def test_a_record_says_what_the_points_prove():
    record = record_of(PROBLEM, PROBLEM.reference)
    facts = PROBLEM.reference.certificate
    assert (record.lower, record.upper) == (facts.lower, facts.upper)
    assert record.digest == PROBLEM.digest() and record.n == 100
    norms = PROBLEM.reference.norms
    assert record.unused_count == 27 and record.active == np.sum(norms > 0) == 7
    stored = RECORD
    assert stored.unused_count == 27 and stored.used_count == len(stored.used)
    assert set(stored.used) <= set(np.flatnonzero(norms))


def test_own_records_go_first(tmp_path, monkeypatch):
    before = records()["tiny-hinge"]
    monkeypatch.setenv("MKLOPT_LIBRARY", str(tmp_path))
    assert records()["tiny-hinge"] == before
    mine = replace(before, source="me", runs={"mine": Run(0.1, None, 1e-4, "slow")})
    write_records(tmp_path, {"tiny-hinge": mine})
    assert records()["tiny-hinge"] == mine and "toy-p4" in records()
    write_records(tmp_path, {"toy-p4": before})  # added, not replaced
    assert records()["tiny-hinge"] == mine
    monkeypatch.delenv("MKLOPT_LIBRARY")
    assert records()["tiny-hinge"] == before


def test_the_narrowest_points_are_taken(tmp_path, monkeypatch):
    from mklopt import reference

    problem = library.get("tiny-hinge")
    rough = reference.solve(problem, solver="SCS", options={"max_iters": 100})
    points_in(tmp_path).save(problem, rough)
    monkeypatch.setenv("MKLOPT_LIBRARY", str(tmp_path))
    assert rough.relative_gap > 1e-9
    assert reference_of(problem).relative_gap <= 1e-9


def test_facts_and_times_of_an_older_record_stay():
    known = replace(RECORD, used=(1, 2), used_count=2, unused_count=30,
                    runs={"auto": Run(1.0)})  # fmt: skip
    new = replace(
        known, source="better", used=(), used_count=0, unused_count=27, runs={}
    )
    both = joined(new, known)
    assert both.source == "better" and both.used == (1, 2) and both.used_count == 2
    assert both.unused_count == 30 and both.runs == {"auto": Run(1.0)}
