"""Intervals over seeds, and the verdicts that they have."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mklopt.claims.bounds import at_least, at_most, between, interval, together


@pytest.mark.parametrize(
    ("bound", "where", "verdict"),
    [
        (at_least(10), (10, 12), "confirmed"),
        (at_least(10), (9, 12), "inconclusive"),
        (at_least(10), (2, 9), "refuted"),
        (at_least(10, partly=2), (2, 9), "partly"),
        (at_least(10, partly=2), (3, 12), "partly"),
        (at_least(10, partly=2), (1, 3), "inconclusive"),
        (at_least(10, partly=2), (0, 1), "refuted"),
        (at_most(1), (0, 1), "confirmed"),
        (at_most(1), (2, 3), "refuted"),
        (between(0.8, 1.2), (0.9, 1.1), "confirmed"),
        (between(0.8, 1.2), (0.9, 1.3), "inconclusive"),
        (at_least(10), (np.nan, np.nan), "inconclusive"),
    ],
)
def test_the_verdict_of_an_interval(bound, where, verdict):
    assert bound.verdict(where) == verdict


def test_a_t_interval_is_the_one_of_scipy():
    values = [1.0, 2.0, 4.0, 8.0]
    known = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert np.allclose(interval(values, "t"), (known[0], np.mean(values), known[1]))
    wide = stats.t.interval(0.975, 3, np.mean(values), stats.sem(values))
    assert np.allclose(interval(values, "t", parts=2)[::2], wide)
    logs = stats.t.interval(0.95, 3, np.mean(np.log(values)), stats.sem(np.log(values)))
    assert np.allclose(interval(values, "t", log=True)[::2], np.exp(logs))


def test_one_seed_has_no_width_and_what_is_not_finite_no_interval():
    assert interval([3.0], "t") == (3, 3, 3)
    assert interval([3.0, 1.0, np.inf], "range") == (1, 3, np.inf)
    assert np.isnan(interval([1.0, np.inf, 2.0], "t")[0])
    assert np.isnan(interval([1.0, -1.0, 2.0], "t", log=True)[0])


def test_a_weaker_bound_is_weaker_and_bounds_have_words():
    with pytest.raises(ValueError, match="weaker"):
        at_least(2, partly=10)
    assert at_least(10, partly=2).words() == "at least 10 (partly: at least 2)"
    assert between(0, 1, log=True).words() == "between 0 and 1, on a log scale"


def test_all_numbers_of_a_rule_have_to_be_right():
    assert together(["confirmed", "confirmed"]) == "confirmed"
    assert together(["confirmed", "refuted"]) == "partly"
    assert together(["refuted", "inconclusive"]) == "inconclusive"
