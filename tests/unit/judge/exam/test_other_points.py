"""Changes of the candidate: each is certified for the mistake it stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem
from mklopt.formulations import LpNorm
from mklopt.judge.exam import other_points as h
from mklopt.judge.exam.answer import Answer, Candidate
from mklopt.judge.exam.case import Case, Explanation

RNG = np.random.default_rng(6)
L = RNG.normal(size=(4, 40, 6)) * np.array([0.5, 1, 2, 1])[:, None, None] + 0.2
Y = np.sign(L[0, :, 0] + L[1, :, 0] + 0.5 * RNG.normal(size=40))
PROBLEM = Problem(GramStack(L @ L.transpose(0, 2, 1)), Y, "hinge", LpNorm(p=2), C=0.3)


def solved(**changes: Any) -> tuple[Any, Any]:
    """(dual, weights) of the problem, or of another one."""
    found = mklopt.solve(PROBLEM.with_(**changes), tol=1e-10)
    return found.dual, found.weights


def best(hypothesis: Any, dual: Any, weights: Any, **more: Any) -> Explanation:
    """What a hypothesis certifies best; it must explain the failure."""
    given = Candidate(dual, weights, **more)
    answer = Answer("returned", "", given, given, given)
    failure = Case(PROBLEM, answer, 1e-6, given)
    found = min(hypothesis(failure), key=lambda e: e.error)
    assert found.error <= failure.explained < failure.error, found
    return found


V = PROBLEM.grams.norms(solved()[0])


@pytest.mark.parametrize(
    "words, change",
    [
        ("squares of the weights", lambda t: t**2),
        ("squares of the weights", lambda t: t**2 / np.sum(t**2)),
        ("roots of the weights", np.sqrt),
        ("one over the weights", lambda t: 1 / t),
        ("block norms", lambda t: t * V),
        ("squared block norms", lambda t: (t * V) ** 2),
    ],
)
def test_what_is_returned_in_place_of_weights_is_found(words, change):
    dual, theta = solved()
    found = best(h.transformed_weights, dual, change(theta))
    assert found.kind == "weights transformed" and words in found.words


@pytest.mark.parametrize("name, factor", [("C", 1 / 0.3), ("n·C", 1 / 12), ("2", 0.5)])
def test_a_dual_in_other_units_is_found(name, factor):
    dual, theta = solved()
    found = best(h.scaled_dual, factor * dual, theta)
    assert f"multiplied by {name} it" in found.words


def test_a_wrong_bias_is_found():
    found = mklopt.solve(PROBLEM, tol=1e-10)
    pair = (found.dual, found.weights)
    assert "wrong sign" in best(h.wrong_bias, *pair, bias=-found.bias).words
    assert "not the best bias" in best(h.wrong_bias, *pair, bias=found.bias + 0.7).words


def test_a_dual_of_unknown_weights_is_found():
    dual = mklopt.certify(PROBLEM, weights=[0.2, 0.9, 0.4, 0.7]).alpha
    found = best(h.stale, dual, solved()[1])
    assert "it solves the SVM at other weights" in found.words
