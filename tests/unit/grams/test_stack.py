"""The stack of kernels: operations, counting, validation, the proof of definiteness."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mklopt import GramStack
from tests.unit.grams.samples import STORAGES, kernels

rng = np.random.default_rng(7)


def test_full_storage_in_single_precision_is_read_in_double_precision():
    """Compiled loops take float64 only, and every entry as it is stored."""
    grams = GramStack(kernels(), storage="full", dtype="float32")
    assert grams.dense().dtype == float
    np.testing.assert_array_equal(grams.dense()[1], grams.kernel(1))


def test_content_is_the_same_for_packed_and_full_storage():
    K = kernels()
    packed, full = GramStack(K).content(), GramStack(K, storage="full").content()
    for one, other, k in zip(packed, full, K, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, k[np.triu_indices(8)])


def test_apart_has_its_own_count_and_memory():
    grams = GramStack(kernels())
    grams.quad(np.ones(8))
    other = grams.apart()
    assert other.passes == 0 and other._store is grams._store
    other.quad(np.ones(8))
    assert other.passes > 0


def test_a_subset_copies_nothing():
    grams = GramStack(kernels())
    assert grams.subset([1, 2])._store is grams._store


def test_the_stack_is_read_only_and_keeps_no_link_to_its_source():
    K = kernels()
    grams = GramStack(K)
    before = grams.quad(np.ones(8))
    K[:] = 0
    np.testing.assert_array_equal(grams.quad(np.ones(8)), before)
    with pytest.raises(ValueError, match="read-only"):
        grams.dense()[0, 0, 0] = 1.0


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda K: K[0], r"shape \(8, 8\).*single kernel"),
        (lambda K: K[:, :5], "square"),
        (lambda K: np.where(K[1, 2, 3] == K, np.nan, K), "kernel 1 has NaN"),
        (lambda K: K + np.triu(np.ones((8, 8)), 1), "kernel 0 is not symmetric"),
        (lambda K: -K, "negative diagonal"),
        (lambda K: K[:0], "expected"),
    ],
)
def test_bad_kernels_get_one_clear_sentence(spoil, words):
    with pytest.raises(ValueError, match=words):
        GramStack(spoil(kernels()))


def test_bad_factors_get_one_clear_sentence():
    with pytest.raises(ValueError, match="same n"):
        GramStack.from_factors([np.ones((3, 2)), np.ones((4, 2))])


def test_factors_multiplied_out_are_not_proved():
    grams = GramStack.from_factors([rng.normal(size=(6, 1)) for _ in range(2)])
    assert grams.proof == "factors" and grams.full().proof == ""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_type_of_stored_numbers(dtype):
    stack = GramStack(np.eye(3)[None], storage="full", dtype=dtype)
    assert stack.dtype == dtype and stack.dense().dtype == float
    assert GramStack.from_factors([np.eye(3)]).dtype == float


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads take turns after a microsecond: races show."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("storage", STORAGES)
def test_four_threads_share_a_stack(storage, hasty_threads):
    """No operation raises, and every product is the one that was asked for."""
    grams = STORAGES[storage](kernels(M=4, n=6))
    part, alone = grams.subset([0, 2]), grams.apart()
    vectors = rng.normal(size=(7, 6)).round(2)
    weights = rng.uniform(size=(7, 4))
    quads = [alone.quad(a).copy() for a in vectors]
    sums = [alone.combine(w).copy() for w in weights]

    def work(seed: int) -> None:
        for k in np.random.default_rng(seed).integers(7, size=400):
            np.testing.assert_allclose(grams.quad(vectors[k]), quads[k])
            np.testing.assert_allclose(part.quad(vectors[k]), quads[k][[0, 2]])
            np.testing.assert_allclose(grams.combine(weights[k]), sums[k])
            if k == 0:
                grams.forget()
            grams.matvec(vectors[k])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))


def test_what_is_called_read_only_is():
    L = rng.normal(size=(2, 8, 3))
    by_factors, whole = GramStack.from_factors(L), GramStack(kernels(), storage="full")
    assert by_factors.factors is not None
    arrays = [
        *by_factors.factors, *by_factors.content(), by_factors.diag(), by_factors.shift,
        by_factors.dense(), by_factors.quad(np.ones(8)), whole.dense(), whole.diag(),
        whole.combine(np.ones(3)), whole.subset([1]).combine(np.ones(1)),
        whole.subset([1]).quad(np.ones(8)), by_factors.subset([1]).factors[0],
    ]  # fmt: skip
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    np.testing.assert_array_equal(by_factors.factors, L)


# ---- other stores --------------------------------------------------------------------


def test_a_hash_names_the_kernels_and_their_shift():
    K = np.stack([np.eye(3), np.ones((3, 3))])
    stack = GramStack(K)
    assert stack.identity() == GramStack(K).identity()
    others = [GramStack(2 * K), GramStack(K[::-1].copy()), stack.subset([0])]
    others += [GramStack(K, dtype="float32"), GramStack(K + 1e-15)]
    names = {stack.identity(), *(other.identity() for other in others)}
    assert len(names) == 6
    assert stack.subset([1, 0]).identity() == others[1].identity()


def test_a_store_may_have_a_cheap_name():
    stack = GramStack(np.stack([np.eye(3), np.ones((3, 3))]))
    before = stack.identity()
    stack._store.identity = lambda: b"family"
    named = stack.identity()
    stack._store.P *= 2  # is not read
    assert stack.identity() == named != before
    assert stack.subset([1]).identity() != named


def test_another_store_is_asked_inside_and_the_own_one_afterwards():
    whole = GramStack(np.stack([np.eye(3), np.ones((3, 3))]))
    part, asked = whole.subset([1]), []

    class Asked:
        def __init__(self, store):
            self.store = store

        def __getattr__(self, name):
            asked.append(name)
            return getattr(self.store, name)

    with part.asking(Asked):
        part.quad(np.ones(3)), part.combine(np.ones(1))  # by the whole stack
    assert {"quad", "combine"} <= set(asked)
    asked.clear()
    with pytest.raises(KeyError), part.asking(Asked):
        raise KeyError
    whole.quad(np.arange(3.0)), part.quad(np.full(3, 2.0))
    assert asked == []


# ---- factors side by side ------------------------------------------------------------
