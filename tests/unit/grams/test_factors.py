"""Factors side by side: products in feature space, precision, threads, rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mklopt import GramStack, threads
from mklopt.grams import stack as stack_module
from mklopt.grams.factors import SMALL_PART, Factors
from mklopt.util.rounding import gamma

rng = np.random.default_rng(3)


def factors(n=50, ranks=(2, 3, 1)):
    return [rng.normal(size=(n, r)) for r in ranks]


def test_feature_weights_and_products_of_some_kernels():
    L = factors()
    grams = GramStack.from_factors(L)
    A, w = rng.normal(size=(50, 2)), rng.normal(size=6)
    np.testing.assert_allclose(grams.fold(A), np.hstack(L).T @ A, atol=1e-12)
    np.testing.assert_allclose(grams.unfold(w), np.hstack(L) @ w, atol=1e-12)
    part = grams.subset(np.array([0, 2]))
    np.testing.assert_array_equal(part.ranks, [2, 1])
    np.testing.assert_array_equal(part.owner, [0, 0, 1])
    some = np.hstack([L[0], L[2]])
    np.testing.assert_allclose(part.fold(A[:, 0]), some.T @ A[:, 0], atol=1e-12)
    np.testing.assert_allclose(part.unfold(w[:3]), some @ w[:3], atol=1e-12)
    norms = [np.linalg.norm(w[:2]), np.linalg.norm(w[2:5]), abs(w[5])]
    np.testing.assert_allclose(grams.feature_norms(w), norms)


def test_products_are_remembered_and_counted():
    grams = GramStack.from_factors(factors())
    alpha = rng.normal(size=50)
    h = grams.fold(alpha)
    assert grams.passes == pytest.approx(grams.full_read)
    grams.quad(alpha)
    grams.subset(np.array([1])).fold(alpha)
    assert grams.passes == pytest.approx(grams.full_read)
    w = np.where(grams.owner == 1, h, 0.0)  # only kernel 1 is read
    grams.unfold(w)
    grams.unfold(w)
    assert grams.passes == pytest.approx(grams.full_read * (1 + 1 / 3))


def test_one_array_with_ranks_is_not_copied():
    F = rng.normal(size=(20, 5)).astype(np.float32)
    grams = GramStack.from_factors(F, ranks=[2, 3], dtype="float32")
    assert np.shares_memory(grams.panel().F, F) and grams.dtype == np.float32
    assert all(L.dtype == float for L in grams.factors or [])
    wide = GramStack.from_factors([F[:, :2], F[:, 2:]])
    assert wide.dtype == float
    alpha = rng.normal(size=20)
    np.testing.assert_allclose(grams.quad(alpha), wide.quad(alpha), rtol=1e-12)
    np.testing.assert_allclose(grams.diag(), wide.diag(), rtol=1e-12)
    assert grams.full_read == pytest.approx(wide.full_read / 2)


@pytest.mark.parametrize(
    "given, ranks, said",
    [
        (np.ones((4, 3)), [2, 2], "ranks that sum to 4"),
        (np.ones((4, 3)), [0, 3], "a rank"),
        (np.full((4, 3), np.nan), [1, 2], "factor 0 has NaN"),
    ],
)
def test_wrong_arrays_are_refused(given, ranks, said):
    with pytest.raises(ValueError, match=said):
        GramStack.from_factors(given, ranks=ranks)


@pytest.mark.parametrize("count", [0, 5, 3 * SMALL_PART + 7])
def test_sums_of_rows_have_a_column_of_ones(count):
    F = rng.normal(size=(count + 10, 4))
    which = np.sort(rng.permutation(len(F))[:count])
    d = rng.uniform(0, 2, size=count)
    found = Factors(F, np.array([4])).panel(np.array([0])).gram(which, d)
    wide = np.column_stack([F[which], np.ones(count)])
    np.testing.assert_allclose(found, wide.T @ (d[:, None] * wide), atol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bits_do_not_depend_on_the_number_of_threads(dtype):
    F = rng.normal(size=(30_000, 40)).astype(dtype)
    grams = GramStack.from_factors(F, ranks=[15, 25], dtype=dtype)
    alpha, w, which = rng.normal(size=30_000), rng.normal(size=40), np.arange(29_999)
    found = []
    for k in (1, 2, 3):
        with threads(k):
            grams.forget()
            sums = grams.panel().gram(which, np.ones(29_999))
            found.append((grams.fold(alpha), grams.unfold(w), sums))
    for other in found[1:]:
        for one, same in zip(found[0], other):
            np.testing.assert_array_equal(one, same)


def test_the_error_of_products_is_bounded_by_their_chains():
    """Against exact sums, with much cancellation."""
    n, R = 3000, 7
    F = rng.normal(size=(n, R))
    F[n // 2 :] = -F[: n // 2] * (1 + 1e-9 * rng.normal(size=(n // 2, R)))
    panel = Factors(F, np.array([R])).panel(np.array([0]))
    ones, w = np.ones((n, 1)), rng.normal(size=(R, 1))
    exact = [sum(map(Fraction, column.tolist())) for column in F.T]
    sizes = panel.fold(ones, sizes=True)[:, 0]
    for one, true, size in zip(panel.fold(ones)[:, 0], exact, sizes):
        assert abs(Fraction(one) - true) <= gamma(panel.fold_chain) * size
    assert panel.fold_chain < 1030  # and not n
    rows = panel.unfold(w)[:, 0], panel.unfold(w, sizes=True)[:, 0]
    for row, one, size in list(zip(F, *rows))[:50]:
        true = sum(Fraction(a) * Fraction(b) for a, b in zip(row, w[:, 0]))
        assert abs(Fraction(one) - true) <= gamma(panel.unfold_chain) * size


def test_feature_space_is_for_many_samples_and_few_columns(monkeypatch):
    assert not GramStack.from_factors(factors()).in_feature_space
    monkeypatch.setattr(stack_module, "FEATURE_SAMPLES", 50)
    assert GramStack.from_factors(factors()).in_feature_space
    assert not GramStack.from_factors(factors(ranks=(20, 6))).in_feature_space
    assert not GramStack(np.eye(60)[None]).in_feature_space
