"""Changes of the problem: each is certified for the mistake it stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem
from mklopt.formulations import LpNorm
from mklopt.formulations.losses.margin import SquaredHinge
from mklopt.judge.exam import other_problems as h
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


def traces(K: Any) -> Any:
    return np.einsum("mii->m", K)[:, None, None]


def sphere(K: Any) -> Any:
    roots = np.sqrt(np.einsum("mii->mi", K))
    return K / (roots[:, :, None] * roots[:, None])


@pytest.mark.parametrize(
    "words, change",
    [
        ("of trace n", lambda K: 40 * K / traces(K)),
        ("of trace 1", lambda K: K / traces(K)),
        ("with a unit diagonal", sphere),
        (
            "of Frobenius norm 1",
            lambda K: K / np.linalg.norm(K, axis=(1, 2))[:, None, None],
        ),
    ],
)
def test_normalized_kernels_are_found(words: str, change: Callable):
    kernels = GramStack(change(np.array(PROBLEM.grams.dense())))
    found = best(h.other_kernels, *solved(grams=kernels))
    assert found.kind == "kernels normalized" and words in found.words


def test_weights_for_the_kernels_as_given_are_found():
    K = np.array(PROBLEM.grams.dense())
    dual, theta = solved(grams=GramStack(K / traces(K)))
    found = best(h.other_kernels, dual, theta / traces(K).ravel())
    assert "with weights for the kernels as given" in found.words


@pytest.mark.parametrize(
    "factor, words", [(1.0, "squared_hinge()"), (2.0, "without its ½")]
)
def test_a_squared_hinge_is_found(factor, words):
    found = best(h.other_loss, *solved(loss=SquaredHinge(), C=0.3 * factor))
    assert words in found.words


def test_balanced_class_weights_are_found():
    share = np.array([np.sum(label == Y) for label in Y])
    found = best(h.other_C_per_class, *solved(C=0.3 * 40 / (2 * share)))
    assert "balanced class weights" in found.words


def test_lambda_is_told_from_C():
    found = best(h.other_C, *solved(C=1 / (40 * 0.3)))
    assert "C′ = 1/(n·C)" in found.words and "λ = 1/(nC)" in found.words
