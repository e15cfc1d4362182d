"""Sizes of figures for journals and conferences: widths in inches, letters in points.

    neurips     one column of 5.5 in, 10 pt
    icml        two columns of 3.25 in, 6.75 in together, 10 pt
    jmlr        one column of 6 in, 11 pt
    siam-2col   two columns of 241 pt, 41 pc together, 10 pt (proceedings)

A figure that is included at its own size has letters a little smaller than the text:
labels 0.8 and ticks 0.7 times as large, and never below 6 pt.

References: the style files neurips, icml, jmlr2e and ltexpprt of these venues.
"""

from dataclasses import dataclass
from typing import Any

from .checks import check_choice, check_positive

POINT = 1 / 72.27  # inches; TeX has 12 of them in a pica
SMALLEST = 6.0  # points


@dataclass(frozen=True)
class Venue:
    """Widths of a column and of the text in inches, and letters of the text in pt."""

    column: float
    text: float
    points: float

    def width(self, given: Any = None) -> float:
        """Inches: a number as it is, "column" (or None), or "text"."""
        if given is None or isinstance(given, str):
            named = check_choice(given or "column", "width", ("column", "text"))
            return float(getattr(self, named))
        return check_positive(given, "width", finite=True)

    def settings(self) -> dict[str, Any]:
        """Settings of matplotlib: sizes of letters and lines for figures at print."""
        label = max(0.8 * self.points, SMALLEST)
        tick = max(0.7 * self.points, SMALLEST)
        labels = ("font.size", "axes.labelsize", "axes.titlesize")
        ticks = ("xtick.labelsize", "ytick.labelsize", "legend.fontsize")
        return {
            **dict.fromkeys(labels, label),
            **dict.fromkeys(ticks, tick),
            "lines.linewidth": 1.1,
            "lines.markersize": 3.4,
            "lines.markeredgecolor": "white",  # markers that lie on each other
            "lines.markeredgewidth": 0.4,
            "axes.labelpad": 2.0,
            "axes.titlepad": 3.0,
            "xtick.major.pad": 2.0,
            "ytick.major.pad": 2.0,
            "savefig.bbox": "standard",  # the size that was asked for
            "savefig.dpi": 300,
        }


VENUES = {
    "neurips": Venue(5.5, 5.5, 10.0),
    "icml": Venue(3.25, 6.75, 10.0),
    "jmlr": Venue(6.0, 6.0, 11.0),
    "siam-2col": Venue(241 * POINT, 41 * 12 * POINT, 10.0),
}


def venue_of(name: Any = None) -> Venue:
    """The sizes of a venue; by default those of one column of 5.5 inches."""
    return VENUES[check_choice(name or "neurips", "venue", VENUES)]
