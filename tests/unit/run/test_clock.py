"""The clock of a run, and durations in words."""

from __future__ import annotations

import time

import pytest

from mklopt.run.clock import Clock, in_words


def test_a_clock_goes_on_from_a_given_time():
    clock = Clock()
    assert 0 <= clock.seconds < 5
    clock.move_to(100.0)
    time.sleep(0.01)
    assert 100.01 <= clock.seconds < 105


@pytest.mark.parametrize(
    "seconds, words",
    [
        (0.0, "0 s"),
        (0.0123, "0.01 s"),
        (0.34, "0.3 s"),
        (0.97, "1 s"),
        (8.4, "8 s"),
        (99.4, "99 s"),
        (99.6, "2 min"),
        (3000, "50 min"),
        (7800, "2 h 10 min"),
        (7200, "2 h"),
        (4 * 86400, "4 days"),
        (1e300, "more than a million days"),
        (float("inf"), "more than a million days"),
    ],
)
def test_durations_in_words(seconds, words):
    assert in_words(seconds) == words
