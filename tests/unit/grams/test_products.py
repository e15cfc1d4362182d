"""Products with the kernels: what they are, counting, memory."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from mklopt import GramStack
from tests.unit.grams.samples import STORAGES, kernels

rng = np.random.default_rng(7)


@pytest.mark.parametrize("n", [8, 150])  # inside one tile, and across several
@pytest.mark.parametrize("storage", STORAGES)
def test_operations_agree_with_their_definitions(storage, n):
    K = kernels(M=7, n=n)
    grams, a = STORAGES[storage](K), rng.normal(size=n)
    rtol, atol = (1e-5, 1e-4) if "single" in storage else (1e-7, 1e-9)
    A, B = rng.normal(size=(n, 2)), rng.normal(size=(7, n, 2))
    theta = np.array([0.5, 0.0, 2.0, 1.0, 3.0, 0.1, 0.7])
    same = partial(np.testing.assert_allclose, rtol=rtol, atol=atol)
    same(grams.matvec(a), [k @ a for k in K])
    same(grams.matvec(A), [k @ A for k in K])
    same(grams.quad(a), [a @ k @ a for k in K])
    same(grams.quad(A), [np.trace(A.T @ k @ A) for k in K])
    S = A @ A.T - np.diag(a)
    same(grams.against(S), [np.sum(k * S) for k in K])
    same(grams.apply(B), [k @ b for k, b in zip(K, B)])
    same(grams.combine(theta), np.tensordot(theta, K, 1))
    same(grams.rows(3), K[:, 3])
    same(grams.rows(np.array([5, 0])), K[:, [5, 0]])
    same(grams.diag(), [np.diag(k) for k in K])
    same(grams.kernel(2), K[2])
    same(grams.dense(), K)
    same(grams.full().dense(), K)
    part = grams.subset([2, 0, 5])
    same(part.matvec(a), K[[2, 0, 5]] @ a)
    same(part.quad(a), [a @ k @ a for k in K[[2, 0, 5]]])
    same(part.combine(theta[:3]), np.tensordot(theta[:3], K[[2, 0, 5]], 1))
    same(part.rows(1), K[[2, 0, 5], 1])
    same(part.subset([1]).diag(), [np.diag(K[0])])


@pytest.mark.parametrize(
    "used", [[0], [149], [3, 4, 5, 90], range(1, 150, 2), range(150)]
)
@pytest.mark.parametrize("columns", [(), (2,)])
def test_only_rows_of_support_vectors_are_read(used, columns):
    """Rows with A_i = 0 may hold anything: they are neither read nor counted."""
    n, used = 150, np.array(used)
    K, a = kernels(M=7, n=n), np.zeros((150, *columns))
    a[used] = rng.normal(size=(len(used), *columns))
    grams, left_out = GramStack(K), np.delete(np.arange(n), used)
    squares = [np.sum(a * (k @ a)) for k in K]
    for i in left_out:
        start = grams._store.starts[i]
        grams._store.P[:, start : start + n - i] = np.nan
    share = np.sum(n - used) / grams._store.size * grams.full_read
    np.testing.assert_allclose(grams.quad(a), squares, rtol=1e-9, atol=1e-9)
    assert grams.passes == pytest.approx(share)
    grams.forget()
    found = grams.inside(a)
    np.testing.assert_allclose(found[:, used], (K @ a)[:, used], rtol=1e-9, atol=1e-9)
    assert not np.any(found[:, left_out])
    assert grams.passes == pytest.approx(share * (1 + a.size / n))
    np.testing.assert_allclose(grams.quad(a), squares, rtol=1e-9, atol=1e-9)
    assert grams.passes == pytest.approx(share * (1 + a.size / n))  # it is remembered


def test_forgotten_results_are_computed_again():
    grams = GramStack(kernels())
    grams.quad(np.ones(8))
    before = grams.passes
    grams.forget()
    grams.quad(np.ones(8))
    assert grams.passes == 2 * before


def test_passes_are_counted_in_numbers_read():
    for storage, share in (("full", 1.0), ("packed", 36 / 64)):
        grams, a = GramStack(kernels(M=4), storage=storage), np.ones(8)
        grams.quad(a)
        grams.matvec(a)
        grams.combine(np.ones(4))
        assert grams.passes == pytest.approx(3 * share)
        grams.combine(np.array([1.0, 0, 0, 1]))  # kernels of weight 0 are not read
        grams.subset([0, 1]).quad(2 * a)  # and a subset is counted with its stack
        assert grams.passes == pytest.approx(4 * share)
        grams.count_rows(16)  # read by a solver itself: 2 passes of 8 rows
        assert grams.passes == pytest.approx(4 * share + 2)


def test_a_product_knows_its_quad_and_a_subset_what_its_stack_combined():
    grams, a, theta = GramStack(kernels(M=4)), np.arange(8.0), np.array([0, 1.0, 0, 2])
    grams.matvec(a)
    mixed = grams.combine(theta)
    before = grams.passes
    np.testing.assert_allclose(
        grams.quad(a), [a @ k @ a for k in np.asarray(grams.dense())]
    )
    part = grams.subset([1, 3])
    assert part.combine(theta[[1, 3]]) is mixed
    assert np.array_equal(part.quad(a), grams.quad(a)[[1, 3]])
    assert grams.passes == before
    np.testing.assert_allclose(mixed, np.tensordot(theta, grams.dense(), axes=1))


def test_the_last_results_are_remembered_by_content():
    grams = GramStack(kernels())
    a = np.arange(8.0)
    first = grams.quad(a)
    before = grams.passes
    again = grams.quad(np.arange(8.0))
    assert again is first and grams.passes == before
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 0.0
    a[0] = 5.0  # the memory holds a copy: changed arguments are new ones
    np.testing.assert_allclose(
        grams.quad(a), [a @ k @ a for k in np.asarray(grams.dense())]
    )
    assert grams.passes > before
    for scale in range(2, 12):
        grams.quad(scale * a)
    assert len(grams._memory["quad"]) == 4


def test_rows_are_checked():
    K = kernels()
    grams = GramStack(K)
    np.testing.assert_allclose(grams.rows(-1), K[:, -1])
    with pytest.raises(IndexError):
        grams.rows(8)


@pytest.mark.parametrize("storage", STORAGES)
def test_read_only_arguments_are_taken(storage):
    grams = STORAGES[storage](kernels())
    arrays = (np.ones(8), np.ones((8, 2)), np.ones((3, 8)), np.eye(8))
    for array in arrays:
        array.flags.writeable = False
    for A in arrays[:2]:
        assert grams.matvec(A).shape == (3, *A.shape) and len(grams.quad(A)) == 3
    assert grams.apply(arrays[2]).shape == (3, 8) and len(grams.against(arrays[3])) == 3
    assert grams.combine(arrays[0][:3]).shape == (8, 8)


def test_products_with_some_kernels_are_those_of_the_last_matvec():
    grams, a = GramStack(kernels(M=5)), np.arange(8.0)
    expected = grams.dense()[[3, 0]] @ a
    np.testing.assert_allclose(grams.products(a, np.array([3, 0])), expected)
    all_of_them = grams.matvec(a)
    before = grams.passes
    part = grams.subset([4, 3, 0])
    found = part.products(a, np.array([1, 2]))
    np.testing.assert_array_equal(found, all_of_them[[3, 0]])
    assert grams.passes == before  # remembered, for subsets, too
    part.products(a + 1, np.array([1, 2]))
    assert grams.passes > before
