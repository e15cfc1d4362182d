"""The report of an exam: one row per problem, as text, table, JSON or a page."""

from __future__ import annotations

import io
import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from ...formulations import formulations, losses_by_name
from ...problem import Problem
from ...util.extras import need
from ...util.tables import html as as_html
from ...util.tables import mark, plain_table
from .pattern import pattern
from .plan import FRESH, OWN

MAX_SHOWN = 8  # problems with one diagnosis, or not asked, by name


@dataclass(frozen=True)
class ProblemResult:
    """What a solver reached on one graded problem.

    Parameters
    ----------
    grade, problem, formulation, loss : str
        Which problem it was.
    tol : float
        The relative gap asked for.
    passed : bool
        Whether the candidate is certified to tol, and α nearly feasible as given.
    gap : float
        The certified relative gap.
    lower, upper : float
        lower ≤ f* ≤ upper, shown by the candidate.
    above, below : float
        How far the primal is above f*, and the dual below it, at most; relative.
    infeasible : float
        The distance of α from the feasible set as it was given; relative.
    ended : str
        How the run ended: "returned", "raised", "hangs", "converged", …
    seconds : float
        How long it took.
    kind, diagnosis : str
        Of a failure: its kind, and what is wrong, in words.
    n, M : int
        The numbers of samples and of kernels.
    C : float
        The largest C of a sample.
    storage : str
        How the kernels are stored: packed, full, factors; and float32, where it is.
    bias : bool
        Whether the problem has a bias.
    asked : Problem or None
        The problem itself.
    point : dict
        What was returned: `mklopt.diagnose(row.asked, **row.point)` looks at it again.
    """

    grade: str
    problem: str
    formulation: str
    loss: str
    tol: float
    passed: bool
    gap: float = math.inf
    lower: float = -math.inf
    upper: float = math.inf
    above: float = math.inf
    below: float = math.inf
    infeasible: float = 0.0
    ended: str = ""
    seconds: float = 0.0
    kind: str = ""
    diagnosis: str = ""
    n: int = 0
    M: int = 0
    C: float = math.nan
    storage: str = ""
    bias: bool = True
    asked: Problem | None = field(default=None, repr=False, compare=False)
    point: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def values(self) -> dict[str, Any]:
        """All but the problem and the point, which are no numbers and no words.

        Returns
        -------
        dict
        """
        names = [f.name for f in fields(self) if f.name not in ("asked", "point")]
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, repr=False)
class SolverReport:
    """What `mklopt.check_solver` found; `print` shows the table and the diagnosis.

    Parameters
    ----------
    solver : str
        The name of the solver.
    rows : tuple of ProblemResult
        One for each problem.
    left_out : tuple of str
        Problems that were not asked, or do not fit the solver.
    kind : str
        The kind of most failures; empty when there are none.
    seed : int
        Of the fresh problems; the same seed draws the same ones.
    """

    solver: str
    rows: tuple[ProblemResult, ...]
    left_out: tuple[str, ...] = ()
    kind: str = ""
    seed: int | None = None

    @property
    def failures(self) -> tuple[ProblemResult, ...]:
        """The problems that were not passed."""
        return tuple(row for row in self.rows if not row.passed)

    @property
    def passed(self) -> bool:
        """Whether every problem was passed, and there was at least one."""
        return bool(self.rows) and not self.failures

    @property
    def diagnosis(self) -> str:
        """What explains most of the failures, in words; empty when there are none."""
        return _most_common([row for row in self.failures if row.kind == self.kind])

    def _count(self) -> str:
        return f"{len(self.rows) - len(self.failures)} of {len(self.rows)}"

    def __repr__(self) -> str:
        kind = f", {self.kind}" if self.kind else ""
        return f"SolverReport({self.solver}: {self._count()} certified{kind})"

    def __str__(self) -> str:
        need("rich")
        from rich.console import Console

        text = io.StringIO()
        self.show(Console(file=text, width=100))
        return text.getvalue().rstrip()

    def show(self, console: Any) -> None:
        """Print the table, the diagnoses, the most frequent first, and one sentence.

        Parameters
        ----------
        console : rich.console.Console
            Where to print.
        """
        for table in _tables(self.rows):
            console.print(table)
        say = partial(console.print, markup=False, highlight=False)
        for kind, count in Counter(row.kind for row in self.failures).most_common():
            rows = [row for row in self.failures if row.kind == kind]
            names = "; ".join(list(dict.fromkeys(map(_called, rows)))[:MAX_SHOWN])
            say(f"{kind} ({count}): {names}\n    {_most_common(rows)}")
        if found := pattern(self.rows):
            say(found)
        if any(row.grade != OWN for row in self.rows):
            say(_asked(self.rows))
        if self.left_out:
            some = "; ".join(self.left_out[:MAX_SHOWN])
            more = len(self.left_out) - MAX_SHOWN
            say(f"not asked: {some}" + (f"; and {more} more" if more > 0 else ""))
        if self.seed is not None:
            say(f"fresh problems were drawn with seed {self.seed}")
        say(self._verdict())

    def _verdict(self) -> str:
        known = self.kind != "not diagnosed"
        why = f"most likely: {self.kind}" if known else "the cause is not known"
        verdict = "passed" if self.passed else f"FAILED, {why}"
        return f"{self.solver}: {self._count()} problems certified: {verdict}"

    def to_frame(self) -> Any:
        """All results as a table.

        Returns
        -------
        pandas.DataFrame
            One row per problem.
        """
        need("pandas")
        import pandas as pd

        return pd.DataFrame([row.values() for row in self.rows])

    def html(self, path: str | os.PathLike | None = None) -> str:
        """The report as a page.

        Parameters
        ----------
        path : str or path, optional
            Where to write it.

        Returns
        -------
        str
            HTML that needs no other file.
        """
        page = f"<!doctype html><meta charset='utf-8'>{self._repr_html_()}"
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _repr_html_(self) -> str:
        from rich.text import Text

        words = ("grade", "problem", "formulation", "loss", "passed")
        found = plain_table("", words, ("gap", "seconds"))
        found.add_column("diagnosis")
        for row in self.rows:
            names = (row.grade, row.problem, row.formulation, row.loss)
            passed = Text("yes") if row.passed else Text("NO", style="bold")
            numbers = f"{row.gap:.2g}", f"{row.seconds:.2g}"
            found.add_row(*names, passed, *numbers, row.diagnosis)
        return as_html(found, self._verdict())

    def to_json(self) -> str:
        """Everything as JSON.

        Returns
        -------
        str
            What is not a finite number is null.
        """
        found: dict[str, Any] = {"passed": self.passed, "diagnosis": self.diagnosis}
        found |= {f.name: getattr(self, f.name) for f in fields(self)}
        found["rows"] = [row.values() for row in self.rows]
        for row in found["rows"]:
            for name, value in row.items():
                if isinstance(value, float) and not math.isfinite(value):
                    row[name] = None
        return json.dumps(found, ensure_ascii=False, indent=1)


