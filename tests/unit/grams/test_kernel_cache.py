"""Kernels in use: what is fetched, what makes room, and the bits of a packed stack."""

from __future__ import annotations

import pickle
import weakref

import numpy as np
import pytest

from mklopt.grams import kernel_cache as module
from mklopt.grams.kernel_cache import Kept
from mklopt.grams.storage import Triangles

N, M = 9, 12
SIZE = N * (N + 1) // 2 * 8
rng = np.random.default_rng(3)


def stored(dtype=float):
    store = Triangles(N, M, "packed", dtype)
    L = rng.normal(size=(M, N, 3))
    for m, K in enumerate(L @ L.transpose(0, 2, 1)):
        store.store(m, K)
    return store


class Source:
    """A stack elsewhere, which notes what is asked for."""

    def __init__(self, dtype=float):
        self.store, self.asked, self.broken = stored(dtype), [], set()

    def __call__(self, numbers, P):
        assert P.shape == (len(numbers), N * (N + 1) // 2)
        self.asked += map(int, numbers)
        if self.broken & set(map(int, numbers)):
            raise OSError("the disk is broken")
        P[:] = self.store.P[numbers]


def kept_of(source, kernels=5):
    return Kept(N, source.store.dtype, kernels * SIZE, source)


@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize("index", [[0, 1, 2, 3, 4], [7, 2, 11], [5], [6, 6, 1]])
def test_the_bits_of_a_packed_stack(dtype, index):
    source, index = Source(dtype), np.array(index)
    kept, A = kept_of(source), rng.normal(size=(N, 2))
    S, theta = A @ A.T, rng.uniform(size=len(index))
    which = np.array([0, 4])
    asked = {"quad": (A,), "against": (S,), "combine": (theta,), "matvec": (A[None],),
             "rows": (which,), "diag": ()}  # fmt: skip
    for name, arguments in asked.items():
        found = kept.ask(name, index, *arguments)
        same = getattr(source.store, name)(index, *arguments)
        np.testing.assert_array_equal(found, same, name)


def test_a_kernel_is_fetched_once():
    source = Source()
    kept = kept_of(source)
    for index in ([1, 2], [2, 3], [3, 1]):
        table, places = kept.of(np.array(index))
        np.testing.assert_array_equal(table.P[places], source.store.P[index])
    assert source.asked == [1, 2, 3]
    assert len(kept) == 3 and 2 in kept and 0 not in kept


def test_what_was_not_asked_for_longest_makes_room():
    source = Source()
    kept = kept_of(source)
    kept.of(np.arange(5))
    kept.of(np.array([0, 2]))
    table, places = kept.of(np.array([9, 8, 2]))  # where 1 and 3, or 3 and 4, were
    np.testing.assert_array_equal(table.P[places], source.store.P[[9, 8, 2]])
    assert len(kept) == 5 and all(m in kept for m in (0, 2, 8, 9))


def test_too_many_kernels_are_not_kept():
    source = Source()
    kept = kept_of(source)
    assert kept.of(np.arange(6)) is None and kept.ask("diag", np.arange(6)) is None
    assert source.asked == [] and kept.fits(np.arange(5))
    assert Kept(N, float, SIZE - 1, source).of(np.arange(1)) is None


def test_kernels_are_fetched_in_blocks(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 2 * SIZE)
    sizes = []
    source = Source()

    def fetch(numbers, P):
        sizes.append(len(numbers))
        source(numbers, P)

    kept = Kept(N, float, 8 * SIZE, fetch)
    kept.of(np.arange(7))
    kept.of(np.arange(0, 7, 2))
    kept.of(np.array([11, 10, 9, 8]))  # three of the places are apart
    diagonals = source.store.diag(np.array([8, 0, 10]))
    np.testing.assert_array_equal(kept.ask("diag", np.array([8, 0, 10])), diagonals)
    assert sizes == [2, 2, 2, 1, 2, 2]


def test_a_kernel_whose_fetch_fails_is_not_kept():
    source = Source()
    source.broken = {4}
    kept = kept_of(source)
    kept.of(np.arange(4))
    with pytest.raises(OSError, match="broken"):
        kept.of(np.array([1, 4, 5]))
    assert 4 not in kept and 5 not in kept
    source.broken = set()
    table, places = kept.of(np.array([1, 4, 5]))
    np.testing.assert_array_equal(table.P[places], source.store.P[[1, 4, 5]])


def test_the_memory_is_free_at_once_with_the_store():
    class Store:
        def __init__(self):
            self.kept = Kept(N, float, 5 * SIZE, self.fetch)

        def fetch(self, numbers, P):
            P[:] = stored().P[numbers]

    store = Store()
    assert store.kept.of(np.array([1])) is not None
    table = weakref.ref(store.kept._table)
    del store  # there is no cycle that waits for the garbage collector
    assert table() is None


def test_pickled_without_its_content():
    kept = Kept(N, float, 5 * SIZE, print)
    kept._place[3] = 0
    copy = pickle.loads(pickle.dumps(kept))
    assert len(copy) == 0 and copy.capacity == 5 and copy.fetch is print


def test_cleared():
    source = Source()
    kept = kept_of(source)
    kept.of(np.arange(3))
    kept.clear()
    assert len(kept) == 0
    kept.of(np.arange(3))
    assert source.asked == [0, 1, 2, 0, 1, 2]


def test_it_holds_what_was_asked_for_last():
    source = Source()
    kept = kept_of(source)
    assert not kept.holds(np.array([1])) and kept.holds(np.array([], int))
    kept.of(np.array([1, 4, 7]))
    assert kept.holds(np.array([7, 1])) and not kept.holds(np.array([1, 2]))
    assert source.asked == [1, 4, 7]  # asking whether it holds fetches nothing
    kept.of(np.array([2, 3, 5, 6]))
    assert not kept.holds(np.array([1])) and not kept.holds(np.arange(M))
