"""Rows of all kernels for compiled loops: the numbers, and the count of passes."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack
from mklopt.grams.rows import RowReader

K = np.stack([np.eye(4), np.ones((4, 4))])


def loop(K, read, i, times):
    read[0] += times
    return K[:, i].copy()


@pytest.mark.parametrize("storage", ["packed", "full"])
def test_a_loop_reads_rows_and_pays_for_them(storage):
    grams = GramStack(K, storage=storage)
    reader = RowReader(grams)
    before = grams.passes
    np.testing.assert_array_equal(reader(loop, 2, 3), K[:, 2])
    assert grams.passes - before == pytest.approx(3 / 4)
    reader(loop, 0, 1)  # what was read before is not counted again
    assert grams.passes - before == pytest.approx(4 / 4)


def test_the_rows_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        RowReader(GramStack(K)).K[0, 0, 0] = 5.0
