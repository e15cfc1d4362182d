"""The stack of kernels: operations, counting, validation, the proof of definiteness."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from mklopt import GramStack

rng = np.random.default_rng(7)


def kernels(M=3, n=8, rank=4):
    L = rng.normal(size=(M, n, rank))
    return L @ L.transpose(0, 2, 1)


STORAGES = {
    "packed": lambda K: GramStack(K),
    "full": lambda K: GramStack(K, storage="full"),
    "single": lambda K: GramStack(K, dtype="float32"),
    "single-full": lambda K: GramStack(K, storage="full", dtype="float32"),
    "one-by-one": lambda K: GramStack(k for k in K),
    "factors": lambda K: GramStack.from_factors(
        [(np.linalg.svd(k)[0] * np.sqrt(np.linalg.svd(k)[1]))[:, :4] for k in K]
    ),
}


@pytest.mark.parametrize("n", [8, 150])  # inside one tile, and across several
@pytest.mark.parametrize("storage", STORAGES)
def test_operations_agree_with_their_definitions(storage, n):
    K = kernels(M=7, n=n)
    grams, a = STORAGES[storage](K), rng.normal(size=n)
    rtol, atol = (1e-5, 1e-4) if "single" in storage else (1e-7, 1e-9)
    A, B = rng.normal(size=(n, 2)), rng.normal(size=(7, n, 2))
    theta = np.array([0.5, 0.0, 2.0, 1.0, 3.0, 0.1, 0.7])
    same = partial(np.testing.assert_allclose, rtol=rtol, atol=atol)
    same(grams.matvec(a), [k @ a for k in K])
    same(grams.matvec(A), [k @ A for k in K])
    same(grams.quad(a), [a @ k @ a for k in K])
    same(grams.quad(A), [np.trace(A.T @ k @ A) for k in K])
    S = A @ A.T - np.diag(a)
    same(grams.against(S), [np.sum(k * S) for k in K])
    same(grams.apply(B), [k @ b for k, b in zip(K, B)])
    same(grams.combine(theta), np.tensordot(theta, K, 1))
    same(grams.rows(3), K[:, 3])
    same(grams.rows(np.array([5, 0])), K[:, [5, 0]])
    same(grams.diag(), [np.diag(k) for k in K])
    same(grams.kernel(2), K[2])
    same(grams.dense(), K)
    same(grams.full().dense(), K)
    part = grams.subset([2, 0, 5])
    same(part.matvec(a), K[[2, 0, 5]] @ a)
    same(part.quad(a), [a @ k @ a for k in K[[2, 0, 5]]])
    same(part.combine(theta[:3]), np.tensordot(theta[:3], K[[2, 0, 5]], 1))
    same(part.rows(1), K[[2, 0, 5], 1])
    same(part.subset([1]).diag(), [np.diag(K[0])])


@pytest.mark.parametrize("storage", ["packed", "full", "factors"])
def test_norms_are_those_of_the_kernels_with_their_shift(storage):
    grams = STORAGES[storage](kernels(M=3))
    A = rng.normal(size=(8, 2))
    KA = grams.matvec(A)
    expected = [np.sqrt(np.trace(A.T @ k @ A)) for k in grams.dense()]
    np.testing.assert_allclose(grams.norms(A), expected)
    before = grams.passes
    np.testing.assert_allclose(grams.norms(A, KA), expected)
    assert grams.passes == before  # nothing was read again
    grams.shift = np.array([0.0, 0.5, 2.0])
    squares = np.square(expected) + grams.shift * np.sum(A**2)
    np.testing.assert_allclose(grams.norms(A), np.sqrt(squares))
    np.testing.assert_allclose(grams.norms(A, KA), np.sqrt(squares))


def test_a_norm_whose_square_is_negative_by_rounding_is_zero():
    grams = GramStack(np.array([[[1.0, 1.0], [1.0, 1.0 - 2.0**-53]]]))
    a = np.array([1.0, -1.0])
    assert grams.quad(a)[0] < 0 and grams.norms(a)[0] == 0.0


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


def test_forgotten_results_are_computed_again():
    grams = GramStack(kernels())
    grams.quad(np.ones(8))
    before = grams.passes
    grams.forget()
    grams.quad(np.ones(8))
    assert grams.passes == 2 * before


def test_passes_are_counted_in_numbers_read():
    for storage, share in (("full", 1.0), ("packed", 36 / 64)):
        grams, a = GramStack(kernels(M=4), storage=storage), np.ones(8)
        grams.quad(a)
        grams.matvec(a)
        grams.combine(np.ones(4))
        assert grams.passes == pytest.approx(3 * share)
        grams.combine(np.array([1.0, 0, 0, 1]))  # kernels of weight 0 are not read
        grams.subset([0, 1]).quad(2 * a)  # and a subset is counted with its stack
        assert grams.passes == pytest.approx(4 * share)
        grams.count_rows(16)  # read by a solver itself: 2 passes of 8 rows
        assert grams.passes == pytest.approx(4 * share + 2)


def test_a_product_knows_its_quad_and_a_subset_what_its_stack_combined():
    grams, a, theta = GramStack(kernels(M=4)), np.arange(8.0), np.array([0, 1.0, 0, 2])
    grams.matvec(a)
    mixed = grams.combine(theta)
    before = grams.passes
    np.testing.assert_allclose(
        grams.quad(a), [a @ k @ a for k in np.asarray(grams.dense())]
    )
    part = grams.subset([1, 3])
    assert part.combine(theta[[1, 3]]) is mixed
    assert np.array_equal(part.quad(a), grams.quad(a)[[1, 3]])
    assert grams.passes == before
    np.testing.assert_allclose(mixed, np.tensordot(theta, grams.dense(), axes=1))


def test_the_last_results_are_remembered_by_content():
    grams = GramStack(kernels())
    a = np.arange(8.0)
    first = grams.quad(a)
    before = grams.passes
    again = grams.quad(np.arange(8.0))
    assert again is first and grams.passes == before
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 0.0
    a[0] = 5.0  # the memory holds a copy: changed arguments are new ones
    np.testing.assert_allclose(
        grams.quad(a), [a @ k @ a for k in np.asarray(grams.dense())]
    )
    assert grams.passes > before
    for scale in range(2, 12):
        grams.quad(scale * a)
    assert len(grams._memory["quad"]) == 4


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


def test_factors_are_the_data():
    L = [rng.normal(size=(8, r)) for r in (2, 5)]
    grams = GramStack.from_factors(L)
    a = rng.normal(size=8)
    np.testing.assert_allclose(grams.quad(a), [np.sum((f.T @ a) ** 2) for f in L])
    assert grams.proof == "factors"
    np.testing.assert_array_equal(grams.factors[1], L[1])


def test_quad_from_factors_is_sharp_where_the_product_cancels():
    L = rng.normal(size=(30, 5))
    null = np.linalg.svd(L.T)[2][-1] * 1e3  # Lᵀ null = 0 up to rounding
    grams = GramStack.from_factors([L])
    assert np.sqrt(grams.quad(null)[0]) < 1e-11


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


def test_rows_are_checked():
    K = kernels()
    grams = GramStack(K)
    np.testing.assert_allclose(grams.rows(-1), K[:, -1])
    with pytest.raises(IndexError):
        grams.rows(8)


def test_factors_multiplied_out_are_not_proved():
    grams = GramStack.from_factors([rng.normal(size=(6, 1)) for _ in range(2)])
    assert grams.proof == "factors" and grams.full().proof == ""


def test_zero_diagonals_do_not_hide_rounding():
    """K + δI ⪰ 0 bounds |K_ij| by √(K_ii + δ): a zero diagonal entry is no licence."""
    rng = np.random.default_rng(4)
    K = np.eye(60)[None].copy()
    K[0, 0, 1:] = K[0, 1:, 0] = 1e-5 * rng.normal(size=59)
    K[0, 0, 0] = 0.0
    grams = GramStack(K)
    shift = grams.verify_psd()
    root = grams.root_diag(shift)[0]
    off = np.abs(grams.dense()[0]) - np.diag(np.diag(grams.dense()[0]))
    assert np.all(off <= np.outer(root, root))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_type_of_stored_numbers(dtype):
    stack = GramStack(np.eye(3)[None], storage="full", dtype=dtype)
    assert stack.dtype == dtype and stack.dense().dtype == float
    assert GramStack.from_factors([np.eye(3)]).dtype == float


def test_roots_of_diagonals_are_rounded_upwards():
    """K_ii = Σ L² is rounded, and its root is, too."""
    L = np.random.default_rng(0).normal(size=(60, 7))
    grams = GramStack.from_factors([L, 1e-160 * L])
    roots = grams.root_diag(np.zeros(2))
    for factor, above in zip(grams.factors, roots):
        for row, r in zip(factor, above):
            exact = sum((Fraction(float(x)) ** 2 for x in row), Fraction(0))
            assert Fraction(float(r)) ** 2 >= exact


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


@pytest.mark.parametrize("storage", STORAGES)
def test_read_only_arguments_are_taken(storage):
    grams = STORAGES[storage](kernels())
    arrays = (np.ones(8), np.ones((8, 2)), np.ones((3, 8)), np.eye(8))
    for array in arrays:
        array.flags.writeable = False
    for A in arrays[:2]:
        assert grams.matvec(A).shape == (3, *A.shape) and len(grams.quad(A)) == 3
    assert grams.apply(arrays[2]).shape == (3, 8) and len(grams.against(arrays[3])) == 3
    assert grams.combine(arrays[0][:3]).shape == (8, 8)


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


def test_factors_side_by_side_are_not_copied_and_fold():
    rng = np.random.default_rng(1)
    F = rng.normal(size=(1500, 5))
    stack = GramStack.from_factors(F, ranks=[2, 3])
    apart = GramStack.from_factors([F[:, :2], F[:, 2:]])
    assert stack.ranks.tolist() == apart.ranks.tolist() == [2, 3]
    assert stack.factors is not None and np.shares_memory(stack.factors[0], F)
    A = rng.normal(size=(1500, 2))
    np.testing.assert_allclose(stack.fold(A), F.T @ A, rtol=1e-11)
    np.testing.assert_allclose(stack.fold(A[:, 0]), F.T @ A[:, 0], rtol=1e-11)
    np.testing.assert_allclose(
        stack.subset(np.array([1])).fold(A), F[:, 2:].T @ A, rtol=1e-11
    )
    single = GramStack.from_factors(F.astype(np.float32), ranks=[5], dtype="float32")
    assert single.dtype == np.float32 and single.fold(A).dtype == float
    with pytest.raises(ValueError, match=r"with ranks that sum to 6 give one .n, 6"):
        GramStack.from_factors(F, ranks=[3, 3])
