"""`mklopt certify`: options, settings from a file, wrong input, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from mklopt.campaign.job import Campaign
from mklopt.campaign.runs import Run
from mklopt.cli import main

TINY = ("--solver", "hessian", "--loss", "hinge", "--formulation", "BlockL1")


def certify(*arguments: str, code: int = 0) -> str:
    """The command, here; its exit code is checked."""
    done = CliRunner().invoke(main, ["certify", "--jobs", "1", *arguments])
    assert isinstance(done.exception, SystemExit | None), done.exception
    assert done.exit_code == code, done.output
    return done.output


def started(*_: object) -> None:
    """In place of a method: a mistake would start every run there is."""
    pytest.fail("it was taken for a campaign, and started")


def solvers_of(folder: Path) -> list[str]:
    lines = (folder / "rows.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["solver"] for line in lines]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--solver", "simpel"], "solver 'simpel' is not known; did you mean 'simple'"),
        (["--data", "iris"], "data set 'iris' is not known"),
        (["--data", "nowhere.npz"], "nowhere.npz cannot be used"),
        (["--backend", "smoke", *TINY], "backend 'smoke' cannot be used"),
        (["--limit", "0"], "give a positive time"),
        (["--solver", "lbfgs", "--loss", "hinge"], "no solver supports"),
        (["--config", "nowhere.toml"], "nowhere.toml is not a TOML file"),
        (["--out", "/dev/null/x"], "Not a directory"),
    ],
)
def test_wrong_input_gets_one_clear_sentence(tmp_path, arguments, words, monkeypatch):
    monkeypatch.setattr(Run, "row", started)
    monkeypatch.chdir(tmp_path)
    assert words in certify(*arguments, code=2)


@pytest.mark.parametrize(
    "text, words",
    [
        ("solver = ", "is not a TOML file"),
        ("speed = 3", "has an option 'speed'; known are backend, data"),
        ("jobs = 'two'", "'two' is not a valid integer"),
        ("jobs = [1]", "jobs in .* is not a plain value"),
        ("quick = 'maybe'", "'maybe' is not a valid boolean"),
        ("[solver]\na = 1", "solver in .* is not a plain value"),
        ("loss = 2026-11-17", "loss in .* is not a plain value"),
        ("solver = 'simpel'", "solver 'simpel' is not known"),
        ("loss = [3]", "loss '3' is not known"),
        ("help = true", "has an option 'help'"),
        ("a = " + "[" * 5000, "is not a TOML file"),
    ],
)
def test_a_wrong_config_gets_one_clear_sentence(tmp_path, text, words, monkeypatch):
    monkeypatch.setattr(Campaign, "run", started)
    path = tmp_path / "job.toml"
    path.write_text(text)
    done = CliRunner().invoke(main, ["certify", "--config", str(path)])
    said = " ".join(done.output.replace("\n", " ").split())
    assert done.exit_code == 2 and re.search(words, said), said


def test_options_come_from_a_config_and_the_command_line_is_stronger(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(
        f"solver = ['hessian', 'simple']\nloss = 'hinge'\ndata = ['small']\n"
        f"formulation = ['BlockL1']\nout = '{tmp_path}/out'\nquick = true\n"
    )
    certify("--config", str(path), "--solver", "hessian")
    assert solvers_of(tmp_path / "out") == ["hessian"]


def test_a_verdict_that_fails_is_told_in_words_and_by_the_exit_code(tmp_path):
    out = ("--data", "small", "--limit", "1e-9", "--out", str(tmp_path))
    said = certify(*TINY, *out, code=1)
    assert "FAILS hessian on small-BlockL1" in said and "limit on time" in said
    summary = (tmp_path / "summary.md").read_text("utf-8")
    assert "* **hessian** on `small-BlockL1" in summary


def test_json_is_alone_on_the_output(tmp_path):
    words = [
        "certify",
        "--jobs",
        "1",
        "--quick",
        *TINY,
        "--out",
        str(tmp_path),
        "--json",
    ]
    done = CliRunner().invoke(main, words)
    found = json.loads(done.stdout)
    assert found["holds"] and found["runs"] == found["done"] > 0
    assert found["fails"] == [] and "report" in done.stderr
