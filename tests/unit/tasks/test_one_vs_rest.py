"""One against the rest: a problem for each class, and what they predict together."""

from __future__ import annotations

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem, one_vs_rest
from mklopt.formulations import LpNorm
from mklopt.formulations.losses.margin import Logistic
from mklopt.tasks.one_vs_rest import binary_problems, kept

rng = np.random.default_rng(2)
X = rng.normal(size=(60, 3))
Y = np.argmax(X + 0.3 * rng.normal(size=(60, 3)), axis=1)
K = np.stack([np.exp(-((X[:, [j]] - X[:, j]) ** 2)) for j in range(3)])
TRAIN, TEST = np.arange(40), np.arange(40, 60)
PROBLEM = Problem(
    GramStack(K[:, :40, :40]), Y[TRAIN], "multiclass_hinge", LpNorm(2.0), C=3.0
)


def test_one_against_the_rest_is_one_problem_per_class():
    found = one_vs_rest(PROBLEM, "analytic", tol=1e-8)
    cross = K[:, 40:, :40]
    assert found.weights.shape == (3, 3) and found.converged
    assert found.relative_gap <= 1e-8
    for c, (result, certificate) in enumerate(zip(found.results, found.certificates)):
        y = np.where(Y[TRAIN] == c, 1.0, -1.0)
        assert result.problem.grams is PROBLEM.grams  # shared, not copied
        alone = mklopt.solve(PROBLEM.with_(y=y, loss="hinge"), "analytic", tol=1e-8)
        assert certificate.dual == pytest.approx(alone.certificate.primal, rel=2e-8)
        np.testing.assert_allclose(found.weights[c], alone.weights, rtol=1e-3)
        np.testing.assert_array_equal(
            found.decision(cross)[:, c], result.decision(cross)
        )
    predicted = found.predict(cross)
    np.testing.assert_array_equal(predicted, np.argmax(found.decision(cross), axis=1))
    assert np.mean(predicted == Y[TEST]) > 0.6
    assert "3 classes" in repr(found)


def test_any_solver_and_any_binary_loss():
    found = one_vs_rest(PROBLEM, "spicy", loss="logistic", tol=1e-6)
    assert found.converged
    assert {r.problem.loss.name for r in found.results} == {"logistic"}
    assert not one_vs_rest(PROBLEM, max_iter=1, tol=0.0).converged


def test_binary_problems_share_everything_but_labels_and_loss():
    binary = binary_problems(PROBLEM, Logistic())
    assert len(binary) == 3
    for c, one in enumerate(binary):
        np.testing.assert_array_equal(one.y, np.where(PROBLEM.y == c, 1.0, -1.0))
        assert one.loss == Logistic() and one.grams is PROBLEM.grams
        assert (one.C, one.formulation) == (PROBLEM.C, PROBLEM.formulation)


@pytest.mark.parametrize(
    "given, options, words",
    [
        (np.eye(3), {}, "takes a multi-class Problem first"),
        (
            Problem(K, np.where(Y == 0, 1.0, -1.0), "hinge", LpNorm(2.0)),
            {},
            r"takes a multi-class Problem first, .* got Problem\(hinge",
        ),
        (PROBLEM, {"loss": "multinomial"}, "'multinomial' is for many classes"),
        (PROBLEM, {"loss": "hing"}, "loss = 'hing' is not known"),
        (PROBLEM, {"solver": "analytik"}, "did you mean 'analytic'"),
    ],
)
def test_wrong_input_gets_one_clear_sentence(given, options, words):
    with pytest.raises(ValueError, match=words):
        one_vs_rest(given, **options)


def test_kernels_are_kept_by_their_share():
    theta = np.array([[1.0, 0.0, 1e-9], [0.0, 2.0, 1e-9]])
    assert list(kept(theta)) == [0, 1] and list(kept(theta[1])) == [1]
    assert list(kept(theta, share=1e-12)) == [0, 1, 2]
    assert len(kept(np.zeros(3))) == 0
