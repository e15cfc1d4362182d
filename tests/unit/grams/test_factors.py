"""Kernels stored as factors: products, subsets, precision, rounding and threads."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import mklopt
from mklopt.grams.factor_loops import BLOCK
from mklopt.grams.factors import FEW_ROWS, ROWS_AT_ONCE, Factors, Panel
from mklopt.util import threads as policy
from mklopt.util.rounding import gamma

rng = np.random.default_rng(7)
RANKS = (3, 1, 4, 2)
ORDERS = [[0, 1, 2, 3], [1, 2], [3, 0], [2, 1, 0], [0, 2, 3]]
KINDS = ["float64", "float32"]


def factors(n: int) -> list[np.ndarray]:
    return [rng.normal(size=(n, r)) for r in RANKS]


def of(given: Any, dtype: str = "float64") -> tuple[Factors, list[np.ndarray]]:
    """A store, and the numbers that it holds, in float64."""
    stored = [L.astype(dtype) for L in given]
    return Factors(stored), [L.astype(float) for L in stored]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("n", [5, BLOCK + 3])
def test_a_panel_multiplies_with_the_kernels_of_the_index(n, order, dtype):
    store, L = of(factors(n), dtype)
    F = np.hstack([L[m] for m in order])
    panel = store.panel(np.array(order))
    assert (panel.n, panel.R) == F.shape
    A, W = rng.normal(size=(n, 2)), rng.normal(size=(panel.R, 3))
    np.testing.assert_allclose(panel.fold(A), F.T @ A, atol=1e-11)
    np.testing.assert_allclose(panel.unfold(W), F @ W, atol=1e-12)
    sizes = panel.fold(A, sizes=True)
    np.testing.assert_allclose(sizes, np.abs(F).T @ np.abs(A), rtol=1e-12)
    sizes = panel.unfold(W, sizes=True)
    np.testing.assert_allclose(sizes, np.abs(F) @ np.abs(W), rtol=1e-13)


def test_sums_are_those_of_pieces_added_in_pairs():
    """What workers rely on, which have some of the pieces each."""
    n = 5 * BLOCK + 3  # six pieces: ((0 + 1) + 2) + ((3 + 4) + 5)
    store = of(factors(n))[0]
    panel, A, d = store.panel(np.array([0, 2])), rng.normal(size=(n, 1)), rng.random(n)
    assert panel.ends.tolist() == [*range(0, n, BLOCK), n]
    folded, grams = [], []
    for first, last in zip(panel.ends, panel.ends[1:]):
        piece = Panel(panel.F[first:last], panel.runs)
        folded.append(piece.fold(A[first:last]))
        grams.append(piece.gram(np.arange(last - first), d[first:last]))
    for p, found in ((folded, panel.fold(A)), (grams, panel.gram(np.arange(n), d))):
        expected = ((p[0] + p[1]) + p[2]) + ((p[3] + p[4]) + p[5])
        np.testing.assert_array_equal(found, expected)


def test_some_of_the_rows_keep_their_pieces():
    n = 5 * BLOCK
    panel = of(factors(n))[0].panel(np.arange(4))
    assert panel.rows(np.arange(0, n, 2)).ends.tolist() == list(range(0, 2561, 512))
    late = panel.rows(np.arange(2 * BLOCK, n))
    assert late.ends.tolist() == [0, 0, 0, *range(BLOCK, 3 * BLOCK + 1, BLOCK)]
    A, W = rng.normal(size=(late.n, 1)), rng.normal(size=(10, 1))
    np.testing.assert_allclose(late.fold(A), late.F.T @ A, atol=1e-10)
    np.testing.assert_allclose(late.unfold(W), late.F @ W, atol=1e-12)
    few = panel.rows(np.arange(0, n, 5))
    assert len(few.F) < FEW_ROWS and few.ends.tolist() == [0, len(few.F)]
    assert panel.rows(np.arange(n)[::-1]).ends.tolist() == [0, n]


def test_neighbours_share_a_run():
    store = of(factors(4))[0]
    assert store.panel(np.arange(4)).runs.tolist() == [[0, 10]]
    assert store.panel(np.array([0, 2, 3])).runs.tolist() == [[0, 3], [4, 10]]
    assert store.panel(np.array([1, 0])).runs.tolist() == [[3, 4], [0, 3]]
    np.testing.assert_array_equal(store.ranks(np.array([2, 1])), [4, 1])


@pytest.mark.parametrize("dtype", KINDS)
def test_rows_of_a_panel_are_copies_with_its_columns_alone(dtype):
    store, L = of(factors(9), dtype)
    which = np.array([8, 0, 3, 3])
    part = store.panel(np.array([2, 0])).rows(which)
    assert part.F.dtype == dtype and part.R == 7
    np.testing.assert_array_equal(part.F, np.hstack([L[2], L[0]])[which])
    part.F[:] = 0.0
    np.testing.assert_array_equal(store.factor(2), L[2])


SIZES = [0, 1, 40, ROWS_AT_ONCE + 1, FEW_ROWS + 1, 3 * FEW_ROWS]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_gram_has_the_columns_and_a_constant(size, dtype):
    """(F, 1)ᵀ diag(d) (F, 1) of some rows, in one sum or in several."""
    store, L = of(factors(50), dtype)
    order, which = np.array([3, 0]), rng.integers(50, size=size)
    d = rng.uniform(0, 2, size=size)
    d[::5] = 0.0
    G = np.hstack([L[3], L[0], np.ones((50, 1))])[which]
    found = store.panel(order).gram(which, d)
    np.testing.assert_allclose(found, (G * d[:, None]).T @ G, atol=1e-9)
    assert found[-1, -1] == pytest.approx(np.sum(d))


def exact(numbers: np.ndarray) -> list[Fraction]:
    return [Fraction(float(x)) for x in numbers]


def dot(x: np.ndarray, y: np.ndarray) -> Fraction:
    return sum((a * b for a, b in zip(exact(x), exact(y))), Fraction(0))


def worst_error(found: np.ndarray, X: np.ndarray, Y: np.ndarray) -> Fraction:
    """The largest |found − XY| / |X||Y|, in rationals."""
    worst = Fraction(0)
    for i, row in enumerate(X):
        for c, column in enumerate(Y.T):
            error = abs(Fraction(float(found[i, c])) - dot(row, column))
            worst = max(worst, error / dot(abs(row), abs(column)))
    return worst


def one_sided(*shape: int) -> np.ndarray:
    """Numbers whose sums have rounding errors of one sign that pile up."""
    return rng.uniform(1, 1 + 1e-3, size=shape)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0]], ids=str)
def test_unfold_is_rounded_no_more_than_its_chain_says(order, dtype):
    store, L = of([one_sided(9, r) for r in (60, 1, 40)], dtype)
    panel = store.panel(np.array(order))
    W = one_sided(panel.R, 2)
    W[::2, 1] *= -1
    worst = worst_error(panel.unfold(W), np.hstack([L[m] for m in order]), W)
    assert 0 < worst <= Fraction(gamma(panel.unfold_chain))
    assert panel.unfold_chain <= panel.R + 5  # not more than it has to be


@pytest.mark.parametrize("dtype", KINDS)
def test_fold_is_rounded_no_more_than_its_chain_says(dtype):
    n = 3 * BLOCK + 5
    store, L = of([one_sided(n, r) for r in (2, 1)], dtype)
    panel, A = store.panel(np.arange(2)), one_sided(n, 2)
    A[::2, 1] *= -1
    worst = worst_error(panel.fold(A), np.hstack(L).T, A)
    assert 0 < worst <= Fraction(gamma(panel.fold_chain))
    assert panel.fold_chain < n / 2  # what blocks are for


def test_the_chain_of_fold_counts_blocks_of_rows():
    F = np.zeros((5 * BLOCK + 1, 1))
    chain = Factors([F]).panel(np.array([0])).fold_chain
    assert BLOCK + 6 <= chain <= BLOCK + 10


@pytest.fixture
def sharing(monkeypatch):
    """Also short loops are shared among threads."""
    monkeypatch.setattr(policy, "MIN_SHARED_WORK", 0)


@pytest.mark.usefixtures("sharing")
@pytest.mark.parametrize("dtype", KINDS)
def test_bits_do_not_depend_on_the_number_of_threads(dtype):
    n = 9 * BLOCK + 7
    store = of(factors(n), dtype)[0]
    panel, index = store.panel(np.array([3, 0, 1])), np.array([3, 0, 1])
    A, W = rng.normal(size=(n, 2)), rng.normal(size=(panel.R, 2))
    which, d = rng.permutation(n), rng.uniform(size=n)

    def results() -> list[np.ndarray]:
        products = [panel.fold(A), panel.unfold(W), panel.gram(which, d)]
        sizes = [panel.fold(A, sizes=True), panel.unfold(W, sizes=True)]
        others = [panel.rows(which).F, store.quad(index, A)]
        return products + sizes + others + [store.matvec(index, A[None])]

    with mklopt.threads(1):
        expected = results()
    for k in (2, 3):
        with mklopt.threads(k):
            for found, true in zip(results(), expected):
                np.testing.assert_array_equal(found, true)


@pytest.mark.usefixtures("sharing")
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("row", [0, BLOCK, 5 * BLOCK + 2])
def test_every_block_is_looked_at_for_numbers_that_are_not_finite(row, k):
    L = np.ones((5 * BLOCK + 3, 2))
    with mklopt.threads(k):
        assert Factors([L]).finite
        L[row, 1] = np.nan
        assert not Factors([L]).finite


@pytest.mark.parametrize("n", [6, BLOCK + 2])
def test_single_precision_factors_are_the_data(n):
    """Only the storage is rounded: products have the precision of float64."""
    store, L = of(factors(n), "float32")
    assert store.dtype == np.float32 and store.F.dtype == np.float32
    index, A = np.array([2, 0]), rng.normal(size=(n, 2))
    quad = [np.sum((L[m].T @ A) ** 2) for m in index]
    np.testing.assert_allclose(store.quad(index, A), quad, rtol=1e-12)
    diag = [np.sum(L[m] ** 2, axis=1) for m in index]
    np.testing.assert_allclose(store.diag(index), diag, rtol=1e-14)
    through = [L[m] @ (L[m].T @ A) for m in index]
    np.testing.assert_allclose(store.matvec(index, A[None]), through, atol=1e-10)
    for m in range(4):
        assert store.factor(m).dtype == float
        np.testing.assert_array_equal(store.factor(m), L[m])
        np.testing.assert_allclose(store.kernel(m), L[m] @ L[m].T, atol=1e-13)


def test_one_array_with_ranks_is_not_copied_and_factors_are():
    L = factors(6)
    F = np.hstack(L)
    store = Factors(F, np.array(RANKS))
    assert store.F is F and np.shares_memory(store.factor(1), F)
    assert not np.shares_memory(Factors(L).F, L[0])
    np.testing.assert_array_equal(Factors(L).F, F)
    half = Factors(F.astype("float32"), np.array(RANKS))
    assert half.cost == store.cost / 2 == 60 / (4 * 36) / 2
