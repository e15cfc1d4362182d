"""One style for all figures: one style file, a colour, marker and line per curve."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .checks import check_path, short
from .extras import need

FOLDER = Path(os.environ.get("MKLOPT_FIGURES", "figures-out"))
STYLE = Path(__file__).with_name("mklopt.mplstyle")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555")
MARKERS = "osD^Pv*X"  # one more than colours: no pair comes twice
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))  # told apart in grey
MAX_LABELLED = 6  # curves with a name and a colour of their own; the others are grey
MAX_NUMBERS = 5  # at the ticks of a logarithmic axis
SHORT_AXIS = 1.6  # powers of ten of an axis with numbers between them
MAX_TICKS = 200  # of a logarithmic axis, small ones included
LEVEL = 0.95  # confidence of the intervals that bands show
KINDS = (".png", ".pdf")  # files that are written when a name has no ending
Draw = TypeVar("Draw", bound=Callable[..., Any])


@contextlib.contextmanager
def style(*more: Any) -> Iterator[None]:
    """Inside this context figures have our style; the user's settings come back.

    more: styles of matplotlib on top of it, as names, files or dicts; None is none.
    """
    need("matplotlib")
    import matplotlib

    own = [part for given in more for part in _styles(given)]
    with contextlib.ExitStack() as stack:
        stack.enter_context(_without_windows(matplotlib))
        import matplotlib.pyplot as plt

        try:
            stack.enter_context(plt.style.context([STYLE, *own]))
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"style = {short(own[-1])} is no style of matplotlib ({error}); give a "
                "name, a file, or a dict of settings"
            ) from None
        yield


@contextlib.contextmanager
def _without_windows(matplotlib: Any) -> Iterator[None]:
    """Draw for files; then the backend of the user, such as a notebook's, is back.

    Before its first figure Matplotlib has chosen none: nothing is restored then.
    """
    settings = matplotlib.rcParams
    backend, fallback = dict.__getitem__(settings, "backend"), "backend_fallback"
    before = settings[fallback]
    if str(backend).lower() != "agg":
        matplotlib.use("Agg")
    try:
        yield
    finally:
        if isinstance(backend, str) and backend.lower() != "agg":
            matplotlib.use(backend)
            settings[fallback] = before


def _styles(given: Any) -> list[Any]:
    """One style or several, as a list."""
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def styled(draw: Draw) -> Draw:
    """Decorate a function that draws: its figures have our style."""

    @wraps(draw)
    def inside(*args: Any, **options: Any) -> Any:
        with style():
            return draw(*args, **options)

    return inside  # type: ignore[return-value]


@styled
def panels(count: int, columns: int = 2, height: float = 2.7) -> tuple[Any, list[Any]]:
    """A figure with `count` axes in so many columns, and the list of these axes."""
    import matplotlib.pyplot as plt

    rows = -(-count // columns)
    size = (4.0 * columns, height * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    for unused in axes.flat[count:]:
        unused.set_visible(False)
    return figure, list(axes.flat[:count])


def look(place: int) -> dict[str, Any]:
    """Colour, marker and line of curve number `place`, counted from 0."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": LINES[place % len(LINES)],
        "markersize": 4.0,
        "linewidth": 1.3,
    }


def log_ticks(axis: Any) -> None:
    """Ticks of a logarithmic axis that a small panel has room for.

    Few numbers, and small ticks between them: at 2, …, 9 times the powers of ten, or at
    the powers without a number where there are many of these. A short axis has numbers
    at 1, 2 and 5, or at 1 and 3 where they are long, such as 0.003.
    """
    from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter

    low, high = np.log10(axis.get_view_interval())
    if high - low < SHORT_AXIS and low >= -4.0 and high <= 3.0:
        axis.set_major_locator(FixedLocator(_numbers(*axis.get_view_interval())))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(LogLocator(10.0, subs=range(2, 10), numticks=MAX_TICKS))
        axis.set_minor_formatter(NullFormatter())
        return
    stride = int(np.ceil(max(high - low, 1.0) / MAX_NUMBERS))
    axis.set_major_locator(LogLocator(base=10.0**stride, numticks=MAX_TICKS))
    between = range(2, 10) if stride == 1 else (1.0,)
    axis.set_minor_locator(LogLocator(10.0, subs=between, numticks=MAX_TICKS))
    axis.set_minor_formatter(NullFormatter())


def _numbers(low: float, high: float) -> list[float]:
    """Two round numbers or more between the ends of a short logarithmic axis."""
    powers = np.power(10.0, np.arange(np.floor(np.log10(low)), np.log10(high) + 1))
    steps = [
        [1.0, 2.0, 5.0],
        [1.0, 2.0, 3.0, 5.0, 7.0],
        [k / 10 for k in range(10, 100)],
    ]
    inside: list[float] = []
    for each in steps if low >= 0.01 else [[1.0, 3.0], *steps]:
        ticks = np.outer(powers, each).ravel()
        inside = [float(t) for t in ticks if low * 0.999 <= t <= high * 1.001]
        if len(inside) >= 2:
            break
    return inside if len(inside) <= MAX_NUMBERS else [inside[0], inside[-1]]


