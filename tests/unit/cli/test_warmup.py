"""`mklopt warmup`: what it compiles, and what is then left to compile: nothing."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from mklopt.cli import main, warmup
from mklopt.util import compiled

AFTERWARDS = """
import numpy as np
from mklopt import GramStack, Problem, kernels, solve
from mklopt.cli import main
from mklopt.formulations import ElasticNet, GroupLasso, LpNorm, VSKL, losses_by_name
from mklopt.util.compiled import compilation

main(["warmup"], standalone_mode=False)
ready = compilation.ready
assert ready > 10, ready
X = np.random.default_rng(1).normal(size=(83, 4))
classes = np.sign(X[:, 0]), (X[:, 0] > 0) + 1 * (X[:, 1] > 0)
y = {"binary": classes[0], "classes": classes[1], "real": X[:, 2], "ones": np.ones(83)}
fitted = kernels.gaussians(np.geomspace(1, 9, 11)).fit(X)
stacks = [fitted.grams(), GramStack(np.stack(list(fitted))), fitted.lazy()]
groups = (tuple(range(5)), tuple(range(5, 11)))
for loss in [kind.examples()[-1] for kind in losses_by_name().values()]:
    for omega in (LpNorm(4 / 3), GroupLasso(), ElasticNet(0.3), VSKL(groups)):
        grams = stacks.pop(0)
        stacks.append(grams)
        p = Problem(grams, y[loss.labels], loss, omega, 10.0, bias=loss.bias_allowed)
        solve(p, tol=1e-4, max_iter=10)
        new = compilation.ready - ready
        assert not new, f"{new} compiled for {loss} and {omega}"
fitted.cross(X[:3])
assert compilation.ready == ready
GramStack(np.stack(list(fitted)).astype("float32"), dtype="float32").matvec(X[:, 0])
assert compilation.ready > ready  # the count sees what was not prepared
print("nothing new")
"""


def test_after_it_no_loss_has_anything_to_compile():
    command = [sys.executable, "-W", "ignore", "-c", AFTERWARDS]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.endswith("nothing new\n"), done.stderr


@pytest.fixture
def said(monkeypatch):
    """What the command prints when it has one step, and its exit code."""
    for name in (compiled.NOTICED, compiled.TOLD):
        monkeypatch.setenv(name, "0")  # the command sets them
    monkeypatch.setattr(warmup, "steps", lambda: iter([("a step", iter(()))]))

    def run_command():
        done = CliRunner().invoke(main, ["warmup"])
        return done.exit_code, done.stdout, done.stderr

    return run_command


def test_it_says_how_many_functions_and_how_long(said, monkeypatch):
    monkeypatch.setattr(compiled, "_uncached", [])
    code, out, err = said()
    assert (code, err) == (0, "") and out.startswith("a step: 0.0 s\n")
    assert re.fullmatch(r"\d+ functions compiled in \d+ s", out.splitlines()[1])


def test_without_a_folder_for_the_cache_it_says_so_in_one_sentence(said, monkeypatch):
    monkeypatch.setattr(compiled, "_uncached", ["cannot write", "again"])
    code, out, err = said()
    assert code == 1 and "functions compiled" in out
    assert "not kept for the next start (cannot write); set NUMBA_CACHE" in err
    assert err.count("\n") == 1
