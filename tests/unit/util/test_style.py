"""The style of figures: looks that differ, bands, files with the same bytes."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

from mklopt.util import style


def test_the_style_is_ours_inside_and_the_users_after():
    before = dict(plt.rcParams)
    with style.style():
        assert dict(plt.rcParams) != before
    assert dict(plt.rcParams) == before


def test_the_backend_of_the_user_is_back_after_a_figure():
    """In a notebook later figures of the user would not be shown."""
    users = plt.get_backend()
    plt.switch_backend("svg")
    try:
        with style.style():
            assert plt.get_backend().lower() == "agg"
        assert plt.get_backend() == "svg"
        style.panels(1)
        assert plt.get_backend() == "svg"
    finally:
        plt.switch_backend(users)


def test_a_styled_function_draws_in_the_style_and_returns_its_figure():
    @style.styled
    def draw(width, *, height):
        """Draws."""
        return plt.rcParams["axes.grid"], width + height

    with style.style():
        grid = plt.rcParams["axes.grid"]
    assert draw(1, height=2) == (grid, 3) and draw.__doc__ == "Draws."


def test_panels_that_are_not_needed_are_hidden():
    figure, axes = style.panels(3, columns=2)
    assert len(axes) == 3 and [a.get_visible() for a in figure.axes] == [True] * 3 + [
        False
    ]
    assert figure.get_size_inches().tolist() == [8.0, 5.4]
    plt.close(figure)


def test_no_two_of_many_curves_look_alike():
    looks = [style.look(k) for k in range(56)]
    assert len({(x["color"], x["marker"]) for x in looks}) == 56


@pytest.mark.parametrize("log", [False, True])
def test_a_band_is_the_t_interval_of_the_mean(log):
    values = np.array([[1.0, 2.0], [4.0, 2.5], [2.0, 9.0]])
    figure, (axis,) = style.panels(1, columns=1)
    style.band(axis, [0, 1], values, 0, "error", log=log)
    used, back = (np.log(values), np.exp) if log else (values, np.asarray)
    middle, error = used.mean(axis=0), stats.sem(used, axis=0)
    low, high = stats.t.interval(0.95, 2, middle, error)
    np.testing.assert_allclose(axis.lines[0].get_ydata(), back(middle))
    edges = axis.collections[0].get_paths()[0].vertices
    assert edges[:, 1].min() == pytest.approx(back(low).min())
    assert edges[:, 1].max() == pytest.approx(back(high).max())
    kind = "geometric mean" if log else "mean"
    assert axis.lines[0].get_label() == f"error ({kind} of 3 seeds, 95%)"
    plt.close(figure)


def test_one_seed_has_no_band():
    figure, (axis,) = style.panels(1, columns=1)
    style.band(axis, [0, 1], [3.0, 4.0], 0, "error")
    assert not axis.collections and axis.lines[0].get_label() == "error"
    plt.close(figure)


def drawn():
    figure, (axis,) = style.panels(1, columns=1)
    axis.plot([1, 2])
    return figure


def test_the_same_figure_has_the_same_bytes(tmp_path):
    first, again = (style.write(drawn(), tmp_path / name / "f") for name in "ab")
    assert [path.name for path in first] == ["f.png", "f.pdf"]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, again))


def test_done_writes_by_the_ending_and_closes(tmp_path):
    figure = drawn()
    assert style.done(figure, tmp_path / "one.svg") is figure
    assert not plt.fignum_exists(figure.number)
    style.done(drawn(), tmp_path / "two")
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["one.svg", "two.pdf", "two.png"]


def test_save_goes_to_the_folder_of_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(style, "FOLDER", tmp_path)
    assert style.save(drawn(), "f") == [tmp_path / "f.png", tmp_path / "f.pdf"]


def test_the_largest_curves_have_names_and_the_others_are_grey():
    figure, (axis,) = style.panels(1, columns=1)
    sizes = np.arange(8.0)
    names = [f"kernel {m}" for m in range(8)]
    style.top_curves(axis, [0, 1], np.ones((2, 8)), names, sizes, markersize=3)
    grey, named = axis.lines[:2], axis.lines[2:]
    assert [line.get_color() for line in grey] == ["0.8", "0.8"]
    assert [line.get_label() for line in named] == names[:1:-1]
    assert {line.get_markersize() for line in named} == {3}
    plt.close(figure)


def test_styles_on_top_of_ours_and_wrong_ones():
    with style.style({"lines.linewidth": 7.0}, None, ["classic", {"font.size": 3}]):
        assert plt.rcParams["font.size"] == 3
    with (
        pytest.raises(ValueError, match="is no style of matplotlib"),
        style.style("none"),
    ):
        pass
    wrong = style.style({"no.such.setting": 1})
    with pytest.raises(ValueError, match="give a name, a file, or a dict"), wrong:
        pass


@pytest.mark.parametrize(
    "limits, numbers",
    [
        ((1e-12, 1.0), [1e-12, 1e-9, 1e-6, 1e-3, 1.0]),
        ((1e-3, 1.0), [1e-3, 1e-2, 1e-1, 1.0]),
        ((1.0, 20.0), [1, 2, 5, 10, 20]),
        ((0.0012, 0.016), [0.003, 0.01]),
        ((0.0015, 0.005), [0.002, 0.005]),
        ((0.021, 0.039), [0.021, 0.039]),
    ],
)
def test_logarithmic_axes_have_few_numbers_and_small_ticks(limits, numbers):
    _, (axis,) = style.panels(1, columns=1)
    axis.set(xscale="log", xlim=limits)
    style.log_ticks(axis.xaxis)
    inside = [t for t in axis.xaxis.get_majorticklocs() if in_range(t, limits)]
    assert inside == pytest.approx(numbers)
    small = [t for t in axis.xaxis.get_minorticklocs() if in_range(t, limits)]
    assert len(small) >= max(2, len(numbers))
    assert not any(label.get_text() for label in axis.xaxis.get_minorticklabels())


def in_range(tick, limits):
    return limits[0] * 0.999 <= tick <= limits[1] * 1.001


def test_markers_stand_apart_and_at_both_ends():
    _, (axis,) = style.panels(1, columns=1)
    x = np.geomspace(1, 1000, 400)
    (long,) = axis.plot(x, 1 / x)
    (single,) = axis.plot([2.0], [0.5])
    axis.set(xscale="log", yscale="log", xlim=(1, 1000), ylim=(1e-3, 1))
    style.thin_markers(axis, [long, single], apart=0.1)
    shown = long.get_markevery()
    assert shown[0] == 0 and shown[-1] == 399 and 9 <= len(shown) <= 12
    assert single.get_markevery() == [0]


def test_a_figure_keeps_its_fonts_outside_of_the_style():
    from matplotlib.font_manager import findfont

    with style.style():
        figure, (axis,) = style.panels(1, columns=1)
        axis.set_title("a title")
        style.keep_style(figure)
    assert "STIX" in findfont(axis.title.get_fontproperties())
    assert axis.title.get_math_fontfamily() == "stix"
