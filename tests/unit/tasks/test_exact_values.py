"""K_mα of exact kernels: bounds of errors after moves, and better weights."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mklopt import Problem, kernels
from mklopt.certificates.certificate import primal_at
from mklopt.formulations import LpNorm
from mklopt.kernels.entries import Entries, Products
from mklopt.tasks import exact_values
from mklopt.tasks.exact_values import Images, corrected_weights
from tests.unit.tasks.low_rank_samples import FAMILY, points

rng = np.random.default_rng(4)
N = 30
# Kernels of small whole numbers: exact arithmetic needs no exponential.
WHOLE = kernels.linear() + kernels.polynomials(2, offset=1.0)
X = rng.integers(-3, 4, size=(N, 3)) / 8.0


def images(alpha, family=WHOLE, points=X):
    entries = Entries.of(family.fit(points))
    products = Products(entries, np.arange(len(alpha)), alpha.reshape(len(alpha), -1))
    return Images(entries, products.at(slice(None)), products.spread)


def exact_products(alpha):
    K = np.stack([X @ X.T, (X @ X.T + 1) ** 2])  # no rounding at these sizes
    a = [Fraction(float(x)) for x in alpha]
    return [[sum(Fraction(float(k)) * x for k, x in zip(row, a)) for row in one]
            for one in K]  # fmt: skip


def largest_error(found, alpha):
    """The largest error of K_mα, in units of its bound."""
    true = exact_products(alpha)
    return max(
        abs(Fraction(float(found.values[m, i, 0])) - true[m][i])
        / Fraction(float(found.roots[m, i] * found.spread[m, 0]))
        for m in range(2)
        for i in range(N)
    )


def test_errors_stay_below_their_bounds_while_the_point_moves():
    alpha = rng.normal(size=N)
    found = images(alpha)
    assert largest_error(found, alpha) <= 1
    for _ in range(50):
        which = np.sort(rng.permutation(N)[:7])
        new = rng.normal(size=7) * 10.0 ** rng.integers(-3, 3)
        change = new - alpha[which]
        alpha[which] += change
        found.move(which, change, alpha)
        assert largest_error(found, alpha) <= 1
    moved = alpha * (1 + 1e-9 * rng.normal(size=N))
    assert largest_error(found, moved) > 1  # the bound is for the other point
    found.drift(alpha, moved)
    assert largest_error(found, moved) <= 1


def test_norms_and_predictions_are_enclosed():
    alpha, theta = rng.normal(size=N), np.array([0.3, 1.7])
    found, true = images(alpha), exact_products(alpha)
    above = found.norms_above(alpha)
    for m in range(2):
        square = sum(Fraction(float(a)) * k for a, k in zip(alpha, true[m]))
        assert square <= Fraction(float(above[m])) ** 2
        assert float(square) ** 0.5 == pytest.approx(above[m], rel=1e-12)
    f, error = found.predictions(theta, 0.25)
    for i in range(N):
        one = sum(Fraction(float(t)) * true[m][i] for m, t in enumerate(theta))
        assert abs(Fraction(float(f[i, 0])) - one - Fraction(1, 4)) <= error[i, 0]
    assert np.max(error) < 1e-12


def test_several_outputs_have_bounds_of_their_own():
    alpha = np.stack([rng.normal(size=N), np.zeros(N)], axis=1)
    found = images(alpha)
    assert found.values.shape == (2, N, 2) and np.all(found.spread[:, 1] < 1e-300)
    single = images(alpha[:, 0])
    np.testing.assert_allclose(
        found.norms_above(alpha), single.norms_above(alpha[:, 0])
    )


def problem_of(found, y):
    K = np.stack([np.eye(len(y))] * len(found.values))  # only y, C and Ω are used
    return Problem(K, y, "hinge", LpNorm(p=2), C=2.0)


def test_corrected_weights_have_a_smaller_primal_value():
    Z, y = points(120)
    alpha = 0.3 * y
    found = images(alpha, FAMILY, Z)
    problem, v = problem_of(found, y), found.norms_above(alpha)

    def value(theta):
        return primal_at(
            problem, np.tensordot(theta, found.values[:, :, 0], 1), theta * v
        )

    theta = np.array([1.0, 0.01, 0.3])
    better, bias = corrected_weights(problem, found.values, v, theta)
    assert value(better)[0] < 0.99 * value(theta)[0] and bias == value(better)[1]
    again, _ = corrected_weights(problem, found.values, v, better)
    assert value(again)[0] <= value(better)[0]
    zero = np.zeros(3)
    np.testing.assert_array_equal(
        corrected_weights(problem, found.values, v, zero)[0], zero
    )


def test_of_many_kernels_only_the_common_factor_is_corrected(monkeypatch):
    Z, y = points(60)
    found = images(0.3 * y, FAMILY, Z)
    problem, v = problem_of(found, y), found.norms_above(0.3 * y)
    monkeypatch.setattr(exact_values, "FEW_KERNELS", 2)
    theta = np.array([1.0, 0.01, 0.3])
    better, _ = corrected_weights(problem, found.values, v, theta)
    np.testing.assert_allclose(better / theta, better[0], rtol=1e-12)
    assert better[0] != 1.0
