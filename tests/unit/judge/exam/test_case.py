"""The error of a candidate, and the facts of a failure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mklopt
from mklopt.formulations import GroupLasso, LpNorm
from mklopt.judge.exam.answer import Answer, Candidate
from mklopt.judge.exam.case import (
    Case,
    certified,
    error_of,
    infeasibility,
    svm_dual,
)
from mklopt.judge.exam.plan import plan
from mklopt.reference.graded_problems import reference_of

PROBLEM = plan(lambda p: None, grades=["easy"]).questions[0].problem
REFERENCE = reference_of(PROBLEM)


def case(dual: Any, weights: Any, coefficients: Any = None, problem=PROBLEM) -> Case:
    given = Candidate(dual, weights, coefficients)
    return Case(problem, Answer("returned"), 1e-6, given)


def test_infeasibility_says_which_constraint_is_broken():
    dual = np.array(REFERENCE.dual)
    assert infeasibility(PROBLEM, dual)[0] < 1e-9
    dual[3] = 3 * PROBLEM.C * PROBLEM.y[3]
    off, words = infeasibility(PROBLEM, dual)
    assert off == 2 and words.startswith("α is outside the box by 2·C (sample 3")
    off, words = infeasibility(PROBLEM, np.where(PROBLEM.y > 0, REFERENCE.dual, 0.0))
    assert off == pytest.approx(1) and "where a bias asks for 0 (1 of Σ|α|)" in words


def test_the_error_is_the_gap_or_the_square_of_the_distance():
    weights, dual = REFERENCE.weights, REFERENCE.dual
    assert error_of(PROBLEM, Candidate(dual, weights)) < 1e-8
    half = Candidate(0.5 * dual, weights)
    gap = mklopt.certify(PROBLEM, dual=0.5 * dual, weights=weights).relative_gap
    assert error_of(PROBLEM, half) == gap > 1e-3
    outside = np.where(np.abs(dual) > 0.9999 * PROBLEM.C, 1.3 * dual, dual)
    found = error_of(PROBLEM, Candidate(outside, weights))
    assert found == pytest.approx(0.09, rel=1e-3)  # clipped it would be certified
    assert error_of(PROBLEM, Candidate(dual, -weights)) == np.inf
    assert error_of(PROBLEM, Candidate(None, -weights)) == np.inf
    with pytest.raises(ValueError, match="kernel weights are ≥ 0"):
        certified(PROBLEM, Candidate(None, -weights))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_svm_at_the_right_weights_has_the_right_dual(loss):
    problem = PROBLEM.with_(loss=loss)
    weights = reference_of(problem).weights
    dual = svm_dual(problem, weights)
    assert mklopt.certify(problem, dual=dual, weights=weights).relative_gap < 1e-7
    assert error_of(problem, Candidate(None, weights)) < 1e-7
    assert not np.any(svm_dual(problem, 0 * weights))
    assert svm_dual(problem, np.full(len(weights), np.nan)) is None


def test_weights_and_predictions_follow_from_coefficients():
    weights, dual = REFERENCE.weights, REFERENCE.dual
    plain = case(dual, weights)
    spread = case(dual, None, np.multiply.outer(weights, dual))
    np.testing.assert_allclose(spread.weights, weights, rtol=1e-9)
    np.testing.assert_allclose(spread.predictions, plain.predictions, rtol=1e-9)
    np.testing.assert_allclose(plain.v**2, PROBLEM.grams.quad(dual))
    f = PROBLEM.grams.combine(weights) @ dual
    np.testing.assert_allclose(np.diff(plain.predictions), np.diff(f), atol=1e-12)
    bias = plain.predictions[0] - f[0]
    assert bias == pytest.approx(REFERENCE.bias, abs=1e-4) and abs(bias) > 1e-3


def test_half_of_a_pair_can_be_right():
    weights, dual = REFERENCE.weights, REFERENCE.dual
    other = np.ones(len(weights))
    stale_weights = case(dual, other)
    assert stale_weights.half_right
    assert stale_weights.with_own_weights(PROBLEM) < 1e-7 < stale_weights.error
    stale_dual = case(svm_dual(PROBLEM, other), weights)
    assert stale_dual.half_right and stale_dual.solved_again < 1e-7
    assert not case(0.1 * dual, other).half_right
    alpha: Any = svm_dual(PROBLEM, other)
    assert stale_weights.of_svm(alpha, other) < 1e-7
    lasso = PROBLEM.with_(formulation=GroupLasso())
    assert stale_weights.with_own_weights(lasso) == np.inf  # α does not tell them


def test_the_error_under_another_problem():
    """The solution for 2C is optimal for 2C, and (α/2, 2θ) is the same w for C."""
    double = reference_of(PROBLEM.with_(C=2 * PROBLEM.C))
    wrong = case(double.dual, double.weights)
    assert wrong.error > 1e-3
    assert wrong.under(C=2 * PROBLEM.C) < 1e-7
    assert wrong.under(C=-1.0) == np.inf  # no such problem
    assert wrong.under(formulation=LpNorm(1.0)) > 1e-3
    assert wrong.after(dual=REFERENCE.dual, weights=REFERENCE.weights) < 1e-7
    scaled = case(0.5 * double.dual, 2 * double.weights)
    assert scaled.stretched(2.0) < 1e-7 < scaled.error


def test_what_explains_a_failure_must_be_much_better_than_it():
    rough = case(0.5 * REFERENCE.dual, REFERENCE.weights)
    assert rough.explained == pytest.approx(max(1e-5, 0.01 * rough.error))
    fine = case(0.9999 * REFERENCE.dual, REFERENCE.weights)
    assert fine.explained <= 0.03 * fine.error
