"""Compiled loops on several threads: every part once, errors raised, forks survived."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from threading import get_ident

import numpy as np
import pytest
from numba import float64, int64

from mklopt.util import compiled
from mklopt.util.compiled import MIN_SHARED_WORK, READ_ONLY, STACK, VECTOR, spread
from tests.faults import full_disk


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


# ---- without a cache --------------------------------------------------------------

MODULE = """
from numba import float64
from mklopt.util.compiled import compiled

@compiled(float64(float64))
def twice(x):
    return 2 * x

@compiled(float64(float64))
def thrice(x):
    return 3 * x
"""
USE = "import warnings; warnings.simplefilter('always'); import some; "
USE += "print(some.twice(2.0), some.thrice(2.0))"


def used(folder: Path, code: str = USE, **more: str) -> subprocess.CompletedProcess:
    """A module with compiled functions, imported in a new process."""
    (folder / "some.py").write_text(MODULE)
    env = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), **more}
    path = os.pathsep.join([str(folder), *sys.path])
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=env | {"PYTHONPATH": path}, capture_output=True, text=True
    )


def test_where_nothing_can_be_written_it_works_and_says_so_once(tmp_path):
    (tmp_path / "cache").write_text("a file where a folder should be")
    nowhere = {"XDG_CACHE_HOME": "/dev/null", "NUMBA_CACHE_DIR": "/dev/null"}
    (tmp_path / "__pycache__").write_text("in the way")
    done = used(tmp_path, **nowhere)
    assert done.stdout.split() == ["4.0", "6.0"], done.stderr
    assert done.stderr.count("compiled code cannot be cached (cannot cache fun") == 1
    worker = used(tmp_path, **nowhere, MKLOPT_UNCACHED="1")
    assert worker.stdout == done.stdout and worker.stderr == ""


def test_a_full_disk_or_a_damaged_cache_does_not_stop_an_import(tmp_path):
    with full_disk(200):
        done = used(tmp_path)
    assert done.stdout.split() == ["4.0", "6.0"], done.stderr
    assert done.stderr.count("cannot be cached ([Errno 27] File too large") == 1
    done = used(tmp_path)
    assert done.stdout.split() == ["4.0", "6.0"] and done.stderr == ""
    indices = list((tmp_path / "cache").rglob("*.nbi"))
    assert len(indices) == 2
    for path in indices:
        path.write_bytes(path.read_bytes()[:10])
    done = used(tmp_path)
    assert done.stdout.split() == ["4.0", "6.0"], done.stderr
    assert done.stderr.count("cannot be cached") == 1


def test_a_mistake_in_a_function_is_not_taken_for_a_fault_of_the_cache():
    with pytest.raises(Exception, match="not defined"):

        @compiled.compiled(float64(float64))
        def wrong(x):
            return x + nothing  # type: ignore[name-defined]  # noqa: F821

    assert not compiled._uncached


def _asks(text: str) -> bool:
    return "cache=True" in text or "enable_caching" in text


def test_all_that_is_cached_can_do_without():
    """Only `compiled` asks numba for its cache."""
    root = Path(compiled.__file__).parents[1]
    homes = (root, *(root.parent / name for name in ("formulations", "reference")))
    files = {path.resolve() for home in homes for path in home.rglob("*.py")}
    asking = {path.name for path in files if _asks(path.read_text("utf-8"))}
    assert len(files) > 100 and asking == {"compiled.py"}
