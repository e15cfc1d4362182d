"""Empirical claims: several seeds, a bound, a control of its own."""

from __future__ import annotations

import pytest

from mklopt.claims.bounds import at_least, at_most
from mklopt.claims.empirical import Empirical, SameAsClaim, empirical, final
from mklopt.claims.items import NOT_REPRODUCED, Scale

HOW = {"measured": "the number", "data": ["drawn"]}


@pytest.fixture
def declare(monkeypatch):
    """Declares a claim and its control, registered nowhere."""
    monkeypatch.setattr("mklopt.claims.items._ITEMS", {})

    def made(rule, run=None, control=None, bound=None, **how) -> Empirical:
        claim = empirical("toy2026", "Table 1", rule=rule, **HOW, **how)(run or ten)
        claim.control("half of it is ten", bound or at_least(10))(control or half)
        return claim

    return made


def ten(scale):
    """It is about ten."""
    return 10 + scale.rng("ten").normal()


def half(scale):
    """Half of it."""
    return 5 + scale.rng("half").normal() / 10


def third(scale):
    """A third of it."""
    return 3 + scale.rng("third").normal() / 10


def mirrored(scale):
    """The same number with another sign."""
    return -(10 + scale.rng("ten").normal())


def several(scale):
    """Two numbers and one to look at."""
    return {"a": ten(scale), "b": half(scale), "c": 1.0}


def test_a_claim_is_judged_over_its_seeds_and_the_same_data_refute_its_control(declare):
    claim = declare(at_least(8), seeds=5)
    mine, (other,) = claim.check(Scale("quick"))
    assert mine.verdict == "confirmed" and len(mine.numbers[""]) == 5
    low, middle, high = mine.intervals[""]
    assert low < middle < high and "at least 8" in mine.evidence
    assert other.verdict == "refuted"
    assert claim.check(Scale("full"))[0].numbers[""] == mine.numbers[""][:1]
    assert declare(at_least(10)).check(Scale("quick"))[0].verdict == "inconclusive"
    assert declare(at_least(20)).check(Scale("quick"))[0].verdict == "refuted"


def test_a_rule_may_judge_several_numbers(declare):
    rule = {"a": at_least(8), "b": at_most(4)}
    claim = declare(rule, run=several, control=third)
    mine, _ = claim.check(Scale("quick"))
    assert mine.verdict == "partly" and "Beside it: c 1" in mine.evidence
    with pytest.raises(ValueError, match="the rule names"):
        declare({"d": at_least(8)}, run=several).check(Scale("quick"))


def test_a_control_needs_a_number_of_its_own(declare):
    with pytest.raises(ValueError, match="measures what the claim measures"):
        declare(at_least(8), control=ten)
    with pytest.raises(SameAsClaim, match="complement"):
        declare(at_least(8), control=mirrored).check(Scale("quick"))
    with pytest.raises(ValueError, match="needs a statement"):
        declare(at_least(8)).control("it is not", at_least(1))


def test_three_seeds_data_and_a_measure_are_asked_for():
    with pytest.raises(ValueError, match="2 seeds at quick size; 3 or more"):
        empirical("toy2026", "Table 1", rule=at_least(1), seeds=2, **HOW)
    with pytest.raises(ValueError, match="names of the data"):
        empirical("t", "T", rule=at_least(1), measured="x", data="sonar")
    with pytest.raises(ValueError, match="interval 'bayes'"):
        empirical("t", "T", rule=at_least(1), interval="bayes", **HOW)


def record(verdict: str, control: str = "refuted") -> dict:
    found = {"verdict": verdict, "evidence": "e", "seeds": [0], "controls": [control]}
    return found | {"intervals": {"": [0, 1, 2]}}


def test_both_sizes_have_to_agree(declare):
    claim = declare(at_least(8))
    good, bad = record("confirmed"), record("refuted")
    assert final(claim, good, good)[0] == "confirmed"
    assert final(claim, good, bad)[0] == "inconclusive"
    assert final(claim, good, None)[0] == "inconclusive"
    assert final(claim, None, good)[0] == "inconclusive"
    assert final(declare(at_least(8), whole="the set is small"), good, None)[0] == (
        "confirmed"
    )
    missing = {"verdict": "not testable", "evidence": "no data", "intervals": {}}
    verdict, why = final(claim, good, missing)
    assert verdict == "inconclusive" and "Full: no data" in why
    wrong = record("confirmed", "confirmed")
    verdict, why = final(claim, good, wrong)
    assert verdict == "inconclusive" and "control was not refuted" in why
    stand_in = declare(at_least(8), stand_in="a1a for Adult")
    assert final(stand_in, bad, bad)[0] == NOT_REPRODUCED
    assert final(stand_in, good, good)[0] == "confirmed"
