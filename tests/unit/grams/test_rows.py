"""Rows for compiled loops, and the passes they cost."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack
from mklopt.grams.rows import RowReader
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
