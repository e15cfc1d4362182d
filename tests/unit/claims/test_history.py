"""Git's history: a rule has to be older than its result."""

from __future__ import annotations

import json
import subprocess

import pytest

from mklopt.claims import history, items
from mklopt.claims.repository import commit


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one paper; a function that writes a file and commits it."""
    monkeypatch.setattr(items, "ROOT", tmp_path)

    def run(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        command = ["git", "-C", str(tmp_path), *who, *words]
        subprocess.run(command, check=True, capture_output=True)

    def write(**files: str) -> str:
        for name, text in files.items():
            path = tmp_path / PATHS[name]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        run("add", "-A")
        run("commit", "-q", "--allow-empty", "-m", "a step")
        return commit()

    run("init", "-q")
    return write


PATHS = {
    "rule": "papers/toy/registry.jsonl",
    "result": "papers/toy/results/quick.json",
    "code": "papers/toy/claims.py",
}
LINE = json.dumps({"claim": "c", "registration": "abc123"}) + "\n"


def result(made_on: str) -> str:
    return json.dumps({"c": {"registration": "abc123", "commit": made_on}})


def test_a_rule_before_its_result_is_right(repository):
    repository(code="1")
    made_on = repository(rule=LINE)
    repository(result=result(made_on))
    assert history.check("toy") == []
    assert history.committed("toy", "abc123") and not history.committed("toy", "other")


def test_both_in_one_commit_are_wrong(repository):
    before = repository(code="1")
    repository(rule=LINE, result=result(before))
    (said,) = history.check("toy")
    assert "before it was registered" in said


def test_a_result_of_code_that_is_not_committed_is_wrong(repository):
    made_on = repository(rule=LINE)
    repository(result=result(f"{made_on}+"))
    assert "commit the code" in history.check("toy")[0]


def test_a_rule_that_came_later_is_wrong(repository):
    before = repository(code="1")
    repository(result=result(before))
    repository(rule=LINE)
    assert "before it was registered" in history.check("toy")[0]
    repository(result=result(commit()))  # the rule, then a new date on the old result
    assert "it was published in" in history.check("toy")[0]


def test_a_result_without_a_rule_is_wrong(repository):
    made_on = repository(result=result("x"))
    repository(result=result(made_on))
    assert "not in the registry" in history.check("toy")[0]


def test_a_registry_that_loses_a_line_is_wrong(repository):
    repository(rule=LINE + "{}\n")
    repository(rule=LINE)
    assert "takes 1 lines out of the registry" in history.check("toy")[0]