def thin_markers(axis: Any, lines: Sequence[Any], apart: float = 0.1) -> None:
    """Markers at the ends of each line, and between them at least so far apart.

    apart: a share of the length of the diagonal of the panel
    """
    box = axis.transLimits  # after the scale: the unit square
    for line in lines:
        where = box.transform(axis.transScale.transform(line.get_xydata()))
        kept = [0]
        for k, point in enumerate(where):
            if np.linalg.norm(point - where[kept[-1]]) >= apart * np.sqrt(2):
                kept.append(k)
        last = len(where) - 1
        near = np.linalg.norm(where[last] - where[kept[-1]]) < 0.5 * apart
        kept = [*(kept[:-1] if near and len(kept) > 1 else kept), last]
        line.set_markevery(sorted(set(kept)))


def outside_legend(figure: Any, entries: dict[str, Any]) -> None:
    """A legend above all panels, in as few lines as the width of the figure allows.

    Lines are about equally long: 5 names are 3 and 2, and not 4 and 1. The figure needs
    a constrained layout, which makes room for it.
    """
    room, count = figure.bbox.width, len(entries)
    for lines in range(1, count + 1):
        columns = -(-count // lines)
        found = figure.legend(
            list(entries.values()),
            list(entries),
            loc="outside upper center",
            ncols=columns,
            handlelength=2.4,
            columnspacing=1.2,
            handletextpad=0.5,
            borderaxespad=0.1,
        )
        if columns == 1 or found.get_window_extent().width <= room:
            return
        found.remove()


def keep_style(figure: Any) -> None:
    """Make a figure look the same after the context of its style has ended.

    Matplotlib looks for fonts, and makes ticks, when a figure is drawn.
    """
    from matplotlib import rcParams
    from matplotlib.text import Text

    figure.draw_without_rendering()
    families = [f for name in rcParams["font.family"] for f in _fonts(rcParams, name)]
    for text in figure.findobj(Text):
        text.set_fontfamily(families)
        text.set_math_fontfamily(rcParams["mathtext.fontset"])


def _fonts(settings: Any, family: str) -> list[str]:
    """The fonts of a family such as "serif"; a font is its own family."""
    return list(settings.get(f"font.{family}", [family]))


def top_curves(
    axis: Any, x: Any, values: Any, names: Sequence[str], sizes: Any, **more: Any
) -> None:
    """Plot the columns of values: those with the largest sizes by name, others grey."""
    order = np.argsort(-sizes, kind="stable")
    others = order[MAX_LABELLED:]
    for k, m in enumerate(others):
        label = f"{len(others)} others" if k == 0 else None
        axis.plot(x, values[:, m], color="0.8", linewidth=0.8, label=label)
    for place, m in enumerate(order[:MAX_LABELLED]):
        axis.plot(x, values[:, m], label=names[m], **{**look(place), **more})


def band(
    axis: Any,
    x: Any,
    values: Any,
    place: int,
    label: str,
    log: bool = False,
    **more: Any,
) -> None:
    """Plot the mean of values[seed, x] and a t-interval around it.

    With `log`, for a logarithmic axis, it is the geometric mean, and the interval is
    one of logarithms. The legend says which mean it is.
    """
    values = np.atleast_2d(np.asarray(values, float))
    values, back = (np.log(values), np.exp) if log else (values, np.asarray)
    seeds, mean = len(values), np.mean(values, axis=0)
    if seeds > 1:
        from scipy.special import stdtrit

        kind = "geometric mean" if log else "mean"
        label += f" ({kind} of {seeds} seeds, {LEVEL:.0%})"
        width = -stdtrit(seeds - 1, (1 - LEVEL) / 2) / np.sqrt(seeds)
        off = width * np.std(values, axis=0, ddof=1)
        ends, colour = (back(mean - off), back(mean + off)), look(place)["color"]
        axis.fill_between(x, *ends, color=colour, alpha=0.18, lw=0)
    axis.plot(x, back(mean), label=label, **{**look(place), **more})


def write(
    figure: Any, target: Path, kinds: tuple[str, ...] = KINDS, more: tuple = ()
) -> list[Path]:
    """Write a figure as each kind of file; the same figure gives the same bytes."""
    import matplotlib.pyplot as plt

    target.parent.mkdir(parents=True, exist_ok=True)
    paths = [target.with_name(target.name + kind) for kind in kinds]
    with style(*more):
        for path in paths:
            undated = {"CreationDate": None} if path.suffix == ".pdf" else None
            figure.savefig(path, metadata=undated)
    plt.close(figure)  # pyplot forgets it; the caller can still draw on it
    return paths


@styled
def save(figure: Any, name: str) -> list[Path]:
    """Write name.png and name.pdf to the folder of figures; return their paths."""
    figure.tight_layout()
    return write(figure, FOLDER / name)


def done(figure: Any, path: str | os.PathLike | None = None, *more: Any) -> Any:
    """Close a figure and return it; with a path, write it there first.

    The ending of the path is the kind of file; without one it is PNG and PDF.
    more: styles on top of ours, as in `style`
    """
    need("matplotlib")
    import matplotlib.pyplot as plt

    if path is not None:
        check_path(path)
        target = Path(path)
        kinds = (target.suffix,) if target.suffix else KINDS
        write(figure, target.with_suffix(""), kinds, more)
    plt.close(figure)
    return figure
