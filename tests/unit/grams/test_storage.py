"""How kernels are stored: memory, precision, subsets, and the chain of additions."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

from mklopt import GramStack
from mklopt.grams.factors import Factors
from mklopt.grams.loops import CHUNK
from mklopt.grams.storage import Triangles, chunks, in_order
from mklopt.util.rounding import gamma

rng = np.random.default_rng(7)


def kernels(M=3, n=8, rank=4):
    L = rng.normal(size=(M, n, rank))
    return L @ L.transpose(0, 2, 1)


def test_packed_storage_takes_half_the_memory():
    K = kernels(M=2, n=100)
    assert GramStack(K)._store.P.nbytes == K.nbytes * 101 / 200
    assert GramStack(K, dtype="float32")._store.P.nbytes == K.nbytes * 101 / 400


def test_single_precision_entries_are_the_kernels():
    """What float32 stores is what is certified, not what it was rounded from."""
    grams = GramStack(kernels(), dtype="float32")
    kernel = grams.kernel(0)
    np.testing.assert_array_equal(kernel, kernel.astype(np.float32))


def test_the_chain_of_a_tiled_product_covers_its_rounding():
    """n larger than a tile: errors of one sign pile up, and stay under γ_chain."""
    n = 400
    rng = np.random.default_rng(3)
    K = rng.uniform(1.0, 1.0 + 1e-3, size=(1, n, n))
    K[0] = (K[0] + K[0].T) / 2 + n * np.eye(n)
    grams, a = GramStack(K), rng.uniform(1.0, 1.0 + 1e-3, size=n)
    assert grams.chain(n) < n / 2
    got, worst = grams.matvec(a)[0], 0.0
    for i in range(n):
        terms = [Fraction(float(k)) * Fraction(float(x)) for k, x in zip(K[0, i], a)]
        true = sum(terms, Fraction(0))
        worst = max(worst, float(abs(Fraction(float(got[i])) - true) / true))
    assert 0 < worst <= gamma(grams.chain(n))


def test_the_chain_of_rows_that_are_left_out_covers_the_rounding():
    """Products at every third sample, and their sum: the same bounds hold."""
    n, every = 300, 3
    K = rng.uniform(1.0, 1.0 + 1e-3, size=(1, n, n))
    K[0] = (K[0] + K[0].T) / 2 + n * np.eye(n)
    a = np.zeros(n)
    a[::every] = rng.uniform(1.0, 1.0 + 1e-3, size=n // every)
    grams, worst, total = GramStack(K), 0.0, Fraction(0)
    got = grams.inside(a)[0]
    for i in range(0, n, every):
        terms = [Fraction(float(k)) * Fraction(float(x)) for k, x in zip(K[0, i], a)]
        true = sum(terms, Fraction(0))
        total += Fraction(float(a[i])) * true
        worst = max(worst, float(abs(Fraction(float(got[i])) - true) / true))
    assert 0 < worst <= gamma(grams.chain(n // every))
    grams.forget()
    off = abs(Fraction(float(grams.quad(a)[0])) - total) / total
    assert float(off) <= gamma(grams._store.quad_chain(1))


def test_chunks_cover_each_range_in_order():
    found = chunks(np.array([3, CHUNK]), np.array([7, 3 * CHUNK + 1]))
    expected = [[3, 7], [CHUNK, 2 * CHUNK], [2 * CHUNK, 3 * CHUNK]]
    assert found.tolist() == [*expected, [3 * CHUNK, 3 * CHUNK + 1]]


def filled(K, storage, dtype=float):
    store = Triangles(K.shape[1], len(K), storage, dtype)
    for m, k in enumerate(K):
        store.store(m, k)
    return store


def factors(n=8):
    return [rng.normal(size=(n, r)) for r in (2, 1, 4)]


@pytest.mark.parametrize("kind", ["packed", "full", "factors"])
def test_a_store_computes_with_the_kernels_of_the_index(kind):
    """In the order of the index: a subset needs no copy."""
    L = factors()
    K = np.stack([f @ f.T for f in L])
    store = Factors(L) if kind == "factors" else filled(K, kind)
    A, S, theta = rng.normal(size=(1, 8, 2)), K[0] - 2 * np.eye(8), np.array([2.0, -1])
    for order in ([0, 1, 2], [2, 0], [1]):
        index, some = np.array(order), K[order]
        np.testing.assert_allclose(store.matvec(index, A), some @ A[0], atol=1e-12)
        np.testing.assert_allclose(store.diag(index), [np.diag(k) for k in some])
        np.testing.assert_allclose(
            store.quad(index, A[0]), [np.sum(A[0] * (k @ A[0])) for k in some]
        )
        np.testing.assert_allclose(
            store.against(index, S), [np.sum(k * S) for k in some], atol=1e-11
        )
        which = np.array([7, 0])
        np.testing.assert_allclose(store.rows(index, which), some[:, which], atol=1e-13)
    pair = np.array([2, 0])
    np.testing.assert_allclose(store.combine(pair, theta), 2 * K[2] - K[0], atol=1e-12)
    np.testing.assert_allclose(store.kernel(1), K[1], atol=1e-14)


def test_the_cost_is_the_share_of_the_numbers_of_float64():
    K = kernels(M=2, n=10)
    assert filled(K, "full").cost == 1.0
    assert filled(K, "packed").cost == pytest.approx(0.55)
    assert filled(K, "packed", np.float32).cost == pytest.approx(0.275)
    assert Factors(factors(n=10)).cost == pytest.approx(70 / 300)


def test_triangles_are_read_row_after_row():
    K = kernels(M=2)
    for storage in ("packed", "full"):
        found = filled(K, storage).triangle(1)
        np.testing.assert_allclose(found, K[1][np.triu_indices(8)])


def test_numbers_in_order_are_those_that_count_up():
    assert in_order(np.array([0, 1, 2])) and in_order(np.array([5]))
    assert not in_order(np.array([0, 2])) and not in_order(np.array([1, 0]))


def test_whole_means_all_kernels_in_float64():
    K = kernels(M=2)
    assert filled(K, "full").whole(np.arange(2))
    assert not filled(K, "full").whole(np.array([0]))
    assert not filled(K, "full", np.float32).whole(np.arange(2))


@pytest.mark.parametrize("storage", ["packed", "full"])
@pytest.mark.parametrize("n", [3, 70])
def test_what_is_stored_is_the_mean_of_both_triangles(storage, n):
    """Entries that differ by rounding: neither triangle alone is the kernel."""
    K = kernels(M=2, n=n) + np.eye(n)
    K[:, 0, 1:] *= 1 + 2.0**-40
    assert np.any(K.transpose(0, 2, 1) != K)
    store = filled(K, storage)
    mean = 0.5 * K + 0.5 * K.transpose(0, 2, 1)
    for m in range(2):
        np.testing.assert_array_equal(store.kernel(m), mean[m])
        np.testing.assert_array_equal(store.triangle(m), mean[m][np.triu_indices(n)])


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("storage", ["packed", "full"])
def test_the_screen_factorizes_the_kernels_of_some_samples(storage, size):
    K = kernels(M=5, n=20)
    K[1, 4, 8] = K[1, 8, 4] = 2 * np.sqrt(K[1, 4, 4] * K[1, 8, 8])
    K[2], K[3], K[4] = 0.0, 0.0, K[4] - 0.1 * np.trace(K[4]) * np.eye(20)
    K[3, 4, 8] = K[3, 8, 4] = 1.0
    store = filled(size * K, storage)
    which = np.array([0, 4, 8, 15], dtype=np.int64)
    found = store.screen(which, 1e-6).tolist()
    assert found == [True, False, True, False, False]
    assert store.screen(which, 2.0).tolist() == [True, True, True, False, False]
    assert store.screen(np.array([0, 4, 9]), 1e-6).tolist() == [True] * 4 + [False]


def test_the_chain_counts_every_addition_of_a_product():
    """Of few terms each is added once; of many, once in its tile and once per tile."""
    few = filled(kernels(n=5), "packed")
    assert few.chain(3) >= 3 and few.chain(5) >= 5
    many = Triangles(1000, 1, "packed", float)
    assert many.chain(1000) >= 32 + 64 + 1000 // 32 + 1000 // 64
    assert Factors(factors()).chain(8) >= 8 + 4


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_last_samples_are_the_end_of_the_same_numbers(dtype):
    """Every operation has the bits of a stack of copies; nothing is copied."""
    rng = np.random.default_rng(3)
    L = rng.normal(size=(6, 150, 20))
    whole = GramStack(L @ L.transpose(0, 2, 1), dtype=dtype)
    part, which = whole.samples(np.arange(70, 150)), np.arange(70, 150)
    copied = GramStack(
        np.stack([whole.kernel(m)[70:, 70:] for m in range(6)]), dtype=dtype
    )
    assert np.shares_memory(part._store.P, whole._store.P)
    a, theta = rng.normal(size=80), rng.random(6)
    few = np.where(rng.random(80) < 0.3, a, 0.0)
    for ask in (
        lambda g: g.quad(a), lambda g: g.quad(few), lambda g: g.inside(few),
        lambda g: g.matvec(a), lambda g: g.combine(theta), lambda g: g.diag(),
        lambda g: g.against(np.outer(a, few) + np.outer(few, a)), lambda g: g.rows(7),
        lambda g: g.kernel(2), lambda g: np.stack(list(g.content())),
        lambda g: g.subset([1, 4]).quad(a), lambda g: g.dense(),
        lambda g: g.samples(np.arange(30, 80)).quad(a[:50]),
        lambda g: g.samples(np.arange(9)).quad(a[:9]),
    ):  # fmt: skip
        np.testing.assert_array_equal(ask(part), ask(copied))
    assert np.all(part.root_sizes() >= copied.root_sizes() * (1 - 1e-12))
    some = whole.subset([5, 2]).samples(which)
    np.testing.assert_array_equal(some.quad(a), part.quad(a)[[5, 2]])


def test_memory_of_a_sum_is_used_again_only_when_nobody_has_it():
    """A result, a view of it and a remembered sum keep their numbers."""
    grams, held = GramStack(kernels(M=3, n=40)), []
    for k in range(12):
        theta = np.array([1.0, 2.0, k])
        found = grams.combine(theta)
        held.append((theta, found[3:, ::2] if k % 2 else found))
        del found
        for _ in range(7):
            grams.combine(np.random.default_rng(k).uniform(size=3))
    for theta, part in held:
        whole = np.tensordot(theta, grams.dense(), axes=1)
        expected = whole if part.shape == whole.shape else whole[3:, ::2]
        np.testing.assert_allclose(part, expected, rtol=1e-13)


def test_memory_of_a_sum_is_used_again():
    grams = GramStack(kernels(M=3, n=40))
    places = set()
    for k in range(50):
        grams.forget()
        places.add(grams.combine(np.array([1.0, 2.0, k])).ctypes.data)
    assert len(places) <= 2


def test_a_copy_of_a_stack_has_memory_of_its_own():
    grams = GramStack(kernels(M=3, n=40))
    first = grams.combine(np.ones(3)).ctypes.data
    other = pickle.loads(pickle.dumps(grams))
    grams.forget()
    assert first not in {other.combine(np.arange(3.0) + k).ctypes.data for k in (0, 1)}
