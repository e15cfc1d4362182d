"""Sums of kernels as operators: equal to the matrix, remembered, counted."""

import numpy as np
import pytest

from mklopt import GramStack, kernels
from mklopt.grams import stack
from mklopt.kernels import by_rows

rng = np.random.default_rng(8)
X = rng.normal(size=(60, 4))
A = np.where(np.arange(60) % 4 == 0, rng.normal(size=60), 0.0)  # a quarter
THETA = np.array([0.5, 0.0, 2.0])
FITTED = kernels.gaussians([1, 2, 4]).fit(X)
STORED = FITTED.grams()


@pytest.fixture
def rows(monkeypatch):
    """A stack that is read by rows."""
    monkeypatch.setattr(by_rows, "MATRIX_BYTES", 0)
    return FITTED.lazy()


def test_a_stored_stack_forms_its_matrix():
    found = STORED.product(THETA, A)
    np.testing.assert_array_equal(found, STORED.combine(THETA) @ A)
    assert not STORED.by_rows


def test_factors_are_multiplied_without_a_matrix(monkeypatch):
    monkeypatch.setattr(stack, "FEATURE_SAMPLES", 10)
    factors = [rng.normal(size=(60, 3)) for _ in range(3)]
    grams = GramStack.from_factors(factors)
    assert grams.in_feature_space
    wanted = sum(t * (L @ (L.T @ A)) for t, L in zip(THETA, factors))
    monkeypatch.setattr(grams, "combine", None)
    np.testing.assert_allclose(grams.product(THETA, A), wanted, rtol=1e-12)


def test_a_subset_asks_the_whole_stack_which_remembers(rows, monkeypatch):
    wanted = STORED.combine(THETA) @ A
    np.testing.assert_allclose(rows.product(THETA, A), wanted, rtol=1e-12)
    monkeypatch.setattr(rows._store, "product", None)  # it is not asked again
    part = rows.subset([2, 0])
    np.testing.assert_allclose(part.product(THETA[[2, 0]], A), wanted, rtol=1e-12)


def test_passes_are_those_of_rows_that_are_not_zero(rows):
    count = lambda: rows.passes  # noqa: E731
    start = count()
    rows.product(THETA, A)
    assert count() - start == pytest.approx(2 / 3 / 4)
    start = count()
    rows.quad(A)
    assert count() - start == pytest.approx(1 / 16)
    start = count()
    rows.matvec(A)
    assert count() - start == pytest.approx(1 / 4)
    start = count()
    rows.between(THETA, np.arange(6), np.arange(12))
    assert count() - start == pytest.approx(2 / 3 * 6 * 12 / 3600)
    start = count()
    found = rows.products_at(A, np.arange(6))
    assert count() - start == pytest.approx(1 / 40)
    np.testing.assert_allclose(found, STORED.matvec(A)[:, :6], rtol=1e-12)
