"""Pictures of kernels, weights, paths and decisions, all in one style (util/style.py).

    plots.convergence(result)                the gap of a run against time
    plots.weights(result)                    kernel weights as bars
    plots.weight_path(path)                  kernel weights along C
    plots.regularization_path(path)          lengths ‖w_m‖ along C, and kernels in use
    plots.bounds_along_C(path)               bounds of f*(C), for every C of an ε-path
    plots.alignment(grams, y)                how alike kernels are, and which fit y
    plots.boundary(model, X, y)              the regions of a classifier, in 2-D
    with plots.style("icml"): …              figures of your own in the same style

Each returns a matplotlib figure and writes it when given a path ("a.png", or "a" for
PNG and PDF). Results, fitted estimators and plain arrays of weights are all taken.
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .kernels import alignment as alignments
from .kernels import target_alignment
from .run.trace import Trace
from .tasks.epsilon_path import EpsilonPath
from .tasks.race_figure import (
    add_legend,
    figure,
    finished,
    paper_axes,
    paper_style,
)
from .tasks.solution_path import Path as SolutionPath
from .util.arrays import labels_array, real_array
from .util.checks import check_list, short
from .util.extras import need
from .util.paper_sizes import venue_of
from .util.style import (
    COLOURS,
    MAX_LABELLED,
    done,
    look,
    panels,
    styled,
    top_curves,
)

Array = np.ndarray
Where = str | os.PathLike | None
CURVE_POINTS = 600  # of a curve over C
MAX_BARS = 30
HATCHES = ("", "////", "....", "xxxx")
BAR = 0.15  # inches
FEW_BARS = 10  # so many are drawn, in use or not


def convergence(
    given: Any, names: Sequence[str] | None = None, path: Where = None, **how: Any
) -> Any:
    """The certified gap of one run, or of several, against seconds and passes.

    Parameters
    ----------
    given : Result or Trace, or a list of them
    names : list of str, optional
        Names of the runs; by default those of the solvers.
    path : str or path, optional
        Where to write the figure; PNG and PDF where it has no ending.
    **how
        Options of `Race.figure`: x, y, width, height, labels, colors, style, legend, ax
        and venue.

    Returns
    -------
    matplotlib.figure.Figure
    """
    runs = list(given) if isinstance(given, list | tuple) else [given]
    traces = [getattr(run, "trace", run) for run in runs]
    if not traces or not all(isinstance(t, Trace) and len(t) for t in traces):
        raise ValueError(
            f"{short(given)} has no iterates to draw; give what mklopt.solve returns, "
            "its trace, or a list of them with names=[…]"
        )
    usual = [str(trace.about.get("solver", "")) for trace in traces]
    labels = usual if names is None else list(map(str, names))
    if len(labels) != len(runs):
        raise ValueError(f"{len(labels)} names for {len(runs)} runs; give one for each")
    if len(set(labels)) < len(labels):
        labels = [f"{label} ({k})" for k, label in enumerate(labels, 1)]
    tol = {float(trace.about.get("tol", 0.0)) for trace in traces}
    ends = tol.pop() if len(tol) == 1 else None
    return figure(_one_table(traces, labels), tol=ends, path=path, **how)


def style(venue: str | None = None, more: Any = None) -> Any:
    """A context in which figures of your own have the style of these.

    Parameters
    ----------
    venue : {"neurips", "icml", "jmlr", "siam-2col"}, optional
        The size of letters.
    more : str, dict or list, optional
        Styles of matplotlib on top of ours.

    Returns
    -------
    context manager
        The settings that were there before come back at its end.
    """
    return paper_style(venue, more)


def weights(
    given: Any,
    names: Sequence[str] | None = None,
    path: Where = None,
    *,
    intervals: bool = False,
    width: float | str | None = None,
    venue: str | None = None,
) -> Any:
    """Kernel weights as bars, largest first; classes of one against the rest together.

    Of many kernels only those in use are drawn.

    Parameters
    ----------
    given : Result, fitted estimator, or array of shape (M,) or (classes, M)
    names : list of str, optional
        The names of the kernels; an estimator brings its own.
    intervals : bool
        Whether to draw, for a Result, the intervals that contain the weights of every
        minimizer (`result.intervals()`), of kernels that are not in use, too.
    width : float or {"column", "text"}, optional
        Inches, or one column or the whole text of the venue.
    venue : {"neurips", "icml", "jmlr", "siam-2col"}, optional
        Gives the widths and the size of letters.
    path : str or path, optional
        Where to write the figure; PNG and PDF where it has no ending.

    Returns
    -------
    matplotlib.figure.Figure
    """
    theta, names = _weights_of(given, names)
    order = np.argsort(-theta.max(axis=0), kind="stable")
    used, M = int(np.sum(np.any(theta > 0, axis=0))), theta.shape[1]
    order = order[: M if intervals else max(used, FEW_BARS)][:MAX_BARS]
    bars, pitch = len(order), BAR * max(1.0, 0.6 * len(theta))
    size = (venue_of(venue).width(width), 0.6 + pitch * max(bars, 4))
    with paper_style(venue, None):
        drawn, ((axis,),) = paper_axes(None, (1, 1), *size)
        _bars(axis, theta, order)
        add_legend(drawn, [axis], "outside", False)
        if intervals:
            _whiskers(axis, given, order)
        axis.set_yticks(np.arange(bars), [_cut(names[m]) for m in order])
        axis.set_ylim(bars - 0.4, -0.6)
        axis.grid(False, axis="y")
        shown = f", the {MAX_BARS} largest" if len(order) < used else ""
        what = f"kernel weight θ{_remark(given)}"
        axis.set_xlabel(f"{what}\n({used} of {M} kernels in use{shown})")
        return finished(drawn, path, None, (venue_of(venue).settings(),))


def _bars(axis: Any, theta: Array, order: Array) -> None:
    """One bar per kernel and class."""
    height = 0.8 / len(theta)
    for k, row in enumerate(theta):
        at = np.arange(len(order)) + (k - (len(theta) - 1) / 2) * height
        how = {"color": COLOURS[k % len(COLOURS)], "edgecolor": "white", "linewidth": 0}
        how["hatch"] = HATCHES[k % len(HATCHES)]  # told apart in grey
        label = {"label": f"class {k}"} if len(theta) > 1 else {}
        axis.barh(at, row[order], height, **how, **label)


def _whiskers(axis: Any, given: Any, order: Array) -> None:
    """The proved intervals of weights; an arrow where nothing bounds them."""
    if not hasattr(given, "intervals"):
        raise ValueError(f"intervals are those of a Result, not of {short(given)}")
    low, high = (end[order] for end in given.intervals().weights)
    known, at = np.isfinite(high), np.arange(len(order))
    middle = 0.5 * (low + high)[known]
    spread = {"xerr": 0.5 * (high - low)[known], "capsize": 2.5, "elinewidth": 1}
    axis.errorbar(middle, at[known], fmt="none", ecolor="black", **spread)
    edge = axis.get_xlim()[1]
    axis.plot(np.full(np.sum(~known), edge), at[~known], ">", color="black", ms=4)
    if not np.all(known):
        axis.set_xlim(right=edge * 1.03)


@styled
def weight_path(
    given: SolutionPath,
    names: Sequence[str] | None = None,
    path: Where = None,
    *,
    intervals: bool = False,
) -> Any:
    """Kernel weights along C, those that matter most by name.

    Parameters
    ----------
    given : Path
        What mklopt.path returned.
    names : list of str, optional
        The names of the kernels.
    path : str or path, optional
        Where to write the figure; PNG and PDF where it has no ending.
    intervals : bool, default=False
        Whether to shade what is proved of θ* in every minimizer, where it is bounded.

    Returns
    -------
    matplotlib.figure.Figure
    """
    theta = _path(given).weights
    figure, (axis,) = _figure(6.5, 3.4)
    if intervals:
        _shade(axis, given, theta)
    _curves(axis, given.C, theta, _names(names, theta.shape[1]))
    axis.set(xscale="log", xlabel="C", ylabel=f"kernel weight θ{_remark(given)}")
    return _done(figure, path)


@styled
def bounds_along_C(given: EpsilonPath, path: Where = None) -> Any:
    """Bounds of f*(C) above, their relative gap with all nodes below.

    Parameters
    ----------
    given : EpsilonPath
        What mklopt.path returned with everywhere=ε.
    path : str or path, optional
        Where to write the figure; PNG and PDF where it has no ending.

    Returns
    -------
    matplotlib.figure.Figure
    """
    if not isinstance(given, EpsilonPath):
        raise ValueError(
            f"{type(given).__name__} has no bounds for every C; give what mklopt.path "
            "returns with everywhere=…"
        )
    C = np.geomspace(given.C[0], given.C[-1], CURVE_POINTS)
    lower, upper = (np.array([f(c) for c in C]) for f in (given.lower, given.upper))
    figure, (above, below) = _figure(6.5, 2.4, rows=2)
    above.fill_between(C, lower, upper, color=COLOURS[0], alpha=0.4, linewidth=0)
    above.plot(C, upper, color=COLOURS[0])
    above.set(xscale="log", yscale="log", ylabel="f*(C)")
    below.plot(C, [given.bounds.gap(c) for c in C], color=COLOURS[0], linewidth=0.8)
    below.axhline(given.epsilon, color=COLOURS[1], linestyle="--", label="ε")
    nodes = given.nodes_to_frame()
    for solved, marker, label in ((True, "o", "solved"), (False, ".", "between")):
        rows = nodes[nodes["solved"] == solved]
        below.plot(rows["C"], rows["gap"], marker, color=COLOURS[2], label=label)
    below.set(xscale="log", xlabel="C", ylabel="relative gap", ylim=(0, None))
    below.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.3))
    return _done(figure, path)


@styled
def regularization_path(
    given: SolutionPath, names: Sequence[str] | None = None, path: Where = None
) -> Any:
    """Lengths ‖w_m‖ along C above, the number of kernels in use below.

    Parameters
    ----------
    given, names, path
        As in `weight_path`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    norms = np.array([result.certificate.norms for result in _path(given)])
    figure, (above, below) = _figure(6.5, 2.4, rows=2)
    _curves(above, given.C, norms, _names(names, norms.shape[1]))
    above.set(xscale="log", ylabel="‖w$_m$‖")
    used, style = np.sum(norms > 0, axis=1), {"color": COLOURS[0], "markersize": 4}
    below.step(given.C, used, "o-", where="post", **style)
    below.set(xscale="log", xlabel="C", ylabel="kernels in use", ylim=(-0.5, None))
    return _done(figure, path)


