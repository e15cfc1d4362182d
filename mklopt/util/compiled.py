"""Compiled loops: how numba is called, the types of arrays, and the threads.

`compiled` is njit with a cache on disk. `spread` runs a compiled loop on several
threads.
"""

import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

from numba import config as _config
from numba import float64, njit, types

THREADS: int = _config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
TOLD = "MKLOPT_UNCACHED"  # set once the user knows that nothing is cached
MIN_SHARED_WORK = 200_000  # operations; a shorter loop is done before threads start

# Contiguous float64 arrays that may be read-only: (n,), (n, k) and (M, n, n).
VECTOR = types.Array(float64, 1, "C", readonly=True)
READ_ONLY = types.Array(float64, 2, "C", readonly=True)
STACK = types.Array(float64, 3, "C", readonly=True)


def compiled(*signatures: Any, **options: Any) -> Callable:
    """njit, cached; compiled at once for given signatures, else at the first call."""

    def decorate(function: Callable) -> Any:
        found = njit(nogil=True, **options)(function)
        if not _uncached:
            _cache(found)
        for signature in signatures:
            found.compile(signature)
        if signatures:
            found.disable_compile()
        return found

    return decorate


def _cache(found: Any) -> None:
    try:
        found.enable_caching()
    except RuntimeError as error:  # there is no folder that can be written
        _tell_uncached(str(error))
    else:
        found._cache = _Forgiving(found._cache)


class _Forgiving:
    """A cache whose errors cost time alone: a full disk, a damaged file."""

    def __init__(self, cache: Any):
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, *arguments: Any) -> Any:
        """What was compiled before; None if it cannot be read."""
        try:
            return self._cache.load_overload(*arguments)
        except Exception as error:
            _tell_uncached(str(error) or type(error).__name__)
            return None

    def save_overload(self, *arguments: Any) -> None:
        """Keep what was compiled, if that is possible."""
        try:
            self._cache.save_overload(*arguments)
        except Exception as error:
            _tell_uncached(str(error) or type(error).__name__)


_uncached: list[str] = []  # why compiled code is not cached; empty while it is


def _tell_uncached(reason: str) -> None:
    _uncached.append(reason)
    if TOLD not in os.environ:  # workers need not say it again
        os.environ[TOLD] = "1"
        warnings.warn(
            f"compiled code cannot be cached ({reason}): mklopt works, but every start "
            "takes up to a minute longer; set NUMBA_CACHE_DIR to a folder that can be "
            "written",
            RuntimeWarning,
            stacklevel=4,
        )


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
