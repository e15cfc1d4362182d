"""Solvers are found in every way, and their modules are imported elsewhere."""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import pytest

from mklopt import check_solver
from mklopt.judge.exam import sandbox
from mklopt.judge.exam.target import find_solver
from mklopt.solvers import solvers

MODULE = """
import mklopt

mklopt.judge_was_here = True

class Box:
    def solve(problem): ...

@mklopt.solver("foreign", needs={"ball"}, losses={"hinge"}, accuracy=1e-4)
def stated(problem, *, start=None):
    yield

@mklopt.solver("foreign2", accuracy=lambda problem: 1e-3)
def promising(problem, *, start=None):
    yield
"""


def right(problem):
    return problem


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "foreign.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("raise SystemExit(1)\n")
    (tmp_path / "deadly.py").write_text("import os\nos._exit(3)\n")
    (tmp_path / "endless.py").write_text("while True: pass\n")
    monkeypatch.chdir(tmp_path)
    return monkeypatch


def test_solvers_are_found_in_every_way(here):
    assert find_solver("foreign:Box.solve").stated is None
    assert find_solver("analytic").solver is solvers()["analytic"]
    found = find_solver(right)
    assert (found.solver, found.stated, found.name) == (right, None, "right")


def test_a_module_is_imported_elsewhere_and_states_its_traits(here):
    found: Any = find_solver("foreign:stated")
    assert "foreign" not in sys.modules and "foreign" not in solvers()
    assert not hasattr(sys.modules["mklopt"], "judge_was_here")
    assert found.solver == found.name == "foreign:stated"
    stated = found.stated
    assert (stated.needs, stated.losses) == ({"ball"}, {"hinge"})
    assert stated.accuracy == 1e-4
    with pytest.raises(NotImplementedError):
        stated.steps(None)
    found = find_solver("foreign:promising")
    assert math.isnan(found.stated.accuracy)


def test_a_module_that_cannot_be_imported_gets_one_sentence(here):
    with pytest.raises(ValueError, match="importing broken raised SystemExit: 1"):
        find_solver("broken:solve")
    with pytest.raises(ValueError, match="ended with exit code 3"):
        find_solver("deadly:solve")
    here.setattr(sandbox, "START_UP", 0.3)
    with pytest.raises(ValueError, match="importing endless:solve: no answer within"):
        find_solver("endless:solve")


@pytest.mark.parametrize(
    "solver, words",
    [
        ("nowhere:solve", "no module 'nowhere' here or installed"),
        ("json:solve", "module 'json' has no 'solve'"),
        ("json:__name__", "is no solver; give a generator function"),
        ("analytik", "solver 'analytik' is not known; did you mean 'analytic'?"),
        (7, "7 is no solver"),
        (lambda problem, more: None, "alone: missing a required argument"),
    ],
)
def test_what_is_no_solver_gets_one_sentence(solver, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        check_solver(solver)
