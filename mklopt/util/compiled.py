"""Compiled loops: how numba is called, with a cache on disk, and types of arrays."""

import os
import warnings
from collections.abc import Callable
from typing import Any

from numba import float64, njit, types

TOLD = "MKLOPT_UNCACHED"  # set once the user knows that nothing is cached

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
