"""Time that a test may ask about: what others run on the computer does not count."""

import time
from collections.abc import Callable


def stopwatch() -> Callable[[], float]:
    """Seconds since now: of the clock or of the processor, whichever are fewer.

    On a busy computer the clock runs on while the test waits for a processor; with
    several threads the seconds of the processors add up.
    """
    clock, processor = time.perf_counter(), time.process_time()
    return lambda: min(time.perf_counter() - clock, time.process_time() - processor)
