"""A point on one's own problem: causes are ranked, and nothing is claimed too much."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem
from mklopt.formulations import FixedWeights, GroupLasso, LpNorm

RNG = np.random.default_rng(8)
L = RNG.normal(size=(4, 30, 6))
Y = np.sign(L[0, :, 0] + L[1, :, 0] + 0.5 * RNG.normal(size=30))
PROBLEM = Problem(GramStack(L @ L.transpose(0, 2, 1)), Y, "hinge", LpNorm(p=2), C=0.05)
FOUND = mklopt.solve(PROBLEM, tol=1e-10)
PAIR: dict[str, Any] = {"dual": FOUND.dual, "weights": FOUND.weights}


def test_of_a_good_point_nothing_is_said():
    found = mklopt.diagnose(PROBLEM, **PAIR)
    assert found.passed and not found.causes and not found.known
    assert found.summary.startswith("nothing is wrong")
    assert list(found.to_frame()) == ["kind", "words", "gap", "explains", "whole"]


def test_a_cause_is_named_with_what_it_leaves():
    other = mklopt.solve(PROBLEM.with_(bias=False), tol=1e-10)
    found = mklopt.diagnose(PROBLEM, dual=other.dual, weights=other.weights)
    first = found.causes[0]
    assert found.known and found.certain is first and first.kind == "bias missing"
    assert first.gap < 1e-6 and first.explains > 0.9 and first.whole
    assert found.error == found.certificate.relative_gap or found.error > 0
    assert "bias missing" in str(found) and first.words in found.summary
    assert "<table>" in found._repr_html_() and len(found.to_frame()) >= 1


def test_what_is_wrong_in_two_ways_is_not_known():
    found = mklopt.diagnose(PROBLEM, dual=0.3 * FOUND.dual, weights=FOUND.weights[::-1])
    assert not found.known and found.certain is None
    assert found.summary.startswith("not known")
    assert "not diagnosed" not in str(found)


def test_an_observation_is_called_one():
    """Weights on their way, and α of the SVM there: no change explains it."""
    early = FOUND.weights + 0.2 * np.array([1.0, -1.0, 0.5, -0.5]) * FOUND.weights
    dual = mklopt.solve(PROBLEM.with_(formulation=FixedWeights(early)), tol=1e-10).dual
    found = mklopt.diagnose(PROBLEM, dual=dual, weights=early)
    (cause,) = (cause for cause in found.causes if cause.kind == "stopped early")
    assert cause.observed and not cause.whole and np.isnan(cause.explains)
    assert cause.words.endswith("this is an observation, not a proof")
    assert found.summary == f"not known; observed: {cause.words}"
    assert str(found).endswith("not known; observed is 1")
    assert "observed" in found._repr_html_()


def test_causes_that_cannot_be_told_apart_are_both_named():
    """With a small C every α is at its bound: 2·C, or α that is twice as large."""
    problem = PROBLEM.with_(C=1e-4)
    other = mklopt.solve(problem.with_(C=2e-4), tol=1e-10)
    found = mklopt.diagnose(problem, dual=other.dual, weights=other.weights)
    kinds = {cause.kind for cause in found.causes if cause.whole}
    assert {"other C", "dual scaled"} <= kinds
    assert found.certain is None and "cannot be told apart" in found.summary


@pytest.mark.parametrize("form", ["weights", "coefficients", "f", "w", "dual"])
def test_every_form_of_a_point_is_diagnosed(form):
    wrong = mklopt.solve(PROBLEM.with_(C=4 * PROBLEM.C), tol=1e-10)
    B = wrong.certificate.expansion
    f = PROBLEM.grams.apply(B).sum(axis=0) + wrong.bias
    forms: dict[str, Any] = {
        "weights": {"weights": wrong.weights, "dual": wrong.dual},
        "dual": {"dual": wrong.dual},
        "coefficients": {"coefficients": B, "dual": wrong.dual},
        "f": {"f": f, "weights": wrong.weights, "dual": wrong.dual},
        "w": {
            "w": [l.T @ b for l, b in zip(L, B)],
            "maps": list(L),
            "dual": wrong.dual,
        },
    }
    found = mklopt.diagnose(PROBLEM, **forms[form])
    assert found.causes[0].kind == "other C" and "4·C" in found.causes[0].words


def test_of_a_dual_alone_the_primal_point_is_that_of_the_changed_problem():
    lasso = PROBLEM.with_(formulation=GroupLasso(), loss="logistic", C=1.0)
    wrong = mklopt.solve(lasso.with_(C=2.0), tol=1e-10)
    found = mklopt.diagnose(lasso, dual=wrong.dual)
    assert found.causes[0].kind == "other C" and "2·C" in found.causes[0].words


def test_a_wrong_bias_is_found():
    B, b = FOUND.certificate.expansion, FOUND.bias
    assert abs(b) > 1e-3
    turned = mklopt.diagnose(PROBLEM, coefficients=B, b=-b, dual=FOUND.dual)
    assert turned.causes[0].kind == "bias wrong" and "−b" in turned.causes[0].words
    moved = mklopt.diagnose(PROBLEM, coefficients=B, b=b + 1, dual=FOUND.dual)
    assert moved.causes[0].kind == "bias wrong" and "best bias" in moved.causes[0].words


def test_a_wrong_tolerance_is_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        mklopt.diagnose(PROBLEM, **PAIR, tol=2.0)
