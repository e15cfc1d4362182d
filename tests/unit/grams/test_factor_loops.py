"""The compiled loops over factors: columns of runs, blocks of rows, both precisions."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.grams import factor_loops
from mklopt.grams.factor_loops import BLOCK

RUNS = np.array([[0, 3], [5, 12]])
PLACES = np.r_[0:3, 5:12]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 6, BLOCK, 2 * BLOCK + 3])
def test_loops_agree_with_matrix_products(n, dtype):
    rng = np.random.default_rng(n)
    F, W = rng.normal(size=(n, 12)).astype(dtype), rng.normal(size=(2, 12))
    A = rng.normal(size=(n, 2)) * (rng.random((n, 2)) < 0.5)
    part = F[:, PLACES].astype(float)
    out, blocks = np.empty((n, 2)), np.empty((-(-n // BLOCK), 2, 12))
    factor_loops.times(F, RUNS, W, out, 0, n)
    np.testing.assert_allclose(out, part @ W[:, PLACES].T, atol=1e-12)
    factor_loops.times_sizes(F, RUNS, W, out, 0, n)
    np.testing.assert_allclose(out, np.abs(part) @ np.abs(W[:, PLACES].T))
    factor_loops.against(F, RUNS, A, blocks, 0, n)
    found = np.sum(blocks, axis=0)[:, PLACES]
    np.testing.assert_allclose(found, A.T @ part, atol=1e-11)
    factor_loops.against_sizes(F, RUNS, A, blocks, 0, n)
    found = np.sum(blocks, axis=0)[:, PLACES]
    np.testing.assert_allclose(found, np.abs(A.T) @ np.abs(part), atol=1e-11)


def test_rows_are_gathered_with_the_columns_of_the_runs():
    F = np.arange(36.0).reshape(3, 12)
    rows, out = np.array([2, 0]), np.empty((2, 10))
    factor_loops.gather(F, RUNS, rows, out, 0, 2)
    np.testing.assert_array_equal(out, F[rows][:, PLACES])
    wide = np.empty((2, 11))
    factor_loops.gather_scaled(F, RUNS, rows, np.array([2.0, -1.0]), wide)
    np.testing.assert_array_equal(wide[:, :10], [[2.0], [-1.0]] * F[rows][:, PLACES])
    np.testing.assert_array_equal(wide[:, 10], [2.0, -1.0])


def test_numbers_that_are_not_finite_are_found():
    F = np.ones((4, 3), np.float32)
    assert factor_loops.unusual(F, 0, 4) == 0
    F[2, 1] = np.inf
    assert np.isnan(factor_loops.unusual(F, 0, 4))
    assert factor_loops.unusual(F, 0, 2) == 0
