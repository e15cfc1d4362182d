"""Reports of a sweep reach the innermost listener of the same thread."""

from __future__ import annotations

import threading

import pytest

from mklopt.util.sweeps import listening, report


def test_a_listener_hears_every_report():
    heard: list[tuple[int, int]] = []
    with listening(lambda done, total: heard.append((done, total))):
        report(4, 10)
        report(10, 10)
    report(1, 2)  # nobody listens any more
    assert heard == [(4, 10), (10, 10)]


def test_the_innermost_listener_hears():
    outer: list[int] = []
    inner: list[int] = []
    with listening(lambda done, total: outer.append(done)):
        with listening(lambda done, total: inner.append(done)):
            report(1, 3)
        with listening(None):
            report(2, 3)
        report(3, 3)
    assert (outer, inner) == ([3], [1])


def test_an_error_of_the_listener_ends_the_sweep_and_the_listening():
    def refuse(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), listening(refuse):
        report(1, 2)
    report(2, 2)


def test_other_threads_are_not_heard():
    heard: list[int] = []
    with listening(lambda done, total: heard.append(done)):
        thread = threading.Thread(target=report, args=(1, 2))
        thread.start()
        thread.join()
    assert heard == []
