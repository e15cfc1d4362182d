"""The ledger: one JSON line per finished run, on disk before the next one begins.

A line is written in one piece and flushed to the disk, so that whatever kills the
process costs at most the line being written: it has no newline yet, is cut off before
the next line is written, and its run is repeated. Every other line must be a whole row
with a fitting checksum; one that is not is named in a sentence, never guessed at.

Several processes may write to one ledger. A lock on the file lets one of them write at
a time, so that a line without its newline, seen under the lock, has no living writer.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO, Any

from ..util.files import checksum, lock

OPENING = b'{"checksum":'
MAX_LINE = 1_000_000  # bytes, a thousand times what a row takes
MAX_NUMBER = 1e300  # JSON reads 1e999 as infinity
COLUMNS = ("iteration", "seconds", "passes", "gap")


@dataclass(frozen=True)
class Row:
    """One run and its verdict; None where a number does not exist or is not finite."""

    id: str  # of the run: code, problem, solver, tolerance, time limit
    code: str  # fingerprint of the code that ran
    cell: str  # the problem
    solver: str
    formulation: str  # with its parameters
    kind: str  # without
    loss: str
    data: str
    n: int
    M: int
    C: float
    bias: bool
    tol: float
    holds: bool
    reason: str
    status: str = "failed"
    gap: float | None = None
    primal: float | None = None
    dual: float | None = None
    lower: float | None = None
    upper: float | None = None
    theorem: bool = False  # lower ≤ f* ≤ upper assumes nothing …
    assumptions: str = ""  # … or this
    reference_lower: float | None = None
    reference_upper: float | None = None
    above: float | None = None
    below: float | None = None
    seconds: float | None = None
    passes: float | None = None
    iterations: int = 0
    trace: dict[str, list] = field(default_factory=lambda: {c: [] for c in COLUMNS})
    certificate: str = ""  # a file that proves lower ≤ f* ≤ upper, in the same folder

    def line(self) -> bytes:
        """The row as one line of JSON, its checksum first."""
        body = {name: _plain(value) for name, value in asdict(self).items()}
        whole = {"checksum": checksum(body)[:16], **body}
        text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
        return text.encode() + b"\n"

    @classmethod
    def parse(cls, line: bytes) -> Row:
        """The row that a line holds; ValueError says what is wrong with it."""
        if len(line) > MAX_LINE:
            raise ValueError(f"it has {len(line)} bytes")
        try:
            body = json.loads(line.decode(), parse_constant=_no_constant)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        if not isinstance(body, dict) or "checksum" not in body:
            raise ValueError("it has no checksum")
        if body.pop("checksum") != checksum(body)[:16]:
            raise ValueError("its checksum does not fit")
        wanted = {f.name: str(f.type) for f in fields(cls)}
        if set(body) != set(wanted):
            odd = ", ".join(sorted(set(body) ^ set(wanted))[:3])
            raise ValueError(f"it has other columns than a row ({odd})")
        for name, value in body.items():
            if not FITS[wanted[name]](value):
                raise ValueError(f"its {name} is not of type {wanted[name]}")
        return cls(**body)


def _number(value: Any) -> bool:
    """A finite number."""
    right = isinstance(value, int | float) and not isinstance(value, bool)
    return right and abs(value) < MAX_NUMBER


def _text(value: Any) -> bool:
    """Text that can be written: JSON may hold half of a surrogate pair."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def _trace(value: Any) -> bool:
    """The columns of a curve: lists of numbers, all of the same length."""
    if not isinstance(value, dict) or set(value) != set(COLUMNS):
        return False
    if not all(isinstance(column, list) for column in value.values()):
        return False
    same = len(set(map(len, value.values()))) == 1
    return same and all(v is None or _number(v) for c in value.values() for v in c)


FITS = {
    "str": _text,
    "int": lambda v: _number(v) and isinstance(v, int),
    "bool": lambda v: isinstance(v, bool),
    "float": _number,
    "float | None": lambda v: v is None or _number(v),
    "dict[str, list]": _trace,
}


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _plain(value: Any) -> Any:
    """JSON knows neither infinity nor NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list) else value


class Ledger:
    """The rows of a folder, by the id of their run."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self.rows: dict[str, Row] = {}
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            content = b""
        *lines, tail = content.split(b"\n")
        for number, line in enumerate(lines, 1):
            try:
                row = Row.parse(line)
            except ValueError as error:
                raise ValueError(self._complaint(number, error)) from None
            self.rows[row.id] = row
        if not (tail.startswith(OPENING) or OPENING.startswith(tail)):
            raise ValueError(
                self._complaint(len(lines) + 1, "it does not begin like one")
            )
        self.torn = len(tail) > 0

    def _complaint(self, number: int, why: object) -> str:
        return (
            f"line {number} of {self.path} is not a row of this program: {why}; remove "
            "that line or the file, or choose another folder with --out"
        )

    def append(self, row: Row) -> Row:
        """Write a row to the disk; returned is what can be read there."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = row.line()
        with self.path.open("a+b") as file:
            lock(file.fileno(), wait=True)
            file.truncate(_whole(file))
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self.rows[row.id] = Row.parse(line)
        return self.rows[row.id]


def _whole(file: IO[bytes]) -> int:
    """The size of a file up to its last newline."""
    size = file.seek(0, os.SEEK_END)
    start = file.seek(max(size - MAX_LINE, 0))
    return start + file.read().rfind(b"\n") + 1
