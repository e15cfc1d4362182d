"""The figure of a race: what is drawn, and what is saved with it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import mklopt
from mklopt.formulations import BlockL1
from mklopt.tasks.race_figure import draw, save


def problem(seed):
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(4, 30, 3))
    y = np.sign(L[0, :, 0] + 0.4 * rng.normal(size=30))
    return mklopt.Problem(mklopt.GramStack.from_factors(L), y, "hinge", BlockL1())


@pytest.fixture(scope="module")
def found():
    both = {"easy": problem(0), "other": problem(1)}
    how = {"tol": 1e-6, "time_limit": 10.0}
    return mklopt.race(both, ["analytic", "hessian"], **how)


def test_the_figure_shows_gaps_kernels_weights_and_the_profile(found):
    axes = draw(found).axes
    run = found.runs[0]
    trace = run.result.trace
    for axis, column in zip(axes, ("seconds", "iteration", "passes")):
        lines = {line.get_label(): line for line in axis.lines}
        np.testing.assert_allclose(lines["analytic"].get_ydata(), trace["gap"])
        np.testing.assert_allclose(lines["analytic"].get_xdata(), trace[column])
    assert axes[0].get_yscale() == "log" and axes[0].patches  # the grey band
    np.testing.assert_array_equal(axes[3].lines[0].get_ydata(), trace["active"])
    best = min(found.runs[:2], key=lambda one: one.time_to(found.tol))
    top = int(np.argmax(best.weights[-1]))
    curves = {line.get_label(): line for line in axes[4].lines}
    drawn = curves[f"kernel {top}"].get_ydata()
    np.testing.assert_allclose(drawn, best.weights[:, top])
    shares = [line.get_ydata() for line in axes[5].lines]
    np.testing.assert_allclose(np.transpose(shares), found.profile()[1])


def test_one_problem_has_no_profile(found):
    alone = mklopt.tasks.race.Race(
        found.runs[:2], found.intervals, found.tol, found.left_out
    )
    assert not draw(alone).axes[5].get_visible()


def test_everything_a_paper_needs_is_saved_and_redrawn(found, tmp_path):
    written = save(found, tmp_path / "new" / "folder")
    wanted = {"race.pdf", "race.png", "traces.csv", "table.tex", "redraw.py"}
    assert wanted <= set(written)
    home = tmp_path / "new" / "folder"
    rows = found.to_frame()
    assert len(rows) == sum(len(run.result.trace) for run in found.runs)
    assert len((home / "traces.csv").read_text().splitlines()) == 1 + len(rows)
    table = (home / "table.tex").read_text()
    assert table.count(r"\\") == 1 + len(found.runs) and r"\begin{tabular}" in table
    command = [sys.executable, "redraw.py"]
    subprocess.run(command, cwd=home, check=True, env={"MPLBACKEND": "Agg"})
    assert (home / "redrawn.pdf").stat().st_size > 2000
