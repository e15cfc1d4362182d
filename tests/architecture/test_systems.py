"""Windows and macOS by construction: what only Unix or Linux has is not needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINKS = ("formulations", "reference")  # in mklopt/

SOLVE = """
import numpy as np, mklopt
from mklopt.formulations import LpNorm
x = np.linspace(-1, 1, 12)
K = np.stack([np.outer(x, x), np.exp(-np.subtract.outer(x, x) ** 2)])
problem = mklopt.Problem(K, np.sign(x), "hinge", LpNorm(p=2))
result = mklopt.solve(problem, tol=1e-6)
assert result.status == "converged"
found = mklopt.certify(problem, dual=result.dual, weights=result.weights)
assert found.lower <= found.upper and found.relative_gap <= 1e-6
"""
# Loaded before, because they adapt to the system when they are imported.
OTHERS = """
import multiprocessing, subprocess, tempfile, threading
import cloudpickle, clarabel, cvxpy, numba, numpy, pandas, rich.progress, scipy.optimize
import sklearn.utils.validation, threadpoolctl
"""
WITHOUT_UNIX = """
import os, signal, sys
NAMES = '''fork forkpty register_at_fork preadv pwritev pread pwrite fdatasync killpg
posix_fadvise posix_spawn sched_getaffinity sched_setaffinity setsid getpgid getuid
geteuid getgid chown mkfifo uname nice sysconf WNOHANG O_DIRECT O_DIRECTORY O_NOFOLLOW
O_CLOEXEC O_NONBLOCK'''
for name in NAMES.split():
    vars(os).pop(name, None)
for name in "SIGALRM SIGHUP SIGQUIT SIGUSR1 SIGUSR2 alarm setitimer".split():
    vars(signal).pop(name, None)
for name in "fcntl resource pwd grp termios tty pty syslog posix".split():
    sys.modules[name] = None
"""
EVERYTHING = """
import os
assert mklopt.solve(problem, tol=1e-6, checkpoint="run.checkpoint").converged
assert mklopt.solve(problem, tol=1e-6, checkpoint="run.checkpoint").converged
mklopt.GramStack.write("kernels.npy", problem.grams)
disk = mklopt.GramStack.open("kernels.npy")
on_disk = mklopt.Problem(disk, problem.y, "hinge", LpNorm(p=2))
assert abs(mklopt.solve(on_disk, tol=1e-6).certificate.lower - found.lower) < 1e-4
reference = mklopt.reference.solve(problem)
assert reference.lower <= found.upper
from mklopt.campaign.job import Campaign, Selection
job = Campaign("out", Selection(True, 30.0, frozenset({"analytic"})))
assert job.ledger.append(next(iter(job.todo)).row()).holds
import mklopt.cli.certify, mklopt.judge.exam.exam, mklopt.estimators
from mklopt.judge.exam.child import start_method
assert start_method() == "spawn"
"""


def run(code: str, folder: Path, home: Path = ROOT) -> subprocess.CompletedProcess:
    env = {**os.environ, "PYTHONPATH": str(home)}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_nothing_that_only_unix_has_is_needed(tmp_path):
    done = run(OTHERS + WITHOUT_UNIX + SOLVE + EVERYTHING, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def without_links(tmp_path) -> Path:
    """A checkout as git makes it where there are no symbolic links."""
    home = tmp_path / "checkout"
    leave = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for top in ("mklopt", *LINKS):
        shutil.copytree(ROOT / top, home / top, symlinks=True, ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, home)
    for name in LINKS:
        link = home / "mklopt" / name
        target = os.readlink(link)
        link.unlink()
        link.write_text(target)
    return home


def test_a_checkout_without_symbolic_links_works(without_links, tmp_path):
    where = "\nprint(mklopt.__file__, mklopt.formulations.__file__)"
    done = run(SOLVE + where, tmp_path, without_links)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(str(without_links)) == 2
    again = run(SOLVE, without_links, without_links)
    assert again.returncode == 0, again.stderr


@pytest.mark.full
def test_it_installs_as_the_makefile_does(without_links, tmp_path):
    site = tmp_path / "site"
    install = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"),
        *("--no-build-isolation", "--config-settings", "editable_mode=compat"),
        *("--target", str(site), "-e", str(without_links)),
    ]
    subprocess.run(install, check=True, cwd=tmp_path)
    (line,) = site.glob("*.pth")  # what Python adds to its path when it starts
    done = run(
        SOLVE + "print(mklopt.__file__)", tmp_path, Path(line.read_text().strip())
    )
    assert done.returncode == 0, done.stderr
    assert str(without_links) in done.stdout
