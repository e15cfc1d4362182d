"""Installed as a wheel where nothing can be written, without HOME or a cache."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from mklopt.formulations import VSKL
from tests.faults import reader_of

PROX = """
import mklopt, numpy as np
from mklopt.formulations import VSKL
print(VSKL(((0, 1), (2,)), 2.0).prox(np.array([1.0, 2.0, 3.0]), 0.5), mklopt.__file__)
"""
SOLVED = """
import sys, numpy as np, mklopt
from mklopt.formulations import LpNorm
x = np.linspace(-1, 1, 20)
K = np.stack([np.outer(x, x), np.exp(-np.subtract.outer(x, x) ** 2)])
problem = mklopt.Problem(K, np.sign(x), "hinge", LpNorm(p=2))
print(mklopt.solve(problem, tol=1e-6).status)
print(mklopt.reference.solve(problem).certificate.relative_gap < 1e-6)
"""


@pytest.fixture
def installed(wheel, tmp_path) -> Iterator[Callable]:
    """Runs Python code as a user who can write nowhere but to /tmp."""
    home = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(home)
    for folder in (home, *home.rglob("*")):
        folder.chmod(0o555 if folder.is_dir() else 0o444)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)  # others may come this way
    prefix = reader_of(home)
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(home)}
    env |= {name: "1" for name in os.environ if name.endswith("_NUM_THREADS")}
    env["XDG_CACHE_HOME"] = str(home)

    def run(*arguments: str) -> subprocess.CompletedProcess:
        command = [*prefix, sys.executable, *arguments]
        return subprocess.run(
            command, env=env, cwd=home, capture_output=True, text=True
        )

    yield run
    for folder in (home, *home.rglob("*")):
        folder.chmod(0o755)


def test_it_runs_and_says_once_that_it_is_slower(installed):
    done = installed("-c", PROX)
    expected = VSKL(((0, 1), (2,)), 2.0).prox(np.array([1.0, 2.0, 3.0]), 0.5)
    assert done.stdout.startswith(f"{expected} ") and "site" in done.stdout, done.stderr
    assert done.stderr.count("compiled code cannot be cached") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.full
def test_commands_that_cannot_write_say_so(installed):
    command = "from mklopt.cli import main; main()"
    assert "GroupLasso" in installed("-c", command, "list").stdout
    done = installed("-c", command, "paper", "kloft2011")
    assert done.returncode == 2 and "checkout" in done.stderr


@pytest.mark.full
def test_everything_runs(installed):
    done = installed("-c", SOLVED)
    assert done.stdout.split() == ["converged", "True"], done.stderr
    assert done.stderr.count("compiled code cannot be cached") == 1
