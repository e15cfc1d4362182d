"""What all estimators share: samples, weights, kernels in use, docstrings."""

from __future__ import annotations

import inspect
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_matrix, csr_matrix

import mklopt
from mklopt import kernels
from mklopt.estimators import base
from mklopt.estimators.base import (
    Bounds,
    Decision,
    MKLEstimator,
    WeightedDecision,
)
from mklopt.estimators.classifier import MKLClassifier
from mklopt.estimators.regressor import MKLRegressor
from mklopt.formulations import GroupLasso
from mklopt.kernels.text import family_of
from tests.unit.estimators.samples import two_classes

ESTIMATORS = [mklopt.MKLClassifier, mklopt.MKLClassifierCV, mklopt.MKLRegressor,
              mklopt.MKLOneClass]  # fmt: skip


# ---- docstrings ----------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_explained_once(estimator):
    text = inspect.getdoc(estimator) or ""
    parameters = text[text.index("Parameters\n") : text.index("Attributes\n")]
    listed = [line.split(" : ")[0] for line in parameters.split("\n")
              if line[:1].isalpha() and " : " in line]  # fmt: skip
    assert listed == list(inspect.signature(estimator).parameters)
    assert "{" not in text.replace('{"time_limit": 10}', "")


def test_shared_entries_are_those_of_the_base_class():
    entry = "tol : float, default=1e-6\n    The certified relative gap to stop at."
    for estimator in (*ESTIMATORS, MKLEstimator):
        assert entry in (inspect.getdoc(estimator) or "")


# ---- samples and weights -------------------------------------------------------------


