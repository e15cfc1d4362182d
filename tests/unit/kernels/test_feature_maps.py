"""Feature maps of one kernel: their products are the kernel, or near it."""

import numpy as np
import pytest

from mklopt.kernels.feature_maps import Fourier, Landmarks, Monomials, monomial_count
from mklopt.kernels.functions import Power

X = np.random.default_rng(0).normal(size=(12, 3))


@pytest.mark.parametrize("degree", [1, 2, 4])
@pytest.mark.parametrize("offset", [0.0, 0.5])
def test_monomials_multiply_to_the_power(degree, offset):
    rule = Power(degree, offset)
    found = Monomials.of(3, rule)
    assert found.rank == monomial_count(3, rule) == len(set(found.powers))
    F = found.features(X)
    np.testing.assert_allclose(F @ F.T, (X @ X.T + offset) ** degree, atol=1e-10)


def test_waves_have_length_one_and_the_right_mean():
    omega = np.random.default_rng(1).normal(size=(3, 20_000))
    found = Fourier(omega)
    F = found.features(X)
    assert F.shape == (12, found.rank) == (12, 40_000)
    np.testing.assert_allclose(np.sum(F**2, axis=1), 1.0, rtol=1e-12)
    distances = np.sum((X[:, None] - X) ** 2, axis=2)
    np.testing.assert_allclose(F @ F.T, np.exp(-distances / 2), atol=0.03)


def test_the_rank_of_landmarks_may_be_smaller_than_their_number():
    assert Landmarks(np.arange(5), np.ones((5, 2))).rank == 2
