"""How fast a long piece of work goes: the time left, and lines that tell it."""

from __future__ import annotations

import time

from ..util.messages import say

EVERY = 5.0  # seconds between two lines


def in_words(seconds: float) -> str:
    """A time as people say it: 40 s, 12 min, 3.5 h."""
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


class Pace:
    """Counts what is done of a total; says so on stderr every few seconds if verbose.

    begun: what was done before, by an earlier run: it does not count for the speed
    """

    def __init__(self, name: str, total: float, verbose: bool, begun: float = 0.0):
        self.name, self.total, self.verbose = name, total, verbose
        self.begun, self.done = begun, begun
        self.start = self.told = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since this was made."""
        return time.perf_counter() - self.start

    @property
    def left(self) -> float:
        """Seconds left at the speed so far; infinite before the first step."""
        fresh = self.done - self.begun
        return (
            self.seconds * (self.total - self.done) / fresh if fresh else float("inf")
        )

    def step(self, amount: float) -> None:
        """So much more is done."""
        self.done += amount
        now = time.perf_counter()
        ended = self.done >= self.total
        if self.verbose and (now - self.told > EVERY or (ended and self.seconds > 1)):
            self.told = now
            share, rest = self.done / self.total, in_words(self.left)
            text = f"{self.name}: {100 * share:.0f} %, about {rest} left"
            if ended:
                text = f"{self.name}: done in {in_words(self.seconds)}"
            say(text)
