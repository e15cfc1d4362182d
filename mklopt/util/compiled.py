"""Compiled loops: how numba is called, the types of arrays, and the threads.

`compiled` is njit with a cache on disk. `spread` runs a compiled loop on several
threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

from numba import config as _config
from numba import float64, njit, types

THREADS: int = _config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
MIN_SHARED_WORK = 200_000  # operations; a shorter loop is done before threads start

# Contiguous float64 arrays that may be read-only: (n,), (n, k) and (M, n, n).
VECTOR = types.Array(float64, 1, "C", readonly=True)
READ_ONLY = types.Array(float64, 2, "C", readonly=True)
STACK = types.Array(float64, 3, "C", readonly=True)


def compiled(*signatures: Any, **options: Any) -> Callable:
    """njit, cached; compiled at once for given signatures, else at the first call."""
    return njit(list(signatures) or None, nogil=True, cache=True, **options)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS)


os.register_at_fork(after_in_child=_threads.cache_clear)  # a fork has no threads


def spread(loop: Callable, *arguments: Any, count: int, work: int) -> None:
    """Call loop(*arguments, first, last) for parts of range(count), one per thread.

    `work` is the number of operations of the whole loop: a short loop stays on this
    thread.
    """
    threads = min(THREADS, count)
    if threads == 1 or work < MIN_SHARED_WORK:
        loop(*arguments, 0, count)
        return
    ends = [count * t // threads for t in range(threads + 1)]
    parts = pairwise(ends)
    jobs = [_threads().submit(loop, *arguments, first, last) for first, last in parts]
    for job in jobs:
        job.result()
