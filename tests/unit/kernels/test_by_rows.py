"""Kernels by rows: the entries of stored ones, tables, rows that are kept."""

import pickle

import numpy as np
import pytest

from mklopt import kernels
from mklopt.kernels import by_rows
from mklopt.kernels.by_rows import ByRows, RowTable
from mklopt.kernels.streams import Streams
from mklopt.util import threads

rng = np.random.default_rng(5)
X = rng.normal(size=(70, 6))
WIDTHS = kernels.gaussians([0.5, 1, 2, 4, 8, "mean"])
FEW = WIDTHS + kernels.polynomials([1, 2, 3])
MANY = FEW + kernels.subset_gaussians(20)
STEPS = [None, "unit_trace", "spherical", ("spherical", "unit_trace")]
SOME = np.where(rng.random(70) < 0.3, rng.normal(size=70), 0.0)


@pytest.fixture(autouse=True)
def every_stack_is_by_rows(monkeypatch):
    monkeypatch.setattr(by_rows, "MATRIX_BYTES", 0)
    monkeypatch.setattr(threads, "MIN_SHARED_WORK", 0)
    with threads.threads(3):
        yield


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("family", [FEW, MANY], ids=["few bases", "many bases"])
def test_entries_are_those_of_stored_kernels(family, steps):
    fitted = family.fit(X, steps)
    stored, grams = fitted.grams(), fitted.lazy()
    assert isinstance(grams._store, ByRows) and grams.by_rows
    for i in (0, 33, 69):
        one = np.eye(70)[i]
        np.testing.assert_array_equal(grams.matvec(one), stored.rows(i))
        np.testing.assert_array_equal(grams.quad(one), stored.diag()[:, i])
    np.testing.assert_allclose(grams.quad(SOME), stored.quad(SOME), rtol=1e-12)
    B = rng.normal(size=(fitted.M, 70, 2))
    np.testing.assert_allclose(grams.apply(B), stored.apply(B), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("family", [FEW, MANY], ids=["few bases", "many bases"])
def test_sums_of_kernels_are_products_with_their_matrix(family, steps):
    fitted = family.fit(X, steps)
    stored, grams = fitted.grams(), fitted.lazy()
    theta = rng.random(fitted.M) * (rng.random(fitted.M) < 0.8)
    K = stored.combine(theta)
    size = 1e-12 * np.max(np.abs(K)) * np.sum(np.abs(SOME))
    A = np.column_stack([SOME, np.roll(SOME, 3)])
    np.testing.assert_allclose(grams.product(theta, A), K @ A, rtol=0, atol=size)
    I, J = rng.permutation(70)[:20], rng.permutation(70)[:30]
    block = grams.between(theta, I, J)
    np.testing.assert_allclose(block, K[np.ix_(I, J)], rtol=0, atol=size)


def test_a_table_is_used_and_as_good_as_it_says():
    store = WIDTHS.fit(X).lazy()._store
    theta = rng.random(6)
    group = store._groups(np.arange(6), theta)[0]
    table = store._table(group)
    t = np.sort(rng.uniform(0, store._range(0)[1], 2000))
    out = np.empty((1, 2000))
    one = np.zeros(1, np.int64)
    by_rows.look_up(t[None], one, np.arange(2000), *table, out, 0, 1)
    exact = by_rows.partial_sums(group)(t)
    assert np.max(np.abs(out[0] - exact)) <= 2 * by_rows.TABLE_ERROR * np.sum(theta)
    assert np.array_equal(out[0] > 0, exact > 0) and table.coefficients.shape[0] > 64


def test_a_sum_that_no_table_can_hold_is_computed(monkeypatch):
    monkeypatch.setattr(by_rows, "MOST_CELLS", 64)
    fitted, theta = WIDTHS.fit(X), np.ones(6)
    grams = fitted.lazy()
    assert grams._store._table(grams._store._groups(np.arange(6), theta)[0]) is None
    K = fitted.grams().combine(theta)
    np.testing.assert_allclose(grams.product(theta, SOME), K @ SOME, rtol=1e-12)


@pytest.mark.parametrize("family", [FEW, MANY], ids=["few bases", "many bases"])
def test_no_bit_depends_on_threads_or_on_what_is_kept(family, monkeypatch):
    monkeypatch.setattr(by_rows, "CHUNK_BYTES", 8 * 70 * 8)  # eight rows at a time
    fitted, theta = family.fit(X, "unit_trace"), np.ones(len(family.fit(X)))
    found = []
    for cache, count in ((0, 1), (0, 2), ("1MB", 1), ("1MB", 2), (8 * 70 * 40, 2)):
        grams = fitted.lazy(cache=cache)
        with threads.threads(count):
            grams.between(theta, np.array([60, 3, 9]), np.arange(4))
            grams.product(theta, np.roll(SOME, 20))
            found.append((grams.product(theta, SOME), grams.matvec(SOME)))
    for sums, each in found[1:]:
        np.testing.assert_array_equal(sums, found[0][0])
        np.testing.assert_array_equal(each, found[0][1])


def test_rows_make_room_for_others():
    asked: list[int] = []

    def fetch(which):
        asked.extend(which.tolist())
        return np.repeat(which[:, None], 10, axis=1).astype(float)

    table = RowTable(10, 0, fetch)
    table.chunk, table.rows = 2, np.empty((4, 10))
    table.owner, table.used = np.full(4, -1), np.zeros(4, np.int64)
    for _ in range(2):
        for some, places in table.chunks(np.arange(6)):
            np.testing.assert_array_equal(table.rows[places, 0], some)
    # of six rows with room for four, the first two stay
    assert asked[:6] == list(range(6)) and 0 not in asked[6:] and 1 not in asked[6:]
    asked.clear()
    places = table.places(np.array([0, 9]))
    np.testing.assert_array_equal(table.rows[places, 0], [0, 9])
    assert asked == [9]


def test_rows_are_computed_once_and_for_the_support_alone(monkeypatch):
    grams, theta = WIDTHS.fit(X).lazy(), np.ones(6)
    computed: list[int] = []
    pairs = by_rows.pairs

    def counted(A, *more):
        computed.append(len(A))
        return pairs(A, *more)

    monkeypatch.setattr(by_rows, "pairs", counted)
    for _ in range(2):
        grams.product(theta, SOME), grams.quad(SOME), grams.matvec(SOME)
    grams.product(2 * theta, SOME)
    assert sum(computed) == np.count_nonzero(SOME)


def test_few_samples_and_other_kernels_are_not_read_by_rows(monkeypatch):
    assert not kernels.gaussians([1.0]).fit(X, "centre").lazy().by_rows
    assert not kernels.function(lambda A, B: A @ B.T).fit(X).lazy().by_rows
    monkeypatch.setattr(by_rows, "MATRIX_BYTES", 8 * 70**2)
    grams = WIDTHS.fit(X).lazy()
    assert not grams.by_rows and isinstance(grams._store, Streams)


def test_it_is_pickled_without_its_rows():
    grams, theta = WIDTHS.fit(X).lazy(), np.ones(6)
    found = grams.product(theta, SOME)
    again = pickle.loads(pickle.dumps(grams._store))
    assert again._bases == {} and again._sum is None
    store = again.product(np.arange(6), theta, SOME[:, None])
    np.testing.assert_array_equal(store[:, 0], found)


def test_entries_that_overflow_are_refused():
    with pytest.raises(ValueError, match="NaN or infinite entries"):
        kernels.polynomials([3]).fit(1e120 * X).lazy()
