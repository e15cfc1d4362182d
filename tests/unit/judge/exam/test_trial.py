"""In the process of the candidate: what it gave is told as it is."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import pytest

from mklopt import certify
from mklopt.judge.exam.answer import Candidate
from mklopt.judge.exam.plan import plan
from mklopt.judge.exam.trial import (
    INPUTS,
    answered,
    hashes,
    statement,
)
from mklopt.reference.graded_problems import reference_of
from mklopt.run.own_solver import callable_with_a_problem, imported, name_of
from mklopt.solvers import Iterate, solvers

QUESTION = plan(lambda p: None, grades=["edge"]).questions[1]
PROBLEM = QUESTION.problem
assert QUESTION.name == "two samples"


def attempt(solver: Any, limit: float = 5.0) -> Any:
    return answered(solver, PROBLEM, 1e-6, limit)


def right(problem):
    """(weights, dual) of the reference."""
    found = reference_of(problem)
    return found.weights, found.dual


def shape(given: Any) -> tuple:
    assert isinstance(given, Candidate)
    parts = (given.dual, given.weights, given.coefficients)
    return tuple(None if part is None else part.shape for part in parts)


def test_what_a_function_returns_is_kept_as_it_is():
    answer = attempt(lambda p: (np.ones(3), [5, -7]))
    assert (answer.ended, answer.words) == ("returned", "")
    assert answer.given is answer.last is answer.made
    assert shape(answer.given) == ((2,), (3,), None)
    np.testing.assert_array_equal(answer.given.dual, [5, -7])
    alone = attempt(lambda p: np.ones(3))
    assert shape(alone.given) == (None, (3,), None) and alone.tol == 1e-6


def test_of_iterates_the_best_the_last_and_the_weights_before_are_kept():
    def wanders(problem):
        weights, dual = right(problem)
        state = np.empty_like(dual)  # it works in one array, as solvers do
        for k in range(8):
            state[:] = (1 - 0.1 * abs(k - 4)) * dual
            yield Iterate(state, (1 + 0.1 * k) * weights)

    def gap(iterate: Any) -> float:
        return certify(PROBLEM, dual=iterate.dual, weights=iterate.weights).relative_gap

    weights, dual = right(PROBLEM)
    answer = attempt(wanders)
    assert answer.ended in ("finished", "converged") and len(answer.gaps) == 8
    np.testing.assert_allclose(answer.last.dual, 0.7 * dual)
    np.testing.assert_allclose(answer.last.weights, 1.7 * weights)
    scales = [float(np.median(w / weights)) for w in answer.earlier]
    assert scales == pytest.approx([1.2, 1.3, 1.4, 1.5, 1.6])
    assert answer.made.dual is not None
    gaps = [gap(iterate) for iterate in wanders(PROBLEM)]
    assert gap(answer.given) == pytest.approx(min(gaps)) and min(gaps) < gaps[-1]


def test_answers_that_change_later_are_found():
    buffer = np.zeros(PROBLEM.grams.M)

    def careless(problem):
        buffer[:] += 1.0
        return buffer, np.zeros(problem.shape)

    assert attempt(careless).ended == "returned"
    answer = attempt(careless)
    assert answer.ended == "bad answer" and "has changed" in answer.words
    assert attempt(lambda p: tuple(a.copy() for a in careless(p))).ended != "returned"
    assert attempt(lambda p: tuple(a.copy() for a in careless(p))).ended == "returned"


def test_functions_in_an_iterate_are_called_once():
    calls = []

    def lazy(problem):
        weights, dual = right(problem)

        def called():
            calls.append(0)
            return dual

        yield Iterate(called, weights)

    answer = attempt(lazy)
    assert len(calls) == 1
    np.testing.assert_array_equal(answer.given.dual, right(PROBLEM)[1])


def test_a_generator_gets_its_certificates_and_is_closed():
    log: list[Any] = []

    def polite(problem):
        weights, dual = right(problem)
        try:
            log.append((yield Iterate(0.5 * dual, weights)))
            log.append((yield Iterate(dual, weights)))
        finally:
            log.append("closed")

    assert attempt(polite).ended == "converged"
    assert log[0].relative_gap > 1e-3 and log[-1] == "closed"


def test_a_registered_solver_runs_in_the_loop_with_its_options():
    answer = attempt(solvers()["pegasos"], 0.5)  # it draws: needs an rng
    assert answer.ended in ("converged", "finished", "time_limit", "stagnated")
    assert len(answer.gaps) >= 1 and answer.made is not None


def test_a_solver_may_say_itself_how_exact_it_is():
    answer = answered(solvers()["fista"], PROBLEM.with_(loss="logistic"), np.nan, 5.0)
    assert 0 < answer.tol < 1e-2
    steep = PROBLEM.with_(loss="logistic", C=1e6)
    refused = answered(solvers()["fista"], steep, np.nan, 5.0)
    assert (refused.ended, refused.tol) == ("refused", np.inf)


@pytest.mark.parametrize("error", [ValueError, NotImplementedError])
def test_a_refusal_is_told_from_an_error(error):
    def picky(problem):
        raise error("only the squared loss")

    answer = attempt(picky)
    assert answer.ended == "refused" and "only the squared loss" in answer.words


@pytest.mark.parametrize("part", INPUTS)
def test_a_changed_problem_has_another_hash(part):
    problem = PROBLEM.with_()
    before = hashes(problem)
    assert before == hashes(PROBLEM.with_())
    if part == "y":
        object.__setattr__(problem, "y", -problem.y)
    elif part == "C":
        object.__setattr__(problem, "C", 2.0)
    elif part == "the kernels":
        grams = problem.grams.subset(np.array([0, 0, 2]))
        object.__setattr__(problem, "grams", grams)
    else:
        object.__setattr__(problem, "bias", False)
    changed = [name for name, a, b in zip(INPUTS, before, hashes(problem)) if a != b]
    assert changed == [part]


def test_what_a_solver_states_is_told_in_plain_words(tmp_path, monkeypatch):
    (tmp_path / "stating.py").write_text(
        "import mklopt\n"
        "@mklopt.solver('stater', needs={'ball'}, bias={False}, accuracy=1e-4)\n"
        "def stater(problem, *, start=None): yield\n"
        "class Box:\n    def solve(problem): ...\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    registry = dict(solvers())
    try:
        told = statement("stating:stater")
    finally:
        registered = solvers()
        for name in set(registered) - set(registry):
            from mklopt.solvers.base import REGISTRY

            del REGISTRY[name]
        sys.modules.pop("stating", None)
    assert told == {
        "name": "stater", "needs": ["ball"], "losses": ["quadratic"],
        "bias": [False], "accuracy": 1e-4,
    }  # fmt: skip
    assert statement("json:dumps") == {} or "error" in statement("json:dumps")
    assert "has no 'nothing'" in statement("json:nothing")["error"]
    assert imported("os:path.join") is os.path.join


def test_a_solver_can_be_called_with_a_problem_alone():
    assert callable_with_a_problem(right) is right
    with pytest.raises(ValueError, match="alone: missing a required argument"):
        callable_with_a_problem(lambda problem, more: None)
    assert (name_of(right), name_of(solvers()["ista"])) == ("right", "ista")
