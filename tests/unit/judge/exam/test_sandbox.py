"""Solvers run in a process of their own: no solver can break the exam."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from typing import Any

import numpy as np
import pytest

from mklopt import certify, check_solver
from mklopt.judge.exam.plan import plan
from mklopt.judge.exam.sandbox import Candidate, Trials, attempt
from mklopt.reference.graded_problems import reference_of
from mklopt.solvers import Iterate, solvers

QUESTION = plan(lambda p: None, grades=["edge"]).questions[1]
assert QUESTION.name == "two samples"


def right(problem):
    """(weights, dual) of the reference."""
    found = reference_of(problem)
    return found.weights, found.dual


def shape(given: Any) -> tuple:
    assert isinstance(given, Candidate)
    parts = (given.dual, given.weights, given.coefficients)
    return tuple(None if part is None else part.shape for part in parts)


# ---- solvers that behave -----------------------------------------------------


def test_what_a_function_returns_is_kept_as_it_is():
    answer = attempt(lambda p: (np.ones(3), [5, -7]), QUESTION, 5.0)
    assert (answer.ended, answer.words) == ("returned", "")
    assert answer.given is answer.last is answer.made
    assert shape(answer.given) == ((2,), (3,), None)
    np.testing.assert_array_equal(answer.given.dual, [5, -7])  # type: ignore[union-attr]
    alone = attempt(lambda p: np.ones(3), QUESTION, 5.0)
    assert shape(alone.given) == (None, (3,), None) and alone.seconds > 0


def test_of_iterates_the_best_the_last_and_the_weights_before_are_kept():
    def wanders(problem):
        weights, dual = right(problem)
        for k in range(8):
            yield Iterate((1 - 0.1 * abs(k - 4)) * dual, (1 + 0.1 * k) * weights)

    def gap(iterate: Any) -> float:
        return certify(QUESTION.problem, iterate.dual, iterate.weights).relative_gap

    weights, dual = right(QUESTION.problem)
    answer: Any = attempt(wanders, QUESTION, 5.0)
    assert answer.ended == "finished" and len(answer.gaps) == 8
    np.testing.assert_allclose(answer.last.dual, 0.7 * dual)
    np.testing.assert_allclose(answer.last.weights, 1.7 * weights)
    scales = [float(np.median(w / weights)) for w in answer.earlier]
    assert scales == pytest.approx([1.2, 1.3, 1.4, 1.5, 1.6])
    assert answer.made.dual is not None
    best = min(wanders(QUESTION.problem), key=gap)
    np.testing.assert_array_equal(answer.given.dual, best.dual)
    assert gap(answer.given) < min(gap(answer.last), answer.gaps[0])


def test_functions_in_an_iterate_are_called_once():
    calls = []

    def lazy(problem):
        weights, dual = right(problem)

        def called():
            calls.append(0)
            return dual

        yield Iterate(called, weights)

    answer: Any = attempt(lazy, QUESTION, 5.0)
    assert len(calls) == 1
    np.testing.assert_array_equal(answer.given.dual, right(QUESTION.problem)[1])


def test_a_generator_gets_its_certificates_and_is_closed():
    log: list[Any] = []

    def polite(problem):
        weights, dual = right(problem)
        try:
            log.append((yield Iterate(0.5 * dual, weights)))
            log.append((yield Iterate(dual, weights)))
        finally:
            log.append("closed")

    assert attempt(polite, QUESTION, 5.0).ended == "converged"
    assert log[0].relative_gap > 1e-3 and log[-1] == "closed"


def test_a_registered_solver_runs_in_the_loop_with_its_options():
    answer: Any = attempt(solvers()["pegasos"], QUESTION, 0.5)  # it draws: needs an rng
    assert answer.ended in ("converged", "finished", "time_limit", "stagnated")
    assert len(answer.gaps) >= 1 and answer.made is not None


# ---- solvers that misbehave --------------------------------------------------


def raises(problem):
    raise ZeroDivisionError("no step left")


def exits(problem):
    sys.exit(3)


def crashes(problem):
    os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when memory runs out


def sleeps(problem):
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
    crashes: ("died", "exit code -9"),
    sleeps: ("hangs", "no answer within"),
    yields_numbers: ("bad answer", "yielded a int; yield mklopt.solvers.Iterate"),
    yields_nothing: ("bad answer", "ended without a single iterate"),
    fails_later: ("raised", "ArithmeticError: lost"),
    (lambda p: "text"): ("bad answer", "it returned a str where weights"),
    (lambda p: None): ("bad answer", "expected|float|None"),
    (lambda p: right(p)[::-1]): ("bad answer", r"return \(weights, dual\)"),
    (lambda p: np.ones(99)): ("bad answer", r"an array \(99,\); expected \(\d,\)"),
}


@pytest.mark.parametrize("solver", MISBEHAVIOUR, ids=lambda s: s.__name__)
def test_no_solver_can_break_the_exam(solver):
    kind, words = MISBEHAVIOUR[solver]
    with Trials(solver, [QUESTION], 0.3 if solver is sleeps else 5) as trials:
        answer = trials.run(0)
    assert answer.ended == kind
    assert re.search(words, answer.words), answer.words


def test_a_killed_process_is_gone():
    with Trials(sleeps, [QUESTION], 0.05) as trials:
        trials._begin()
        number = trials.process.pid
        assert trials.run(0).ended == "hangs" and trials.process is None
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_what_a_solver_changes_stays_in_its_process():
    def spoils(problem):
        sys.modules["spoiled"] = sys
        os.environ["SPOILED"] = "yes"
        return right(problem)

    with Trials(spoils, [QUESTION], 5.0) as trials:
        assert trials.run(0).ended == "returned"
    assert "spoiled" not in sys.modules and "SPOILED" not in os.environ


def test_after_a_hang_the_next_problem_gets_a_process_of_its_own():
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
