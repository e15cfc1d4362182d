"""C by cross-validation: the scores of a grid search, parameters left alone."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import check_estimator

import mklopt
from mklopt import kernels
from mklopt.estimators import cv
from mklopt.estimators.classifier import MKLClassifier
from mklopt.estimators.cv import MKLClassifierCV, _values
from mklopt.kernels import fitted as fitted_module
from mklopt.kernels.fitted import FittedKernels
from tests.unit.estimators.samples import three_classes, two_classes


@mklopt.formulation
def elastic(u):
    return cp.sum(u) + 0.1 * cp.sum_squares(u)


@pytest.mark.parametrize(
    "estimator",
    [
        MKLClassifierCV(Cs=[0.1, 10], cv=2),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_has_no_complaints(estimator):
    check_estimator(estimator)


@pytest.mark.parametrize("classes", [two_classes, three_classes])
@pytest.mark.parametrize("multi", ["joint", "ovr"])
def test_a_path_has_the_scores_of_a_grid_search(classes, multi):
    X, y = classes()
    Cs, folds = [0.03, 0.3, 3.0], KFold(3, shuffle=True, random_state=0)
    how: dict[str, Any] = dict(multi_class=multi, formulation="l1", tol=1e-8)
    path = MKLClassifierCV(Cs=Cs, cv=folds, **how).fit(X, y)
    grid = GridSearchCV(MKLClassifier(**how), {"C": Cs}, cv=folds).fit(X, y)
    expected = [grid.cv_results_[f"split{i}_test_score"] for i in range(3)]
    np.testing.assert_allclose(path.scores_, expected, atol=0.04)  # a sample near 0
    assert np.mean(np.abs(path.scores_ - expected)) < 0.01
    assert grid.best_params_["C"] == path.C_
    np.testing.assert_array_equal(path.predict(X), grid.predict(X))


def test_many_kernels_of_samples_held_out_are_not_stored(monkeypatch):
    X, y = two_classes()
    how: dict[str, Any] = dict(Cs=[0.1, 1.0], cv=3)
    family = kernels.subset_gaussians(20)
    stored = MKLClassifierCV(family, **how).fit(X, y)
    monkeypatch.setattr(cv, "MAX_HELD_OUT", 0)
    monkeypatch.setattr(fitted_module, "MOST_PACKED", 0)
    monkeypatch.setattr(FittedKernels, "cross", None)
    monkeypatch.setattr(FittedKernels, "grams", None)
    found = MKLClassifierCV(family, **how).fit(X, y)
    np.testing.assert_allclose(found.scores_, stored.scores_, atol=1e-3)
    assert found.result_.problem.grams.storage == "lazy" and found.C_ == stored.C_
    np.testing.assert_allclose(found.weights_, stored.weights_, atol=1e-2)


def test_a_path_takes_other_scores_and_precomputed_kernels():
    X, y = two_classes()
    stack = np.moveaxis(kernels.gaussians([1, 3]).fit(X).grams().dense(), 0, -1)
    how: dict[str, Any] = dict(
        Cs=[0.1, 1.0], cv=3, loss="logistic", scoring="neg_log_loss"
    )
    given = MKLClassifierCV("precomputed", **how).fit(stack, y)
    names = ["gaussian(1)", "gaussian(3)"]
    listed = MKLClassifierCV(names, normalize=None, **how).fit(X, y)
    np.testing.assert_allclose(given.scores_, listed.scores_, atol=1e-3)
    np.testing.assert_allclose(
        given.predict_proba(stack), listed.predict_proba(X), atol=1e-2
    )


def test_folds_in_several_processes():
    X, y = two_classes()
    how: dict[str, Any] = dict(
        Cs=[0.1, 1.0], cv=2, formulation=elastic, kernels=["linear", "gaussian"]
    )
    how |= {"tol": 1e-3, "normalize": None}
    alone = MKLClassifierCV(**how).fit(X, y)
    together = MKLClassifierCV(**how, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(alone.scores_, together.scores_)


@pytest.mark.parametrize("precomputed", [False, True])
def test_scoring_leaves_the_parameters_of_the_model_alone(precomputed):
    X, y = two_classes()
    names = ["gaussian(1)", "linear"]
    if precomputed:
        X = np.moveaxis(kernels.gaussians([1, 3]).fit(X).grams().dense(), 0, -1)
    fold, seen = (np.arange(40), np.arange(40, 60)), []

    def scoring(estimator, held_out, labels):
        seen.append((estimator, held_out.shape))
        return estimator.score(held_out, labels)

    given = "precomputed" if precomputed else names
    model = MKLClassifierCV(given, scoring=scoring, tol=1e-3)
    model.Cs_ = np.array([0.1, 1.0])
    before = model.get_params()
    scores = model._scores(fold, X, y, None)
    after = model.get_params()
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    assert len(scores) == 2 and not hasattr(model, "_decision")
    for (
        estimator,
        shape,
    ) in seen:  # held-out kernel values, by an estimator of their own
        assert estimator is not model and shape == (20, 40, 2)
        assert estimator.kernels == "precomputed" and estimator.C == 1.0


def test_parameters_of_the_search_are_unchanged_after_fit():
    X, y = two_classes()
    search = MKLClassifierCV(["gaussian(1)", "linear"], Cs=[0.1, 1.0], cv=3, tol=1e-3)
    before = search.get_params()
    search.fit(X, y)
    after = search.get_params()
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    assert search.C_ in (0.1, 1.0) and search.result_.problem.C == search.C_


def test_values_of_C():
    np.testing.assert_allclose(_values(3), [1e-3, 1.0, 1e3])
    np.testing.assert_array_equal(_values([3.0, 1.0, 3.0]), [1.0, 3.0])
    for wrong in ("many", 0, True, [], [-1.0, 1.0], [np.inf], [[1.0]]):
        with pytest.raises(ValueError, match=r"Cs = .*; give a number of values"):
            _values(wrong)
