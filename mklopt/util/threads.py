"""The one policy on threads: our own loops use all cores, BLAS uses one.

`spread` shares a compiled loop among threads. `blas_alone` keeps BLAS and LAPACK on one
thread while our loops run: the pools of NumPy and SciPy spin after each call, against
each other and against ours, so that two cores are slower than one.

How many threads. `threads(k)` decides, in the thread that calls it. Otherwise one
inside a worker of somebody else's pool (another thread than the main one, a process of
multiprocessing, pytest-xdist), because its cores are shared already. Otherwise
MKLOPT_NUM_THREADS, OMP_NUM_THREADS, or the number of cores that this process may use.

Guarantee. Results do not depend on the number of threads. A loop is cut at multiples of
its unit only, and no sum goes beyond a unit.
"""

import functools
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import scipy.linalg.blas  # noqa: F401 - only what is loaded can be limited
from threadpoolctl import ThreadpoolController

from .checks import check_whole

MIN_SHARED_WORK = 1_000_000  # operations; a shorter loop is done before threads start
BLOCKS = 4  # per thread: a thread that is slower, or begins later, does fewer of them
VARIABLES = ("MKLOPT_NUM_THREADS", "OMP_NUM_THREADS")

P = ParamSpec("P")
R = TypeVar("R")
_chosen: ContextVar[int | None] = ContextVar("threads", default=None)


def available() -> int:
    """The number of cores that this process may use, or what the environment says."""
    for name in VARIABLES:
        first = os.environ.get(name, "").split(",")[0].strip()
        if first.isdigit() and int(first) > 0:
            return int(first)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def current() -> int:
    """The number of threads for a loop that begins now, in this thread."""
    chosen = _chosen.get()
    return chosen if chosen is not None else 1 if _inside_a_pool() else available()


def _inside_a_pool() -> bool:
    return (
        threading.current_thread() is not threading.main_thread()
        or multiprocessing.parent_process() is not None
        or "PYTEST_XDIST_WORKER" in os.environ
    )


class threads:
    """Use k threads from now on, or inside a with block.

    The choice is for the thread that makes it. Results do not depend on it.

    Parameters
    ----------
    k : int, optional
        The number of threads; None: the default again.

    Raises
    ------
    ValueError
        If k is not a whole number ≥ 1.

    Examples
    --------
    >>> with threads(1):
    ...     current()
    1
    """

    def __init__(self, k: int | None = None) -> None:
        k = None if k is None else check_whole(k, "the number of threads", 1)
        self._before = _chosen.set(k)

    def __enter__(self) -> "threads":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _chosen.reset(self._before)


# ---- our own loops -------------------------------------------------------------------


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(os.cpu_count() or 1, 1) * 4, "mklopt")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a fork has no threads


def spread(
    loop: Callable, *arguments: Any, count: int, work: int, unit: int = 1
) -> None:
    """Call loop(*arguments, first, last) for blocks of range(count), on all threads.

    `work` is the number of operations of the whole loop: a short loop stays on this
    thread. Blocks begin at multiples of `unit`. If items inside a unit share a sum, the
    result still does not depend on the number of threads.
    """
    units = -(-count // unit)
    k = min(current(), units)
    if k <= 1 or work < MIN_SHARED_WORK:
        loop(*arguments, 0, count)
        return
    size = unit * -(-units // (k * BLOCKS))
    starts = iter(range(0, count, size))  # shared; the next one is taken atomically

    def run() -> None:
        for first in starts:
            loop(*arguments, first, min(first + size, count))

    jobs = [_pool().submit(run) for _ in range(k - 1)]
    try:
        run()
    except BaseException:
        for _ in starts:  # no thread takes another block
            pass
        raise
    finally:
        _wait_for(jobs)  # they may write to our arrays
    for job in jobs:
        job.result()


def _wait_for(jobs: list[Future]) -> None:
    """Wait until all jobs are done, also if Ctrl-C comes meanwhile; then raise it."""
    interrupt = None
    while not all(job.done() for job in jobs):
        try:
            wait(jobs)
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


# ---- BLAS ----------------------------------------------------------------------------

_lock, _here = threading.Lock(), threading.local()
_inside: list[Any] = []  # the limits that were set and not yet taken back


@functools.cache
def _controller() -> ThreadpoolController:
    """The BLAS libraries of NumPy and SciPy."""
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def blas_alone() -> Iterator[None]:
    """One thread for BLAS and LAPACK inside; afterwards as many as before.

    The pools belong to the process. Each thread that enters takes its own limit back,
    because OpenBLAS ignores some changes by other threads. The last one also takes back
    the first limit: those after the first have seen one thread.
    """
    if getattr(_here, "inside", False):
        yield
        return
    with _lock:
        limit = _controller().limit(limits=1)
        first = _inside[0] if _inside else limit
        _inside.append(first)
    _here.inside = True
    try:
        yield
    finally:
        _here.inside = False
        with _lock:
            limit.restore_original_limits()
            _inside.pop()
            if not _inside and first is not limit:
                first.restore_original_limits()


def with_blas_alone(function: Callable[P, R]) -> Callable[P, R]:
    """A function that runs inside `blas_alone`."""

    @functools.wraps(function)
    def alone(*arguments: P.args, **options: P.kwargs) -> R:
        with blas_alone():
            return function(*arguments, **options)

    return alone
