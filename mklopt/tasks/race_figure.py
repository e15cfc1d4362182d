"""The figure of a race: one row of panels per problem, one column per axis x.

With one x, problems stand side by side where the figure is wide enough.

    race.figure(x=["seconds", "passes"], venue="icml", labels={"auto": "ours"})

Every panel shows the certified gap of each solver: medians over seeds and repeats with
a band between the quartiles, thinned markers, a dotted line at the tolerance at which
runs end, and in grey how well f* itself is known. The figure is as wide as asked for,
with letters of the size that its venue prints, and is drawn from the table of traces
alone: the script that `Race.save` writes draws the same figure from the CSV file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..util.checks import check_choice, check_list, check_positive, short, unknown
from ..util.extras import need
from ..util.paper_sizes import venue_of
from ..util.style import (
    done,
    keep_style,
    log_ticks,
    look,
    outside_legend,
    style,
    thin_markers,
)
from .race_curves import (
    FLOOR,
    median_curve,
    names_in,
    points_of,
    read_traces,
    runs_of,
)

Array = np.ndarray
AXES = {
    "seconds": "seconds",
    "solver_seconds": "seconds inside the solver",
    "iteration": "iterations",
    "passes": "passes over the kernels",
    "svm_solves": "SVM solves",
    "rounds": "rounds",
}
HEIGHTS = {"gap": "relative gap", "active": "kernels in use"}
LEGENDS = ("outside", "inside", "none")
BAND = "interval of $f^*$"
PANEL = (0.95, 2.1)  # inches: the lowest and the highest panel, where none is given
BESIDE = 1.4  # inches: problems with one x stand side by side if each has so much
LOG_FROM = 10.0  # an x axis is logarithmic if x grows by more than this ratio


def figure(
    traces: Any,
    *,
    tol: float | None = None,
    rows: Sequence[str] | None = None,
    x: str | Sequence[str] = ("seconds", "passes"),
    y: str = "gap",
    width: float | str | None = None,
    height: float | None = None,
    labels: Mapping[str, str] | None = None,
    colors: Mapping[str, Any] | None = None,
    order: Sequence[str] = (),
    style: Any = None,
    legend: str | None = None,
    ax: Any = None,
    venue: str | None = None,
    path: str | os.PathLike | None = None,
) -> Any:
    """Draw the traces of a race; `Race.figure` explains the arguments."""
    if ax is not None and path is not None:
        raise ValueError("ax and path are given; save the figure of your axes yourself")
    found = read_traces(traces)
    problems = _chosen(rows, names_in(found, "problem"), "rows")
    columns = [x] if isinstance(x, str) else check_list(x, "x", "a list of axes")
    for column in columns or [None]:
        check_choice(column, "x", AXES)
    check_choice(y, "y", HEIGHTS)
    looks = solver_looks(found, labels, colors, order)
    words, several = dict(labels or {}), len(names_in(found, "problem")) > 1
    found = found[found["problem"].isin(problems)]
    with paper_style(venue, style):
        inches, shape = venue_of(venue).width(width), (len(problems), len(columns))
        beside = len(columns) == 1 and inches >= BESIDE * len(problems)
        size = (shape[::-1] if beside else shape, inches, height, y)
        drawn, axes = paper_axes(ax, *size)
        for line, problem in zip(axes.T if beside else axes, problems):
            for axis, column in zip(line, columns):
                _panel(axis, found, (problem, column, y), looks, tol)
            if several or problem in words:
                line[0].set_title(words.get(problem, problem), loc="left")
        for axis in axes[:, 0]:
            axis.set_ylabel(words.get(y, HEIGHTS[y]))
        for axis, column in zip(axes[-1], columns * len(problems)):
            axis.set_xlabel(words.get(column, AXES[column]))
        add_legend(drawn, list(axes.flat), legend, ax is not None)
        return finished(drawn, path, ax, (venue_of(venue).settings(), style))


# ---- looks and names ----------------------------------------------------------------


def solver_looks(
    rows: Any,
    labels: Mapping[str, str] | None = None,
    colors: Mapping[str, Any] | None = None,
    order: Sequence[str] = (),
) -> dict[str, dict[str, Any]]:
    """Label, colour, marker and line of each solver, in the order of the legend.

    They depend on the place of a solver in the race, and not on the order of the
    legend: a solver looks the same in every figure of a race.
    """
    known = names_in(rows, "solver")
    words, tones = dict(labels or {}), dict(colors or {})
    others = (*names_in(rows, "problem"), *AXES, *HEIGHTS)
    _all_known(words, [*known, *others], "labels")
    _all_known(tones, known, "colors")
    _check_colours(tones)
    first = _chosen(order or None, known, "order") if order else []
    found: dict[str, dict[str, Any]] = {}
    for name in [*first, *(s for s in known if s not in first)]:
        found[name] = {**look(known.index(name)), "label": words.get(name, name)}
        found[name]["zorder"] = 3 - len(found) / 100  # the first one on top
        for size in ("markersize", "linewidth"):  # those of the style
            del found[name][size]
        if name in tones:
            found[name]["color"] = tones[name]
    return found


def _check_colours(tones: dict[str, Any]) -> None:
    """Tables have none, and do not wait for Matplotlib."""
    if not tones:
        return
    need("matplotlib")
    from matplotlib.colors import is_color_like

    for name, tone in tones.items():
        if not is_color_like(tone):
            raise ValueError(
                f"colors: {name!r} has {short(tone)}; give a colour of matplotlib, "
                "such as 'black', 'C3' or '#0072b2'"
            )


def _chosen(given: Any, known: list[str], what: str) -> list[str]:
    """The names that were given, all known; by default all."""
    if given is None:
        return known
    names = [given] if isinstance(given, str) else check_list(given, what, "names")
    _all_known(names, known, what)
    if not names:
        raise ValueError(f"{what} is empty; give at least one of {', '.join(known)}")
    return list(map(str, names))


def _all_known(names: Any, known: Sequence[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise ValueError(unknown(what, name, known))


# ---- panels -------------------------------------------------------------------------


def _panel(
    axis: Any,
    rows: Any,
    which: tuple[str, str, str],
    looks: dict[str, dict[str, Any]],
    tol: float | None,
) -> None:
    problem, x, y = which
    runs = {
        solver: [points_of(run, x, y) for run in runs_of(rows, problem, solver)]
        for solver in looks
    }
    runs = {s: [r for r in some if len(r[0])] for s, some in runs.items()}
    runs = {s: some for s, some in runs.items() if some}
    log_x = _spreads([at for some in runs.values() for at, _ in some])
    lines = [
        _draw(axis, median_curve(some, log_x, y == "active"), looks[s], y, len(some))
        for s, some in runs.items()
    ]
    axis.set_xscale("log" if log_x else "linear")
    if log_x:
        log_ticks(axis.xaxis)
    if y == "gap":
        _gap_axis(axis, rows, problem, tol)
    else:
        axis.set_ylim(0, None)
    thin_markers(axis, lines)


def _spreads(xs: list[Array]) -> bool:
    ends = [x[[0, -1]] for x in xs]
    return bool(ends) and bool(np.max(ends) > LOG_FROM * np.min(ends) > 0)


def _draw(axis: Any, curve: Any, how: dict[str, Any], y: str, runs: int) -> Any:
    steps = {"drawstyle": "steps-post"} if y == "active" else {}
    if runs > 1:
        band = {"color": how["color"], "alpha": 0.2, "linewidth": 0}
        step = "post" if y == "active" else None
        axis.fill_between(curve.x, curve.low, curve.high, step=step, **band)
    return axis.plot(curve.x, curve.middle, **how, **steps)[0]


def _gap_axis(axis: Any, rows: Any, problem: str, tol: float | None) -> None:
    """A logarithmic axis down to the smallest gap, f* in grey, the tolerance dotted."""
    gaps = np.asarray(rows["gap"], float)  # of all problems: panels have one scale
    gaps = np.maximum(gaps[np.isfinite(gaps)], FLOOR)
    low, high = gaps.min(initial=tol or 1.0), gaps.max(initial=tol or FLOOR)
    axis.set_yscale("log")
    axis.set_ylim(0.1 * low, 3.0 * high)
    log_ticks(axis.yaxis)
    width = float(rows["width"][rows["problem"] == problem].iloc[0])
    named = {"label": BAND} if width > axis.get_ylim()[0] else {}
    band = {"color": "0.87", "linewidth": 0, "zorder": 0, **named}
    axis.axhspan(FLOOR / 10, max(width, FLOOR), **band)
    if tol:
        axis.axhline(tol, color="0.35", linestyle=":", linewidth=0.8, zorder=1)


# ---- the frame of a figure for a paper ----------------------------------------------


def paper_style(venue: str | None, more: Any) -> Any:
    """Our style with the sizes of a venue, and the user's own settings last."""
    return style(venue_of(venue).settings(), more)


