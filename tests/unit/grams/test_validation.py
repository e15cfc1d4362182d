"""Matrices that become kernels: one sentence for each thing that can be wrong."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.grams.storage import Triangles
from mklopt.grams.validation import (
    check_kind,
    matrices,
    matrix,
    place,
    refuse_indefinite,
    stored,
    wrong_with,
)

K = np.array([[2.0, 1.0], [1.0, 3.0]])


def test_kernels_are_stored_one_after_the_other():
    store = stored([K, 2 * K], "packed", np.dtype("f4"))
    np.testing.assert_array_equal(store.P, np.array([[2, 1, 3], [4, 2, 6]], "f4"))
    counted = stored(iter([K, K]), "full", np.dtype(float), count=2)
    assert counted.P.shape == (2, 4)
    with pytest.raises(ValueError, match="there are no kernels"):
        stored([], "packed", np.dtype(float))


def test_a_kernel_is_named_by_its_number():
    store = Triangles(2, 3, "packed", float)
    assert not place(store, 1, K, K, 70)
    assert place(store, 1, K.astype(np.float32), K, 70)
    with pytest.raises(ValueError, match="kernel 70 has NaN"):
        place(store, 1, K, np.full((2, 2), np.nan), 70)
    store.P[:] = [2.0, 1.0, 3.0]
    store.P[2] = [1.0, 5.0, 1.0]
    refuse_indefinite(Triangles(2, 2, "packed", float, store.P[:2]), False, 70)
    with pytest.raises(ValueError, match="kernel 72 is not positive"):
        refuse_indefinite(store, False, 70)


def test_rounding_of_symmetric_entries_is_no_error():
    kind = np.dtype(float)
    assert wrong_with(1.0, 1e-11, 0.0, 0.0, False, kind) == ""
    assert "not symmetric" in wrong_with(1.0, 1e-9, 0.0, 0.0, False, kind)
    assert wrong_with(1.0, 1e-9, 0.0, 0.0, True, kind) == ""
    assert "negative diagonal" in wrong_with(1.0, 0.0, -0.1, 0.0, True, kind)
    assert "too large" in wrong_with(1e39, 0.0, 1.0, 0.0, False, np.dtype("f4"))
    assert "infinite" in wrong_with(np.inf, 0.0, 1.0, np.nan, False, kind)


def test_shapes():
    assert matrices([K, K]).shape == (2, 2, 2)
    for wrong in (K, np.zeros((2, 2, 3)), np.zeros((0, 2, 2))):
        with pytest.raises(ValueError, match="one square matrix per kernel"):
            matrices(wrong)
    assert matrix([[1, 2], [3, 4]], 0, 2).dtype == float
    with pytest.raises(ValueError, match=r"kernel 5 has shape .* 3 × 3 like the first"):
        matrix(K, 5, 3)


def test_kinds_of_storage():
    check_kind("packed", "float32")
    with pytest.raises(ValueError, match="storage"):
        check_kind("sparse", "float64")
    with pytest.raises(ValueError, match="choose 'float64' or 'float32'"):
        check_kind("full", "int8")
