"""Rows in registers: the order of sums, the bits of exp, nothing written beside."""

import numpy as np
from numba import njit

from mklopt.util import lanes
from mklopt.util.exponential import exponentials
from mklopt.util.lanes import LANES, WIDTH

rng = np.random.default_rng(3)


@njit
def add(A, i, T, start, columns, first, last, j):
    lanes.add_rows(A, i, T, start, columns, first, last, j)


@njit
def dot(A, i, B, j):
    return lanes.dot_rows(A, i, B, j)


@njit
def squares(a, b):
    return lanes.squares_of_row(a, b)


@njit
def exps(A, i, c, b):
    lanes.exp_row(A, i, c, b)


@njit
def multiple(a, c, b):
    lanes.add_multiple(a, c, b)


@njit
def product(y, start, A, i, b):
    lanes.add_product(y, start, A, i, b)


@njit
def zeros(count):
    return lanes.rows_of_zeros(count)


def test_rows_are_added_one_after_the_other():
    T = rng.normal(size=(9, WIDTH)) * 10.0 ** rng.integers(-9, 9, size=(9, WIDTH))
    A, columns = rng.normal(size=(4, WIDTH)), np.array([0, 3, 1, 1, 4], np.int32)
    for first, last in ((0, 5), (1, 3), (2, 2)):
        found, total = A.copy(), A[1].copy()
        add(found, 1, T, 4, columns, first, last, 2)
        for c in columns[first:last]:
            total = total + T[4 + c]
        np.testing.assert_array_equal(found[2], total)
        np.testing.assert_array_equal(found[[0, 1, 3]], A[[0, 1, 3]])


def summed(products):
    """By lanes, then halves until one number is left."""
    sums = products[:LANES]
    for k in range(LANES, WIDTH, LANES):
        sums = sums + products[k : k + LANES]
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    return sums[0]


def test_a_product_of_rows_has_one_order():
    A, B = rng.normal(size=(2, 3, WIDTH))
    assert dot(A, 2, B, 1) == summed(A[2] * B[1])
    assert squares(A[0], B[0]) == summed(A[0] * (A[0] * B[0]))
    assert WIDTH // LANES + np.log2(LANES) <= lanes.DOT_CHAIN


def test_exp_has_the_bits_of_the_other_loops():
    ends = [0.0, -0.0, -745.1, -745.2, -745.3, -708.4, -720.0, -1e300, -np.inf, np.nan]
    for _ in range(200):
        t = rng.uniform(0, 10.0 ** rng.integers(-18, 4), size=WIDTH)
        t[: len(ends)] = np.negative(ends)
        A, b, c = np.stack([t, t]), np.empty(WIDTH), -rng.uniform(0.5, 2)
        expected = t * c
        exponentials(expected)
        exps(A, 1, c, b)
        np.testing.assert_array_equal(b, expected)


def test_multiples_and_products_are_added_where_they_belong():
    a, b, y = rng.normal(size=WIDTH), rng.normal(size=WIDTH), rng.normal(size=(3, 70))
    A, before, sums = rng.normal(size=(2, WIDTH)), y.ravel().copy(), a + 1.7 * b
    multiple(a, 1.7, b)
    np.testing.assert_array_equal(a, sums)
    product(y, 61, A, 1, b)
    before[61 : 61 + WIDTH] += A[1] * b
    np.testing.assert_array_equal(y.ravel(), before)


def test_rows_begin_with_a_line_of_the_cache():
    for count in (1, 2, 7):
        rows = zeros(count)
        assert rows.shape == (count, WIDTH) and not np.any(rows)
        assert rows.ctypes.data % 64 == 0
