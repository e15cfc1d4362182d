"""Long commands are announced, short ones are not."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import Problem
from mklopt.cli import estimates
from mklopt.formulations import LpNorm


@pytest.fixture
def problem():
    return Problem(np.eye(4)[None], [1, -1, 1, -1], formulation=LpNorm(2))


def test_short_runs_are_not_announced(problem, capsys):
    assert not estimates.announce({"a": problem}, ["auto"], 1e-6, None)
    assert capsys.readouterr().err == ""


def test_long_runs_are_announced_on_the_error_output(problem, capsys, monkeypatch):
    monkeypatch.setattr("mklopt.tasks.estimate.seconds_of_read", lambda grams: 100.0)
    assert estimates.announce({"a": problem}, ["auto"], 1e-6, None)
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("a: analytic to a gap of 1e-06: about 12 min")
    assert estimates.announce({"a": problem}, ["auto", "spicy"], 1e-6, 45.0)
    err = capsys.readouterr().err
    assert err.count("the time limit of 45 s comes first") == 2
    assert err.endswith("2 runs: about 90 s\n")
    assert not estimates.announce({"a": problem}, ["auto"], 1e-6, 45.0)


def test_wrong_arguments_are_left_to_the_solvers(problem, capsys):
    assert not estimates.announce({"a": problem}, ["nobody", "simple"], 1e-6, None)
    assert not estimates.announce({"a": problem}, ["auto"], 0.0, None)
    assert capsys.readouterr().err == ""
