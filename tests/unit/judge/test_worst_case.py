"""Claimed bounds against exact worst cases: right, and tight where they should be."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from mklopt import rates
from mklopt.judge.worst_case import (
    METHODS,
    REFUTED,
    NotTestable,
    WorstCase,
    worst_case,
)

TIGHT = {"bregman gradient", "mirror descent"}

needs_pepit = pytest.mark.skipif(
    importlib.util.find_spec("PEPit") is None, reason="PEPit is an optional extra"
)


@needs_pepit
@pytest.mark.parametrize("method", METHODS)
def test_claims_against_worst_cases(method):
    for t in (1, 3):
        found = worst_case(method, t)
        assert found.right and found.tight == (method in TIGHT)
        assert found.worst > 0.4 * found.claimed
        bold = found._replace(claimed=0.9 * found.worst)
        assert not bold.right


@needs_pepit
def test_known_worst_cases():
    """Taylor, Hendrickx and Glineur (2017): L/(4t) for both proximal methods."""
    assert worst_case("proximal point", 2).worst == pytest.approx(1 / 8, rel=1e-3)
    assert worst_case("proximal gradient", 2).worst == pytest.approx(1 / 8, rel=1e-3)
    one = worst_case("accelerated proximal gradient", 1)  # the same first step
    assert one.worst == pytest.approx(1 / 4, rel=1e-3)


@needs_pepit
@pytest.mark.parametrize("method", REFUTED)
def test_a_printed_bound_is_exceeded_from_the_second_step_on(method):
    assert worst_case(method, 1).right
    assert worst_case(method, 2).worst > 1.03 * worst_case(method, 2).claimed


@needs_pepit
def test_growing_steps_count_by_their_sum():
    """R²/(4Σγ) with Σγ = 1 + 2 + 4."""
    found = worst_case("growing proximal point", 3)
    assert found.worst == pytest.approx(1 / 28, rel=1e-3)


@needs_pepit
def test_momentum_helps():
    plain = worst_case("proximal gradient", 4).worst
    assert worst_case("accelerated proximal gradient", 4).worst < 0.9 * plain


def test_right_and_tight():
    assert WorstCase("m", 1, 1.0, 1.0).tight
    assert WorstCase("m", 1, 0.5, 1.0).right and not WorstCase("m", 1, 0.5, 1.0).tight
    assert not WorstCase("m", 1, 1.1, 1.0).right


def test_users_reach_it_by_the_rates():
    assert rates.worst_case is worst_case
    with pytest.raises(ValueError, match="choose one of"):
        rates.worst_case("newton", 1)
    with pytest.raises(ValueError, match="number of steps"):
        rates.worst_case("proximal point", 0)


def test_without_pepit_it_says_what_to_install(monkeypatch):
    for name in ("PEPit", "PEPit.functions", "PEPit.primitive_steps"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotTestable, match=r"pip install \'mklopt\[pepit\]\'"):
        worst_case("proximal point", 1)
