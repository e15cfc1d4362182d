"""The check finds wrong points, wrong records and other kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mklopt import library, reference
from mklopt.library import checking
from mklopt.library.checking import EXACT, FLOAT, check, check_one
from mklopt.library.stored_records import points_in, records, write_records

RECORD = records()["tiny-hinge"]
FEW = ["tiny-hinge", "wine-one-class", "views-hinge", "toy-p43"]


def test_stored_points_are_proved_by_the_exact_checker():
    found = list(check(FEW))
    assert [one.name for one in found] == FEW
    assert {(one.status, one.by) for one in found} == {("proved", EXACT)}


@pytest.mark.full
def test_all_stored_points_are_proved():
    found = list(check())
    assert {one.status for one in found} <= {"proved", "skipped"}
    assert sum(one.status == "proved" for one in found) >= 60


def test_what_is_too_large_says_by_what_it_was_checked(monkeypatch):
    monkeypatch.setattr(checking, "MAX_NUMBERS", 100)
    (found,) = check(["tiny-hinge"])
    assert (found.status, found.by) == ("proved", FLOAT)


def test_absent_data_are_skipped_with_the_reason(monkeypatch):
    monkeypatch.delenv("MKLOPT_DATA", raising=False)
    (found,) = check(["leukemia-l1"])
    assert found.status == "skipped" and "leukemia was not found" in found.words


@pytest.mark.parametrize(
    "change, words",
    [
        ({"digest": "0" * 64}, "another problem"),
        ({"lower": 11.0, "upper": 12.0}, "another interval"),
        ({"lower": 10.51692865406, "upper": 10.51692865407}, "a gap of"),
    ],
)
def test_a_wrong_record_is_found(tmp_path, monkeypatch, change, words):
    problem = library.get("tiny-hinge")
    rough = reference.solve(problem, solver="SCS", options={"max_iters": 300})
    if "a gap of" in words:  # points that are wider than the record
        monkeypatch.setattr(checking, "reference_of", lambda problem: rough)
    wrong = replace(RECORD, **change)
    write_records(tmp_path, {"tiny-hinge": wrong})
    monkeypatch.setenv("MKLOPT_LIBRARY", str(tmp_path))
    found = check_one(problem)
    assert found.status == "wrong" and words in found.words


def test_missing_points_and_refused_files_are_found(tmp_path, monkeypatch):
    problem = library.get("tiny-hinge")
    record, known = RECORD, problem.reference
    monkeypatch.setattr("mklopt.library.stored_records.HOME", tmp_path)
    assert "nothing is stored" in check_one(problem).words
    write_records(tmp_path, {"tiny-hinge": record})
    assert "missing" in check_one(problem).words
    points_in(tmp_path).save(problem, known)
    assert check_one(problem).status == "proved"

    def refuse(content):
        raise checking.Refused("no")

    monkeypatch.setattr(checking, "check_exactly", refuse)
    found = check_one(problem)
    assert (found.status, found.by, found.words) == ("wrong", EXACT, "no")


def test_other_versions_of_fetched_data_are_no_failure(tmp_path, monkeypatch):
    problem = library.get("tiny-hinge")
    instance = replace(problem.instance, tags=(checking.FETCHED,))
    other = library.LibraryProblem(
        problem.grams, problem.y, problem.loss, problem.formulation, 2.0, problem.bias
    ).of(instance)
    found = check_one(other)
    assert found.status == "skipped" and "another version" in found.words
