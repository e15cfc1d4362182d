"""Traces: rows, columns and files."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem, Result, Trace, solve
from mklopt.formulations import LpNorm
from mklopt.run.trace import COLUMNS, read_columns
from tests.problems import subset_gaussians

K, Y = subset_gaussians(60, 6)
GRAMS = GramStack(K)


def problem(**changes) -> Problem:
    return Problem(GRAMS, Y, "hinge", LpNorm(4 / 3), C=1.0).with_(**changes)


BEST = solve(problem(), "analytic", tol=1e-9)


def test_traces_grow_and_survive_a_file(tmp_path):
    trace = BEST.trace
    assert np.all(np.diff(trace.gap) <= 0) and np.all(np.diff(trace.seconds) >= 0)
    assert np.all(trace.solver_seconds <= trace.seconds)
    assert np.all(trace.primal >= trace.dual)
    assert list(trace.svm_solves) == list(range(1, len(trace) + 1))
    frame = trace.to_frame()
    assert len(frame) == len(trace) and frame["gap"].iloc[-1] == trace.gap[-1]
    trace.save(tmp_path / "trace.npz")
    again = Trace.load(tmp_path / "trace.npz")
    assert again.about == trace.about
    for name in frame.columns:
        np.testing.assert_array_equal(getattr(again, name), getattr(trace, name))
    assert [path.name for path in tmp_path.iterdir()] == ["trace.npz"]
    with pytest.raises(AttributeError, match="no column 'loss'"):
        trace.loss  # noqa: B018


def test_files_that_are_not_ours_are_refused(tmp_path):
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"not an archive")
    with pytest.raises(ValueError, match="not a file written by mklopt"):
        Trace.load(broken)
    BEST.trace.save(tmp_path / "trace.npz")
    with pytest.raises(ValueError, match="holds a trace, not a result"):
        Result.load(tmp_path / "trace.npz", problem())
    with pytest.raises(FileNotFoundError):
        Trace.load(tmp_path / "nowhere.npz")


def row(**changes):
    numbers = dict.fromkeys(COLUMNS, 0.0) | {"seconds": 2.0, "passes": 3.0}
    return numbers | changes


def test_rows_become_columns_of_the_right_kind():
    trace = Trace(solver="none")
    assert str(trace) == "no iterates" and len(trace) == 0
    trace.append(**row(gap=0.5, iteration=0))
    assert str(trace) == "1 iterate, 2.00 s, 3.0 passes"
    trace.append(**row(gap=0.25, iteration=4))
    assert trace.last("gap") == 0.25 and trace.last("gap", 1) == 0.5
    assert trace.iteration.dtype == int and list(trace["iteration"]) == [0, 4]
    assert repr(trace) == "Trace(2 iterates, 2.00 s, 3.0 passes)"
    with pytest.raises(KeyError):
        trace.append(gap=1.0)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"gap": None}, "has no column gap of a trace"),
        ({"gap": np.zeros(3)}, "not those of one trace"),
        ({"gap": np.array(["a", "b"])}, "not those of one trace"),
        ({"rounds": np.array([0.0, 1e300])}, "not whole numbers"),
    ],
)
def test_columns_of_a_file_are_checked(changes, words):
    arrays = {name: np.zeros(2) for name in COLUMNS} | changes
    arrays = {name: column for name, column in arrays.items() if column is not None}
    with pytest.raises(ValueError, match=words):
        read_columns("file.npz", arrays)
