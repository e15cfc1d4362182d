"""Classification: scikit-learn's checks, the problem meant, searches, pickles."""

from __future__ import annotations

import pickle

import cvxpy as cp
import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import mklopt
from mklopt import kernels
from mklopt.estimators.classifier import MKLClassifier
from mklopt.formulations import LpNorm
from tests.unit.estimators.samples import three_classes, two_classes


@mklopt.formulation
def elastic(u):
    return cp.sum(u) + 0.1 * cp.sum_squares(u)


@pytest.mark.parametrize(
    "estimator",
    [
        MKLClassifier(),
        MKLClassifier(loss="logistic"),
        MKLClassifier(multi_class="ovr", formulation="group_lasso"),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_has_no_complaints(estimator):
    check_estimator(estimator)


def test_what_is_fitted_is_the_problem_that_was_meant():
    X, y = two_classes()
    family = kernels.gaussians([1, 3]) + kernels.linear()
    model = MKLClassifier(["gaussian(1)", "gaussian(3)", "linear"], p=1.5, C=2.0,
                          normalize=None, loss="logistic").fit(X, y)  # fmt: skip
    stack = family.fit(X)
    signs = np.where(y == "yes", 1.0, -1.0)
    problem = mklopt.Problem(stack.grams(), signs, "logistic", LpNorm(1.5), C=2.0)
    expected = mklopt.solve(problem, tol=1e-9)
    assert model.certificate_.lower <= expected.certificate.upper
    assert expected.certificate.lower <= model.certificate_.upper
    assert model.certificate_.relative_gap <= 1e-6
    f, new = expected.decision(stack.cross(X + 0.1)), model.decision_function(X + 0.1)
    np.testing.assert_allclose(new, f, atol=3e-3)
    np.testing.assert_allclose(model.weights_, expected.weights, atol=3e-3)
    assert model.kernel_names_ == ["gaussian(1)", "gaussian(3)", "linear"]


def test_probabilities_are_those_of_the_logistic_model():
    X, y = two_classes()
    model = MKLClassifier(loss="logistic").fit(X, y)
    p, f = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-f)), rtol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(p), model.predict_log_proba(X))
    assert list(model.classes_) == ["no", "yes"]
    assert np.all((p[:, 1] > 0.5) == (model.predict(X) == "yes"))
    assert not hasattr(MKLClassifier(loss="hinge"), "predict_proba")


@pytest.mark.parametrize("how", ["joint", "ovr"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_three_classes_jointly_and_one_against_the_rest(how, loss):
    X, y = three_classes()
    model = MKLClassifier(loss=loss, multi_class=how, tol=1e-4).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.decision_function(X).shape == (90, 3)
    assert model.weights_.shape == ((9,) if how == "joint" else (3, 9))
    assert isinstance(model.certificate_, tuple) == (how == "ovr")
    if loss == "logistic":
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_a_joint_loss_by_its_own_name_takes_two_classes_as_well():
    X, y = two_classes()
    joint = MKLClassifier(loss="multinomial", C=1.0, tol=1e-9).fit(X, y)
    f = joint.decision_function(X)
    assert f.shape == (60,)
    np.testing.assert_allclose(joint.predict_proba(X)[:, 1], 1 / (1 + np.exp(-f)))
    assert joint.score(X, y) > 0.85


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"kernels": ["gausian"]}, "'gausian' is not known; did you mean 'gaussian'"),
        ({"kernels": ["gaussian(x)"]}, "'gaussian\\(x\\)' cannot be read"),
        ({"kernels": [(7, "linear")]}, "on column 7; X has the columns 0 to 2"),
        ({"kernels": []}, "give a list of kernels"),
        ({"kernels": [3]}, "a kernel is 3; give a string"),
        ({"formulation": "lq"}, "formulation 'lq' is not known"),
        ({"formulation": "lp:p=x"}, "x is no plain number"),
        ({"formulation": "vskl"}, "'vskl' cannot be read: .*groups"),
        ({"formulation": "group_lasso", "p": 2}, "has no parameter p"),
        ({"loss": "hing"}, "loss = 'hing' is not known; did you mean 'hinge'"),
        ({"multi_class": "both"}, "choose one of joint, ovr"),
        ({"normalize": "trace"}, "'trace' is not known"),
    ],
)
def test_mistakes_are_explained_in_one_sentence(parameters, words):
    X, y = two_classes()
    with pytest.raises(ValueError, match=words):
        MKLClassifier(**parameters).fit(X, y)


