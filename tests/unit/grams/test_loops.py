"""Compiled loops over stored kernels against NumPy, with all sizes of remainders."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack
from mklopt.grams import loops
from mklopt.grams.loops import CHUNK, COLUMNS, ROWS

rng = np.random.default_rng(7)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 3, *(2 * ROWS + COLUMNS + r for r in range(8))])
def test_products_with_four_rows_at_a_time_and_what_is_left(n, dtype):
    K = rng.normal(size=(2, n, n))
    K = K + K.transpose(0, 2, 1) + 10 * n * np.eye(n)
    a, rounding = rng.normal(size=n), 1e-12 if dtype == "float64" else 1e-5
    got = GramStack(K, dtype=dtype).matvec(a)
    assert np.max(np.abs(got - K @ a)) <= rounding * np.max(np.abs(K @ a))


def triangle(K):
    return np.ascontiguousarray(K[np.triu_indices(len(K))])


def symmetric(n):
    K = rng.normal(size=(n, n))
    return K + K.T


def starts(n):
    return np.array([i * n - i * (i - 1) // 2 for i in range(n)])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("M", [1, 4, 7])  # four kernels at a time, and the rest
def test_sums_and_inner_products_of_flat_kernels(dtype, M):
    size = CHUNK + 5
    P = rng.normal(size=(M + 1, size)).astype(dtype)
    index, theta = rng.permutation(M + 1)[:M], rng.normal(size=M)
    out = np.full(size, np.nan)
    loops.combine(P, index, theta, out, 0, True, 3, size)
    np.testing.assert_allclose(out[3:], (theta @ P[index])[3:], atol=1e-12)
    assert np.all(np.isnan(out[:3]))  # the part of another thread
    loops.combine(P, index, theta, out, 40, True, 0, size - 40)
    np.testing.assert_allclose(out[: size - 40], (theta @ P[index])[40:], atol=1e-12)
    w, out = rng.normal(size=size), np.full(M, np.nan)
    loops.dots(P, index, w, np.array([[0, CHUNK], [CHUNK, size]]), out, 0, M)
    np.testing.assert_allclose(out, P[index] @ w, atol=1e-11)
    loops.dots(P, index, w, np.array([[2, 9], [20, 31]]), out, 0, M)
    some = np.r_[2:9, 20:31]
    np.testing.assert_allclose(out, P[index][:, some] @ w[some], atol=1e-11)


@pytest.mark.parametrize("n", [1, 5, ROWS, ROWS + COLUMNS + 3])
def test_triangles_and_matrices_are_the_same_numbers(n):
    K, out = symmetric(n), np.empty((n, n))
    for first in range(0, n, 8):  # in any pieces
        loops.unpack(triangle(K), out, first, min(first + 8, n))
    np.testing.assert_array_equal(out, K)
    found = np.empty((1, 3, n))
    which = np.array([0, n - 1, n // 2])
    loops.rows(triangle(K)[None], np.array([0]), starts(n), which, found)
    np.testing.assert_array_equal(found[0], K[which])
    folded = np.empty(n * (n + 1) // 2)
    S, A = symmetric(n), rng.normal(size=(n, 2))
    loops.fold(S, folded)
    assert folded @ triangle(K) == pytest.approx(np.sum(S * K), abs=1e-11)
    loops.products(A, starts(n), np.arange(n), folded)
    assert folded @ triangle(K) == pytest.approx(np.sum(A * (K @ A)), abs=1e-11)


@pytest.mark.parametrize("n", [1, 5, ROWS + COLUMNS + 3])
@pytest.mark.parametrize("blocks", [1, 2])  # one for all kernels, or one for each
def test_products_with_triangles_and_factors(n, blocks):
    K = np.stack([symmetric(n), symmetric(n)])
    P, index = np.stack([triangle(k) for k in K]), np.array([1, 0])
    A, out = rng.normal(size=(blocks, n, 3)), np.empty((2, 3, n))
    columns = np.ascontiguousarray(A.transpose(0, 2, 1))
    loops.matvec(P, index, starts(n), np.arange(n), columns, out, 0, 2)
    np.testing.assert_allclose(out.transpose(0, 2, 1), K[index] @ A, atol=1e-11)
    F, ends, through = rng.normal(size=(n, 5)), np.array([0, 2, 5]), np.empty((2, n, 3))
    loops.through(F, index, ends, A, through, 0, 2)
    for k, L in enumerate((F[:, 2:], F[:, :2])):
        a = A[k if blocks == 2 else 0]
        np.testing.assert_allclose(through[k], L @ (L.T @ a), atol=1e-12)


@pytest.mark.parametrize("full", [False, True])
def test_storing_symmetrizes_and_measures(full):
    n = ROWS + 3
    K = symmetric(n)
    K[2, 4] += 0.5
    K[n - 1, n - 1] = -3.0
    at = np.arange(n) * (n + 1) if full else starts(n)
    out = np.zeros(n * n if full else n * (n + 1) // 2)
    top, skew, lowest, nan = loops.store(K, out, at, full)
    mean = (K + K.T) / 2
    np.testing.assert_array_equal(out, mean.ravel() if full else triangle(mean))
    assert top == np.max(np.abs(K[np.triu_indices(n)]))
    assert skew == pytest.approx(0.5) and lowest == np.min(np.diag(K)) and nan == 0
    K[1, 0] = np.inf
    assert np.isnan(loops.store(K, out, at, full)[3])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_sum_in_parts_of_four_has_the_same_bits(dtype):
    size, M = CHUNK + 5, 11
    P, theta = rng.normal(size=(M, size)).astype(dtype), rng.normal(size=M)
    whole, parts = np.empty(size), np.zeros(size)
    loops.combine(P, np.arange(M), theta, whole, 0, True, 0, size)
    for first in (0, 4, 8):
        index = np.arange(first, min(first + 4, M))
        loops.combine(P, index, theta[index], parts, 0, False, 0, size)
    np.testing.assert_array_equal(parts, whole)
