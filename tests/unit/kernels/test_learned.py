"""What kernels have learned, in arrays that read like dicts."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import kernels
from mklopt.kernels.learned import CompactRows, Learned

rng = np.random.default_rng(4)


def test_equal_numbers_are_kept_once():
    rows, expected = CompactRows(40, 3), np.ones((40, 3))
    expected[10:35] = rng.normal(size=(25, 3))
    for m in range(40):
        rows[m] = 5 * expected[m]
    rows[12], expected[12] = np.full(3, 5.0), 1.0
    for m in range(40):
        np.testing.assert_array_equal(rows[m], 5 * expected[m])
    assert rows.rows.shape == (25, 3) and np.sum(rows.place < 0) == 16
    np.testing.assert_array_equal(rows.least(), 5 * expected.min(axis=1))
    index = np.array([39, 14, 12, 14])
    part = rows.take(index)
    assert part.rows.shape == (1, 3)
    np.testing.assert_array_equal([part[i] for i in range(4)], 5 * expected[index])


def test_it_reads_like_a_dict_of_dicts():
    learned = Learned(3, 2, ("spherical", "unit_trace"))
    assert len(learned) == 0 and learned.get(1) is None
    with pytest.raises(KeyError):
        learned[1]
    learned.update({1: {0: 0.5, 1: np.array([2.0, 3.0]), 2: 7.0}})
    found = learned[1]
    assert len(learned) == 1 and (found[0], found[2]) == (0.5, 7.0)
    np.testing.assert_array_equal(found[1], [2.0, 3.0])
    part = learned.take(np.array([1, 0]))
    assert part.known.tolist() == [True, False] and part[0][2] == 7.0


def test_divisors_are_numbers_or_rows():
    learned = Learned(2, 2, ("unit_trace", "spherical"))
    learned[0] = {0: 0.0, 1: 4.0, 2: np.array([3.0, 3.0])}
    learned[1] = {0: 0.0, 1: 5.0, 2: np.array([2.0, 3.0])}
    numbers, place, rows = learned.divisors(("unit_trace", "spherical"))
    np.testing.assert_array_equal(numbers[0], [4.0, 5.0])
    assert numbers[1, 0] == 9.0 and place.tolist() == [[-1, -1], [-1, 0]]
    np.testing.assert_array_equal(rows, [[2.0, 3.0]])
    numbers, place, rows = Learned(2, 2, ()).divisors(())
    assert numbers.tolist() == [[1.0, 1.0]] and rows.size == 0


def test_gaussians_take_a_number_a_step_for_any_number_of_points():
    X = rng.normal(size=(300, 2))
    fitted = kernels.gaussians([1, 2, "mean"]).fit(X, ("unit_trace", "spherical"))
    fitted.learn()
    assert fitted.learned.steps[1].rows.size == 0
    np.testing.assert_array_equal(fitted.learned.steps[0], 300.0)
    assert fitted.learned.means[0] == 0 and fitted.learned.means[2] > 0
