"""The clock of a run. A run that goes on from a checkpoint goes on with its time."""

import time


class Clock:
    """Seconds since the start of a run, without the time between two processes."""

    def __init__(self) -> None:
        self.begun = time.perf_counter()

    @property
    def seconds(self) -> float:
        """The time of the run so far."""
        return time.perf_counter() - self.begun

    def move_to(self, seconds: float) -> None:
        """Make this the time of the run so far."""
        self.begun = time.perf_counter() - seconds


def in_words(seconds: float) -> str:
    """A duration as people say it: "8 s", "3 min", "2 h 10 min", "4 days"."""
    if seconds < 0.95:
        return f"{seconds:.1g} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    if seconds > 86400e6:
        return "more than a million days"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{seconds / 86400:.0f} days"
