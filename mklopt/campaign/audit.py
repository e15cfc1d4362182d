"""Every number of a ledger, computed again from what its run left on disk.

A run leaves its row and, in points/, the point and the trace that the row speaks of.
Here the point is certified afresh and judged by the reference anew; the derived dual of
a reference is solved anew; the certificate, where there is one, is checked in exact
arithmetic. Each number must be what the row states, up to the rounding of sums, whose
order depends on the processor. Rows of other code are left out: its numbers may have
meant something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..certificates.checker import check
from ..certificates.portable import proved_problem
from ..certificates.reading import read
from ..judge.verdict import ROUNDING
from ..reference.contract_problems import Cell
from ..run.result import Result
from .fingerprint import fingerprint
from .ledger import Ledger, Row
from .problems import problems_by_name
from .runs import REFERENCE, ReferenceRun, Run, point_of

NOT_COMPUTED = {"id", "code", "reason", "certificate"}
VALUES = {"primal", "dual", "lower", "upper", "reference_lower", "reference_upper"}
MAX_LEDGER = 1 << 28  # bytes; a row takes some thousands
SOLVED_ANEW = {"reference_lower", "reference_upper", "above", "below"}


class Audit:
    """The rows of a folder, and the problems that they speak of."""

    def __init__(self, folder: Path, files: Iterable[str] = ()):
        rows = folder / "rows.jsonl"
        if not rows.is_file() or rows.stat().st_size > MAX_LEDGER:
            raise ValueError(
                f"{folder} has no rows.jsonl of at most {MAX_LEDGER} bytes; give a "
                "folder that mklopt certify wrote"
            )
        self.folder, self.cells = folder, problems_by_name(files)
        known = Ledger(folder / "rows.jsonl").rows.values()
        self.rows = [row for row in known if row.code == fingerprint()]
        self.other = len(known) - len(self.rows)

    def complaints(self) -> Iterator[list[str]]:
        """For each row the list of what is wrong with it, which should be empty."""
        for row in self.rows:
            found = [*self._of_numbers(row), *self._of_certificate(row)]
            yield [_one_line(f"{row.solver} on {row.cell}: {what}") for what in found]

    def _of_numbers(self, row: Row) -> Iterator[str]:
        cell = self.cells.get(row.cell)
        if cell is None:
            yield "the problem is not known here; name its file with --data"
        elif row.gap is None:
            if row.holds:
                yield "it holds without a gap"
        else:
            yield from self._compared(row, cell)

    def _compared(self, row: Row, cell: Cell) -> Iterator[str]:
        kind = ReferenceRun if row.solver == REFERENCE else Run
        run = kind(row.solver, cell, row.tol, 0.0, self.folder.absolute())
        path = point_of(self.folder, row.id if row.id.isalnum() else "none")
        if not path.is_file():
            yield "its point cannot be read (there is no such file)"
            return
        try:
            again = asdict(run.rated(Result.load(path, cell.problem())))
        except (OSError, ValueError) as error:
            yield f"its point cannot be read ({error})"
            return
        again = asdict(Row.parse(Row(**again).line()))  # as a row can state it
        for name, stated in asdict(row).items():
            if name not in NOT_COMPUTED and not _same(row, name, stated, again[name]):
                yield f"{name} is {stated} in its row and {again[name]} computed again"

    def _of_certificate(self, row: Row) -> Iterator[str]:
        if not row.certificate:
            return
        try:
            proved = check(read(self.folder / row.certificate))
        except (OSError, ValueError) as error:
            yield f"{row.certificate} proves nothing ({error})"
            return
        if (proved["lower"], proved["upper"]) != (row.lower, row.upper):
            yield f"{row.certificate} proves other bounds than those of the row"
        cell = self.cells.get(row.cell)
        if cell and proved["problem"] != proved_problem(cell.problem()).digest():
            yield f"{row.certificate} is of another problem than the row"


def _one_line(text: str) -> str:
    """Text with whatever could move a cursor or begin a line written as an escape."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _same(row: Row, name: str, stated: Any, again: Any) -> bool:
    if not isinstance(stated, float) or not isinstance(again, float):
        return bool(stated == again)
    allowed = ROUNDING
    if row.solver == REFERENCE and name in SOLVED_ANEW:
        allowed = row.tol
    if name in VALUES:  # errors are relative
        allowed *= abs(row.upper or 0.0)
    return abs(stated - again) <= allowed
