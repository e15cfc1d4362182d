"""Compiled loops: how numba is called, the types of arrays, and the threads.

`compiled` is njit with explicit signatures: everything is compiled on import and cached
on disk. `spread` shares a loop out among threads of our own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from numba import config as _config
from numba import float64, njit, types

THREADS: int = _config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
READ_ONLY = types.Array(float64, 2, "C", readonly=True)


def compiled(*signatures: Any, **options: Any) -> Callable:
    """njit, compiled when the module is imported (no warm-up later) and cached."""
    return njit(list(signatures), nogil=True, cache=True, **options)


_pool: ThreadPoolExecutor | None = None


def _forget_threads() -> None:
    global _pool
    _pool = None  # threads do not survive a fork


os.register_at_fork(after_in_child=_forget_threads)


def spread(loop: Callable, *arguments: Any, count: int, work: int) -> None:
    """loop(*arguments, first, last) over range(count), shared out among threads."""
    global _pool
    threads = min(THREADS, count)
    if threads == 1 or work < 200_000:
        loop(*arguments, 0, count)
        return
    if _pool is None:
        _pool = ThreadPoolExecutor(THREADS)
    ends = [count * t // threads for t in range(threads + 1)]
    jobs = [_pool.submit(loop, *arguments, a, b) for a, b in pairwise(ends)]
    for job in jobs:
        job.result()


VECTOR = types.Array(float64, 1, "C", readonly=True)
STACK = types.Array(float64, 3, "C", readonly=True)
