"""Products and distances of points: entries that are the same in every block."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.kernels.pairwise import distances, products

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
