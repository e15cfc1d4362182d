"""One look for all figures: one style file, a colour, marker and line per curve."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy.special import stdtrit

FOLDER = Path(os.environ.get("MKLOPT_FIGURES", "figures-out"))
STYLE = Path(__file__).with_name("mklopt.mplstyle")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555")
MARKERS = "osD^vP*X"  # one more than colours: no pair comes twice
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))  # told apart in grey
LEVEL = 0.95  # of the intervals that bands show
KINDS = (".png", ".pdf")
Draw = TypeVar("Draw", bound=Callable[..., Any])


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Everything drawn inside has our look, and nothing after it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.style.context(STYLE):
        yield


def styled(draw: Draw) -> Draw:
    """A function that draws, in our look."""

    @wraps(draw)
    def inside(*args: Any, **options: Any) -> Any:
        with style():
            return draw(*args, **options)

    return inside  # type: ignore[return-value]


@styled
def panels(count: int, columns: int = 2, height: float = 2.7) -> tuple[Any, list[Any]]:
    """A figure with so many axes; those left over are hidden."""
    import matplotlib.pyplot as plt

    rows = -(-count // columns)
    size = (4.0 * columns, height * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    found = list(axes.ravel())
    for axis in found[count:]:
        axis.set_visible(False)
    return figure, found[:count]


def look(place: int) -> dict[str, Any]:
    """Colour, marker and line of the place-th curve."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": LINES[place % len(LINES)],
        "markersize": 4.0,
        "linewidth": 1.3,
    }


def band(
    axis: Any,
    x: Any,
    values: Any,
    place: int,
    label: str,
    log: bool = False,
    **more: Any,
) -> None:
    """The mean of values[seed, x] and a t-interval around it; the legend says which.

    log: of logarithms, for a logarithmic axis: a geometric mean, and no band below 0
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
    plt.close(figure)  # pyplot forgets it; whoever has it can still draw on it
    return paths


@styled
def save(figure: Any, name: str) -> list[Path]:
    """Write name.png and name.pdf to the folder of figures; returns their paths."""
    figure.tight_layout()
    return write(figure, FOLDER / name)


def done(figure: Any, path: str | os.PathLike | None = None) -> Any:
    """A finished figure, written where it is wanted: PNG and PDF, or by its ending."""
    import matplotlib.pyplot as plt

    if path is not None:
        target = Path(path)
        kinds = (target.suffix,) if target.suffix else KINDS
        write(figure, target.with_suffix(""), kinds)
    plt.close(figure)
    return figure


def positive(text: str) -> int:
    """A whole number ≥ 1 from the command line."""
    import argparse

    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; give a whole number ≥ 1")
    return int(text)
