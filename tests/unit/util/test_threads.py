"""Threads: how many, every block once, the same bits, and BLAS on one."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from threading import get_ident

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

import mklopt
from mklopt.formulations import BlockL1, LpNorm
from mklopt.util.threads import (
    BLOCKS,
    MIN_SHARED_WORK,
    blas_alone,
    current,
    spread,
    threads,
    with_blas_alone,
)


def covered(count, work=MIN_SHARED_WORK, unit=1, wait=None):
    """How often each number was visited, the threads that did it, and the blocks."""
    visits, used, blocks = np.zeros(count, int), set(), []

    def loop(step, first, last):
        visits[first:last] += step
        used.add(get_ident())
        blocks.append((first, last))
        if wait is not None:
            wait.wait(5)

    spread(loop, 1, count=count, work=work, unit=unit)
    return visits.tolist(), used, sorted(blocks)


# ---- the loops -------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 7, 100])
@pytest.mark.parametrize("unit", [1, 4])
def test_every_item_is_visited_once_in_blocks_of_whole_units(count, unit):
    with threads(3):
        visits, _, blocks = covered(count, unit=unit)
    assert visits == [1] * count
    assert all(first % unit == 0 for first, _ in blocks)
    assert len(blocks) <= 3 * BLOCKS


def test_all_threads_work_on_it_and_this_one_is_among_them():
    together = threading.Barrier(3)  # each waits for the two others
    with threads(3):
        _, used, _ = covered(3, wait=together)
    assert len(used) == 3 and get_ident() in used


def test_short_loops_and_single_items_stay_on_this_thread():
    with threads(3):
        assert covered(7, MIN_SHARED_WORK - 1) == ([1] * 7, {get_ident()}, [(0, 7)])
        assert covered(3, unit=4) == ([1] * 3, {get_ident()}, [(0, 3)])


def test_after_an_interrupt_no_thread_takes_another_block():
    main, begun, visited = get_ident(), threading.Event(), []

    def loop(first, last):
        visited.append(first)
        if get_ident() == main:
            begun.wait(5)
            raise KeyboardInterrupt
        begun.set()
        time.sleep(0.3)  # long enough for the interrupt

    with threads(2), pytest.raises(KeyboardInterrupt):
        spread(loop, count=8 * BLOCKS, work=MIN_SHARED_WORK)
    assert len(visited) == 2


def test_an_interrupt_while_waiting_for_threads_waits_for_them_all_the_same():
    main, begun, ended = get_ident(), threading.Event(), []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # if ignored

    def loop(first, last):
        if get_ident() == main:
            begun.wait(5)  # the other thread has the other block
            return
        begun.set()
        threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
        time.sleep(0.4)
        ended.append(first)

    try:
        with threads(2), pytest.raises(KeyboardInterrupt):
            spread(loop, count=2, work=MIN_SHARED_WORK)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(ended) == 1


def test_an_error_on_a_thread_is_raised_after_all_have_ended():
    running = threading.Semaphore(0)

    def loop(first, last):
        if first == 0:
            raise ArithmeticError("at 0")
        running.release()

    with threads(2), pytest.raises(ArithmeticError, match="at 0"):
        spread(loop, count=2, work=MIN_SHARED_WORK)


def _child(queue):
    with threads(3):
        queue.put(covered(6)[0])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork beside threads
def test_a_fork_makes_threads_of_its_own():
    with threads(3):
        covered(6)  # the parent has threads now
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    child.join(20)
    assert child.exitcode == 0 and queue.get() == [1] * 6


# ---- how many --------------------------------------------------------------------


@pytest.fixture
def outside_a_pool(monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    for name in ("MKLOPT_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


def test_the_environment_decides_and_threads_overrides_it(monkeypatch, outside_a_pool):
    cores = current()
    assert cores >= 1
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    assert current() == 3
    monkeypatch.setenv("MKLOPT_NUM_THREADS", "5")
    assert current() == 5
    with threads(7):
        with threads(2):
            assert current() == 2
        assert current() == 7
        with threads(None):
            assert current() == 5
    monkeypatch.setenv("MKLOPT_NUM_THREADS", "many")
    monkeypatch.setenv("OMP_NUM_THREADS", "0")
    assert current() == cores


def test_without_a_with_block_the_choice_stays(outside_a_pool):
    code = "import mklopt; from mklopt.util.threads import current; "
    code += "mklopt.threads(3); print(current()); mklopt.threads(); print(current())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["3", str(current())]


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "2"])
def test_a_wrong_number_is_refused(k):
    with pytest.raises(ValueError, match=r"number of threads = .*whole number ≥ 1"):
        threads(k)


def test_inside_somebody_elses_pool_it_is_one(monkeypatch, outside_a_pool):
    monkeypatch.setenv("MKLOPT_NUM_THREADS", "4")
    assert current() == 4
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(current).result() == 1
        assert pool.submit(lambda: (threads(2), current())[1]).result() == 2
    with multiprocessing.get_context("spawn").Pool(1) as processes:
        assert processes.apply(current) == 1
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    assert current() == 1


# ---- BLAS ------------------------------------------------------------------------


def pools():
    scipy.linalg.get_lapack_funcs("potrf")
    return [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]


def test_blas_has_one_thread_inside_and_as_many_as_before_outside():
    with threadpool_limits(2, user_api="blas"):
        before = pools()
        assert 2 in before  # a solver of others may bring a BLAS that has one
        with blas_alone():
            assert set(pools()) == {1}
            with blas_alone():
                assert set(pools()) == {1}
            assert set(pools()) == {1}
        assert pools() == before
        assert with_blas_alone(lambda: set(pools()))() == {1}
        with pytest.raises(ZeroDivisionError), blas_alone():
            raise ZeroDivisionError
        assert pools() == before


@pytest.mark.parametrize("main_leaves_last", [True, False])
def test_two_threads_that_leave_in_any_order_restore_blas(main_leaves_last):
    entered, leave = threading.Event(), threading.Event()

    def other():
        with blas_alone():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with threadpool_limits(2, user_api="blas"):
        before = pools()
        with blas_alone():
            thread.start()
            entered.wait(10)
            if main_leaves_last:
                leave.set()
                thread.join()
            assert set(pools()) == {1}
        leave.set()
        thread.join()
        assert pools() == before and 2 in before


# ---- results ---------------------------------------------------------------------


@pytest.mark.parametrize("formulation", [LpNorm(p=1.5), BlockL1()], ids=str)
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("storage", ["packed", "full", "factors"])
def test_the_same_bits_for_every_number_of_threads(
    monkeypatch, storage, loss, formulation
):
    monkeypatch.setattr("mklopt.util.threads.MIN_SHARED_WORK", 0)
    rng = np.random.default_rng(3)
    factors = rng.normal(size=(13, 70, 5)) / 5
    y = np.sign(factors[0, :, 0] + 0.1 * rng.normal(size=70))
    if storage == "factors":
        grams = mklopt.GramStack.from_factors(list(factors))
    else:
        K = factors @ factors.transpose(0, 2, 1)
        grams = mklopt.GramStack(K, storage=storage)
    problem = mklopt.Problem(grams, y, loss, formulation, C=1.0)
    found = []
    for k in (1, 2, 4):
        with threads(k):
            result = mklopt.solve(problem, tol=1e-6)
        bounds = result.certificate.lower, result.certificate.upper
        bits = [result.dual.tobytes(), result.weights.tobytes(), *bounds]
        found.append((*bits, len(result.trace)))
    assert found[0] == found[1] == found[2]
