"""Solvers run in a process of their own: no solver can break the exam."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from mklopt import check_solver
from mklopt.judge.exam import sandbox
from mklopt.judge.exam.plan import plan
from mklopt.judge.exam.sandbox import Trials, patience
from mklopt.reference.graded_problems import reference_of
from mklopt.solvers import Iterate

QUESTION = plan(lambda p: None, grades=["edge"]).questions[1]
assert QUESTION.name == "two samples"
PAIR = (QUESTION.problem, 1e-6)


def right(problem):
    """(weights, dual) of the reference."""
    found = reference_of(problem)
    return found.weights, found.dual


def asked(solver: Any, limit: float = 5.0, times: int = 1) -> Any:
    """The last answer of a solver that is asked several times."""
    with Trials(solver, [PAIR], limit) as trials:
        for _ in range(times):
            answer = trials.run(0)
    return answer


@pytest.fixture
def hurry(monkeypatch):
    """No time for imports and compilers: these solvers need none."""
    monkeypatch.setattr(sandbox, "START_UP", 0.0)


# ---- solvers that misbehave --------------------------------------------------


def raises(problem):
    raise ZeroDivisionError("no step left")


def exits(problem):
    sys.exit(3)


def leaves(problem):
    os._exit(7)


def crashes(problem):
    os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when memory runs out


def sleeps(problem):
    time.sleep(60)


def ignores_signals(problem):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass


def eats_memory(problem):
    return np.ones(1 << 40)


def closes_everything(problem):
    os.closerange(3, 1000)
    time.sleep(60)


def yields_numbers(problem):
    yield 3


def yields_nothing(problem):
    return
    yield


def fails_later(problem):
    weights, dual = right(problem)
    yield Iterate(0.5 * dual, weights)
    raise ArithmeticError("lost")


MISBEHAVIOUR = {
    raises: ("raised", r"ZeroDivisionError: no step left \(test_sandbox.py, line"),
    exits: ("raised", "SystemExit: 3"),
    leaves: ("died", "exit code 7"),
    crashes: ("died", "exit code -9"),
    sleeps: ("hangs", "no answer within"),
    ignores_signals: ("hangs", "no answer within"),
    eats_memory: ("raised", "MemoryError"),
    closes_everything: ("died", "closed the line"),
    yields_numbers: ("bad answer", "yielded a int; yield mklopt.solvers.Iterate"),
    yields_nothing: ("bad answer", "ended without a single iterate"),
    fails_later: ("raised", "ArithmeticError: lost"),
    (lambda p: "text"): ("bad answer", "it returned a str where weights"),
    (lambda p: None): ("bad answer", "expected|float|None"),
    (lambda p: right(p)[::-1]): ("bad answer", r"return \(weights, dual\)"),
    (lambda p: np.ones(99)): ("bad answer", r"an array \(99,\); expected \(\d,\)"),
    (lambda p: np.ones(3) * 1j): ("bad answer", "a complex array where weights"),
}


@pytest.mark.parametrize("solver", MISBEHAVIOUR, ids=lambda s: s.__name__)
def test_no_solver_can_break_the_exam(solver, hurry):
    kind, words = MISBEHAVIOUR[solver]
    answer = asked(solver, 0.2 if kind == "hangs" else 5)
    assert answer.ended == kind
    assert re.search(words, answer.words), answer.words


def test_a_killed_process_is_gone_with_all_that_it_started(hurry, tmp_path):
    def multiplies(problem):
        child = subprocess.Popen(["sleep", "60"])
        (tmp_path / "pids").write_text(f"{os.getpid()} {child.pid}")
        time.sleep(60)

    assert asked(multiplies, 0.5).ended == "hangs"
    for number in (tmp_path / "pids").read_text().split():
        assert not alive(int(number))


def alive(pid: int) -> bool:
    """Whether a process runs; one that waits for its parent to notice does not."""
    for _ in range(100):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return False
        except OSError:
            return False
        time.sleep(0.01)
    return True


def test_bytes_that_are_no_answer_are_a_bad_answer():
    """A solver may find the line to the judge and write to it."""

    def to_the_judge(message):
        for name in os.listdir("/proc/self/fd"):
            path = f"/proc/self/fd/{name}"
            if os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode):
                os.write(int(name), message)

    def forges(problem):
        to_the_judge(b"\x10" + 7 * b"\0" + b"cos\nsystem\n(S'x'")
        return right(problem)

    answer = asked(forges)
    assert answer.ended == "bad answer" and "is no answer" in answer.words

    def boasts(problem):
        to_the_judge(8 * b"\xff")

    assert "an answer of 18446744073709551615 bytes" in asked(boasts).words


def test_what_a_solver_changes_stays_in_its_process():
    def spoils(problem):
        sys.modules["spoiled"] = sys
        os.environ["SPOILED"] = "yes"
        object.__setattr__(problem, "y", -problem.y)
        return right(problem)

    before = QUESTION.problem.y.copy()
    assert asked(spoils).ended == "returned"
    assert "spoiled" not in sys.modules and "SPOILED" not in os.environ
    np.testing.assert_array_equal(QUESTION.problem.y, before)


def test_what_a_solver_prints_is_not_on_stdout(capfd):
    def prints(problem):
        print("noise")
        os.write(1, b"more noise")
        return right(problem)

    assert asked(prints).ended == "returned"
    assert capfd.readouterr().out == ""


def test_a_solver_cannot_see_that_it_is_examined():
    def looks(problem):
        import inspect
        import multiprocessing
        import threading

        places = [f"{frame.filename} {frame.function}" for frame in inspect.stack()[1:]]
        frame: Any = sys._getframe()
        while frame := frame.f_back:
            places.append(str(frame.f_globals.get("__name__")))
        places += [*sys.argv, *sys.orig_argv, *os.environ]
        places += sys.modules
        words = ("judge", "exam", "pytest", "trial", "sandbox", "mklopt.cli")
        found = [x for x in places if any(word in x for word in words)]
        # Its own module, and one of a package that other tests load.
        found = [x for x in found if not x.startswith(("test_", "toolz."))]
        found += ["thread"] * (
            threading.current_thread() is not threading.main_thread()
        )
        found += ["child"] * (multiprocessing.parent_process() is not None)
        raise RuntimeError(f"found {found}")

    assert asked(looks).words.startswith("RuntimeError: found [] ")


# ---- time --------------------------------------------------------------------


def test_the_first_answer_of_a_process_has_time_to_import_and_compile(monkeypatch):
    monkeypatch.setattr(sandbox, "START_UP", 5.0)
    calls: list[int] = []

    def compiles(problem):
        if not calls:
            time.sleep(0.8)
        calls.append(0)
        return right(problem)

    answer = asked(compiles, 0.2)
    assert answer.ended == "returned" and answer.seconds <= patience(0.2)

    def always_late(problem):
        time.sleep(0.8)
        return right(problem)

    assert asked(always_late, 0.2).ended == "hangs"


def test_the_clock_of_the_judge_counts():
    def turns_the_clock_back(problem):
        time.perf_counter = time.monotonic = lambda: 0.0
        time.sleep(0.3)
        return right(problem)

    assert asked(turns_the_clock_back).seconds >= 0.3


def test_after_a_hang_the_next_problem_gets_a_process_of_its_own(hurry):
    def sometimes(problem):
        if problem.grams.n == 2:
            time.sleep(60)
        return right(problem)

    names = ["one against the rest", "no bias", "C = 0.001", "one C per sample"]
    found = check_solver(sometimes, grades=["edge"], leave_out=names, time_limit=0.5)
    assert [(r.problem, r.kind) for r in found.rows] == [
        ("one kernel", ""),
        ("two samples", "hangs"),
    ]
