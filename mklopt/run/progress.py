"""Progress of a run: one live line on a terminal, a line a second elsewhere.

    auto ━━━━━━━━╸  gap 1.2e-03  14.5 passes  35 s, about 2 min left  reading 40 %

The time left. Most solvers make about the same progress of log gap per second, or more
and more. So with the rows (t, gap) of the last half of the time,

    left = log(gap/tol) / rate,     rate = log(gap_0/gap_1)/(t_1 − t_0)

It is unknown while there are fewer than three rows, or where the gap hardly falls.
Inside a long sweep over the kernels the line says how far it is (util/sweeps.py).
"""

from __future__ import annotations

import math
import time
from types import TracebackType
from typing import Any

from ..util.extras import available
from ..util.messages import say
from .clock import in_words
from .trace import Trace

LINE_SECONDS = 1.0  # between two lines, where there is no terminal
SWEEP_SECONDS = 0.5  # a sweep that takes longer is shown
LEAST_ROWS = 3  # of a trace, for the time left
MAX_AHEAD = 100.0  # times the time so far: what is farther away is not said


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        pass

    def begin(self, name: str) -> None:
        """Show nothing."""

    def show(self, trace: Trace) -> None:
        """Show nothing."""

    def sweep(self, done: int, total: int) -> None:
        """Show nothing."""


class Shown(Silent):
    """A bar from the first gap down to tol, on a logarithmic scale."""

    def __init__(self, name: str, tol: float):
        self.bar: Any = _bar() if available("rich") else None
        self.task = self.bar and self.bar.add_task(name, total=1.0, note="…")
        self.name, self.tol, self.first = name, max(tol, 1e-16), 0.0
        self.terminal = self.bar is not None and self.bar.console.is_terminal
        self.note, self.new, self.left = "no iterate yet", True, math.inf
        self.now = self.printed = self.noted = time.monotonic()
        self.begun, self.at = self.now, math.inf  # of the present sweep
        self.lines = 0  # printed; a run shorter than LINE_SECONDS has none

    def __enter__(self) -> Shown:
        if self.terminal:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.terminal:
            self.bar.stop()
        elif self.new and self.lines:
            self._line(self.note)

    def begin(self, name: str) -> None:
        """Show the next of several runs."""
        self.name, self.first, self.left = name, 0.0, math.inf
        self.note, self.new = "…", True
        if self.terminal:
            self.bar.update(self.task, description=name, completed=0.0, note="…")
        elif _now() >= self.printed + LINE_SECONDS:
            self._line(self.note)

    def show(self, trace: Trace) -> None:
        """Show the newest row of a trace."""
        gap = min(max(trace.last("gap"), 1e-16), 1e6)
        self.first = self.first or max(gap, self.tol * 10)
        whole = math.log(self.first / self.tol)
        done = min(max(math.log(self.first / gap) / whole, 0.0), 1.0)
        passes, seconds = f"{trace.last('passes'):.1f} passes", trace.last("seconds")
        self.note = f"gap {gap:.1e}  {passes}  {_clock(seconds)}"
        self.left, self.new, self.noted = time_left(trace, self.tol), True, _now()
        self._say(done=done)

    def sweep(self, done: int, total: int) -> None:
        """Show how far a sweep over the kernels is, if it takes long."""
        if done <= self.at:
            self.begun = _now()
        self.at = done if done < total else math.inf
        if _now() >= self.begun + SWEEP_SECONDS:
            self._say(f"  reading kernels: {100 * done / total:.0f} %")

    def _say(self, more: str = "", done: float | None = None) -> None:
        left = self.left - (_now() - self.noted)
        about = f", about {in_words(left)} left" if 1 <= left < math.inf else ""
        text = f"{self.note}{about}{more}"
        if self.terminal:
            to = {} if done is None else {"completed": done}
            self.bar.update(self.task, note=text, **to)  # type: ignore[arg-type]
        elif _now() >= self.printed + LINE_SECONDS:
            self._line(text)

    def _line(self, text: str) -> None:
        self.printed, self.new, self.lines = _now(), False, self.lines + 1
        say(f"{self.name}: {text}")


def time_left(trace: Trace, tol: float) -> float:
    """Seconds until the gap is tol, by its fall so far; ∞ if nothing can be said."""
    if len(trace) < LEAST_ROWS:
        return math.inf
    seconds, gap = trace.seconds, trace.gap
    first = int(min((seconds < seconds[-1] / 2).sum(), len(trace) - LEAST_ROWS))
    passed = float(seconds[-1] - seconds[first])
    if not (passed > 0 and 0 < gap[-1] < gap[first] < math.inf):
        return math.inf
    rate = math.log(gap[first] / gap[-1]) / passed
    left = max(math.log(gap[-1] / tol), 0.0) / rate
    return left if left <= MAX_AHEAD * float(seconds[-1]) else math.inf


def _now() -> float:
    return time.monotonic()


def _clock(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else in_words(seconds)


def _bar() -> Any:
    """An empty bar of rich, on the stream of errors."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    name_column = TextColumn("{task.description}", markup=False)
    columns = (name_column, BarColumn(12), TextColumn("{task.fields[note]}"))
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, refresh_per_second=8)


def progress(verbose: bool, name: str, tol: float) -> Silent:
    """A line if verbose; else nothing."""
    return Shown(name, tol) if verbose else Silent()
