"""Progress: nothing, a line per second, or a bar."""

from __future__ import annotations

import pytest

from mklopt import GramStack, Problem, solve
from mklopt.formulations import LpNorm
from mklopt.run.progress import Shown, Silent, progress
from mklopt.run.trace import COLUMNS, Trace
from tests.problems import subset_gaussians


def test_progress_is_shown_when_asked(capsys):
    K, y = subset_gaussians(60, 6)
    problem = Problem(GramStack(K), y, "hinge", LpNorm(4 / 3), C=1.0)
    solve(problem, "analytic")
    assert capsys.readouterr().out == ""
    solve(problem, "analytic", verbose=True)
    assert "gap" in capsys.readouterr().out


def trace(**row) -> Trace:
    found = Trace()
    found.append(**(dict.fromkeys(COLUMNS, 0.0) | row))
    return found


def test_lines_are_a_second_apart_and_end_with_the_last(capsys):
    shown = progress(True, "name", 1e-6)
    assert isinstance(shown, Shown) and type(progress(False, "name", 1e-6)) is Silent
    with shown:
        for seconds, gap in ((0.5, 1.0), (1.5, 0.1), (2.0, 0.01), (2.1, 1e-7)):
            shown.show(trace(seconds=seconds, gap=gap, passes=7.0))
    lines = capsys.readouterr().out.strip().split("\n")
    assert [line.split("gap ")[1][:7] for line in lines] == ["1.0e-01", "1.0e-07"]
    assert lines[0] == "name: gap 1.0e-01  1 iterates  7.0 passes  1.5 s"


def test_the_bar_is_logarithmic(monkeypatch):
    shown, done = Shown("name", 1e-6), []
    monkeypatch.setattr(shown, "terminal", True)
    monkeypatch.setattr(shown.bar, "update", lambda task, **to: done.append(to))
    for gap in (1.0, 1e-3, 1e-6, 1e-9):
        shown.show(trace(gap=gap))
    assert [to["completed"] for to in done] == pytest.approx([0.0, 0.5, 1.0, 1.0])
    assert done[1]["note"].startswith("gap 1.0e-03")
