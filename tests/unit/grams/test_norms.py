"""Norms, of a large stack in parts, so that nothing of the size (M, n) is kept."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mklopt import GramStack
from mklopt.grams import norms
from tests.unit.grams.samples import STORAGES, kernels

rng = np.random.default_rng(7)


def stack(M=10, n=15, seed=0, common=0.0):
    L = np.random.default_rng(seed).normal(size=(M, n, 4))
    L[:, :, 0] += common
    return GramStack(L @ L.transpose(0, 2, 1))


@pytest.fixture
def large(monkeypatch):
    """Every stack is large, comes in parts of four kernels, and bounds its norms."""
    monkeypatch.setattr(norms, "LARGEST_KEPT", 0)
    monkeypatch.setattr(norms, "IN_A_PART", 1)
    monkeypatch.setattr("mklopt.grams.norm_reads.WORTH", 0)


def test_a_small_stack_is_one_part():
    grams = stack()
    [(part, itself)] = grams.parts()
    assert itself is grams and part == slice(0, 10) and not grams.is_large


def test_parts_are_all_kernels_in_order(large):
    grams = stack()
    assert grams.is_large
    found = list(grams.parts())
    assert [part for part, _ in found] == [slice(0, 4), slice(4, 8), slice(8, 10)]
    A = np.arange(15.0)
    together = np.concatenate([some.quad(A) for _, some in found])
    np.testing.assert_array_equal(together, grams.apart().quad(A))


def test_more_columns_make_smaller_parts(monkeypatch):
    monkeypatch.setattr(norms, "LARGEST_KEPT", 100)
    monkeypatch.setattr(norms, "IN_A_PART", 15 * 8)
    sizes = [[s.M for _, s in stack(16).parts(columns)] for columns in (1, 2)]
    assert sizes == [[8, 8], [4, 4, 4, 4]]


def kept(grams):
    """The numbers of the largest array that a stack holds, its kernels excepted."""
    arrays, todo = [], list(vars(grams).items())
    while todo:
        name, item = todo.pop()
        if isinstance(item, np.ndarray):
            arrays.append(item.size)
        elif isinstance(item, tuple | list) and name != "_store":
            todo += [(name, part) for part in item]
        elif isinstance(item, dict):
            todo += list(item.items())
    return max(arrays)


def test_a_large_stack_keeps_nothing_of_the_size_M_n(large):
    grams, A = stack(M=40), np.ones(15)
    for ask in (grams.quad, grams.matvec, grams.norms, grams.norms_above):
        ask(A)
        assert kept(grams) < 40 * 15
    assert grams.diag().shape == grams.root_diag(grams.shift).shape == (40, 15)
    for _, part in grams.parts():
        part.matvec(2 * A)
        assert part.root_diag(part.shift).shape == (part.M, 15)
    assert kept(grams) < 40 * 15


def test_a_small_stack_keeps_its_diagonals_and_products():
    grams = stack(M=40)
    grams.matvec(np.ones(15))
    assert grams.diag() is grams.diag() and kept(grams) == 40 * 15


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("common", [0.0, 1e5], ids=["plain", "cancels"])
def test_bounds_of_norms_hold_at_the_point_and_near_it(large, shifted, common):
    grams, rng = stack(common=common), np.random.default_rng(1)
    if shifted:
        grams.verify_psd()
    A = rng.normal(size=15) * 10.0 ** rng.integers(-3, 4, size=15)
    A = A - np.mean(A) if common else A
    near = A * (1 + 1e-3 * rng.normal(size=15))
    grams.quad(A)
    for point, read in ((A, True), (near, False)):
        plain, above, known = grams.norms_above(point)
        assert np.all(known == read) and np.all(np.isfinite(plain) == read)
        a = [Fraction(x) for x in point.tolist()]
        for m in range(10):
            K = grams.kernel(m).tolist()
            square = sum(
                x * sum((Fraction(k) * z for k, z in zip(row, a)), Fraction(0))
                for x, row in zip(a, K)
            )
            square += Fraction(float(grams.shift[m])) * sum(x * x for x in a)
            assert Fraction(float(above[m])) ** 2 >= square
            tight = common or float(above[m]) <= float(square) ** 0.5 * (1 + 1e-9)
            assert not read or tight


@pytest.mark.parametrize("shifted", [False, True])
def test_bounds_of_traces_hold(large, shifted):
    """In rationals; tight to the last digits."""
    small = np.diag([1.0, *[2.0**-54] * 14])  # a plain sum of its diagonal is 1
    grams = GramStack(np.stack([small, *stack().dense()]))
    if shifted:
        grams.verify_psd()
    for m, above in enumerate(grams._traces):
        exact = sum(Fraction(x) for x in grams.diag()[m].tolist())
        exact += 15 * Fraction(float(grams.shift[m]))
        assert exact <= Fraction(float(above)) <= exact * (1 + Fraction(1, 10**12))


def test_the_part_of_a_large_stack_that_was_read_is_known_to_the_whole(large):
    grams, A = stack(), np.ones(15)
    for part, some in grams.parts():
        some.matvec(A)
        known = grams.norms_above(A)[2]
        assert np.all(known[: part.stop]) and not np.any(known[part.stop :])


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


def test_roots_of_diagonals_are_rounded_upwards():
    """K_ii = Σ L² is rounded, and its root is, too."""
    L = np.random.default_rng(0).normal(size=(60, 7))
    grams = GramStack.from_factors([L, 1e-160 * L])
    roots = grams.root_diag(np.zeros(2))
    for factor, above in zip(grams.factors, roots):
        for row, r in zip(factor, above):
            exact = sum((Fraction(float(x)) ** 2 for x in row), Fraction(0))
            assert Fraction(float(r)) ** 2 >= exact


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
