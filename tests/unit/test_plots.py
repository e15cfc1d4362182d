"""Pictures: what is drawn is what was found."""

from __future__ import annotations

import numpy as np
import pytest

import mklopt
from mklopt import kernels, plots
from mklopt.formulations import GroupLasso, LpNorm
from mklopt.util import style


def problem(formulation):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = np.sign(X[:, 0] + 0.4 * rng.normal(size=40))
    fitted = kernels.gaussians(1, on="single").fit(X, "unit_trace")
    return mklopt.Problem(fitted.grams(), y, "logistic", formulation), fitted.names


@pytest.fixture(scope="module")
def path():
    one, names = problem(GroupLasso())
    return mklopt.path(one, points=5, span=50.0, tol=1e-4), names


def test_bars_are_the_weights_largest_first(tmp_path):
    one, names = problem(LpNorm(1.5))
    result = mklopt.solve(one, tol=1e-4)
    figure = plots.weights(result, names, tmp_path / "bars.png")
    drawn = [bar.get_width() for bar in figure.axes[0].patches]
    np.testing.assert_allclose(drawn, np.sort(result.weights)[::-1])
    shown = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert shown[0] == names[int(np.argmax(result.weights))]
    assert (tmp_path / "bars.png").stat().st_size > 5000


def test_of_many_kernels_those_in_use_are_drawn_as_wide_as_a_column():
    theta = np.zeros(40)
    theta[[3, 30]] = 0.2, 0.8
    axis = plots.weights(theta, venue="icml").axes[0]
    assert axis.figure.get_figwidth() == 3.25
    names = [label.get_text() for label in axis.get_yticklabels()]
    assert names[:2] == ["kernel 30", "kernel 3"] and len(names) == plots.FEW_BARS
    axis = plots.weights(np.ones(40)).axes[0]
    assert len(axis.patches) == plots.MAX_BARS
    assert axis.get_xlabel().endswith("(40 of 40 kernels in use, the 30 largest)")


def test_classes_differ_in_grey_and_their_legend_hides_no_bar():
    figure = plots.weights(np.ones((3, 4)), venue="icml")
    (legend,), axis = figure.legends, figure.axes[0]
    assert len({bar.get_hatch() for bar in axis.patches}) == 3
    top = axis.get_window_extent().y1
    assert legend.get_window_extent().y0 >= top - 1.0


def test_estimators_bring_their_names_and_classes():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = mklopt.MKLClassifier(["gaussian(1)", "linear"], multi_class="ovr").fit(X, y)
    axis = plots.weights(model).axes[0]
    assert len(axis.patches) == 6  # two kernels, three classes
    assert {t.get_text() for t in axis.get_yticklabels()} == {"gaussian(1)", "linear"}


def test_paths_are_drawn_as_they_were_solved(path, tmp_path):
    found, names = path
    axis = plots.weight_path(found, names, tmp_path / "weights").axes[0]
    most = int(np.argmax(found.weights.max(axis=0)))
    (line,) = [x for x in axis.lines if x.get_label() == names[most]]
    np.testing.assert_allclose(line.get_ydata(), found.weights[:, most])
    np.testing.assert_allclose(line.get_xdata(), found.C)
    above, below = plots.regularization_path(found).axes
    active = found.to_frame()["active"]
    np.testing.assert_array_equal(below.lines[0].get_ydata(), active)
    assert active[0] == 0 and len(above.lines) == 5
    assert {f.name for f in tmp_path.iterdir()} == {"weights.png", "weights.pdf"}


def test_alignments_are_those_of_the_kernels():
    one, names = problem(LpNorm(2))
    figure = plots.alignment(one.grams, one.y, names)
    drawn = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(drawn, kernels.alignment(one.grams))
    bars = [bar.get_width() for bar in figure.axes[1].patches]
    np.testing.assert_allclose(bars, kernels.target_alignment(one.grams, one.y))


def test_intervals_of_weights_are_shaded_around_their_curves():
    one, names = problem(LpNorm(1.5))
    found = mklopt.path(one, [0.5, 1.0, 2.0], tol=1e-8)
    axis = plots.weight_path(found, names, intervals=True).axes[0]
    assert len(axis.collections) == 5
    most = int(np.argmax(found.weights.max(axis=0)))
    points = axis.collections[0].get_paths()[0].vertices
    low, high = found[1].intervals().weights
    ys = points[points[:, 0] == 1.0, 1]
    assert {low[most], high[most]} <= set(ys)
    assert low[most] <= found.weights[1, most] <= high[most]


