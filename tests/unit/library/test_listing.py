"""Names, tags, and problems for races and exams."""

from __future__ import annotations

import pytest

import mklopt
from mklopt import library


def test_names_by_tag():
    assert set(library.names("real", "sparse")) <= set(library.names("real"))
    assert "diabetes-huber" in library.names("huber")
    assert set(library.names()) == set(library.instances())
    with pytest.raises(ValueError, match="did you mean 'sparse'"):
        library.names("sparce")


def test_a_wrong_name_gets_a_sentence():
    with pytest.raises(ValueError, match="did you mean 'toy-p4'"):
        library.get("toy-p44")
    with pytest.raises(ValueError, match="name of a problem as text"):
        library.get(3)


def test_problems_whose_data_are_not_there_are_left_out(monkeypatch):
    monkeypatch.delenv("MKLOPT_DATA", raising=False)
    found = library.problems(only=["leukemia-l1", "tiny-hinge", "blocks-1000"],
                             numbers=1000)  # fmt: skip
    assert list(found) == ["tiny-hinge"]


def test_races_and_exams_take_them(monkeypatch):
    some = library.problems(only=["tiny-hinge", "toy-p4"])
    solved: list = []
    monkeypatch.setattr("mklopt.tasks.race.exact", solved.append)
    raced = mklopt.race(some, ["analytic"], tol=1e-3)
    assert not solved  # the stored intervals are enough
    assert raced.problems == list(some)
    assert all(raced.width(name) <= 1e-9 for name in some)
    exam = mklopt.check_solver("analytic", problems=some)
    assert exam.passed and len(exam.rows) == 2
