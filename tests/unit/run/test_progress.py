"""Progress: nothing, a line now and then, or one live line; the time left."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mklopt import GramStack, Problem, solve
from mklopt.formulations import LpNorm
from mklopt.grams.storage import Triangles
from mklopt.run import progress as module
from mklopt.run.progress import Shown, Silent, progress, time_left
from mklopt.run.trace import COLUMNS, Trace
from mklopt.util.sweeps import report
from tests.problems import subset_gaussians


class Now:
    """A clock that a test sets."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now(monkeypatch) -> Now:
    clock = Now()
    monkeypatch.setattr(module, "_now", clock)
    monkeypatch.setattr(module.time, "monotonic", clock)
    return clock


def trace(seconds, gaps) -> Trace:
    found = Trace()
    for t, gap in zip(seconds, gaps):
        row = dict.fromkeys(COLUMNS, 0.0) | {"seconds": t, "gap": gap, "passes": 7.0}
        found.append(**row)
    return found


def test_progress_is_shown_when_asked(capsys, monkeypatch):
    K, y = subset_gaussians(60, 6)
    problem = Problem(GramStack(K), y, "hinge", LpNorm(4 / 3), C=1.0)
    solve(problem, "analytic")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(module, "LINE_SECONDS", 0.0)
    solve(problem, "analytic", verbose=True)
    out, err = capsys.readouterr()
    assert out == "" and "analytic: gap" in err


def test_lines_are_seconds_apart_and_end_with_the_last(capsys, now):
    shown = progress(True, "name", 1e-6)
    assert isinstance(shown, Shown) and type(progress(False, "name", 1e-6)) is Silent
    with shown:
        for seconds, gap in ((0.5, 1.0), (5.5, 0.1), (6.0, 0.01), (6.1, 1e-7)):
            now.seconds = seconds
            shown.show(trace([seconds], [gap]))
    lines = capsys.readouterr().err.strip().split("\n")
    assert lines == [
        "name: gap 1.0e-01  7.0 passes  5.5 s",
        "name: gap 1.0e-07  7.0 passes  6.1 s",
    ]


def test_a_line_that_was_printed_is_not_repeated(capsys, now):
    with progress(True, "name", 1e-6) as shown:
        now.seconds = 6.0
        shown.show(trace([6.0], [0.1]))
    assert len(capsys.readouterr().err.strip().split("\n")) == 1


def test_a_short_run_prints_no_line(capsys, now):
    with progress(True, "name", 1e-6) as shown:
        now.seconds = 0.9
        shown.show(trace([0.9], [1e-7]))
    assert capsys.readouterr().err == ""


def test_short_runs_one_after_the_other_share_the_second(capsys, now):
    with progress(True, "race", 1e-6) as shown:
        for k in range(1, 5):
            shown.begin(f"run {k} of 4")
            now.seconds = 0.4 * k
            shown.show(trace([0.4], [0.1]))
    lines = capsys.readouterr().err.strip().split("\n")
    assert lines[0].startswith("run 3 of 4: gap") and "run 4 of 4" in lines[-1]
    Silent().begin("nothing")


def test_the_next_run_has_a_bar_of_its_own(monkeypatch):
    shown, done = Shown("name", 1e-6), []
    monkeypatch.setattr(shown, "terminal", True)
    monkeypatch.setattr(shown.bar, "update", lambda task, **to: done.append(to))
    shown.show(trace([1.0], [1.0]))
    shown.begin("run 2")
    shown.show(trace([1.0], [1e-3]))
    assert done[1]["description"] == "run 2" and done[1]["completed"] == 0.0
    assert done[2]["completed"] == 0.0  # from its own first gap


def test_long_sweeps_are_shown_and_short_ones_are_not(capsys, now):
    with progress(True, "name", 1e-6) as shown:
        now.seconds = 6.0
        shown.sweep(1, 4)  # the first report of a sweep says nothing of its length
        now.seconds = 6.1
        shown.sweep(4, 4)
        assert capsys.readouterr().err == ""
        shown.sweep(1, 4)
        now.seconds = 7.0
        shown.sweep(2, 4)
        said = capsys.readouterr().err
        now.seconds = 7.9
        shown.sweep(3, 4)  # too soon for another line
        assert capsys.readouterr().err == ""
        now.seconds = 13.0
        shown.sweep(4, 4)
        assert "100 %" in capsys.readouterr().err
    assert said == "name: no iterate yet  reading kernels: 50 %\n"


def test_a_run_listens_to_the_sweeps_of_its_stack(monkeypatch):
    heard, before = [], Triangles.quad

    def quad(self, index, A):
        report(len(index), len(index))
        return before(self, index, A)

    monkeypatch.setattr(Triangles, "quad", quad)
    monkeypatch.setattr(Shown, "sweep", lambda self, *numbers: heard.append(numbers))
    K, y = subset_gaussians(60, 6)
    problem = Problem(GramStack(K), y, "hinge", LpNorm(4 / 3), C=1.0)
    solve(problem, "interleaved", tol=1e-2, verbose=True)
    assert heard and set(heard) == {(6, 6)}
    heard.clear()
    problem.grams.quad(np.ones(60))  # after the run nobody listens
    assert heard == []


def test_the_bar_is_logarithmic(monkeypatch):
    shown, done = Shown("name", 1e-6), []
    monkeypatch.setattr(shown, "terminal", True)
    monkeypatch.setattr(shown.bar, "update", lambda task, **to: done.append(to))
    for gap in (1.0, 1e-3, 1e-6, 1e-9):
        shown.show(trace([1.0], [gap]))
    assert [to["completed"] for to in done] == pytest.approx([0.0, 0.5, 1.0, 1.0])
    assert done[1]["note"].startswith("gap 1.0e-03")


# ---- the time left -------------------------------------------------------------------


def test_a_steady_fall_of_the_logarithm_goes_on():
    seconds = np.arange(1.0, 11.0)
    assert time_left(trace(seconds, 10.0**-seconds), 1e-12) == pytest.approx(2.0)
    assert time_left(trace(seconds, 10.0**-seconds), 1e-9) == 0.0


def test_only_the_last_half_of_the_time_counts():
    seconds = np.arange(1.0, 21.0)
    gaps = np.where(seconds < 10, 1.0, 10.0 ** -(seconds - 9))
    assert time_left(trace(seconds, gaps), 1e-13) == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize(
    "gaps",
    [
        [1.0],
        [1.0, 0.1],
        [1.0, 1.0, 1.0],
        [math.inf, math.inf, 0.1],
        [1.0, 0.5, 0.0],
        [1.0, 1.0, 1.0 - 1e-9],
    ],
)
def test_nothing_is_said_where_nothing_is_known(gaps):
    assert time_left(trace(np.arange(len(gaps)), gaps), 1e-6) == math.inf


def test_the_time_left_is_said_and_counts_down(capsys, now):
    with progress(True, "name", 1e-6) as shown:
        now.seconds = 30.0
        shown.show(trace([10.0, 20.0, 30.0], [1e-1, 1e-2, 1e-3]))
        now.seconds = 40.0
        shown.sweep(1, 2)
        now.seconds = 41.0
        shown.sweep(2, 2)
    first, second = capsys.readouterr().err.strip().split("\n")
    assert first == "name: gap 1.0e-03  7.0 passes  30 s, about 30 s left"
    assert second.endswith("about 19 s left  reading kernels: 100 %")
