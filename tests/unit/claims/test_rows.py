"""Rows of studies: kept part by part, and not measured again."""

from __future__ import annotations

import time

import numpy as np
import pytest

from mklopt.claims.rows import Deadline, OutOfTime, Part, kept, measured, took


def parts(done: list[int], stop: int = 99) -> list[Part]:
    def call(k: int):
        if k == stop:
            raise KeyboardInterrupt
        done.append(k)
        return {"k": np.int64(k), "square": np.float64(k) ** 2, "who": "ℓ1"}

    return [Part({"k": k}, lambda k=k: call(k)) for k in range(4)]  # type: ignore[misc]


def test_a_run_that_is_stopped_loses_one_part(tmp_path):
    path = tmp_path / "rows.jsonl"
    done: list = []
    with pytest.raises(KeyboardInterrupt):
        measured(parts(done, stop=2), path)
    assert done == [0, 1] and len(kept(path)) == 2
    with open(path, "ab") as file:
        file.write(b'{"part": "torn')  # as a kill leaves it
    found = measured(parts(done), path)
    assert done == [0, 1, 2, 3]
    assert found.equals(measured(parts([])))
    assert list(found.square) == [0, 1, 4, 9] and measured(parts(done), path).equals(
        found
    )
    assert done == [0, 1, 2, 3]
    assert took([path])["parts"] == 4


def test_a_run_ends_between_two_parts_when_its_time_is_over(tmp_path, monkeypatch):
    monkeypatch.setattr(Deadline, "ends", time.time() - 1)
    with pytest.raises(OutOfTime, match="0 of 4 parts are kept"):
        measured(parts([]), tmp_path / "rows.jsonl")


def test_a_part_returns_a_row_or_rows_or_a_table():
    import pandas as pd

    rows = [{"a": 1}, {"a": 2}]
    for found in (rows, iter(rows), pd.DataFrame(rows)):
        assert Part({}, lambda found=found: found).rows() == rows  # type: ignore[misc]
    assert Part({}, lambda: rows[0]).rows() == rows[:1]


def test_progress_is_shown(capsys, monkeypatch):
    monkeypatch.setattr("mklopt.claims.rows.PAUSE", -1.0)
    measured(parts([]), title="toy squares")
    assert "toy squares: 2 of 4 parts" in capsys.readouterr().err