@styled
def alignment(
    grams: Any,
    y: Any = None,
    names: Sequence[str] | None = None,
    path: Where = None,
) -> Any:
    """Centred alignment of every pair of kernels; with y, of each kernel with y yᵀ.

    Parameters
    ----------
    grams : GramStack, or array of shape (M, n, n)
    y : array of shape (n,), optional
        Labels.
    names : list of str, optional
        The names of the kernels.
    path : str or path, optional
        Where to write the figure; PNG and PDF where it has no ending.

    Returns
    -------
    matplotlib.figure.Figure
    """
    A = np.asarray(alignments(grams))
    names = _names(names, len(A))
    figure, axes = panels(1 if y is None else 2, height=4.4)
    figure.set_figwidth(5.8 if y is None else 8.6)
    axes[0].grid(False)
    image = axes[0].imshow(A, vmin=0.0, vmax=1.0, cmap="viridis", aspect="auto")
    ticks = np.unique(np.linspace(0, len(A) - 1, min(len(A), 25)).astype(int))
    axes[0].set_xticks(ticks, [str(m) for m in ticks], rotation=90, fontsize=7)
    axes[0].set_yticks(ticks, [f"{_cut(names[m])}  {m}" for m in ticks], fontsize=7)
    figure.colorbar(image, ax=axes[0], label="alignment")
    if y is not None:
        axes[1].barh(np.arange(len(A)), target_alignment(grams, y), color=COLOURS[1])
        axes[1].set_yticks(ticks, [str(m) for m in ticks], fontsize=7)
        axes[1].set_ylim(len(A) - 0.5, -0.5)  # as in the image beside it
        axes[1].grid(False, axis="y")
        axes[1].set_xlabel("alignment with y yᵀ")
    return _done(figure, path)


