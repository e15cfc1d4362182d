"""Curves of a race: traces that are read, medians and quartiles."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mklopt.run.trace import COLUMNS
from mklopt.tasks.race_curves import (
    FLOOR,
    median_curve,
    names_in,
    points_of,
    read_traces,
    runs_of,
    times_to,
)


def table(**columns):
    count = len(columns["gap"])
    rows = {c: np.zeros(count) for c in COLUMNS} | {"width": np.zeros(count)}
    who = {"problem": "p", "solver": "s", "seed": 0, "repeat": 0}
    return pd.DataFrame({**who, **rows, **columns})


def test_a_file_gives_the_same_bits_and_names(tmp_path):
    rows = table(gap=[1 / 3, 1e-17 / 7], seconds=[0.1, np.pi], solver=["nan", "nan"])
    rows.to_csv(tmp_path / "traces.csv", index=False)
    again = read_traces(tmp_path / "traces.csv")
    pd.testing.assert_frame_equal(again, rows, check_exact=True)
    assert names_in(again, "solver") == ["nan"]


def test_other_tables_are_refused():
    with pytest.raises(ValueError, match="no column repeat"):
        read_traces(table(gap=[1.0]).drop(columns="repeat"))
    with pytest.raises(ValueError, match="traces = 3"):
        read_traces(3)


def test_runs_are_split_by_seed_and_repeat():
    rows = table(gap=[1.0, 0.1, 1.0, 0.2], seed=[0, 0, 1, 1], seconds=[0, 1, 0, 3])
    runs = runs_of(rows, "p", "s")
    assert [times_to(run, 0.15) for run in runs] == [1.0, np.inf]
    assert runs_of(rows, "p", "other") == []


def test_points_have_finite_gaps_above_the_floor_and_iterates_from_one():
    rows = table(gap=[np.inf, 0.5, 0.0], iteration=[0, 1, 2])
    x, y = points_of(rows, "iteration", "gap")
    assert x.tolist() == [2, 3] and y.tolist() == [0.5, FLOOR]


def test_one_run_is_its_own_median():
    x, y = np.array([1.0, 2.0]), np.array([1.0, 0.1])
    found = median_curve([(x, y)], True)
    assert found.middle is y and found.low is y


def test_repeats_of_one_run_have_the_median_time_at_every_gap():
    gaps = np.array([1.0, 1e-2, 1e-4])
    runs = [(k * np.array([1.0, 2.0, 4.0]), gaps) for k in (1.0, 2.0, 4.0)]
    found = median_curve(runs, True)
    assert found.x[0] == 2.0 and found.x[-1] == 8.0  # medians of first and last
    at = dict(zip(found.x, found.middle))
    assert at[4.0] == pytest.approx(1e-2) and at[8.0] == pytest.approx(1e-4)
    assert np.all(found.low <= found.middle) and np.all(found.middle <= found.high)


def test_medians_are_of_logarithms_and_runs_keep_their_last_value():
    x = np.array([1.0, 10.0])
    runs = [(x, np.array([1.0, end])) for end in (1e-2, 1e-4, 1e-6)]
    runs[0] = (np.array([1.0, 5.0]), np.array([1.0, 1e-2]))
    found = median_curve(runs, False)
    assert found.x[-1] == 10.0 and found.middle[-1] == pytest.approx(1e-4)
    assert found.high[-1] == pytest.approx(1e-3)  # half way between 1e-2 and 1e-4


def test_counts_stay_until_the_next():
    runs = [(np.array([1.0, 3.0]), np.array([4.0, end])) for end in (2.0, 2.0, 6.0)]
    runs[2] = (np.array([1.0, 2.0]), np.array([4.0, 6.0]))
    found = median_curve(runs, False, steps=True)
    assert found.x.tolist() == [1.0, 2.0, 3.0]
    assert found.middle.tolist() == [4.0, 4.0, 2.0]