def test_other_mistakes_are_explained_as_well():
    X, y = two_classes()
    three = np.arange(60) % 3
    with pytest.raises(ValueError, match=r"np.moveaxis\(K, 0, -1\)"):
        MKLClassifier("precomputed").fit(np.zeros((2, 60, 60)), np.zeros(2))
    with pytest.raises(ValueError, match="no joint form for 3 classes"):
        MKLClassifier(loss="squared").fit(X, three)
    with pytest.raises(ValueError, match="needs at least 2 classes"):
        MKLClassifier().fit(X, y, sample_weight=y == "yes")
    with pytest.warns(ConvergenceWarning, match="raise tol"):
        MKLClassifier(tol=0.0, options={"max_iter": 1}).fit(X, y)


def test_grid_search_over_p_and_C_in_a_pipeline():
    X, y = two_classes()
    steps = make_pipeline(StandardScaler(), MKLClassifier(tol=1e-4))
    grid = {"mklclassifier__p": [1, 2], "mklclassifier__C": [0.1, 10]}
    search = GridSearchCV(steps, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    best = search.best_estimator_[-1]
    assert best.result_.problem.formulation == LpNorm(best.p)
    assert best.C == best.result_.problem.C


def test_precomputed_kernels_are_sliced_like_samples():
    X, y = two_classes()
    stack = np.moveaxis(kernels.gaussians([1, 3]).fit(X).grams().dense(), 0, -1)
    listed = MKLClassifier(["gaussian(1)", "gaussian(3)"], normalize=None, tol=1e-9)
    given = MKLClassifier("precomputed", tol=1e-9)
    folds = KFold(3, shuffle=True, random_state=0)
    wanted = cross_val_score(listed, X, y, cv=folds)
    np.testing.assert_array_equal(cross_val_score(given, stack, y, cv=folds), wanted)
    search = GridSearchCV(given, {"C": [0.1, 1]}, cv=folds).fit(stack, y)
    np.testing.assert_array_equal(search.predict(stack), listed.fit(X, y).predict(X))


@pytest.mark.parametrize("formulation", ["lp", elastic], ids=str)
def test_clones_and_pickles_predict_the_same_and_leave_matrices_behind(
    formulation, tmp_path
):
    X, y = two_classes()
    model = MKLClassifier(["gaussian(1)", "linear"], formulation=formulation, tol=1e-4)
    model.fit(X, y)
    f = model.decision_function(X)
    np.testing.assert_array_equal(clone(model).fit(X, y).decision_function(X), f)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), f)
    assert again.certificate_ == model.certificate_ and not hasattr(again, "result_")
    joblib.dump(model, tmp_path / "model")
    loaded = joblib.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), f)
    assert isinstance(model.result_, mklopt.Result)


def test_class_weights_are_sample_weights():
    X, y = two_classes()
    y = np.where(np.arange(60) < 45, "no", y)  # unbalanced
    each = np.where(y == "yes", 3.0, 0.5)
    given = MKLClassifier(["linear"], class_weight={"yes": 3.0, "no": 0.5}).fit(X, y)
    same = MKLClassifier(["linear"]).fit(X, y, sample_weight=each)
    np.testing.assert_array_equal(given.decision_function(X), same.decision_function(X))
    count = np.sum(y == "yes")
    balanced = MKLClassifier(["linear"], class_weight="balanced").fit(X, y)
    C = np.unique(balanced.result_.problem.C)
    np.testing.assert_allclose(C, np.sort([30 / count, 30 / (60 - count)]))
    both = MKLClassifier(["linear"], class_weight="balanced")
    twice = both.fit(X, y, sample_weight=np.full(60, 2.0)).result_.problem.C
    np.testing.assert_allclose(np.unique(twice), 2 * C)


def test_the_hinge_says_how_to_get_probabilities():
    with pytest.raises(AttributeError, match="has no attribute") as error:
        MKLClassifier().predict_proba  # noqa: B018
    assert "CalibratedClassifierCV" in str(error.value.__cause__)
