"""Arrays that users pass: copied to float64, or refused with a reason."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from mklopt.util.arrays import finite_matrix, labels_array, real_array


@pytest.mark.parametrize(
    "given",
    [[1, 2], (1.0, 2.0), np.array([1, 2], np.int8), np.array([1, 2], object)],
    ids=["list", "tuple", "int8", "objects"],
)
def test_numbers_become_float64(given):
    found = real_array(given, "x", "numbers")
    assert found.dtype == float and found.tolist() == [1.0, 2.0]


def test_the_array_is_a_contiguous_copy():
    given = np.ones((3, 2)).T
    found = real_array(given, "x", "numbers")
    assert found.flags.c_contiguous and not np.shares_memory(found, given)


@pytest.mark.parametrize(
    "given, words",
    [
        (["a"], "got values of type <U1"),
        ([1j], "got values of type complex128"),
        ([[1], [1, 2]], "got ragged or mixed rows"),
        (scipy.sparse.eye(2), "got a sparse matrix; pass its .toarray()"),
        (np.ma.masked_equal([1, 2], 2), "got a masked array"),
        ({"a": 1}, "got dict"),
        (10**400, "got a number that is too large"),
        ([1, 10**400], "got a number that is too large"),
    ],
)
def test_all_else_is_refused_with_its_name(given, words):
    with pytest.raises(ValueError) as caught:
        real_array(given, "x", "two numbers")
    assert str(caught.value).startswith("x must be two numbers, ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "given, rows, words",
    [
        (np.ones(3), None, r"X has shape \(3,\); expected \(n, d\)$"),
        (np.ones((0, 2)), None, r"X has shape \(0, 2\)"),
        (np.ones((2, 3)), 4, r"X has shape \(2, 3\); .* each of the 4 labels y"),
        ([[1.0, np.nan]], 1, "X has missing or infinite values"),
    ],
)
def test_matrices_are_checked(given, rows, words):
    with pytest.raises(ValueError, match=words):
        finite_matrix(given, "X", rows)


def test_a_matrix_is_a_copy():
    given = np.ones((2, 3))
    found = finite_matrix(given, "X", 2)
    assert found.shape == (2, 3) and not np.shares_memory(found, given)


def test_labels_keep_their_type_and_odd_ones_are_refused():
    assert labels_array(["a", "b"]).dtype.kind == "U"
    given = np.array([0, 1])
    assert labels_array(given).dtype == int and labels_array(given) is not given
    for wrong in ([[1], [1, 2]], scipy.sparse.eye(2), np.ma.masked_equal([1, 2], 2)):
        with pytest.raises(ValueError, match="y must be one label per sample, got"):
            labels_array(wrong)
