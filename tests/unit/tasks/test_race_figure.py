"""The figure of a race: panels, sizes, looks, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mklopt
from mklopt.formulations import BlockL1
from mklopt.tasks.race_figure import AXES, BAND, figure, solver_looks


def problem(seed):
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(4, 30, 3))
    y = np.sign(L[0, :, 0] + 0.4 * rng.normal(size=30))
    return mklopt.Problem(mklopt.GramStack.from_factors(L), y, "hinge", BlockL1())


@pytest.fixture(scope="module")
def found():
    both = {"easy": problem(0), "other": problem(1)}
    how = {"tol": 1e-6, "time_limit": 10.0, "repeats": 3}
    return mklopt.race(both, ["analytic", "hessian"], **how)


def lines_of(axis):
    return {line.get_label(): line for line in axis.lines}


def test_every_problem_has_a_row_and_every_x_a_column(found):
    drawn = found.figure(x=["seconds", "passes"])
    assert len(drawn.axes) == 4
    assert [axis.get_title("left") for axis in drawn.axes] == ["easy", "", "other", ""]
    words = [axis.get_xlabel() for axis in drawn.axes]
    assert words == ["", "", AXES["seconds"], AXES["passes"]]
    assert drawn.axes[0].get_ylabel() == "relative gap"
    assert all(axis.get_yscale() == "log" for axis in drawn.axes)


def test_a_curve_is_the_run_and_its_repeats_a_band(found):
    run = found.runs[0]
    axis = found.figure(x="passes", rows="easy").axes[0]
    trace = run.result.trace
    line = lines_of(axis)["analytic"]
    np.testing.assert_allclose(line.get_xdata(), trace["passes"])
    np.testing.assert_allclose(line.get_ydata(), trace["gap"], rtol=1e-9)
    bands = found.figure(x="seconds", rows="easy").axes[0].collections
    assert len(bands) == 2  # one per solver
    seconds = lines_of(found.figure(x="seconds", rows="easy").axes[0])["analytic"]
    ends = [r.result.trace.last("seconds") for r in found.runs[:6:2]]
    assert seconds.get_xdata()[-1] == np.median(ends)


def test_the_tolerance_is_dotted_and_the_interval_grey(found):
    rows = found.to_frame()
    axis = figure(rows, tol=1e-6, x="passes", rows="easy").axes[0]
    assert any(list(line.get_ydata()) == [1e-6, 1e-6] for line in axis.lines)
    rows["width"] = 1e-3
    axis = figure(rows, x="passes", rows="easy").axes[0]
    (band,) = [patch for patch in axis.patches if patch.get_label() == BAND]
    assert band.get_y() + band.get_height() == pytest.approx(1e-3)


@pytest.mark.parametrize(
    "width, venue", [(3.25, None), (None, "icml"), ("text", "jmlr")]
)
def test_the_file_is_as_wide_as_asked_for(found, tmp_path, width, venue):
    from PIL import Image

    inches = {None: 3.25, "text": 6.0}.get(width, width)
    path = tmp_path / "race.png"
    drawn = found.figure(width=width, height=2.5, venue=venue, path=path)
    assert drawn.get_size_inches().tolist() == [inches, 2.5]
    with Image.open(path) as picture:
        assert picture.size == (round(inches * 300), 750)


def test_lines_of_a_legend_are_about_equally_long(found):
    rows = found.to_frame()
    names = ["auto", "interleaved", "smo_mkl", "spicy", "silp"]
    copies = [rows[rows["solver"] == "hessian"].assign(solver=name) for name in names]
    drawn = figure(pd.concat(copies), width=3.25, rows="easy")
    (legend,) = drawn.legends
    tops = [text.get_window_extent().y0 for text in legend.get_texts()]
    lines = [round(top / 10) for top in tops[:5]]
    assert sorted(map(lines.count, set(lines))) == [2, 3]


def test_nothing_is_cut_off_at_column_width(found):
    labels = {"analytic": "a solver with a long name", "hessian": "another long name"}
    drawn = found.figure(width=3.25, labels=labels)
    drawn.canvas.draw()
    (legend,) = drawn.legends
    whole = drawn.bbox
    boxes = [legend.get_window_extent()]
    boxes += [axis.get_tightbbox() for axis in drawn.axes]
    for box in boxes:
        assert box.x0 >= whole.x0 - 1 and box.x1 <= whole.x1 + 1
        assert box.y0 >= whole.y0 - 1 and box.y1 <= whole.y1 + 1
    assert not any(legend.get_window_extent().overlaps(box) for box in boxes[1:])


def test_names_colours_and_order_are_those_of_the_user(found):
    how = dict(labels={"hessian": "ours", "easy": "(a)", "seconds": "time [s]"})
    drawn = found.figure(colors={"hessian": "black"}, order=["hessian"], **how)
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.texts][:2] == ["ours", "analytic"]
    line = lines_of(drawn.axes[0])["ours"]
    assert line.get_color() == "black"
    assert drawn.axes[0].get_title("left") == "(a)"
    assert drawn.axes[2].get_xlabel() == "time [s]"
    assert line.get_zorder() > lines_of(drawn.axes[0])["analytic"].get_zorder()


def test_a_solver_looks_the_same_in_any_order(found):
    rows = found.to_frame()
    usual, other = solver_looks(rows), solver_looks(rows, order=["hessian"])
    assert list(other) == ["hessian", "analytic"]
    for name in usual:
        assert {**usual[name], "zorder": 0} == {**other[name], "zorder": 0}


def test_the_legend_goes_where_it_is_wanted(found):
    assert found.figure(legend="none").legends == []
    inside = found.figure(legend="inside")
    assert inside.legends == [] and inside.axes[0].get_legend() is not None


def test_problems_stand_side_by_side_where_there_is_room(found):
    wide = found.figure(x="seconds", width=5.5).axes
    assert wide[0].get_subplotspec().get_gridspec().get_geometry() == (1, 2)
    assert [axis.get_title("left") for axis in wide] == ["easy", "other"]
    narrow = found.figure(x="seconds", width=2.5).axes
    assert narrow[0].get_subplotspec().get_gridspec().get_geometry() == (2, 1)


def test_axes_of_the_user_are_drawn_on(found, tmp_path):
    import matplotlib.pyplot as plt

    mine, axes = plt.subplots(1, 2)
    drawn = found.figure(rows=["other"], y="active", ax=axes, legend="none")
    assert drawn is mine and all(axis.lines for axis in axes)
    with pytest.raises(ValueError, match="expected 2 × 2"):
        found.figure(ax=axes)
    with pytest.raises(ValueError, match="save the figure of your axes yourself"):
        found.figure(rows=["other"], ax=axes, path=tmp_path / "a.png")
    plt.close(mine)


def test_styles_of_the_user_come_last_and_go_again(found):
    import matplotlib

    before = matplotlib.rcParams["axes.labelsize"]
    drawn = found.figure(style={"axes.labelsize": 13}, rows="easy")
    assert drawn.axes[0].yaxis.label.get_size() == 13
    assert matplotlib.rcParams["axes.labelsize"] == before
    with pytest.raises(ValueError, match="is no style of matplotlib"):
        found.figure(style="no such style")


@pytest.mark.parametrize(
    "how, words",
    [
        ({"rows": ["esy"]}, "rows 'esy' is not known; did you mean 'easy'"),
        ({"x": "second"}, "x = 'second'; did you mean 'seconds'"),
        ({"x": []}, "x = None"),
        ({"y": "weights"}, "y = 'weights'; choose one of gap, active"),
        ({"labels": {"analytc": "a"}}, "labels 'analytc' is not known"),
        ({"colors": {"analytic": "no colour"}}, "give a colour of matplotlib"),
        ({"order": ["auto"]}, "order 'auto' is not known"),
        ({"legend": "below"}, "legend = 'below'"),
        ({"width": 0}, "width = 0"),
        ({"height": -2}, "height = -2"),
        ({"venue": "nips"}, "venue = 'nips'; did you mean 'neurips'"),
    ],
)
def test_mistakes_are_explained(found, how, words):
    with pytest.raises(ValueError, match=words):
        found.figure(**how)


def test_the_overview_has_three_axes_per_problem(found):
    assert len(found.draw().axes) == 6