def paper_axes(
    ax: Any, shape: tuple[int, int], width: float, height: float | None, y: str = "gap"
) -> tuple[Any, Array]:
    """A figure with a grid of panels, or the axes that were given and their figure."""
    need("matplotlib")
    import matplotlib.pyplot as plt
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if ax is not None:
        axes = np.array(ax, dtype=object)
        if axes.size != shape[0] * shape[1] or not hasattr(axes.flat[0], "plot"):
            raise ValueError(
                f"ax has {axes.size} axes; expected {shape[0]} × {shape[1]}, one per "
                "problem and x: plt.subplots makes them"
            )
        return axes.flat[0].figure, axes.reshape(shape)
    if height is None:
        panel = min(max(0.7 * width / shape[1], PANEL[0]), PANEL[1])
        height = panel * shape[0] + 0.45
    size = (width, check_positive(height, "height", finite=True))
    room = ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.02, wspace=0.03, hspace=0.03)
    drawn = plt.figure(figsize=size, layout=room)
    return drawn, drawn.subplots(*shape, squeeze=False, sharey=y == "gap")


def add_legend(drawn: Any, axes: list[Any], where: str | None, guest: bool) -> None:
    """One legend for all panels; for axes of the user inside the first one."""
    where = where or ("inside" if guest else "outside")
    check_choice(where, "legend", LEGENDS)
    entries: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    if where == "none" or len(entries) < 2:
        return
    if where == "outside":
        outside_legend(drawn, entries)
    else:
        axes[0].legend(entries.values(), entries.keys(), handlelength=2.4)


def finished(drawn: Any, path: Any, ax: Any, settings: tuple) -> Any:
    """Close a figure of our own and write it; the user's figure stays open."""
    if ax is not None:
        return drawn
    keep_style(drawn)
    return done(drawn, path, *settings)
