"""Bounds of norms from the last read: never below the truth, in rational numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import mklopt
from mklopt.grams.norm_reads import NormReads


@pytest.fixture(autouse=True)
def small_stacks_have_bounds(monkeypatch):
    monkeypatch.setattr("mklopt.grams.norm_reads.WORTH", 0)


def stack(n=9, M=6, storage="packed", dtype="float64"):
    rng = np.random.default_rng(n + M)
    L = rng.normal(size=(M, n, 3)) * rng.uniform(0.01, 10, size=(M, 1, 1))
    K = L @ L.transpose(0, 2, 1)
    return mklopt.GramStack(
        (K + K.transpose(0, 2, 1)) / 2, storage=storage, dtype=dtype
    )


def exact_square(K, a):
    a = [Fraction(float(x)) for x in a]
    terms = (
        a[i] * Fraction(float(K[i, j])) * a[j]
        for i in range(len(a))
        for j in range(len(a))
    )
    return sum(terms, Fraction(0))


@pytest.mark.parametrize("storage", ["packed", "full"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("read_by", ["quad", "matvec"])
@pytest.mark.parametrize("far", [0.0, 1e-12, 1e-3, 3.0])
def test_bounds_hold_in_exact_arithmetic(storage, dtype, read_by, far):
    grams, rng = stack(storage=storage, dtype=dtype), np.random.default_rng(1)
    a = rng.normal(size=grams.n)
    getattr(grams, read_by)(a)
    b = a + far * rng.normal(size=grams.n)
    plain, above, read = grams.norms_above(b)
    assert np.all(read) == (far == 0)
    for m in range(grams.M):
        square = exact_square(grams.kernel(m), b)
        assert Fraction(above[m]) ** 2 >= square
        if far == 0:
            np.testing.assert_allclose([plain[m], above[m]], float(square) ** 0.5)


@pytest.mark.parametrize("read_by", ["quad", "matvec"])
def test_where_all_terms_cancel_the_rounding_of_the_sum_counts(read_by):
    """α is nearly orthogonal to the kernels: the computed norm is rounding alone."""
    rng = np.random.default_rng(6)
    L = rng.normal(size=(8, 24, 2))
    grams = mklopt.GramStack(L @ L.transpose(0, 2, 1))
    too_low = 0
    for m in range(8):
        a = rng.normal(size=24)
        a -= L[m] @ np.linalg.lstsq(L[m], a)[0]
        getattr(grams, read_by)(a)
        plain, above, _ = grams.norms_above(a)
        square = exact_square(grams.kernel(m), a)
        assert Fraction(above[m]) ** 2 >= square
        too_low += square > 0 and Fraction(plain[m]) ** 2 < square / 2
    assert too_low > 0  # so that the bound is needed


@pytest.mark.parametrize("read_by", ["quad", "matvec"])
def test_products_that_underflow_count_under_huge_kernels(read_by):
    K = np.array([np.full((5, 5), 1e300), 1e300 * np.eye(5), 1e-300 * np.eye(5)])
    grams, a = mklopt.GramStack(K), np.array([1e-170, 3e-170, 2e-165, 1e-172, 1e-300])
    getattr(grams, read_by)(a)
    _, above, _ = grams.norms_above(a)
    for m in range(3):
        assert Fraction(above[m]) ** 2 >= exact_square(grams.kernel(m), a)


def test_a_root_size_is_at_least_the_largest_eigenvalue():
    for storage in ("packed", "full"):
        grams = stack(n=30, storage=storage)
        values = [np.linalg.eigvalsh(K)[-1] for K in grams.dense()]
        sizes = grams._store.root_sizes**2
        assert np.all(sizes >= values) and np.all(sizes <= 6 * np.array(values))
    both = mklopt.GramStack(np.stack([np.eye(30), np.ones((30, 30))]))
    np.testing.assert_allclose(both._store.root_sizes**2, [30**0.5, 30.0], rtol=1e-9)


@pytest.mark.parametrize("storage", ["packed", "full"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_built_kernels_have_the_sizes_that_the_same_matrices_have(storage, dtype):
    X = np.random.default_rng(0).normal(size=(90, 4))
    fitted = mklopt.kernels.gaussians([0.3, 2.0], on="both").fit(X, "unit_trace")
    built = fitted.grams(storage=storage, dtype=dtype)
    norms, sizes = np.linalg.norm(built.dense(), axis=(1, 2)), built._store.root_sizes
    assert np.all(sizes**2 >= norms)
    np.testing.assert_allclose(sizes**2, norms, rtol=1e-7)


def test_a_bound_comes_from_the_last_read_of_each_kernel():
    grams, rng = stack(), np.random.default_rng(2)
    a, b = rng.normal(size=(2, grams.n))
    grams.quad(a)
    grams.subset(np.array([1, 4])).quad(b)
    plain, _, read = grams.norms_above(b)
    assert np.flatnonzero(read).tolist() == [1, 4]
    np.testing.assert_allclose(plain[read], grams.norms(b)[read])
    part = grams.subset(np.array([4, 0]))
    again = part.norms_above(b)
    np.testing.assert_array_equal(again[0], grams.norms_above(b)[0][[4, 0]])
    assert np.all(grams.norms_above(b)[2])  # norms(b) has read all of them


def test_a_remembered_result_is_a_read_again():
    grams, rng = stack(), np.random.default_rng(3)
    a, b = rng.normal(size=(2, grams.n))
    for point in (a, b, a):
        grams.quad(point)
        assert np.all(grams.norms_above(point)[2])
    grams.quad(b)
    part = np.array([2, 3])
    grams.subset(part).quad(a)  # known from the whole stack
    assert np.flatnonzero(grams.norms_above(a)[2]).tolist() == [2, 3]


def test_what_was_never_read_has_no_bound_and_forget_forgets():
    grams, a = stack(), np.ones(9)
    assert np.all(np.isinf(grams.norms_above(a)[1]))
    grams.quad(a)
    assert np.all(np.isfinite(grams.norms_above(2 * a)[1]))
    grams.forget()
    assert np.all(np.isinf(grams.norms_above(a)[1]))
    factors = mklopt.GramStack.from_factors([np.ones((9, 2))])
    factors.quad(a)
    assert np.all(np.isinf(factors.norms_above(a)[1]))


def test_the_shift_counts():
    grams, a = stack(), np.arange(9.0)
    grams.verify_psd()
    grams.shift = np.full(grams.M, 0.5)
    grams.quad(a)
    _, above, _ = grams.norms_above(a)
    for m, K in enumerate(grams.dense()):
        square = exact_square(K, a) + Fraction(1, 2) * sum(
            Fraction(i * i) for i in range(9)
        )
        assert Fraction(above[m]) ** 2 >= square


def test_points_that_no_kernel_needs_are_dropped():
    reads = NormReads.none(3)
    for i in range(10):
        reads = reads.add(np.full(4, float(i)), np.arange(3), np.ones(3), np.ones(3))
    assert len(reads.points) == 1 and reads.last.tolist() == [0, 0, 0]
    reads = reads.add(np.zeros(4), np.array([1]), np.ones(1), np.ones(1))
    assert len(reads.points) == 2
    assert reads.points[reads.last[1]].tolist() == [0.0] * 4
    assert reads.points[reads.last[0]].tolist() == [9.0] * 4


def test_products_are_remembered_and_the_others_are_computed():
    grams, a = stack(), np.linspace(-1, 1, 9)
    K = grams.dense()
    known = grams.matvec(a)
    before = grams.passes
    np.testing.assert_array_equal(grams.products(a, np.array([3, 1])), known[[3, 1]])
    assert grams.passes == before
    found = grams.products(2 * a, np.array([3, 1]))
    assert grams.passes > before
    np.testing.assert_allclose(found, K[[3, 1]] @ (2 * a))
    np.testing.assert_array_equal(grams.products(2 * a, np.array([1])), found[1:])
    part = grams.subset(np.array([3, 5]))
    np.testing.assert_allclose(part.products(a, np.array([1, 0])), K[[5, 3]] @ a)


@pytest.mark.parametrize("storage", ["packed", "full"])
def test_kernels_on_some_samples(storage):
    grams, which = stack(storage=storage), np.array([0, 2, 3, 8])
    before = grams.passes
    part = grams.subset(np.array([5, 1])).samples(which)
    K = np.asarray(grams.dense())[[5, 1]][:, which][:, :, which]
    np.testing.assert_array_equal(np.asarray(part.dense()), K)
    assert 0 < grams.passes - before < 0.2
