"""Sources of points: what the declarations say is what they give."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.library.draws import on_grid
from mklopt.library.points import GENERATORS, Generated, Real


@pytest.mark.parametrize("make", GENERATORS)
def test_a_generator_is_on_the_grid_and_repeats_itself(make):
    how = Generated(make, 60, seed=5, d=8, few=3)
    (X, y), (again, _) = how(), how()
    assert np.array_equal(X, again) and np.array_equal(X, on_grid(X))
    assert len(X) == len(y) == 60
    other, _ = Generated(make, 60, seed=6, d=8, few=3)()
    assert not np.array_equal(X, other)


def test_labels_are_where_their_classes_are():
    X, y = Generated("twonorm", 2000, seed=1)()
    assert X[y > 0].mean() == pytest.approx(2 / np.sqrt(20), abs=0.02)
    X, y = Generated("ringnorm", 2000, seed=1)()
    assert X[y > 0].std() == pytest.approx(2.0, abs=0.05)
    X, y = Generated("sparse_signal", 2000, seed=1, d=10, few=2)()
    means = (y[:, None] * X).mean(axis=0)
    assert means[:2].min() > 1.1 and np.abs(means[2:]).max() < 0.1
    X, y = Generated("counts", 2000, seed=1, d=10, few=2)()
    assert X[y > 0, :2].mean() > 3 * X[y < 0, :2].mean() and set(X.flat) == {0, 1}
    assert Generated("twonorm", 100, seed=1, few=7)()[1].tolist().count(1.0) == 7


def test_real_samples_are_chosen_by_class_number_and_copies():
    X, y = Real("iris", classes=(0, 2))()
    assert len(y) == 100 and set(y) == {-1, 1} and np.array_equal(X, on_grid(X))
    _, ones = Real("wine", classes=(1,))()
    assert set(ones) == {1.0} and len(ones) == 71
    X, y = Real("iris", 20, seed=3, repeat=2)()
    assert len(X) == 40 and np.array_equal(X[::2], X[1::2])
    _, y = Real("diabetes", 50)()
    assert len(y) == 50 and abs(np.mean(y)) < 1
