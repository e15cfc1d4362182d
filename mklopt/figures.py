"""One look for all figures: a colour per solver, written as PNG and PDF."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("MKLOPT_FIGURES", "figures-out"))
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555")
MARKERS = "osD^vP*X"  # one more than colours: no pair comes twice


def panels(count: int, columns: int = 2, height: float = 2.7) -> tuple[Any, list[Any]]:
    """A figure with so many axes, none of them framed on top and right."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = -(-count // columns)
    size = (4.0 * columns, height * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    found = list(axes.ravel())
    for axis in found:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(True, color="0.92", linewidth=0.6)
        axis.set_axisbelow(True)
    for axis in found[count:]:
        axis.set_visible(False)
    return figure, found[:count]


def look(place: int) -> dict[str, Any]:
    """Colour and marker of the place-th curve."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "markersize": 4.5,
        "linewidth": 1.4,
    }


def save(figure: Any, name: str) -> list[Path]:
    """Write name.png and name.pdf; returns their paths."""
    import matplotlib.pyplot as plt

    FOLDER.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    paths = [FOLDER / f"{name}.{kind}" for kind in ("png", "pdf")]
    for path in paths:
        figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return paths


def done(figure: Any, path: str | os.PathLike | None = None) -> Any:
    """A finished figure, written where it is wanted: PNG and PDF, or by its ending."""
    import matplotlib.pyplot as plt

    if path is not None:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        for kind in [target.suffix] if target.suffix else [".png", ".pdf"]:
            figure.savefig(target.with_suffix(kind), dpi=150, bbox_inches="tight")
    plt.close(figure)  # pyplot forgets it; whoever has it can still draw on it
    return figure


def positive(text: str) -> int:
    """A whole number ≥ 1 from the command line."""
    import argparse

    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; give a whole number ≥ 1")
    return int(text)