def test_copies_are_merged_and_samples_without_weight_left_out():
    X = np.array([[1.0], [2.0], [1.0], [3.0], [2.0]])
    y = np.array([0.0, 1.0, 0.0, 1.0, 0.0])
    sample = MKLRegressor()._sample(X, y, [1.0, 2.0, 0.5, 0.0, 1.0])
    np.testing.assert_array_equal(sample.X[:, 0], [1.0, 2.0, 2.0])
    np.testing.assert_array_equal(sample.y, [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(sample.weight, [1.5, 1.0, 2.0])
    np.testing.assert_array_equal(sample.place, [0, 2, 0, -1, 1])
    with pytest.raises(ValueError, match="negative"):
        MKLRegressor()._sample(X, y, -np.ones(5))
    with pytest.raises(ValueError, match="zero"):
        MKLRegressor()._sample(X, y, np.zeros(5))


def test_weights_multiply_C():
    X, y = two_classes()
    weight = 1.0 + np.arange(60) % 3
    model = MKLClassifier(["linear"], C=2.0, tol=1e-3).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(np.sort(model.result_.problem.C), 2 * np.sort(weight))
    same = MKLClassifier(["linear"], C=2.0, tol=1e-3).fit(X, y, np.full(60, 3.0))
    assert same.result_.problem.C == 6.0


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


# ---- prediction ----------------------------------------------------------------------


def test_a_decision_takes_kernel_values_or_points():
    rng = np.random.default_rng(0)
    B, bias = rng.normal(size=(1, 4, 2)), np.array([0.5, -1.0])
    given = Decision(B, bias, np.array([2]), np.array([0, 1, 3, 4]), None)
    K = rng.normal(size=(3, 5, 3))  # 5 training points, the third without weight
    expected = K[:, [0, 1, 3, 4], 2] @ B[0] + bias
    np.testing.assert_allclose(given(K), expected)
    X = rng.normal(size=(4, 2))
    fitted = kernels.linear().fit(X)
    listed = Decision(B, bias, np.array([0]), np.arange(4), fitted)
    np.testing.assert_allclose(listed(X[:3]), X[:3] @ X.T @ B[0] + bias)


@pytest.mark.parametrize("multi_class", ["joint", "ovr"])
def test_decisions_from_weights_are_those_from_coefficients(multi_class):
    """Points, or kernel values; one run, or one for each class."""
    rng = np.random.default_rng(0)
    y, family = np.arange(60) % 3, kernels.gaussians([1, 3], "both")
    X = rng.normal(size=(60, 2)) + 2.0 * y[:, None]
    how: dict[str, Any] = {"multi_class": multi_class, "normalize": None, "tol": 1e-4}
    model = MKLClassifier(family, **how).fit(X, y)
    assert isinstance(model._decision, WeightedDecision)
    K, runs = family.fit(X).cross(X), np.atleast_1d(model.result_)
    where = np.unique(np.column_stack([X, y]), axis=0, return_index=True)[1]
    f = np.column_stack([run.decision(K[:, :, where]) for run in runs])
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-10)
    values = np.moveaxis(K, 0, -1)
    given = MKLClassifier("precomputed", **how).fit(values, y)
    assert isinstance(given._decision, WeightedDecision)
    found = given.decision_function(values)
    f = np.column_stack([run.decision(K) for run in np.atleast_1d(given.result_)])
    np.testing.assert_allclose(found, f, atol=1e-10)


def test_many_kernels_need_no_coefficients():
    """M = 50,000 kernels in use: coefficients would take 24 MB."""
    rng, M = np.random.default_rng(3), 50_000
    X = rng.normal(size=(60, 4))
    family, stack = kernels.subset_gaussians(M), {"stack": lambda f: f.lazy("0")}
    how: dict[str, Any] = {"p": 2.0, "tol": 1e-2, "options": stack, "normalize": None}
    model = MKLClassifier(family, **how).fit(X, np.sign(X[:, 0]))
    assert model.n_active_kernels_ == M and model.predict(X[:3]).shape == (3,)
    tracemalloc.start()
    try:
        sample = base.Sample(X, X[:, 0], np.ones(60), np.arange(60))
        given = ([model.result_], np.zeros(1), sample, family.fit(X))
        assert len(base.decision_of(*given).active) == M
        model.decision_function(X)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    model.options = None  # a function without a name cannot be pickled
    assert len(pickle.dumps(model)) < 8e6


def test_bounds_are_those_of_the_certificate():
    X, y = two_classes()
    model = MKLClassifier(["linear"], tol=1e-4).fit(X, y)
    found, bounds = model.result_.certificate, model.certificate_
    assert bounds == Bounds.of(model.result_)
    assert (bounds.lower, bounds.upper) == (found.lower, found.upper)
    assert bounds.relative_gap == found.relative_gap <= 1e-4
    assert str(bounds).startswith("converged") and "≤ f* ≤" in str(bounds)
    assert str(bounds).endswith(f"assuming {found.assumptions[0]}")


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


# ---- kernels -------------------------------------------------------------------------


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


# ---- features instead of kernels -----------------------------------------------------

KERNELS = ["gaussian(1)", "gaussian(3)", "linear"]


def smooth(estimator, **how):
    X, y = two_classes(120)
    if estimator is MKLRegressor:
        y = X[:, 0] * X[:, 1]
    elif estimator is mklopt.MKLOneClass:
        y = None
    return estimator(KERNELS, tol=1e-7, **how).fit(X, y), X


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_with_all_landmarks_the_predictions_are_those_of_the_kernels(estimator):
    how: Any = {"normalize": None}
    if estimator is mklopt.MKLClassifierCV:
        how |= {"Cs": [1.0], "cv": 2}
    exact, X = smooth(estimator, **how)
    low, _ = smooth(estimator, approximation="nystroem", rank=200, **how)
    name = "predict" if estimator is MKLRegressor else "decision_function"
    np.testing.assert_allclose(
        getattr(low, name)(X), getattr(exact, name)(X), atol=2e-3
    )
    assert low.kernel_names_ == exact.kernel_names_
    if estimator is mklopt.MKLClassifierCV:
        np.testing.assert_allclose(low.scores_, exact.scores_)


def test_predictions_from_features_do_not_keep_the_training_points():
    low, X = smooth(MKLClassifier, approximation="nystroem", rank=7)
    decision = low._decision
    assert decision.kernels.n == 7 and decision.w.shape[1] == 1
    again = pickle.loads(pickle.dumps(low))
    np.testing.assert_array_equal(again.predict(X), low.predict(X))
    fitted = low.result_.problem.grams
    assert fitted.storage == "factors"
    np.testing.assert_allclose(
        low.decision_function(X[:5]),
        low.result_.decision(low._fitted_kernels(low._sample(X, X[:, 0], None))
                             .cross_features(X[:5])),
        atol=1e-9,
    )  # fmt: skip


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_ranks_and_the_lost_trace_are_reported(estimator):
    how: Any = {"Cs": [1.0], "cv": 2} if estimator is mklopt.MKLClassifierCV else {}
    low, X = smooth(estimator, approximation="nystroem", rank=7, **how)
    fitted = kernels.nystroem(family_of(KERNELS, X.shape[1]), 7)
    assert list(low.ranks_) == list(fitted.fit(X, "spherical").ranks)
    kept = [np.sum(L**2) for L in low.result_.problem.grams.factors]
    np.testing.assert_allclose(low.lost_trace_, 1 - np.array(kept) / len(X))
    assert np.all(low.lost_trace_ > -1e-12) and np.any(low.lost_trace_ > 1e-3)
    y = X[:, 0] if estimator is MKLRegressor else two_classes(120)[1]
    again = low.set_params(approximation=None).fit(X, y)
    assert again.ranks_ is None and again.lost_trace_ is None


@pytest.mark.parametrize(
    "approximation", [None, "nystroem", "random_features", "explicit"]
)
def test_sparse_samples_are_those_of_the_dense_matrix(approximation):
    X, y = two_classes(80)
    X = np.where(X > 0.3, X, 0.0)
    kernels = ["linear"] if approximation == "explicit" else ["gaussian(1)", "linear"]
    how = {"normalize": None, "approximation": approximation, "rank": 20}
    dense = MKLClassifier(kernels, **how).fit(X, y)
    for kind in (csr_matrix, csc_matrix):
        found = MKLClassifier(kernels, **how).fit(kind(X), y)
        f = found.decision_function(kind(X))
        np.testing.assert_array_equal(f, dense.decision_function(X))
    with pytest.raises(ValueError, match="too large to be dense; choose fewer col"):
        MKLClassifier(kernels, **how).fit(csr_matrix((80, 10**9)), y)


def test_wrong_approximations_get_one_clear_sentence():
    X, y = two_classes(30)
    with pytest.raises(ValueError, match="approximation = 'fourier'; choose one of ny"):
        MKLClassifier(KERNELS, approximation="fourier").fit(X, y)
    with pytest.raises(ValueError, match="rank = 0; give a whole number"):
        MKLClassifier(KERNELS, approximation="nystroem", rank=0).fit(X, y)
    K = np.moveaxis(np.stack([X @ X.T]), 0, -1)
    with pytest.raises(ValueError, match="precomputed kernels have no features"):
        MKLClassifier("precomputed", approximation="nystroem").fit(K, y)


def test_large_factors_are_stored_in_single_precision(monkeypatch):
    monkeypatch.setattr(base, "MAX_DOUBLES", 100)
    low, X = smooth(MKLClassifier, approximation="random_features", rank=20)
    assert low.result_.problem.grams.dtype == np.float32
    assert low.score(X, two_classes(120)[1]) > 0.8


def test_a_grid_over_parameters_of_the_formulation():
    import cvxpy as cp
    from sklearn.model_selection import GridSearchCV

    @mklopt.formulation
    def mine(u, lam=0.3):
        return lam * cp.sum(u)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=40))
    family = mklopt.kernels.gaussians([0.5, 2.0])
    model = mklopt.MKLClassifier(family, formulation=mine, tol=1e-3)
    search = GridSearchCV(model, {"formulation__lam": [1e6, 0.1]}, cv=2).fit(X, y)
    assert search.best_params_ == {"formulation__lam": 0.1}  # not f = 0
    assert search.best_estimator_.formulation == mine(lam=0.1)
    assert model.formulation is mine and model.get_params()["formulation__lam"] == 0.3
    text = mklopt.MKLRegressor(loss="huber").set_params(formulation__p=3, loss__delta=2)
    assert text.formulation == mklopt.formulations.LpNorm(3)
    assert text.loss.get_params() == {"delta": 2.0}
    with pytest.raises(ValueError, match="has no parameter q; it has p"):
        text.set_params(formulation__q=3)


