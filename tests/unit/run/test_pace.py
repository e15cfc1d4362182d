"""How fast a piece of work goes, in words."""

from __future__ import annotations

import pytest

from mklopt.run import pace
from mklopt.run.pace import Pace, in_words


@pytest.mark.parametrize(
    "seconds, words",
    [(0.34, "0.3 s"), (40, "40 s"), (119, "119 s"), (840, "14 min"), (9000, "2.5 h")],
)
def test_times_are_said_in_words(seconds, words):
    assert in_words(seconds) == words


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(pace, "time", found)
    return found


def test_the_time_left_is_that_of_the_speed_so_far(clock):
    work = Pace("sweep", 100, False, begun=40)
    assert work.left == float("inf")
    clock.now = 10.0
    work.step(20)  # 20 of the 60 that were left
    assert work.seconds == 10.0 and work.left == pytest.approx(20.0)


def test_lines_come_every_few_seconds_and_at_the_end(clock, capsys):
    work = Pace("sweep", 100, True)
    for second in range(1, 11):
        clock.now = 1.3 * second
        work.step(10)
    lines = capsys.readouterr().err.strip().split("\n")
    assert lines == [
        "sweep: 40 %, about 7.8 s left",
        "sweep: 80 %, about 2.6 s left",
        "sweep: done in 13 s",
    ]
    Pace("sweep", 100, False).step(100)
    assert capsys.readouterr().err == ""
