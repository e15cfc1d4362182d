"""Kernels of the library: exact, semi-definite as they are, near what they name."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.library.points import Generated
from mklopt.library.stacks import Blocks, Columns, Drawn, Exact, Pivoted, pivoted

X, _ = Generated("twonorm", 40, seed=1, d=5)()
NAMES = ("gaussian(2)", "gaussian(5)")


def gaussian(width):
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.exp(-squares / (2 * width**2))


def test_columns_are_linear_kernels_of_neighbours():
    grams = Columns(2)(X)
    assert grams.M == 3 and grams.proof == "factors"
    np.testing.assert_array_equal(grams.factors[2], X[:, 4:])


def test_pivoted_factors_come_near_the_kernel_and_lie_on_the_grid():
    near, far = ((Pivoted(NAMES, r)(X).factors or [])[1] for r in (25, 5))
    K = gaussian(5.0)
    assert np.array_equal(near * 4096, np.rint(near * 4096))
    off = [np.abs(L @ L.T - K).max() for L in (near, far)]
    assert off[0] < 0.02 < off[1]
    whole = pivoted(K, 40)
    assert np.abs(whole @ whole.T - K).max() < 1e-2
    assert pivoted(np.ones((6, 6)), 4).shape == (6, 1)  # rank one ends early


def test_copies_zeros_and_sizes():
    grams = Pivoted(NAMES, 6, twice=True, zeros=1, sizes=2)(X)
    L = grams.factors or []
    assert grams.M == 5 and np.array_equal(L[0], L[2]) and not np.any(L[4])
    plain = Pivoted(NAMES, 6)(X).factors or []
    np.testing.assert_array_equal(L[1], 2 * plain[1])


def test_exact_kernels_need_no_shift():
    grams = Exact(("gaussian(2)", "gaussian(60)"))(X)
    assert not np.any(grams.verify_psd()) and grams.proof == "Cholesky"
    np.testing.assert_allclose(grams.kernel(0), gaussian(2.0), atol=2e-9)
    assert grams.diag()[0, 0] == 1 + 2.0**-30


def test_blocks_and_targets():
    alike = Blocks(6, 2, seed=1, alike=3).factors(20)
    near, far = (np.abs(alike[0] - alike[m]).max() for m in (1, 3))
    assert 0 < near < 0.2 < far
    grams, y = Drawn(40, Blocks(6, 2, seed=1), share=0.25)()
    assert grams.M == 6 and (y > 0).sum() == 10
    _, score = Drawn(40, Blocks(6, 2, seed=1), target="score")()
    assert set(np.sign(score)) == {-1, 1}
    _, classes = Drawn(42, Blocks(6, 2, seed=1), target="classes")()
    assert np.bincount(classes).tolist() == [14, 14, 14]
    assert score[y > 0].min() > score[y < 0].max() - 1e-12


@pytest.mark.parametrize("rank", [1, 3])
def test_blocks_are_drawn_one_after_the_other(rank):
    few, many = (Blocks(M, rank, seed=9).factors(10) for M in (2, 4))
    np.testing.assert_array_equal(few[1], many[1])