# ---- data frames, views, scikit-learn's width ----------------------------------------


def people(n=60):
    X, y = two_classes(n)
    frame = pd.DataFrame(X, columns=["age", "size", "colour"])
    frame.insert(1, "city", np.where(X[:, 0] > 0, "Oslo", "Bern"))
    return frame, y


def test_views_have_names_and_columns_that_are_not_read_may_be_text():
    frame, y = people()
    views = {"body": (["age", "size"], ["gaussian(2)", "linear"]),
             "look": ("colour", "gaussian(1)")}  # fmt: skip
    model = MKLClassifier(views).fit(frame, y)
    names = ["body: gaussian(2)", "body: linear", "look: gaussian(1)"]
    assert model.kernel_names_ == names
    plain = MKLClassifier({"body": ([0, 1], ["gaussian(2)", "linear"]),
                           "look": ([2], "gaussian(1)")})  # fmt: skip
    numbers = frame.drop(columns="city").to_numpy()
    expected = plain.fit(numbers, y).decision_function(numbers)
    np.testing.assert_allclose(model.decision_function(frame), expected, atol=1e-9)
    pd.testing.assert_frame_equal(frame, people()[0])  # it is not changed
    for every in ({"all": "linear"}, None):
        with pytest.raises(ValueError, match="columns of text: city; encode them as"):
            MKLClassifier(every).fit(frame, y)
    as_objects = frame.astype({"age": object})
    np.testing.assert_array_equal(
        model.fit(as_objects, y).predict(frame), model.predict(as_objects)
    )


