"""Progress inside one sweep over the kernels.

A sweep over 10⁶ kernels takes many seconds. A store that works in batches says after
each of them how far it is:

    for first in range(0, len(index), BATCH):
        ...
        report(min(first + BATCH, len(index)), len(index))

Whoever wants to know (the progress line of a run) listens:

    with listening(show):
        stack.quad(alpha)  # calls show(done, total) after each batch

Without a listener `report` costs less than a microsecond. Call it in the thread that
was asked for the sweep, not in the threads of `spread`: nobody listens there.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[int, int], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def report(done: int, total: int) -> None:
    """Say that `done` of `total` kernels of the present sweep are done."""
    listener = _listener.get()
    if listener is not None:
        listener(done, total)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Call listener(done, total) for every report inside; None: nobody listens."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)