@styled
def boundary(model: Any, X: Any, y: Any, path: Where = None) -> Any:
    """Regions of a classifier on two features; f = −1, 0, 1 for two classes.

    Parameters
    ----------
    model : classifier
        Fitted, with predict and, for two classes, decision_function.
    X : array of shape (n, 2)
        Samples to draw.
    y : array of shape (n,)
        Their labels.
    path : str or path, optional
        Where to write the figure; PNG and PDF where it has no ending.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        Where X has not two features.
    """
    X = real_array(X, "X", "an (n, 2) matrix of numbers")
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(
            f"X has shape {X.shape}; a decision boundary is drawn on two features: fit "
            "and draw with X[:, [i, j]]"
        )
    y = labels_array(y)
    if y.shape != X.shape[:1] or y.dtype.kind not in "fiubU":
        raise ValueError(f"y has shape {y.shape}; give one label per row of X")
    if not hasattr(model, "predict"):
        raise ValueError(f"model = {short(model)}; give a fitted classifier")
    figure, (axis,) = _figure(5.2, 4.2)
    grid, points = _grid(X)
    classes = np.unique(y)
    place = np.searchsorted(classes, model.predict(points)).reshape(grid[0].shape)
    tones = [COLOURS[k % len(COLOURS)] for k in range(len(classes))]
    edges = np.arange(len(classes) + 1) - 0.5
    axis.contourf(*grid, place, levels=edges, colors=tones, alpha=0.18)
    if len(classes) == 2:
        f = model.decision_function(points).reshape(grid[0].shape)
        style = dict(colors="0.25", linewidths=(0.8, 1.6, 0.8))
        axis.contour(*grid, f, [-1, 0, 1], linestyles=("--", "-", "--"), **style)
    for c, tone in zip(classes, tones):
        some = X[np.asarray(y) == c].T
        axis.scatter(*some, s=18, color=tone, edgecolor="white", linewidth=0.5, label=c)
    axis.legend(frameon=False, fontsize=8)
    axis.set(xlabel="x₁", ylabel="x₂")
    return _done(figure, path)