def test_bounds_along_C_show_every_C_and_all_nodes(tmp_path):
    one = problem(GroupLasso())[0]
    found = mklopt.path(one, span=5.0, everywhere=1e-2)
    figure = plots.bounds_along_C(found, tmp_path / "bounds.png")
    above, below = figure.axes
    C, gaps = below.lines[0].get_data()
    assert C[0] == found.C[0] and len(C) > 100
    assert np.max(gaps) <= 1e-2 and above.get_xscale() == "log"
    solved = next(x for x in below.lines if x.get_label() == "solved")
    np.testing.assert_allclose(solved.get_xdata(), found.C)
    with pytest.raises(ValueError, match="everywhere="):
        plots.bounds_along_C(mklopt.path(one, points=2, span=2.0))


@pytest.mark.parametrize("k", [2, 3])
def test_a_boundary_has_a_region_for_each_class(k, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [0.0, 0.8][: k - 1])]
    model = mklopt.MKLClassifier(["gaussian(1)"], C=10).fit(X, y)
    axis = plots.boundary(model, X, y, tmp_path / "b.png").axes[0]
    shown = [text.get_text() for text in axis.get_legend().get_texts()]
    assert shown == ["a", "b", "c"][:k]
    points = [c for c in axis.collections if len(c.get_offsets()) > 1]
    assert sum(len(c.get_offsets()) for c in points) == 60


def test_mistakes_are_explained(path):
    found, names = path
    with pytest.raises(ValueError, match="2 names for 5 kernels"):
        plots.weight_path(found, names[:2])
    with pytest.raises(ValueError, match=r"what mklopt\.path returns"):
        plots.regularization_path(found[0])
    with pytest.raises(ValueError, match="two features"):
        plots.boundary(None, np.zeros((3, 4)), [0, 1, 0])
    with pytest.raises(ValueError, match="one number per kernel"):
        plots.weights(np.zeros((2, 2, 2)))


def test_a_band_of_logarithms_is_a_geometric_mean_and_positive():
    _, (axis,) = style.panels(1, columns=1)
    style.band(axis, [1, 2], [[1.0, 1.0], [100.0, 4.0]], 0, "a", log=True)
    np.testing.assert_allclose(axis.lines[0].get_ydata(), [10.0, 2.0])
    assert "geometric mean of 2 seeds" in axis.lines[0].get_label()
    assert np.min(axis.collections[0].get_paths()[0].vertices[:, 1]) > 0


def test_convergence_draws_the_trace_of_a_result(tmp_path):
    L = np.random.default_rng(0).normal(size=(3, 30, 2))
    y = np.where(L[0, :, 0] > 0, 1.0, -1.0)
    problem = mklopt.Problem(mklopt.GramStack.from_factors(L), y, "hinge", LpNorm(2))
    result = mklopt.solve(problem, "analytic")
    drawn = plots.convergence(result, path=tmp_path / "a.png", width=3.25)
    line = drawn.axes[1].lines[0]
    np.testing.assert_allclose(line.get_xdata(), result.trace["passes"])
    np.testing.assert_allclose(line.get_ydata(), result.trace["gap"])
    assert (tmp_path / "a.png").exists() and drawn.get_figwidth() == 3.25
    both = plots.convergence([result, result.trace], ["a", "b"], x="seconds")
    assert [text.get_text() for text in both.legends[0].texts] == ["a", "b"]
    twice = plots.convergence([result, result])
    assert twice.legends[0].texts[1].get_text() == "analytic (2)"
    with pytest.raises(ValueError, match="has no iterates to draw; give what"):
        plots.convergence(mklopt.Trace())
    with pytest.raises(ValueError, match="1 names for 2 runs"):
        plots.convergence([result, result], ["a"])


def test_figures_of_ones_own_have_the_style():
    import matplotlib

    with plots.style("jmlr", {"lines.linewidth": 7.0}):
        assert matplotlib.rcParams["axes.labelsize"] == pytest.approx(8.8)
        assert matplotlib.rcParams["lines.linewidth"] == 7.0
