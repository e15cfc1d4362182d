"""The scikit-learn estimators: its own checks, and what is ours beyond them."""

from __future__ import annotations

import pickle
from typing import Any

import cvxpy as cp
import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import mklopt
from mklopt import data, kernels
from mklopt.estimators.classifier import MKLClassifier
from mklopt.estimators.cv import MKLClassifierCV
from mklopt.estimators.one_class import MKLOneClass
from mklopt.estimators.regressor import MKLRegressor
from mklopt.formulations import GroupLasso, LpNorm


@mklopt.formulation
def elastic(u):
    return cp.sum(u) + 0.1 * cp.sum_squares(u)


def two_classes(n=60, seed=0):
    """Labels that depend on the first of three features alone."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, "yes", "no")
    return X, y


def three_classes(n=90):
    drawn = data.load("waveform", n=n)
    return drawn.X, np.array(["a", "b", "c"])[drawn.y]


@pytest.mark.parametrize(
    "estimator",
    [
        MKLClassifier(),
        MKLClassifier(loss="logistic"),
        MKLClassifier(multi_class="ovr", formulation="group_lasso"),
        MKLClassifierCV(Cs=[0.1, 10], cv=2),
        MKLRegressor(),
        MKLRegressor(["gaussian(2)", (0, "linear")], loss="eps_insensitive", p=1.5,
                     normalize=None),
        MKLOneClass(),
        MKLOneClass(contamination=0.1),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_has_no_complaints(estimator):
    check_estimator(estimator)


# ---- what is solved -----------------------------------------------------------------


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


def test_one_class_flags_no_more_than_nu_promises():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(80, 2)), rng.uniform(-6, 6, size=(8, 2))])
    model = MKLOneClass(C=0.05).fit(X)
    outliers = model.predict(X) == -1
    assert 0 < outliers.mean() <= model.nu_ + 1e-3
    assert outliers[80:].mean() > outliers[:80].mean()
    np.testing.assert_allclose(
        model.decision_function(X), model.score_samples(X) - model.offset_
    )
    some = MKLOneClass(contamination=0.25).fit(X).predict(X) == -1
    assert np.sum(some) == 22


def test_regression_follows_the_targets():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(80, 1))
    y = np.sin(2 * X[:, 0]) + 0.05 * rng.normal(size=80)
    for loss in ("squared", "eps_insensitive", "huber"):
        assert MKLRegressor(loss=loss, C=10.0).fit(X, y).score(X, y) > 0.95


# ---- sample weights -----------------------------------------------------------------


def test_weights_and_copies_are_the_same_even_where_they_are_not_merged():
    """Precomputed kernels are not merged: the two problems differ, not their answer."""
    X, y = two_classes(30)
    weight = np.random.default_rng(1).integers(0, 4, size=30)
    K = np.moveaxis(kernels.gaussians([1, 3]).fit(X).grams().dense(), 0, -1)
    again = np.repeat(np.arange(30), weight)
    how: dict[str, Any] = dict(kernels="precomputed", tol=1e-10)
    weighted = MKLClassifier(**how).fit(K, y, sample_weight=weight)
    copied = MKLClassifier(**how).fit(K[np.ix_(again, again)], y[again])
    expected = copied.decision_function(K[:, again])
    np.testing.assert_allclose(weighted.decision_function(K), expected, atol=1e-4)
    plain = MKLClassifier(**how).fit(K, y).decision_function(K)
    assert np.max(np.abs(plain - expected)) > 1e-2


def test_a_regressor_follows_the_samples_that_weigh_more():
    X = np.zeros((2, 1))
    model = MKLRegressor(["linear"], normalize=None, C=1.0)
    model.fit(X, [0.0, 1.0], sample_weight=[1.0, 3.0])
    np.testing.assert_allclose(model.predict(X), 0.75)


# ---- kernels ------------------------------------------------------------------------


def test_only_kernels_in_use_are_evaluated_at_prediction():
    calls = []

    def useful(A, B):
        calls.append("useful")
        return np.outer(A[:, 0], B[:, 0])

    def useless(A, B):
        calls.append("useless")
        return 1e-3 * np.outer(A[:, 1], B[:, 1])

    X, y = two_classes()
    model = MKLClassifier([useful, useless], formulation="l1", normalize=None)
    model.fit(X, y)
    assert model.n_active_kernels_ == 1 and model.weights_[1] == 0
    assert set(calls) == {"useful", "useless"}
    calls.clear()
    f = model.decision_function(X)
    assert set(calls) == {"useful"}
    places = np.unique(np.column_stack([X, y == "yes"]), axis=0)[:, 0]
    cross = np.array([np.outer(X[:, 0], places), np.zeros((60, 60))])
    np.testing.assert_allclose(f, model.result_.decision(cross))


def test_no_kernel_in_use_is_the_bias_alone():
    X, y = two_classes()
    model = MKLClassifier(formulation=GroupLasso(), C=1e-6, solver="spicy").fit(X, y)
    assert model.n_active_kernels_ == 0
    assert len(set(model.decision_function(X))) == 1


def test_columns_are_numbers_names_slices_or_masks():
    X, y = two_classes()
    frame = pd.DataFrame(X, columns=["age", "size", "colour"])
    ways = [
        (X, ([0, 2], "gaussian(2)")),
        (X, ([0, -1], "gaussian(2)")),
        (X, (slice(0, 3, 2), "gaussian(2)")),
        (X, ([True, False, True], "gaussian(2)")),
        (frame, (["age", "colour"], "gaussian(2)")),
    ]
    found = [MKLClassifier([k]).fit(A, y).decision_function(A) for A, k in ways]
    for f in found[1:]:
        np.testing.assert_array_equal(f, found[0])
    model = MKLClassifier([(0, "linear on single"), "constant"], normalize=None)
    assert model.fit(X, y).kernel_names_ == ["x[0]: linear on x0", "constant"]


def test_the_usual_family_does_not_depend_on_units():
    X, y = two_classes()
    small, large = (MKLClassifier().fit(s * X, y) for s in (1e-3, 1e3))
    f, g = small.decision_function(1e-3 * X), large.decision_function(1e3 * X)
    np.testing.assert_allclose(f, g, atol=1e-2)


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"kernels": ["gausian"]}, "'gausian' is not known; choose from gaussian"),
        ({"kernels": ["gaussian(x)"]}, "'gaussian\\(x\\)' cannot be read"),
        ({"kernels": [(7, "linear")]}, "on column 7; X has the columns 0 to 2"),
        ({"kernels": []}, "give a list of kernels"),
        ({"kernels": [3]}, "a kernel is 3; give a string"),
        ({"formulation": "lq"}, "formulation 'lq' is not known"),
        ({"formulation": "lp:p=x"}, "x is no plain number"),
        ({"formulation": "vskl"}, "'vskl' cannot be read: .*groups"),
        ({"formulation": "group_lasso", "p": 2}, "has no parameter p"),
        ({"loss": "hing"}, "loss = 'hing'; choose one of"),
        ({"multi_class": "both"}, "choose 'joint' or 'ovr'"),
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
    with pytest.raises(ValueError, match="negative"):
        MKLClassifier().fit(X, y, sample_weight=-np.ones(60))
    with pytest.raises(ValueError, match="is for classes"):
        MKLRegressor(loss="hinge").fit(X, three)
    with pytest.raises(ValueError, match=r"contamination = 0\.7"):
        MKLOneClass(contamination=0.7).fit(X)
    with pytest.raises(ValueError, match="Cs = 'many'"):
        MKLClassifierCV(Cs="many").fit(X, y)
    with pytest.warns(ConvergenceWarning, match="raise tol"):
        MKLClassifier(tol=0.0, options={"max_iter": 1}).fit(X, y)


# ---- in the company of scikit-learn -------------------------------------------------


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


def test_folds_in_several_processes():
    X, y = two_classes()
    how: dict[str, Any] = dict(
        Cs=[0.1, 1.0], cv=2, formulation=elastic, kernels=["linear", "gaussian"]
    )
    how |= {"tol": 1e-3, "normalize": None}
    alone = MKLClassifierCV(**how).fit(X, y)
    together = MKLClassifierCV(**how, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(alone.scores_, together.scores_)
