"""`mklopt race`: files of one's own, several seeds, exit codes."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mklopt.cli import main

ROOT = Path(__file__).resolve().parents[3]


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
    found = json.loads(done.stdout)
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


def test_repeats_and_venues_are_options(mine, tmp_path):
    out = tmp_path / "out"
    words = ["--data", mine, "--solvers", "analytic", "--repeats", "2"]
    done = race(*words, "--venue", "icml", "--out", str(out), "--json")
    assert done.exit_code == 0, done.output
    runs = json.loads(done.stdout)["runs"]
    assert [run["repeat"] for run in runs] == [0, 1]
    assert "'venue': 'icml'" in (out / "redraw.py").read_text()
    wrong = race(*words, "--venue", "nips")
    assert wrong.exit_code == 2 and "did you mean 'neurips'" in wrong.output


SLOW = ["--data", "twonorm:n=900", "--kernels", "gaussian(1) on single,linear"]
SLOW += ["--solvers", "analytic,silp", "--tol", "1e-12", "--time-limit", "60"]


def test_ctrl_c_ends_a_race_and_what_is_done_is_saved(tmp_path):
    """Within two seconds of processor time; other programs may have the processor."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "mklopt", "race", *SLOW, "--out", str(out)]
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    how = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    job = subprocess.Popen(command, preexec_fn=heard, **how)  # type: ignore[call-overload]
    assert job.stderr is not None
    for line in job.stderr:  # a line a second, where there is no terminal
        if line.startswith("run 2 of 2, silp"):
            break
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun, before = time.monotonic(), cpu_seconds(job.pid)
    job.send_signal(signal.SIGINT)
    shown, _ = job.communicate(timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - spent.ru_utime - spent.ru_stime - before
    assert min(used, time.monotonic() - begun) < 2.0
    assert job.returncode == 1 and "stopped by Ctrl-C after 1 of 2 runs" in shown
    assert {p.name for p in out.iterdir()} == {"traces.csv", "table.tex", "redraw.py"}


def cpu_seconds(process: int) -> float:
    """User and system time of a process that is running."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
