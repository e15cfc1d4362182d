"""What figures and tables read from the traces of a race.

The traces are one table with a row per certified iterate (Race.to_frame, traces.csv).
Several runs of a solver on a problem, from seeds or repeats, become one curve: at each
x the median of the values of all runs, and their quartiles. Between two iterates a run
is the straight line that a figure shows, on logarithmic axes in logarithms; after its
end it keeps its last value. The curve goes from the median of the first x to the median
of the last x, so that it ends where the table says that a run ends.
"""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..run.trace import COLUMNS
from ..util.checks import short
from ..util.extras import need
from ..util.tables import read_csv

Array = np.ndarray
WHO = ("problem", "solver", "seed", "repeat")
FLOOR = 1e-16  # where a gap of 0 is drawn
QUARTILES = (0.25, 0.5, 0.75)


class Curve(NamedTuple):
    """A median with its quartiles, over x."""

    x: Array
    low: Array
    middle: Array
    high: Array


def read_traces(given: Any) -> Any:
    """The table of traces, from a DataFrame or from a CSV file of one."""
    need("pandas")
    import pandas as pd

    if isinstance(given, str | os.PathLike):
        names = ("problem", "solver")  # a solver may be called "nan"
        absent = {c: ["", "nan"] for c in (*WHO, *COLUMNS, "width") if c not in names}
        as_text = dict.fromkeys(names, str)
        how: Any = {"keep_default_na": False, "na_values": absent, "dtype": as_text}
        given = read_csv(given, **how)
    if not isinstance(given, pd.DataFrame):
        raise ValueError(
            f"traces = {short(given)}; give a race, its to_frame(), or CSV"
        )
    missing = [c for c in (*WHO, *COLUMNS, "width") if c not in given.columns]
    if missing:
        raise ValueError(f"the traces have no column {', '.join(missing)}")
    return given


def names_in(rows: Any, column: str) -> list[str]:
    """The names in a column, in the order of the rows."""
    return list(dict.fromkeys(rows[column]))


def runs_of(rows: Any, problem: str, solver: str) -> list[Any]:
    """The traces of a solver on a problem, one table per seed and repeat."""
    mine = rows[(rows["problem"] == problem) & (rows["solver"] == solver)]
    return [run for _, run in mine.groupby(["seed", "repeat"], sort=False)]


def times_to(run: Any, tol: float, column: str = "seconds") -> float:
    """When the gap of a run was first at most tol; inf: never."""
    reached = np.flatnonzero(np.asarray(run["gap"]) <= tol)
    return float(np.asarray(run[column])[reached[0]]) if len(reached) else np.inf


def points_of(run: Any, x: str, y: str) -> tuple[Array, Array]:
    """One run as a figure shows it: iterates are counted from 1, gaps not below FLOOR.

    Rows without a finite value, before there is a bound, are left out.
    """
    at, values = np.asarray(run[x], float), np.asarray(run[y], float)
    at = at + 1 if x == "iteration" else at
    seen = np.isfinite(values) & np.isfinite(at)
    values = np.maximum(values, FLOOR) if y == "gap" else values
    return at[seen], values[seen]


def median_curve(
    runs: Sequence[tuple[Array, Array]], log_x: bool, steps: bool = False
) -> Curve:
    """The median and the quartiles of several runs; one run is its own median.

    Values are gaps, in logarithms; or with `steps` numbers that stay until the next.
    """
    if len(runs) == 1:
        x, y = runs[0]
        return Curve(x, y, y, y)
    first, last = (np.median([x[end] for x, _ in runs]) for end in (0, -1))
    every = np.concatenate([x for x, _ in runs])
    inside = every[(every > first) & (every < last)]
    grid = np.unique([first, *inside, max(first, last)])
    if steps:
        last = [np.searchsorted(x, grid, "right") - 1 for x, _ in runs]
        values = [y[np.maximum(at, 0)] for at, (_, y) in zip(last, runs)]
        return Curve(grid, *np.quantile(values, QUARTILES, axis=0))
    scale = np.log if log_x else np.asarray
    values = [np.interp(scale(grid), scale(x), np.log(y)) for x, y in runs]
    return Curve(grid, *np.exp(np.quantile(values, QUARTILES, axis=0)))