def test_a_dict_of_views_gets_a_sentence_that_helps():
    X, y = two_classes()
    with pytest.raises(ValueError, match="X is a dict of views; join them to one mat"):
        MKLClassifier({"a": "linear"}).fit({"a": X}, y)


def test_kernels_have_the_names_of_columns():
    frame, y = people()
    frame = frame.drop(columns="city")
    model = MKLClassifier(["linear on single"]).fit(frame, y)
    assert model.kernel_names_ == [
        "linear on age",
        "linear on size",
        "linear on colour",
    ]
    pair = MKLClassifier([(["age", "colour"], "linear on single")]).fit(frame, y)
    assert pair.kernel_names_ == [f"age, colour: linear on x{i}" for i in (0, 1)]


@pytest.mark.parametrize("gamma", ["scale", 0.3])
def test_rbf_is_the_kernel_of_scikit_learn(gamma):
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.svm import SVC

    X, y = two_classes()
    text = "rbf" if gamma == "scale" else "rbf(0.3)"
    width = SVC(gamma=gamma).fit(X, y)._gamma
    model = MKLClassifier([text], normalize=None).fit(X, y)
    found = model.result_.problem.grams.kernel(0)
    order = np.unique(np.column_stack([X, y == "yes"]), axis=0)[:, :-1]
    np.testing.assert_allclose(found, rbf_kernel(order, gamma=width), atol=1e-12)
    with pytest.raises(ValueError, match=r"'rbf\(0\)' cannot be read: γ is a positive"):
        MKLClassifier(["rbf(0)"]).fit(X, y)
    with pytest.raises(ValueError, match="without samples; give γ"):
        family_of("rbf", 3)


def test_missing_values_get_a_sentence_that_helps():
    X, y = two_classes()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"make_pipeline\(SimpleImputer\(\), MKLClass"):
        MKLClassifier(["linear"]).fit(X, y)


def test_a_warm_start_needs_fewer_iterations_and_ends_at_the_same_point():
    X, y = two_classes(120)
    how: dict[str, Any] = dict(kernels=KERNELS, solver="spicy", tol=1e-8)
    warm = MKLClassifier(**how, warm_start=True).fit(X, y)
    first, cold = warm.n_iter_, MKLClassifier(**how).fit(X, y)
    assert warm.fit(X, y).n_iter_ < first == cold.fit(X, y).n_iter_
    np.testing.assert_allclose(
        warm.decision_function(X), cold.decision_function(X), atol=1e-3
    )
    assert warm.fit(X[:50], y[:50]).certificate_.relative_gap <= 1e-8  # other sizes


def test_sample_weights_are_routed():
    from sklearn import config_context
    from sklearn.model_selection import cross_validate

    X, y = two_classes(40)
    with config_context(enable_metadata_routing=True):
        model = MKLClassifier(["linear"], tol=1e-3).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=False)
        how: Any = {"cv": 2, "return_estimator": True}
        found = cross_validate(model, X, y, params={"sample_weight": np.full(40, 5.0)},
                               **how)  # fmt: skip
    assert [m.result_.problem.C for m in found["estimator"]] == [5.0, 5.0]
