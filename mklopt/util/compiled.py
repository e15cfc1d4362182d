"""Compiled loops: how numba is called, its cache, and what users are told.

`compiled` is njit with a cache on disk; a function is compiled when it is first called
with arrays of new types. `compilation` counts what was compiled in this process. On a
terminal a sentence says so after one second.
"""

import gc
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import float64, njit, types
from numba.core.caching import FunctionCache
from numba.core.event import TimingListener, register
from numba.extending import intrinsic

from .messages import say

TOLD = "MKLOPT_UNCACHED"  # set once the user knows that nothing is cached
NOTICED = "MKLOPT_COMPILING"  # set once the user knows that something is compiled
NOTICE_AFTER = 1.0  # second of compiling
ABOUT = 6  # seconds that compiling takes before a first solve

# Contiguous float64 matrices that may be read-only.
READ_ONLY = types.Array(float64, 2, "C", readonly=True)


def compiled(*signatures: Any, **options: Any) -> Callable:
    """njit, cached; compiled at once for given signatures, else at the first call."""

    def decorate(function: Callable) -> Any:
        # Functions that others take as arguments need an entry for C: they have a
        # signature.
        entries = {"nogil": True, "no_cfunc_wrapper": not signatures}
        found = njit(**{**entries, **options})(function)
        compilation.ours[function] = found
        if not _uncached:
            _cache(found, function)
        for signature in signatures:
            found.compile(signature)
        if signatures:
            found.disable_compile()
        return found

    return decorate


def inlined(**options: Any) -> Callable:
    """njit for a part of compiled functions, which are cached with it.

    It has no entries for Python and C: without them it takes a third less time to
    compile. Python must not call it.
    """
    bare = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(**{**bare, **options})


written: Any = intrinsic  # a function whose code is written by hand


@written
def prefetch(typing: Any, array: Any, place: Any) -> Any:
    """Ask memory for array[place], which will be read soon; any place is allowed."""

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        array = context.make_array(signature.args[0])(context, builder, args[0])
        address = builder.bitcast(builder.gep(array.data, [args[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(fetch, [address, number(0), number(3), number(1)])  # read, keep
        return context.get_dummy_value()

    return types.void(array, place), write


def read_only(array: np.ndarray) -> np.ndarray:
    """A contiguous view that cannot be written.

    To numba such arrays have a type of their own: without this, a loop would be
    compiled twice.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


# ---- the cache on disk ------------------------------------------------------------

_uncached: list[str] = []  # why compiled code is not cached; empty while it is


def why_uncached() -> str:
    """Why compiled code is not kept for the next start; "" if it is."""
    return _uncached[0] if _uncached else ""


def _cache(found: Any, function: Callable) -> None:
    try:
        found._cache = _Forgiving(function)  # what enable_caching of numba does
    except RuntimeError as error:  # there is no folder that can be written
        _tell_uncached(str(error))


class _Forgiving(FunctionCache):
    """A cache whose errors cost time alone: a full disk, a damaged file."""

    def load_overload(self, *arguments: Any) -> Any:
        """What was compiled before; None if it cannot be read."""
        try:
            return self._loaded(*arguments)
        except Exception as error:
            _tell_uncached(str(error) or type(error).__name__)
            return None

    def _loaded(self, *arguments: Any) -> Any:
        try:
            return super().load_overload(*arguments)
        except (AttributeError, ImportError):  # of a class that the code had before
            self.flush()
            return None

    def save_overload(self, *arguments: Any) -> None:
        """Keep what was compiled, if that is possible."""
        try:
            super().save_overload(*arguments)
        except Exception as error:
            _tell_uncached(str(error) or type(error).__name__)


def _tell_uncached(reason: str) -> None:
    _uncached.append(reason)
    if TOLD not in os.environ:  # workers need not say it again
        os.environ[TOLD] = "1"
        warnings.warn(
            f"compiled code cannot be cached ({reason}): mklopt works, but every start "
            f"takes about {ABOUT} s longer; set NUMBA_CACHE_DIR to a folder that can "
            "be written",
            RuntimeWarning,
            stacklevel=4,
        )


# ---- what was compiled ------------------------------------------------------------


class Compilation(TimingListener):
    """Counts the functions of mklopt that are compiled here, and the time it takes.

    Meanwhile garbage is not collected: it would be looked for all the time, a tenth of
    the time to compile, and hardly found.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ours: dict[Callable, Any] = {}
        self.count = 0
        self._collecting: list[bool] = []  # before each function that is being compiled

    @property
    def ready(self) -> int:
        """How many functions, each type of arguments counted, need no compiling."""
        return sum(len(found.signatures) for found in self.ours.values())

    @property
    def seconds(self) -> float:
        """The seconds spent compiling so far."""
        return float(self.duration) if self.done else 0.0

    def concerns(self, event: Any) -> bool:
        """Whether the function is one of mklopt: users may compile their own."""
        found = (event.data or {}).get("dispatcher")
        return getattr(found, "py_func", None) in self.ours

    def on_start(self, event: Any) -> None:
        """A function is about to be compiled."""
        if self.concerns(event):
            super().on_start(event)
            self._collecting.append(gc.isenabled())
            gc.disable()

    def on_end(self, event: Any) -> None:
        """It is compiled: tell the user if it takes long."""
        if self.concerns(event):
            super().on_end(event)
            self.count += 1
            if self._collecting.pop():
                gc.enable()
            if self.seconds > NOTICE_AFTER:
                _notice()


compilation = Compilation()
register("numba:compile", compilation)


def _notice() -> None:
    """Say once, on a terminal and not from a worker, why nothing happens."""
    worker = multiprocessing.parent_process() is not None
    if NOTICED in os.environ or worker or not sys.stderr.isatty():
        return
    os.environ[NOTICED] = "1"
    often = "at every start" if _uncached else "once"
    say(f"mklopt: compiling {often}, about {ABOUT} s")
