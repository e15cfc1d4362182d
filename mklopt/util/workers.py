"""Worker processes that end with the process that started them, even if it is killed.

A process that is killed cannot end its workers; each worker watches for itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import Any

PROCESSES = ("loky", "multiprocessing")  # backends of joblib that start processes here
PAUSE = 1.0  # seconds between two looks


def ending_with_us(backend: str) -> dict[str, Any]:
    """Options of a backend of joblib: its workers end soon after this process."""
    if backend not in PROCESSES:
        return {}
    return {"initializer": end_with, "initargs": (os.getpid(),)}


def end_with(parent: int) -> None:
    """End this process soon after its parent process has ended."""

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == parent:
            pause.wait(PAUSE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def losses_reported() -> Iterator[None]:
    """A worker that was killed becomes a ChildProcessError of one sentence."""
    try:
        yield
    except BrokenExecutor:
        raise ChildProcessError(
            "a worker process was killed, perhaps because memory ran out; fewer --jobs "
            "need less"
        ) from None
