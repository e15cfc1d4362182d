"""Compiled loops on several threads: every part once, errors raised, forks survived."""

from __future__ import annotations

import multiprocessing
from threading import get_ident

import numpy as np
import pytest
from numba import float64, int64

from mklopt.util import compiled
from mklopt.util.compiled import MIN_SHARED_WORK, READ_ONLY, STACK, VECTOR, spread


@pytest.fixture
def three_threads(monkeypatch):
    monkeypatch.setattr(compiled, "THREADS", 3)
    compiled._threads.cache_clear()
    yield
    compiled._threads.cache_clear()


def covered(count, work):
    """How often each number was visited, and the threads that did it."""
    visits, used = np.zeros(count, int), set()

    def loop(step, first, last):
        visits[first:last] += step
        used.add(get_ident())

    spread(loop, 1, count=count, work=work)
    return visits.tolist(), used


@pytest.mark.parametrize("count", [2, 3, 7, 100])
def test_every_part_is_visited_once(three_threads, count):
    visits, used = covered(count, MIN_SHARED_WORK)
    assert visits == [1] * count and get_ident() not in used


def test_short_loops_and_single_items_stay_on_this_thread(three_threads):
    assert covered(7, MIN_SHARED_WORK - 1) == ([1] * 7, {get_ident()})
    assert covered(1, MIN_SHARED_WORK) == ([1], {get_ident()})


def test_an_error_on_a_thread_is_raised(three_threads):
    def loop(first, last):
        raise ArithmeticError(f"at {first}")

    with pytest.raises(ArithmeticError, match="at 0"):
        spread(loop, count=6, work=MIN_SHARED_WORK)


def _child(queue):
    queue.put(covered(6, MIN_SHARED_WORK)[0])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork beside threads
def test_a_fork_makes_threads_of_its_own(three_threads):
    covered(6, MIN_SHARED_WORK)  # the parent has threads now
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    child.join(20)
    assert child.exitcode == 0 and queue.get() == [1] * 6


def test_signatures_are_compiled_at_once_and_take_read_only_arrays():
    @compiled.compiled(float64(VECTOR, READ_ONLY, STACK, int64))
    def corner(a, b, c, i):
        return a[i] + b[i, i] + c[i, i, i]

    assert len(corner.signatures) == 1
    arrays = [np.full((2,) * d, float(d)) for d in (1, 2, 3)]
    for array in arrays:
        array.flags.writeable = False
    assert corner(*arrays, 1) == 6.0
    with pytest.raises(TypeError):  # nothing is compiled later
        corner(*[array.astype(np.float32) for array in arrays], 1)
