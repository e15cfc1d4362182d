"""Claims, studies and their scales: declared, found, kept."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mklopt.campaign.fingerprint import fingerprint
from mklopt.claims import items as papers
from mklopt.claims.items import Finding, NotACheckout, Scale, decide
from mklopt.judge.rates import RateCheck


def test_another_seed_or_mode_is_another_study(toy, tmp_path):
    item = papers.load(toy).studies["squares"]
    first, again, other = (item(Scale("tiny", seed)) for seed in (0, 0, 1))
    assert first.equals(again) and not first.equals(other)
    assert len(item(Scale("quick"))) == 10
    kept = item(Scale("tiny", 0, tmp_path / "kept"))
    assert kept.equals(item(Scale("tiny", 0, tmp_path / "kept")))
    assert kept.equals(first)  # the CSV holds every bit


def test_code_that_changes_is_run_again(toy, tmp_path):
    item = papers.load(toy).studies["squares"]
    claim = papers.load(toy).claims["cannot_fail"]
    room = tmp_path / "papers" / toy

    def edited(name: str, text: str) -> tuple[str, str]:
        """Fingerprints of study and claim, as a new process sees them."""
        (room / name).write_text(text)
        fingerprint.cache_clear()
        return item.fingerprint, claim.fingerprint

    study, claims = (room / "studies.py").read_text(), (room / "claims.py").read_text()
    before = edited("studies.py", study)
    assert edited("studies.py", f"# a remark\n{study}") == before
    found = edited("claims.py", claims.replace(">= 0", "> 0"))
    assert found[0] == before[0]  # claims do not concern a study
    assert found[1] != before[1]
    both = edited("studies.py", study.replace("/ 3", "/ 4"))
    assert both[0] != before[0] and both[1] != found[1]


def test_findings_are_checked_words_and_plain_numbers():
    found = decide(np.bool_(True), "good", a=np.float64(1), b=np.inf, c=np.arange(2))
    assert found == Finding("confirmed", "good", {"a": 1.0, "b": "inf", "c": [0, 1]})
    assert json.dumps(found.numbers)
    assert decide(False, "bad").verdict == "refuted"
    with pytest.raises(ValueError, match="choose one of confirmed"):
        Finding("true", "x")
    with pytest.raises(ValueError, match="evidence"):
        decide(True, " ")
    judged = Finding.of(RateCheck("", "violated", "too large", 0.5, 3), more=1)
    assert judged.verdict == "refuted" and judged.numbers["more"] == 1
    assert Finding.of(RateCheck("", "vacuous", "says nothing")).verdict == "vacuous"


def test_wrong_names_get_one_sentence(toy, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="paper 'nobody' is not known; choose one of"):
        papers.load("nobody")
    with pytest.raises(ValueError, match="mode 'huge'; choose one of tiny"):
        Scale("huge")
    with pytest.raises(ValueError, match="has no docstring"):
        papers.study(toy)(lambda scale: None)
    monkeypatch.setattr(papers, "ROOT", tmp_path / "elsewhere")
    with pytest.raises(NotACheckout, match="run this in a checkout"):
        papers.known()


def test_a_scale_chooses_sizes_and_draws_the_same_numbers():
    assert [Scale(mode).of(1, 2, 3) for mode in ("tiny", "quick", "full")] == [1, 2, 3]
    first, again = (Scale(seed=1).rng("a", 2).random(3) for _ in range(2))
    assert np.array_equal(first, again)
    for other in (Scale(seed=2).rng("a", 2), Scale(seed=1).rng("a", 3)):
        assert not np.array_equal(first, other.random(3))


def test_a_paper_has_its_items_in_the_order_of_its_files(toy):
    paper = papers.load(toy)
    assert paper.title == "Nobody, A toy, 2026." and paper.about == "Squares."
    names = ["squares_are_positive", "cannot_fail", "without_data", "broken"]
    assert list(paper.claims) == names and list(paper.studies) == ["squares"]
    assert [item.name for item in paper.items()] == [
        *("squares", *names, "drawn", "sheet")
    ]
    claim = paper.claims["squares_are_positive"]
    assert claim.words == "No square | of a real number is negative."
    assert claim.place == "Theorem 1" and claim.figure == "drawn"


def test_the_studies_behind_an_item_are_named(toy):
    paper, scale = papers.load(toy), Scale("tiny")
    found, studies = papers.used_by(paper.claims["squares_are_positive"], scale)
    assert found.verdict == "confirmed" and studies == ["squares"]
    assert papers.used_by(paper.studies["squares"], scale)[1] == []
    assert papers.used_by(paper.claims["cannot_fail"], scale)[1] == []


def test_a_check_returns_a_finding(toy):
    bad = papers.claim(toy, "Theorem 4", wrong=None)(yes)
    with pytest.raises(TypeError, match="yes returned True; return a Finding"):
        bad(Scale("tiny"))


def yes(scale):
    """A check that forgets its evidence."""
    return True
