"""Rules are registered before they are run, and never taken back."""

from __future__ import annotations

import json

import pytest

from mklopt.claims import registry
from tests.unit.claims.conftest import measured_toy


@pytest.fixture
def measured(toy, tmp_path, monkeypatch):
    """The toy paper with an empirical claim; loads it again after an edit."""
    return lambda *edit: measured_toy(toy, tmp_path, monkeypatch, *edit)


def test_a_claim_is_registered_once_and_a_changed_one_anew(measured, toy):
    paper = measured()
    (claim,) = registry.empirical_of(paper)
    with pytest.raises(registry.NotRegistered, match="--register"):
        registry.check(claim)
    (line,) = registry.register(paper, {})
    assert registry.check(claim) == line["registration"] == registry.digest(line)
    assert registry.register(paper, {}) == []
    assert line["rule"] == {"": "at most 5"} and line["seeds"]["quick"] == [0, 1, 2]

    changed = measured("at_most(5)", "at_most(6)")
    with pytest.raises(registry.NotRegistered):
        registry.check(registry.empirical_of(changed)[0])
    with pytest.raises(ValueError, match="after its result was known"):
        registry.register(changed, {claim.name: "quick: confirmed"})
    registry.register(changed, {claim.name: "quick: confirmed"}, "5 was a slip")
    first, second = registry.registrations(toy)
    assert first == line and second["before"] == line["registration"]
    assert second["why"] == "5 was a slip (before: quick: confirmed)"
    assert second["seen"] == "quick: confirmed"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("of the squares is small", "of the squares is tiny"),
        ("square.mean()", "square.median()"),
        ('measured="their mean"', 'measured="their median"'),
        ('data=("drawn",)', 'data=("drawn", "more")'),
        ("seeds=3", "seeds=4"),
        ("at_least(1000)", "at_least(999)"),
        ("square.max()", "square.min()"),
        ("normal(size=n)", "normal(size=n + 1)"),  # the study
    ],
)
def test_everything_that_decides_a_verdict_is_in_the_hash(measured, old, new):
    before = registry.present(registry.empirical_of(measured())[0])
    assert registry.present(registry.empirical_of(measured(old, new))[0]) != before


def test_words_around_it_are_not(measured):
    before = registry.present(registry.empirical_of(measured())[0])
    after = measured("Squares of random numbers", "Random squares")
    assert registry.present(registry.empirical_of(after)[0]) == before


def test_a_claim_without_a_control_cannot_be_registered(measured):
    paper = measured("@the_mean_is_small.control", "(lambda *a: lambda f: f)")
    with pytest.raises(ValueError, match="has no control"):
        registry.register(paper, {})


def test_what_is_published_is_known(toy, tmp_path):
    results = tmp_path / "papers" / toy / "results"
    results.mkdir()
    records = {"a": {"registration": "x", "verdict": "partly"}, "b": {"verdict": "no"}}
    (results / "quick.json").write_text(json.dumps(records))
    assert registry.published(toy) == {"a": "quick: partly"}
