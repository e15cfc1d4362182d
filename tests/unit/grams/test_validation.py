"""Matrices that become kernels: one sentence for each thing that can be wrong."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack
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

rng = np.random.default_rng(7)
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


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_factor_that_is_not_finite_is_named(bad, dtype):
    L = [rng.normal(size=(7, r)) for r in (3, 1, 4, 2)]
    L[2][6, 3] = bad
    with pytest.raises(ValueError, match=r"^factor 2 has NaN or infinite entries"):
        GramStack.from_factors(L, dtype=dtype)


def test_wrong_shapes_are_refused_in_one_sentence():
    L = [rng.normal(size=(7, r)) for r in (3, 1, 4, 2)]
    with pytest.raises(ValueError, match=r"all with the same n$"):
        GramStack.from_factors([L[0], L[1][:5]])
    with pytest.raises(ValueError, match=r"^factors have shapes"):
        GramStack.from_factors([L[0], L[1][:, 0]])
    with pytest.raises(ValueError, match=r"sum to 9 give one \(n, 9\) matrix$"):
        GramStack.from_factors(np.hstack(L), ranks=[3, 1, 4, 1])
    with pytest.raises(ValueError, match="a rank"):
        GramStack.from_factors(np.hstack(L), ranks=[3, 1, 6, 0])