def _most_common(rows: list[ProblemResult]) -> str:
    words = [row.diagnosis for row in rows]
    return max(words, key=words.count, default="")


def _called(row: ProblemResult) -> str:
    if row.grade != FRESH:
        return row.problem
    bias = "" if row.bias else ", no bias"
    size = f"n = {row.n}, M = {row.M}, C ≤ {row.C:.4g}, {row.storage}{bias}"
    return f"{row.problem} ({size})"


def _asked(rows: Sequence[ProblemResult]) -> str:
    """Which losses and formulations were asked for, and which were not."""
    said = []
    names: dict[str, Any] = {"losses": losses_by_name(), "formulations": formulations()}
    for part, known in names.items():
        shown = [row.loss if part == "losses" else row.formulation for row in rows]
        asked = dict.fromkeys(words.partition("(")[0] for words in shown)
        others = [name for name in known if name not in asked]
        rest = f" (not {', '.join(others)})" if others else ""
        said.append(f"{part} {', '.join(asked)}{rest}")
    return f"asked: {'; '.join(said)}"


def _tables(rows: Sequence[ProblemResult]) -> Iterator[Any]:
    """A table of graded problems for each loss and formulation, and one of fresh."""
    from rich.markup import escape as plain

    numbers = ("gap", "above", "below", "α off", "s")
    for title, group in groupby(rows, key=_title):
        found = plain_table(plain(title), ("", "problem"), numbers)
        for grade, some in groupby(group, key=lambda row: row.grade):
            found.add_section()
            found.add_row("", f"[bold]{grade}[/]")
            for row in some:
                values = (row.gap, row.above, row.below, row.infeasible)
                cells = (*(f"{x:.1e}" for x in values), f"{row.seconds:.1f}")
                other = grade in (FRESH, OWN)
                what = f", {row.loss}, {row.formulation}" if other else ""
                name = plain(f"  {row.problem}{what}")
                found.add_row(mark(row.passed), name, *cells)
        yield found


def _title(row: ProblemResult) -> str:
    about = "certified gap, primal above and dual below f*"
    if row.grade == FRESH:
        return f"fresh problems: {about}"
    if row.grade == OWN:
        return f"own problems: {about}"
    return f"{row.loss}, {row.formulation}: {about}"
