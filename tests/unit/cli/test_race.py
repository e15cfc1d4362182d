"""`mklopt race`: files of one's own, several seeds, exit codes."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from mklopt.cli import main


def race(*words: str):
    return CliRunner().invoke(main, ["race", *words])


@pytest.fixture
def mine(tmp_path) -> str:
    L = np.random.default_rng(0).normal(size=(3, 20, 4))
    y = np.where(L[0, :, 0] > 0, 1.0, -1.0)
    np.savez(tmp_path / "mine.npz", K=L @ L.transpose(0, 2, 1), y=y)
    return str(tmp_path / "mine.npz")


def test_every_solver_runs_with_every_seed_on_every_problem(mine, tmp_path):
    words = ["--data", mine, "--solvers", "analytic, pegasos", "--seeds", "0,1"]
    words += ["--no-bias", "--tol", "1e-3", "--out", str(tmp_path / "out"), "--json"]
    done = race(*words)
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    pairs = {(run["solver"], run["seed"]) for run in found["runs"]}
    assert {("pegasos", 0), ("pegasos", 1), ("analytic", 0)} <= pairs
    assert all(run["problem"] == mine and run["seconds"] > 0 for run in found["runs"])
    ((lower, upper),) = found["intervals"].values()
    assert 0 < lower <= upper


def test_a_tolerance_that_nobody_reaches_has_exit_code_1(mine, tmp_path):
    words = ["--data", mine, "--solvers", "simple", "--formulation", "l1", "--tol", "0"]
    out = str(tmp_path / "out")
    done = race(*words, "--time-limit", "0.05", "--out", out)
    assert done.exit_code == 1 and f"{out}: " in done.output


def test_mistakes_are_one_sentence_and_exit_code_2(mine):
    for words, said in (
        (["--seeds", "x"], "such as 0,1,2"),
        (["--kernels", "linear"], "leave out --kernels"),
        (["--loss", "hing"], "loss = 'hing' is not known"),
    ):
        done = race("--data", mine, "--solvers", "auto", *words)
        assert done.exit_code == 2 and said in done.output


def test_a_solver_of_ones_own_takes_part(mine, tmp_path, monkeypatch):
    (tmp_path / "own_for_race.py").write_text(
        "import mklopt\n"
        "def solve(problem):\n"
        "    return mklopt.solve(problem, tol=1e-9).weights\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    words = ["--data", mine, "--solvers", "analytic,own_for_race:solve", "--json"]
    done = race(*words, "--tol", "1e-4")
    assert done.exit_code == 0, done.output
    names = {run["solver"]: run["status"] for run in json.loads(done.stdout)["runs"]}
    assert names == {"analytic": "converged", "own_for_race:solve": "converged"}
    alone = ["solve", mine, "--solver", "own_for_race:solve"]
    assert CliRunner().invoke(main, alone).exit_code == 0
