"""The table of a race: time to the tolerance, by problem and solver.

A cell is mean ± standard deviation over seeds and repeats, with as many digits as the
deviation allows. The best mean of a problem is bold, and so is every other one that is
not larger at the digits that are printed. Where a run did not reach the tolerance, the
cell is the largest gap that a run ended with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..util.extras import need
from ..util.tables import as_text, html, latex, plain_table
from .race_curves import names_in, read_traces, runs_of, times_to
from .race_figure import AXES, solver_looks

DIGITS = 3  # of a mean without a deviation


@dataclass(frozen=True, eq=False)
class Summary:
    """Time to the tolerance by problem and solver, with its spread.

    Parameters
    ----------
    column : str
        What is counted: "seconds", "passes" or another column of the trace.
    tol : float
        The relative gap to reach.
    times : dict
        Problem and solver to the numbers of all runs; inf where a run failed.
    gaps : dict
        Problem and solver to the largest gap at the end of a run.
    problems, solvers : list of str
    labels : dict
        What to print for a name.
    """

    column: str
    tol: float
    times: dict[tuple[str, str], Any] = field(repr=False)
    gaps: dict[tuple[str, str], float] = field(repr=False)
    problems: list[str] = field(repr=False)
    solvers: list[str] = field(repr=False)
    labels: dict[str, str] = field(repr=False, default_factory=dict)

    def to_frame(self) -> Any:
        """The numbers of the table.

        Returns
        -------
        pandas.DataFrame
            One row per problem and solver: mean, std, median, runs, reached (how many
            runs reached the tolerance) and gap (the largest one at the end).
        """
        need("pandas")
        import pandas as pd

        rows = []
        for (problem, solver), found in self.times.items():
            some = found[np.isfinite(found)]
            mean, spread = _moments(found)
            rows.append(
                {
                    "problem": problem,
                    "solver": solver,
                    "mean": mean,
                    "std": spread,
                    "median": float(np.median(found)),
                    "runs": len(found),
                    "reached": len(some),
                    "gap": self.gaps[problem, solver],
                }
            )
        return pd.DataFrame(rows)

    def table(self) -> Any:
        """The table as text.

        Returns
        -------
        rich.table.Table
            One row per problem, one column per solver.
        """
        heads = [self.labels.get(s, s) for s in self.solvers]
        found = plain_table("", ["problem"], heads)
        for problem in self.problems:
            cells = [self._cell(problem, solver) for solver in self.solvers]
            found.add_row(self.labels.get(problem, problem), *_best_bold(cells))
        return found

    def latex(self) -> str:
        r"""The table in LaTeX, a tabular with the rules of booktabs.

        Returns
        -------
        str
            It needs \usepackage{booktabs}. The first line is a comment that says what
            the numbers are.
        """
        return f"% {self._remark()}\n{latex(self.table())}"

    def _cell(self, problem: str, solver: str) -> tuple[float, str]:
        """The mean as it is printed (∞ for a failure), and the text of the cell."""
        found = self.times.get((problem, solver))
        if found is None:
            return math.inf, "–"
        mean, spread = _moments(found)
        if not math.isfinite(mean):
            return math.inf, f"gap {self.gaps[problem, solver]:.1g}"
        text = plus_minus(mean, spread if len(found) > 1 else None)
        return float(text.split(" ")[0]), text

    def _remark(self) -> str:
        """What the numbers are."""
        unit = self.labels.get(self.column, AXES[self.column])
        counts = sorted({len(found) for found in self.times.values()})
        runs = " to ".join(map(str, dict.fromkeys([counts[0], counts[-1]])))
        spread = f": mean ± standard deviation of {runs} runs" if counts[-1] > 1 else ""
        return f"{unit} to a relative gap of {self.tol:g}{spread}"

    def __str__(self) -> str:
        return f"{as_text(self.table(), 110)}\n{self._remark()}"

    def _repr_html_(self) -> str:
        return html(self.table(), self._remark())


def summary(
    traces: Any,
    tol: float,
    column: str = "seconds",
    labels: Mapping[str, str] | None = None,
    order: Sequence[str] = (),
) -> Summary:
    """The table of the traces of a race; `Race.summary` explains the arguments."""
    rows = read_traces(traces)
    solvers, problems = list(solver_looks(rows, labels, None, order)), []
    times, gaps = {}, {}
    for problem in names_in(rows, "problem"):
        problems.append(problem)
        for solver in solvers:
            if runs := runs_of(rows, problem, solver):
                key = (problem, solver)
                times[key] = np.array([times_to(run, tol, column) for run in runs])
                gaps[key] = max(float(run["gap"].iloc[-1]) for run in runs)
    return Summary(column, tol, times, gaps, problems, solvers, dict(labels or {}))


def _moments(found: Any) -> tuple[float, float]:
    if not np.all(np.isfinite(found)):
        return math.inf, math.nan
    return float(np.mean(found)), float(np.std(found, ddof=1)) if len(
        found
    ) > 1 else 0.0


def plus_minus(mean: float, spread: float | None = None) -> str:
    """ "0.123 ± 0.004": the deviation with one digit, the mean with the same places.

    A deviation that begins with 1 has two digits.
    """
    if not spread:
        places = max(DIGITS - 1 - _exponent(mean), 0)
        text = f"{mean:.{places}f}"
        return text if spread is None else f"{text} ± 0"
    first, _, power = f"{spread:.0e}".partition("e")  # 0.96 is rounded to 1.0
    digits = 2 if first == "1" else 1
    places = max(digits - 1 - int(power), 0)
    return f"{mean:.{places}f} ± {spread:.{places}f}"


def _exponent(value: float) -> int:
    """The power of ten of the first digit."""
    return math.floor(math.log10(abs(value))) if value else 0


def _best_bold(cells: list[tuple[float, str]]) -> list[Any]:
    from rich.text import Text

    best = min(value for value, _ in cells)
    return [
        Text(text, style="bold") if value == best < math.inf else text
        for value, text in cells
    ]
