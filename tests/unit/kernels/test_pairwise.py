"""Products and distances of points: entries that are the same in every block."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.kernels.pairwise import distances, fill_pairs, pairs, products

rng = np.random.default_rng(11)


@pytest.mark.parametrize("d", [0, 1, 3, 4, 11])
@pytest.mark.parametrize("pairs", [products, distances])
def test_an_entry_depends_on_its_two_points_alone(pairs, d):
    A = 10.0 ** rng.uniform(-8, 8, size=(141, d)) * rng.choice([-1, 1], size=(141, d))
    whole = pairs(A, A)
    np.testing.assert_array_equal(whole, whole.T)
    for rows, columns in [(slice(3, 4), slice(0, 141)), (slice(2, 139), slice(5, 8))]:
        np.testing.assert_array_equal(pairs(A[rows], A[columns]), whole[rows, columns])
    terms = A[:, None] * A if pairs is products else (A[:, None] - A) ** 2
    expected = np.zeros((141, 141))
    for k in range(d):  # one after the other, as the docstring says
        expected += terms[:, :, k]
    np.testing.assert_array_equal(whole, expected)


def test_a_part_of_the_columns_is_filled_and_nothing_else():
    A, Z = rng.normal(size=(9, 5)), rng.normal(size=(5, 300))
    for apart in (False, True):
        whole = pairs(A, Z, apart)
        out = np.full((9, 140), np.nan)
        fill_pairs(A, Z, apart, 130, out, 2, 7)
        np.testing.assert_array_equal(out[2:7], whole[2:7, 130:270])
        assert np.all(np.isnan(out[[0, 1, 7, 8]]))


def test_distances_do_not_cancel():
    A = rng.normal(size=(5, 3))
    near = distances(A + 1e8, A + 1e8)
    exact = np.sum(((A + 1e8)[:, None] - (A + 1e8)) ** 2, axis=2)
    np.testing.assert_allclose(near, exact, rtol=1e-14)
    assert np.all(np.diag(near) == 0)
