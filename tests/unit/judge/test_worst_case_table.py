"""Observed ≤ worst ≤ claimed, where the class of the worst case has the run in it."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from mklopt import GramStack, Problem
from mklopt.formulations import VSKL
from mklopt.judge import worst_case_table as module
from mklopt.judge.worst_case import WorstCase
from mklopt.judge.worst_case_table import worst_case_table

needs_pepit = pytest.mark.skipif(
    importlib.util.find_spec("PEPit") is None, reason="PEPit is an optional extra"
)


def problems():
    rng = np.random.default_rng(0)
    L = rng.normal(size=(4, 20, 3))
    K = L @ L.transpose(0, 2, 1) + np.eye(20)  # mirror needs regular kernels
    y = np.where(L[0, :, 0] + L[1, :, 0] > 0, 1.0, -1.0)
    one = Problem(GramStack(K), y, "logistic", VSKL([[0, 1], [2, 3]]), 1.0)
    return one, one.with_(loss="hinge")


@needs_pepit
def test_runs_lie_below_worst_cases_below_claims():
    found = worst_case_table(*problems(), most=3)
    frame = found.to_frame().set_index(["solver", "method", "t"])
    assert len(frame) == 18 and list(found.remarks) == ["pgd"]
    for (solver, method, t), row in frame.iterrows():
        printed = method.endswith("as printed")
        assert (row.worst > row.claimed * 1.01) == (printed and t > 1)
        bound = row.claimed if method == "mirror descent" else row.worst
        if solver != "pgd" and not printed:
            assert 0 < row.observed <= bound * (1 + 1e-3)
    assert "projected gradient" in found._repr_html_()


@pytest.fixture
def known_bounds(monkeypatch):
    """Bounds without PEPit."""
    monkeypatch.setattr(
        module, "worst_case", lambda method, t: WorstCase(method, t, 1 / t, 2 / t)
    )


def test_the_outer_steps_of_spicy_fall_with_the_sum_of_gamma(known_bounds):
    found = worst_case_table(problems()[0], most=5)
    rows = [row for row in found.rows if row.solver == "spicy"]
    for row in rows:  # the exact worst case of proximal points, R²/(4Σγ)
        assert row.observed <= 1 / (4 * (2**row.t - 1)) + 1e-9
    assert rows[0].observed > 0.01  # the units are right: not just anything is below
    assert set(found.remarks) == {"pgd", "mirror"}


def test_with_one_kernel_per_group_mirror_has_no_run(known_bounds):
    """Γ = Σ log|group| is 0, and with it the unit of the errors."""
    p = problems()[1].with_(formulation=VSKL([[0], [1], [2], [3]]))
    found = worst_case_table(p, most=2)
    rows = [row for row in found.rows if row.solver == "mirror"]
    assert len(rows) == 4 and all(np.isnan(row.observed) for row in rows)
    assert "every group has one kernel" in found.remarks["mirror"]


def test_a_figure_has_a_panel_for_each_method(known_bounds, tmp_path):
    figure = worst_case_table(problems()[0], most=2).draw(tmp_path / "found.png")
    titles = [axis.get_title() for axis in figure.axes]
    assert titles[0] == "ista: proximal gradient" and len(titles) == 6
    assert (tmp_path / "found.png").exists()


def test_it_takes_problems():
    with pytest.raises(ValueError, match="one Problem, or several"):
        worst_case_table()
    with pytest.raises(ValueError, match="most"):
        worst_case_table(problems()[0], most=0)
