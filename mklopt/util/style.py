"""One style for all figures: one style file, a colour, marker and line per curve."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy.special import stdtrit

from .checks import check_path

FOLDER = Path(os.environ.get("MKLOPT_FIGURES", "figures-out"))
STYLE = Path(__file__).with_name("mklopt.mplstyle")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555")
MARKERS = "osD^vP*X"  # one more than colours: no pair comes twice
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))  # told apart in grey
MAX_LABELLED = 6  # curves with a name and a colour of their own; the others are grey
LEVEL = 0.95  # confidence of the intervals that bands show
KINDS = (".png", ".pdf")  # files that are written when a name has no ending
Draw = TypeVar("Draw", bound=Callable[..., Any])


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Inside this context figures have our style; the user's settings come back."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.style.context(STYLE):
        yield


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


def top_curves(
    axis: Any, x: Any, values: Any, names: Sequence[str], sizes: Any, **more: Any
) -> None:
    """Plot the columns of values: those with the largest sizes by name, others grey."""
    order = np.argsort(-sizes, kind="stable")
    for m in order[MAX_LABELLED:]:
        axis.plot(x, values[:, m], color="0.8", linewidth=0.8)
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
        kind = "geometric mean" if log else "mean"
        label += f" ({kind} of {seeds} seeds, {LEVEL:.0%})"
        width = -stdtrit(seeds - 1, (1 - LEVEL) / 2) / np.sqrt(seeds)
        off = width * np.std(values, axis=0, ddof=1)
        ends, colour = (back(mean - off), back(mean + off)), look(place)["color"]
        axis.fill_between(x, *ends, color=colour, alpha=0.18, lw=0)
    axis.plot(x, back(mean), label=label, **{**look(place), **more})


@styled
def write(figure: Any, target: Path, kinds: tuple[str, ...] = KINDS) -> list[Path]:
    """Write a figure as each kind of file; the same figure gives the same bytes."""
    import matplotlib.pyplot as plt

    target.parent.mkdir(parents=True, exist_ok=True)
    paths = [target.with_name(target.name + kind) for kind in kinds]
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


def done(figure: Any, path: str | os.PathLike | None = None) -> Any:
    """Close a figure and return it; with a path, write it there first.

    The ending of the path is the kind of file; without one it is PNG and PDF.
    """
    import matplotlib.pyplot as plt

    if path is not None:
        check_path(path)
        target = Path(path)
        kinds = (target.suffix,) if target.suffix else KINDS
        write(figure, target.with_suffix(""), kinds)
    plt.close(figure)
    return figure
