"""Progress of a run: a bar on a terminal, a line per second elsewhere, or nothing."""

from __future__ import annotations

import math

from .trace import Trace


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, trace: Trace) -> None:
        """Show nothing."""


class Shown(Silent):
    """A bar from the first gap down to tol, on a logarithmic scale."""

    def __init__(self, name: str, tol: float):
        from rich.progress import BarColumn, Progress, TextColumn

        note = TextColumn("{task.fields[note]}")
        self.bar = Progress(TextColumn(name), BarColumn(), note, refresh_per_second=8)
        self.task = self.bar.add_task(name, total=1.0, note="…")
        self.tol, self.first, self.printed = max(tol, 1e-16), 0.0, 0.0
        self.terminal = self.bar.console.is_terminal

    def __enter__(self) -> Shown:
        if self.terminal:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.terminal:
            self.bar.stop()

    def show(self, trace: Trace) -> None:
        """Show the newest row of a trace."""
        gap = min(max(trace.last("gap"), 1e-16), 1e6)
        self.first = self.first or max(gap, self.tol * 10)
        whole = math.log(self.first / self.tol)
        done = min(max(math.log(self.first / gap) / whole, 0.0), 1.0)
        seconds, passes = trace.last("seconds"), f"{trace.last('passes'):.1f} passes"
        note = f"gap {gap:.1e}  {len(trace)} iterates  {passes}  {seconds:.1f} s"
        if self.terminal:
            self.bar.update(self.task, completed=done, note=note)
        elif seconds > self.printed + 1 or gap <= self.tol:
            self.printed = seconds
            self.bar.console.print(f"{self.bar.tasks[0].description}: {note}")


def progress(verbose: bool, name: str, tol: float) -> Silent:
    """A bar if verbose; else nothing."""
    return Shown(name, tol) if verbose else Silent()
