"""Rows for compiled loops, and the passes they cost."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack
from mklopt.grams import rows as module
from mklopt.grams.rows import BlockReader, RowReader
from tests.problems import subset_gaussians

K, _ = subset_gaussians(20, 3)


def rows(K, read, number, factor):
    """A loop that reads so many rows of all kernels."""
    read[0] += number
    return factor * K[:, 4].sum()


@pytest.mark.parametrize("storage", ["full", "packed"])
def test_a_loop_gets_the_kernels_and_pays_for_what_it_reads(storage):
    reader = RowReader(GramStack(K, storage=storage))
    before = reader.grams.passes
    assert reader(rows, 7, 2.0) == pytest.approx(2 * K[:, 4].sum())
    assert reader.grams.passes - before == pytest.approx(7 / 20)
    reader(rows, 3, 1.0)
    assert reader.grams.passes - before == pytest.approx(10 / 20)


def test_the_loop_cannot_change_the_kernels():
    reader = RowReader(GramStack(K))
    with pytest.raises(ValueError, match="read-only"):
        reader(lambda K, read: K.__setitem__(0, 1.0))
    np.testing.assert_allclose(reader.K, K)


def test_passes_are_those_of_the_stack_that_was_given():
    grams = GramStack(K, storage="full")
    reader, before = RowReader(grams), grams.passes
    reader(rows, 20, 1.0)
    assert grams.passes - before == pytest.approx(1.0)


# ---- blocks ----------------------------------------------------------------------


def test_kernels_in_memory_are_one_block():
    grams, order = GramStack(K, storage="full"), np.array([3, 1, 3])
    reader, F = BlockReader(grams), np.zeros((3, 1, 20))
    (block,) = reader.blocks(order)
    assert np.shares_memory(block.inner, grams.dense())
    assert np.array_equal(block.place, order) and reader.part(block, F) is F


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_are_read_in_the_order_of_the_epoch(dtype, monkeypatch):
    monkeypatch.setattr(module, "MAX_WHOLE", 0)
    monkeypatch.setattr(module, "MOST_ROWS", 4)
    grams = GramStack(K, dtype=dtype)
    stored = np.array([grams.kernel(m) for m in range(3)])
    reader, order = BlockReader(grams), np.array([3, 1, 3, 7, 19, 0])
    rng, before, F = np.random.default_rng(0), grams.passes, np.zeros((3, 2, 20))
    expected, seen = F.copy(), list[int]()
    for block in reader.blocks(order):
        inner = stored[:, block.numbers][:, :, block.numbers]
        assert np.array_equal(block.inner, inner)
        assert np.array_equal(block.numbers[block.place], block.order)
        assert np.array_equal(reader.part(block, F), F[:, :, block.numbers])
        changes = rng.normal(size=(2, len(block.numbers)))
        reader.add(block, changes, F)
        expected += changes @ stored[:, block.numbers]
        seen.extend(block.order)
    np.testing.assert_allclose(F, expected, atol=1e-13)
    assert seen == order.tolist()
    assert grams.passes - before == pytest.approx((3 + 2) / 20)  # 3 is read once


def test_blocks_are_so_small_that_their_rows_fit(monkeypatch):
    monkeypatch.setattr(module, "MAX_WHOLE", 0)
    for most, size in ((2**25, 64), (3 * 20 * 5, 5), (1, 1)):
        monkeypatch.setattr(module, "MAX_READ", most)
        assert BlockReader(GramStack(K)).size == size
