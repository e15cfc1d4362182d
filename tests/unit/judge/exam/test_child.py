"""The process of a candidate on systems that cannot fork: a new Python."""

from __future__ import annotations

import os
import sys
import threading
import time

import numpy as np
import pytest

from mklopt.judge.exam import child
from mklopt.judge.exam.child import Forked, Spawned, start_method, started
from mklopt.judge.exam.plan import plan
from mklopt.judge.exam.sandbox import Trials
from mklopt.reference.graded_problems import reference_of

QUESTION = plan(lambda p: None, grades=["edge"]).questions[1]
PAIR = (QUESTION.problem, 1e-6)


@pytest.fixture(autouse=True)
def spawn(monkeypatch):
    monkeypatch.setattr(child, "start_method", lambda: "spawn")


def test_a_new_python_answers_one_question_after_the_other():
    found = reference_of(QUESTION.problem)
    right = (found.weights, found.dual)
    here, asked = os.getpid(), []

    def solver(problem):
        asked.append(problem)
        if len(asked) == 1:
            return right
        if len(asked) == 2:
            raise ZeroDivisionError(f"{os.getpid() != here} {sys.argv}")
        if len(asked) == 3:
            os._exit(7)

    with Trials(solver, [PAIR], 5.0) as trials:
        first = trials.run(0)  # perhaps asked twice: the process was new
        answers = [first] + [trials.run(0) for _ in range(2)]
    assert answers[0].ended in ("returned", "raised"), answers[0].words
    words = " ".join(answer.words for answer in answers)
    assert "ZeroDivisionError: True ['" in words
    assert not asked
    assert "its process ended with exit code 7" in words


def test_it_is_killed_when_it_takes_too_long():
    def sleeps(problem):
        time.sleep(60)

    with Trials("mklopt.solvers.analytic:analytic", [PAIR], 5.0) as trials:
        assert trials.statement()["name"] == "analytic"
    process = started(sleeps, [PAIR], 1.0)
    assert isinstance(process, Spawned) and process.exit_code() is None
    process.line.sendall(b"0\n")
    process.kill()
    assert process.exit_code() is not None


def test_a_solver_that_cannot_be_sent_is_refused():
    lock = threading.Lock()
    refused = pytest.raises(TypeError, match=r"cannot be sent there .*'module:name'")
    with Trials(lambda p: lock, [PAIR], 1.0) as trials, refused:
        trials.run(0)


def test_a_process_that_does_not_begin_is_noticed(monkeypatch):
    monkeypatch.setattr(child, "START", "import sys; sys.exit(3)")
    with pytest.raises(ConnectionError, match="did not begin"):
        started(np.ones, [PAIR], 1.0)
    with Trials(np.ones, [PAIR], 1.0) as trials:
        assert trials.run(0).ended == "died"


def test_the_start_method_fits_the_system(monkeypatch):
    monkeypatch.undo()
    assert start_method() == "fork" if sys.platform == "linux" else "spawn"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert start_method() == "spawn"
    monkeypatch.setattr(sys, "platform", "linux")
    process = started(np.ones, [PAIR], 1.0)
    assert isinstance(process, Forked) and process.exit_code() is None
    process.kill()
    monkeypatch.delattr(os, "fork")
    assert start_method() == "spawn"
