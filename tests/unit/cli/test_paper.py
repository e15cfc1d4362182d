"""`mklopt paper`: which papers are run, at which size, and the exit code."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from click.testing import CliRunner

from mklopt.claims import history, items, registry, run
from mklopt.cli import main


@pytest.fixture
def asked(monkeypatch):
    """What run_papers is called with; it says that all is well."""
    found: dict[str, Any] = {}

    def fake(keys, mode, **how):
        found.update(how, keys=keys, mode=mode)
        return found.get("result", True)

    monkeypatch.setattr(run, "run_papers", fake)
    return found


def paper(*words: str):
    return CliRunner().invoke(main, ["paper", *words])


@pytest.mark.parametrize(
    "words, mode", [([], "quick"), (["--full"], "full"), (["--full", "--tiny"], "tiny")]
)
def test_the_size_is_chosen_by_a_flag(asked, words, mode):
    assert paper("kloft2011", *words, "--seed", "3", "--jobs", "1").exit_code == 0
    found = {"keys": ["kloft2011"], "mode": mode, "seed": 3, "out": None, "jobs": 1}
    if mode == "tiny":  # published pages stay
        found["out"] = str(items.ROOT / "papers" / ".work" / "tiny")
    found |= {"seeds": (), "only": (), "cluster": None, "hours": math.inf}
    assert not asked.pop("console").stderr
    assert asked == found


def test_json_has_the_ledgers(asked, tmp_path):
    home = tmp_path / "kloft2011" / "results"
    home.mkdir(parents=True)
    (home / "ledger.json").write_text('{"paper": "kloft2011", "claims": []}')
    done = paper("kloft2011", "--out", str(tmp_path), "--json")
    ledger = {"paper": "kloft2011", "claims": []}
    assert json.loads(done.stdout) == {"sound": True, "papers": [ledger]}
    assert asked["console"].stderr


def test_all_means_all_and_failures_have_their_exit_code(asked):
    asked["result"] = False
    assert paper("all").exit_code == 1 and asked["keys"] == items.known()


def test_mistakes_are_one_sentence_and_exit_code_2(tmp_path, monkeypatch):
    wrong = paper("nobody2026")
    assert wrong.exit_code == 2 and "paper 'nobody2026' is not known" in wrong.output
    assert "x>=1" in paper("kloft2011", "--jobs", "0").output
    monkeypatch.setattr(items, "ROOT", tmp_path)
    wrong = paper("all")
    assert wrong.exit_code == 2 and "run this in a checkout" in wrong.output


def test_rules_are_registered_and_the_order_of_results_is_checked(monkeypatch):
    monkeypatch.setattr(
        registry, "register", lambda *a: [{"claim": "c", "registration": "abc"}]
    )
    said = paper("kloft2011", "--register")
    assert said.exit_code == 0 and "kloft2011 c abc" in said.output
    monkeypatch.setattr(history, "check", lambda key: [])
    assert paper("all", "--registry").exit_code == 0
    monkeypatch.setattr(history, "check", lambda key: [f"{key} is late"])
    late = paper("kloft2011", "--registry")
    assert late.exit_code == 1 and "kloft2011 is late" in late.output


def test_seeds_are_whole_numbers_and_only_names_items(asked):
    assert (
        paper("kloft2011", "--seeds", "7,8", "--only", "a", "--out", "x").exit_code == 0
    )
    assert asked["seeds"] == (7, 8) and asked["only"] == ("a",)
    wrong = paper("kloft2011", "--seeds", "x")
    assert wrong.exit_code == 2 and "give whole numbers" in wrong.output
