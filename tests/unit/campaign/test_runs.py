"""One run of the main job: its row, its point, and what is no verdict."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mklopt.campaign import runs
from mklopt.campaign.runs import REFERENCE, ReferenceRun, Run, point_of, thinned
from mklopt.reference.contract_problems import Cell, small_cells
from mklopt.run.trace import COLUMNS, Trace


@pytest.fixture(scope="module")
def cell() -> Cell:
    def wanted(cell: Cell) -> bool:
        kind = type(cell.formulation).__name__
        return (cell.loss.name, kind, cell.C) == ("hinge", "BlockL1", 1.0)

    return next(filter(wanted, small_cells()))


def run_of(cell: Cell, folder: Path) -> Any:
    return Run("hessian", cell, 1e-6, 30.0, folder)


def test_a_run_leaves_a_row_a_point_and_a_certificate(cell, tmp_path):
    run = run_of(cell, tmp_path)
    row = run.row()
    assert row.holds and row.gap <= 1e-6 and row.theorem and row.id == run.id
    assert row.lower <= row.reference_upper and row.reference_lower <= row.upper
    assert point_of(tmp_path, row.id).is_file()
    assert (tmp_path / row.certificate).is_file()


def test_the_reference_is_judged_by_the_derived_dual(cell, tmp_path):
    run = ReferenceRun(REFERENCE, cell, 1e-8, math.inf, tmp_path)
    row = run.row()
    assert row.holds and "the derived dual is" in row.reason
    assert run.aspects == {(REFERENCE, "BlockL1", "hinge")}
    assert not replace(run, tol=0.0).row().holds


def test_what_a_solver_raises_is_a_verdict_and_a_full_disk_is_none(
    cell, tmp_path, monkeypatch
):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr(runs, "solve", broken)
    error: Exception = RuntimeError("out of luck")
    row = run_of(cell, tmp_path).row()
    assert not row.holds and row.reason == "it raised RuntimeError: out of luck"
    error = OSError("no space left")
    with pytest.raises(OSError, match="no space left"):
        run_of(cell, tmp_path).row()


def test_a_thinned_curve_keeps_both_ends():
    trace = Trace()
    for i in range(1000):
        trace.append(
            **dict.fromkeys(COLUMNS, 1 / 3) | {"iteration": i, "gap": 1 / (i + 1)}
        )
    curve = thinned(trace, points=20)
    assert curve["iteration"][0] == 0 and curve["iteration"][-1] == 999
    assert len(curve["gap"]) <= 20 and curve["gap"][-1] == 0.001
    assert curve["seconds"][0] == 0.3333
