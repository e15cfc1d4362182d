"""What a stack of factors does in feature space."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack

rng = np.random.default_rng(7)
RANKS = (3, 1, 4, 2)


def factors(n: int) -> list[np.ndarray]:
    return [rng.normal(size=(n, r)) for r in RANKS]


def test_factors_are_the_data():
    L = [rng.normal(size=(8, r)) for r in (2, 5)]
    grams = GramStack.from_factors(L)
    a = rng.normal(size=8)
    np.testing.assert_allclose(grams.quad(a), [np.sum((f.T @ a) ** 2) for f in L])
    assert grams.proof == "factors"
    np.testing.assert_array_equal(grams.factors[1], L[1])


def test_quad_from_factors_is_sharp_where_the_product_cancels():
    L = rng.normal(size=(30, 5))
    null = np.linalg.svd(L.T)[2][-1] * 1e3  # Lᵀ null = 0 up to rounding
    grams = GramStack.from_factors([L])
    assert np.sqrt(grams.quad(null)[0]) < 1e-11


def test_factors_side_by_side_are_not_copied_and_fold():
    rng = np.random.default_rng(1)
    F = rng.normal(size=(1500, 5))
    stack = GramStack.from_factors(F, ranks=[2, 3])
    apart = GramStack.from_factors([F[:, :2], F[:, 2:]])
    assert stack.ranks.tolist() == apart.ranks.tolist() == [2, 3]
    assert stack.factors is not None and np.shares_memory(stack.factors[0], F)
    A = rng.normal(size=(1500, 2))
    np.testing.assert_allclose(stack.fold(A), F.T @ A, rtol=1e-11)
    np.testing.assert_allclose(stack.fold(A[:, 0]), F.T @ A[:, 0], rtol=1e-11)
    np.testing.assert_allclose(
        stack.subset(np.array([1])).fold(A), F[:, 2:].T @ A, rtol=1e-11
    )
    single = GramStack.from_factors(F.astype(np.float32), ranks=[5], dtype="float32")
    assert single.dtype == np.float32 and single.fold(A).dtype == float
    with pytest.raises(ValueError, match=r"with ranks that sum to 6 give one .n, 6"):
        GramStack.from_factors(F, ranks=[3, 3])


def test_a_stack_folds_and_unfolds_one_column_or_several():
    L = factors(7)
    F, grams = np.hstack(L), GramStack.from_factors(L)
    np.testing.assert_array_equal(grams.owner, np.repeat(np.arange(4), RANKS))
    for shape in ((), (1,), (3,)):
        A, w = rng.normal(size=(7, *shape)), rng.normal(size=(10, *shape))
        np.testing.assert_allclose(grams.fold(A), F.T @ A, atol=1e-13)
        np.testing.assert_allclose(grams.unfold(w), F @ w, atol=1e-13)
        parts = np.split(w, np.cumsum(RANKS)[:-1])
        lengths = [np.linalg.norm(part) for part in parts]
        np.testing.assert_allclose(grams.feature_norms(w), lengths)
        w[3:8] = 0.0  # kernels 1 and 2 are not read
        np.testing.assert_allclose(grams.unfold(w), F @ w, atol=1e-13)
    np.testing.assert_array_equal(grams.unfold(np.zeros(10)), np.zeros(7))


def test_a_subset_knows_what_the_stack_has_folded():
    grams, a = GramStack.from_factors(factors(7)), rng.normal(size=7)
    part = grams.subset(np.array([2, 0]))
    alone = part.fold(a)
    grams.fold(a)
    before = grams.passes
    again = grams.subset(np.array([2, 0])).fold(a)
    assert grams.passes == before  # remembered
    np.testing.assert_allclose(again, alone, atol=1e-14)
    assert again.shape == (7,)


def test_kernels_may_be_repeated_or_none_at_all():
    F = np.random.default_rng(2).normal(size=(9, 5))
    stack = GramStack.from_factors(F, ranks=[2, 3])
    a, w = np.arange(9.0), np.arange(8.0)
    twice = stack.subset(np.array([1, 0, 1]))
    columns = F[:, [2, 3, 4, 0, 1, 2, 3, 4]]
    np.testing.assert_allclose(twice.fold(a), columns.T @ a, rtol=1e-12)
    np.testing.assert_allclose(twice.unfold(w), columns @ w, rtol=1e-12)
    np.testing.assert_allclose(twice.quad(a), stack.quad(a)[[1, 0, 1]], rtol=1e-12)
    for known in (False, True):
        nothing = stack.subset(np.array([], int))
        assert nothing.fold(a).shape == (0,) and nothing.quad(a).shape == (0,)
        if not known:
            stack.fold(a)  # which the next part could ask for
