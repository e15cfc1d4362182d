"""Rows of a study, kept on disk as they are made.

A study is a list of calls, its parts. The rows of each are appended to a file as one
line of JSON, with what the part is and how long it took. A run that is stopped, or
killed, reads this file and goes on with the parts that are missing.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

PAUSE = 10.0  # seconds between two lines of progress


class OutOfTime(Exception):
    """The time of this run is over; what was measured is kept."""


class Deadline:
    """When a run stops between two parts: a time as of time.time()."""

    ends: float = np.inf


@dataclass(frozen=True)
class Part:
    """A call that makes rows, and the keywords that tell it from the others."""

    about: dict[str, Any]
    run: Callable[[], Any]

    @property
    def name(self) -> str:
        """The keywords as text."""
        return json.dumps(self.about, default=plain)

    def rows(self) -> list[dict[str, Any]]:
        """What the call returned, as a list of rows."""
        found = self.run()
        if hasattr(found, "to_dict"):
            return found.to_dict("records")
        return [found] if isinstance(found, dict) else list(found)


def measured(
    parts: list[Part], path: Path | None = None, title: str = ""
) -> pd.DataFrame:
    """The rows of all parts; those in the file are not measured again."""
    import pandas as pd

    known = {line["part"]: line for line in kept(path)}
    begun, shown = time.time(), time.time()
    todo = [part for part in parts if part.name not in known]
    for k, part in enumerate(todo):
        if time.time() > Deadline.ends:
            raise OutOfTime(f"{len(known)} of {len(parts)} parts are kept")
        line = _measure(part)
        known[part.name] = line
        if path is not None:
            _append(path, line)
        if time.time() > shown + PAUSE:
            shown = time.time()
            left = (shown - begun) / (k + 1) * (len(todo) - k - 1)
            said = f"{title}: {len(known)} of {len(parts)} parts, {_minutes(left)} left"
            print(said, file=sys.stderr, flush=True)
    return pd.DataFrame([row for part in parts for row in known[part.name]["rows"]])


def _measure(part: Part) -> dict[str, Any]:
    begun = time.perf_counter()
    rows = part.rows()
    return {"part": part.name, "seconds": time.perf_counter() - begun, "rows": rows}


def kept(path: Path | None) -> list[dict[str, Any]]:
    """The parts in a file; a last line that was cut off by a kill is left out."""
    if path is None or not path.exists():
        return []
    found = []
    for line in path.read_bytes().split(b"\n"):
        with suppress(ValueError):
            found.append(json.loads(line))
    return found


def _append(path: Path, line: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cut = path.exists() and not path.read_bytes().endswith(b"\n")
    text = json.dumps(line, default=plain, ensure_ascii=False) + "\n"
    with open(path, "ab") as file:
        file.write(b"\n" * cut + text.encode())
        file.flush()
        os.fsync(file.fileno())


def plain(value: Any) -> Any:
    """What JSON can hold in place of NumPy's numbers and arrays."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"a row holds {value!r}; give numbers, text or lists")


def took(paths: Iterable[Path]) -> dict[str, float]:
    """Parts, seconds together, and the longest part, of what was measured."""
    seconds = [line["seconds"] for path in paths for line in kept(path)]
    longest = max(seconds, default=0.0)
    return {"parts": len(seconds), "seconds": sum(seconds), "longest": longest}


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"
