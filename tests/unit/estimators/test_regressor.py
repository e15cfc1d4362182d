"""Regression: scikit-learn's checks, targets, weights."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

import mklopt
from mklopt.estimators.regressor import MKLRegressor
from mklopt.formulations import LpNorm


@pytest.mark.parametrize(
    "estimator",
    [
        MKLRegressor(),
        MKLRegressor(["gaussian(2)", (0, "linear")], loss="eps_insensitive", p=1.5,
                     normalize=None),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_has_no_complaints(estimator):
    check_estimator(estimator)


def test_regression_follows_the_targets():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(80, 1))
    y = np.sin(2 * X[:, 0]) + 0.05 * rng.normal(size=80)
    for loss in ("squared", "eps_insensitive", "huber"):
        assert MKLRegressor(loss=loss, C=10.0).fit(X, y).score(X, y) > 0.95


def test_a_regressor_follows_the_samples_that_weigh_more():
    X = np.zeros((2, 1))
    model = MKLRegressor(["linear"], normalize=None, C=1.0)
    model.fit(X, [0.0, 1.0], sample_weight=[1.0, 3.0])
    np.testing.assert_allclose(model.predict(X), 0.75)


def test_what_is_fitted_is_the_problem_that_was_meant():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = X[:, 0] + 0.1 * np.arange(30)
    model = MKLRegressor(["linear"], normalize=None, p=2.0, C=3.0).fit(X, y)
    problem = model.result_.problem
    assert (problem.loss.name, problem.C) == ("squared", 3.0)
    assert problem.formulation == LpNorm(2.0) and problem.bias
    other = mklopt.Problem((X @ X.T)[None], y, "squared", LpNorm(2.0), 3.0)
    expected = mklopt.solve(other, tol=1e-9).decision((X[:5] @ X.T)[None])
    np.testing.assert_allclose(model.predict(X[:5]), expected, atol=1e-2)


def test_a_loss_of_classes_is_refused():
    X = np.zeros((6, 1))
    with pytest.raises(ValueError, match="is for classes; choose 'squared'"):
        MKLRegressor(loss="hinge").fit(X, np.arange(6) % 3)