def _one_table(traces: list[Trace], labels: list[str]) -> Any:
    """The traces of several runs, as the traces of a race."""
    need("pandas")
    import pandas as pd

    who = [{"problem": "", "solver": s, "seed": 0, "repeat": 0} for s in labels]
    parts = [
        trace.to_frame().assign(**name, width=0.0) for trace, name in zip(traces, who)
    ]
    return pd.concat(parts, ignore_index=True)


# ---- parts --------------------------------------------------------------------------


def _figure(width: float, height: float, rows: int = 1) -> tuple[Any, list[Any]]:
    figure, axes = panels(rows, columns=1, height=height)
    figure.set_figwidth(width)
    return figure, axes


def _grid(X: Array, count: int = 160) -> tuple[list[Array], Array]:
    room = 0.08 * np.ptp(X, axis=0) + 1e-9
    low, high = X.min(axis=0) - room, X.max(axis=0) + room
    grid = np.meshgrid(*(np.linspace(a, b, count) for a, b in zip(low, high)))
    return list(grid), np.column_stack([part.ravel() for part in grid])


def _curves(axis: Any, C: Array, values: Array, names: Sequence[str]) -> None:
    """One curve per kernel."""
    top_curves(axis, C, values, names, values.max(axis=0))
    axis.legend(frameon=False, fontsize=8)


def _shade(axis: Any, given: SolutionPath, theta: Array) -> None:
    """What is proved of the weights that are named, in their colours."""
    ends = [result.intervals().weights for result in given]
    low, high = (np.array([pair[side] for pair in ends]) for side in (0, 1))
    high = np.where(np.isfinite(high), high, np.nan)  # nothing is shaded there
    order = np.argsort(-theta.max(axis=0), kind="stable")[:MAX_LABELLED]
    for place, m in enumerate(order):
        tone = look(place)["color"]
        axis.fill_between(given.C, low[:, m], high[:, m], color=tone, alpha=0.25)


def _weights_of(given: Any, names: Sequence[str] | None) -> tuple[Array, list[str]]:
    """(classes, M) weights, and names, of a result, an estimator or an array."""
    if hasattr(given, "weights_"):
        names = given.kernel_names_ if names is None else names
        given = given.weights_
    weights = getattr(given, "weights", given)
    theta = np.atleast_2d(real_array(weights, "weights", "one number per kernel"))
    if theta.ndim != 2 or not np.all(np.isfinite(theta)):
        raise ValueError(
            f"weights have shape {theta.shape}; give a result, a fitted estimator, or "
            "one number per kernel"
        )
    return theta, _names(names, theta.shape[1])


def _remark(given: Any) -> str:
    """What is said of weights that are not those of the certified point."""
    found = getattr(given, "result_", getattr(given, "results", given))
    results = found if isinstance(found, list | tuple) else [found]
    points = {getattr(result, "point", "weights") for result in results}
    return " near the certified point" if "coefficients" in points else ""


def _path(given: Any) -> SolutionPath:
    if not isinstance(given, SolutionPath):
        raise ValueError(
            f"{type(given).__name__} is no path; give what mklopt.path returns"
        )
    return given


def _names(names: Sequence[str] | None, M: int) -> list[str]:
    usual = [f"kernel {m}" for m in range(M)]
    given = usual if names is None else check_list(names, "names", "a list of names")
    found = list(map(str, given))
    if len(found) != M:
        raise ValueError(f"{len(found)} names for {M} kernels; give one for each")
    return found


def _cut(name: str, most: int = 26) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _done(figure: Any, path: Where) -> Any:
    figure.tight_layout()
    return done(figure, path)
