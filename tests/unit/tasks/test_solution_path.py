"""A path is a list of results, with their arrays and tables."""

from __future__ import annotations

import numpy as np
import pytest

import mklopt
from mklopt import Problem
from mklopt import formulations as F
from mklopt.reference.contract_problems import load
from mklopt.tasks.solution_path import Path

SMALL, TARGETS = load("small")


@pytest.fixture(scope="module")
def path() -> Path:
    p = Problem(SMALL, TARGETS["binary"], "logistic", F.ElasticNet(0.5))
    return mklopt.path(p, points=3, tol=1e-8)


def test_it_is_like_a_list_of_results(path):
    assert len(path) == 3 and list(path) == [path[0], path[1], path[2]]
    np.testing.assert_array_equal(path.C, [r.problem.C for r in path])
    np.testing.assert_array_equal(path.weights[1], path[1].weights)
    assert path.converged and "3 points" in repr(path)


def test_a_table_may_say_what_is_proved_of_the_minimizers(path):
    frame = path.to_frame(intervals=True)
    facts = [result.intervals() for result in path]
    assert frame["used"].tolist() == [int(f.used.sum()) for f in facts]
    assert frame["unused"].tolist() == [int(f.unused.sum()) for f in facts]
    assert frame["used"].iloc[-1] > 0 and "used" not in path.to_frame()


def test_a_notebook_shows_a_row_per_point(path):
    shown = path._repr_html_()
    assert shown.count("<tr>") == 4 and "converged" in shown
    assert "worst relative gap" in shown
