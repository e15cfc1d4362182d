"""Parts of the store of kernels that need no cluster; see test_stack.py."""

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from mklopt.grams.partition import Partition
from mklopt.kernels.cluster import store


def test_answers_are_put_in_the_order_of_the_index():
    index = np.array([17, 3, 0, 9])
    pieces = Partition(20).pieces(index)
    groups = [pieces[1:], pieces[:1]]
    found = [
        np.concatenate([index[piece.places] for piece in group]) for group in groups
    ]
    np.testing.assert_array_equal(store._placed(found, groups, 4), index)
