"""Compiled loops over factors against NumPy and rationals, with all remainders."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mklopt.grams import factor_loops
from mklopt.grams.factor_loops import BLOCK
from mklopt.util.rounding import gamma

rng = np.random.default_rng(7)
RUNS = np.array([[1, 4], [6, 7], [8, 15]])  # 11 of 16 columns
PLACES = np.concatenate([np.arange(*run) for run in RUNS])
OTHERS = np.setdiff1d(np.arange(16), PLACES)
KINDS = [np.float64, np.float32]


def poisoned(n, dtype=np.float64):
    """A factor whose columns outside of the runs must not be read."""
    F = rng.normal(size=(n, 16)).astype(dtype)
    F[:, OTHERS] = np.nan
    return F


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", [1, 3, 4, 7, 10])  # four rows at a time, and the rest
def test_rows_times_weights_and_their_sizes(n, dtype):
    F, W = poisoned(n, dtype), rng.normal(size=(2, 16))
    true = F[:, PLACES].astype(float) @ W[:, PLACES].T
    sizes = np.abs(F[:, PLACES].astype(float)) @ np.abs(W[:, PLACES].T)
    for loop, expected in (
        (factor_loops.times, true),
        (factor_loops.times_sizes, sizes),
    ):
        out = np.full((n, 2), np.nan)
        loop(F, RUNS, W, out, 0, n)
        np.testing.assert_allclose(out, expected, rtol=0, atol=1e-14 * sizes.max())


@pytest.mark.parametrize("loop", [factor_loops.times, factor_loops.times_sizes])
def test_a_part_of_the_rows_is_all_that_is_written(loop):
    F, W = poisoned(12), rng.normal(size=(2, 16))
    whole, out = np.empty((12, 2)), np.full((12, 2), np.nan)
    loop(F, RUNS, W, whole, 0, 12)
    loop(F, RUNS, W, out, 4, 8)
    np.testing.assert_array_equal(out[4:8], whole[4:8])
    assert np.all(np.isnan(out[:4])) and np.all(np.isnan(out[8:]))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", [1, 6, BLOCK, BLOCK + 1, 2 * BLOCK + 7])
def test_every_block_of_rows_has_a_sum_of_its_own(n, dtype):
    F, A = poisoned(n, dtype), rng.normal(size=(n, 2))
    A[: n // 2 : 3] = 0.0  # some zeros, and four of them in a row
    A[n // 2 : n // 2 + 8, 1] = 0.0
    G = F[:, PLACES].astype(float)
    for loop, L, B in (
        (factor_loops.against, G, A),
        (factor_loops.against_sizes, np.abs(G), np.abs(A)),
    ):
        out = np.full((-(-n // BLOCK), 2, 16), np.nan)
        loop(F, RUNS, A, out, 0, n)
        for block, start in enumerate(range(0, n, BLOCK)):
            some = slice(start, start + BLOCK)
            expected = B[some].T @ L[some]
            np.testing.assert_allclose(out[block][:, PLACES], expected, atol=1e-11)
        assert np.all(out[:, :, OTHERS] == 0)


@pytest.mark.parametrize("loop", [factor_loops.against, factor_loops.against_sizes])
def test_blocks_of_one_thread_leave_those_of_others_alone(loop):
    n = 3 * BLOCK + 5
    F, A = poisoned(n), rng.normal(size=(n, 1))
    whole, out = np.empty((4, 1, 16)), np.full((4, 1, 16), np.nan)
    loop(F, RUNS, A, whole, 0, n)
    loop(F, RUNS, A, out, BLOCK, 2 * BLOCK)
    loop(F, RUNS, A, out, 3 * BLOCK, n)
    np.testing.assert_array_equal(out[[1, 3]], whole[[1, 3]])
    assert np.all(np.isnan(out[[0, 2]]))


def exact(numbers):
    return [Fraction(float(x)) for x in numbers]


def dot(x, y):
    return sum((a * b for a, b in zip(exact(x), exact(y))), Fraction(0))


@pytest.mark.parametrize("dtype", KINDS)
def test_a_row_is_rounded_no_more_than_is_said(dtype):
    """γ_{R+1} |F||w|, with errors of one sign and with sums that cancel."""
    F = rng.uniform(1, 1 + 1e-3, size=(9, 300)).astype(dtype)
    W = rng.uniform(1, 1 + 1e-3, size=(2, 300))
    W[1, ::2] *= -1
    out, worst = np.empty((9, 2)), Fraction(0)
    factor_loops.times(F, np.array([[0, 300]]), W, out, 0, 9)
    for i in range(9):
        for c in range(2):
            error = abs(Fraction(float(out[i, c])) - dot(F[i], W[c]))
            worst = max(worst, error / dot(abs(F[i]), abs(W[c])))
    assert 0 < worst <= Fraction(gamma(301))


@pytest.mark.parametrize("dtype", KINDS)
def test_a_block_is_rounded_no_more_than_is_said(dtype):
    F = rng.uniform(1, 1 + 1e-3, size=(BLOCK - 1, 3)).astype(dtype)
    A = rng.uniform(1, 1 + 1e-3, size=(BLOCK - 1, 2))
    A[::2, 1] *= -1
    out, worst = np.empty((1, 2, 3)), Fraction(0)
    factor_loops.against(F, np.array([[0, 3]]), A, out, 0, BLOCK - 1)
    for c in range(2):
        for j in range(3):
            error = abs(Fraction(float(out[0, c, j])) - dot(F[:, j], A[:, c]))
            worst = max(worst, error / dot(abs(F[:, j]), abs(A[:, c])))
    assert 0 < worst <= Fraction(gamma(BLOCK))


@pytest.mark.parametrize("dtype", KINDS)
def test_rows_are_gathered_as_they_are_or_scaled(dtype):
    F, rows = poisoned(9, dtype), np.array([7, 0, 3, 3])
    out = np.full((4, 11), np.nan, dtype)
    factor_loops.gather(F, RUNS, rows, out, 1, 4)
    np.testing.assert_array_equal(out[1:], F[rows][1:, PLACES])
    assert np.all(np.isnan(out[0]))
    scale, wide = np.array([0.5, 3.0, 0.0, 1 / 3]), np.full((4, 12), np.nan)
    factor_loops.gather_scaled(F, RUNS, rows, scale, wide)
    expected = scale[:, None] * F[rows][:, PLACES].astype(float)
    np.testing.assert_array_equal(wide[:, :11], expected)
    np.testing.assert_array_equal(wide[:, 11], scale)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_seen_where_they_are(strange, dtype):
    F = rng.normal(size=(6, 3)).astype(dtype)
    F[0, 0] = np.finfo(dtype).max
    assert factor_loops.unusual(F, 0, 6) == 0
    F[4, 2] = strange
    assert np.isnan(factor_loops.unusual(F, 0, 6))
    assert np.isnan(factor_loops.unusual(F, 4, 5))
    assert factor_loops.unusual(F, 0, 4) == factor_loops.unusual(F, 5, 6) == 0
