"""Outlier detection: scikit-learn's checks, and the shares that are promised."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from mklopt.estimators.one_class import MKLOneClass


@pytest.mark.parametrize(
    "estimator",
    [
        MKLOneClass(),
        MKLOneClass(contamination=0.1),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_has_no_complaints(estimator):
    check_estimator(estimator)


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


def test_there_is_no_bias_and_nu_is_the_mean_of_the_dual():
    X = np.random.default_rng(1).normal(size=(40, 2))
    model = MKLOneClass(["gaussian(1)"], C=0.05, tol=1e-8).fit(X)
    problem = model.result_.problem
    assert problem.loss.name == "one_class" and not problem.bias
    assert model.nu_ == pytest.approx(np.sum(model.result_.dual) / (0.05 * 40))
    assert model.offset_ == pytest.approx(1 - 1e-4)


def test_contamination_counts_weights():
    """A heavy outlier uses up its share of the weight."""
    X = np.append(np.linspace(-1, 1, 19), 9.0)[:, None]
    weight = np.append(np.ones(19), 5.0)
    model = MKLOneClass(["gaussian(1)"], contamination=0.2)
    plain = model.fit(X).predict(X)
    assert np.sum(plain == -1) == 4 and plain[-1] == -1
    heavy = model.fit(X, sample_weight=weight).predict(X)
    assert np.sum(weight[heavy == -1]) <= 0.2 * 24


@pytest.mark.parametrize("share", [0.7, 0.0, "some", None])
def test_a_wrong_contamination_is_explained(share):
    with pytest.raises(ValueError, match=r"contamination = .*; give 'auto'"):
        MKLOneClass(contamination=share).fit(np.zeros((5, 1)))
