"""Losses of the residual at points where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.formulations.losses.residual import EpsInsensitive, Huber, Quantile, Squared

Y = np.array([1.0, 1.0, 1.0])
F = np.array([0.5, 1.05, 4.0])  # residuals −0.5, 0.05, 3


@pytest.mark.parametrize(
    "loss, values, slopes",
    [
        (Squared(), [0.125, 0.00125, 4.5], [-0.5, 0.05, 3.0]),
        (EpsInsensitive(0.1), [0.4, 0.0, 2.9], [-1.0, 0.0, 1.0]),
        (Huber(1.0), [0.125, 0.00125, 2.5], [-0.5, 0.05, 1.0]),
        (Quantile(0.2), [0.1, 0.04, 2.4], [-0.2, 0.8, 0.8]),
    ],
    ids=repr,
)
def test_values_slopes_and_conjugates(loss, values, slopes):
    assert loss.value(F, Y) == pytest.approx(values)
    assert loss.gradient(F, Y) == pytest.approx(slopes)
    a = np.array(slopes)
    assert loss.conjugate(a, Y) == pytest.approx(a * F - values, abs=1e-14)


@pytest.mark.parametrize(
    "loss, moved",
    [
        (Squared(), (F + 0.5 * Y) / 1.5),
        (EpsInsensitive(0.1), [0.9, 1.05, 3.5]),
        (Huber(1.0), [1 - 0.5 / 1.5, 1 + 0.05 / 1.5, 3.5]),
        (Quantile(0.2), [0.6, 1.0, 3.6]),
    ],
    ids=repr,
)
def test_prox(loss, moved):
    assert loss.prox(F, Y, 0.5) == pytest.approx(moved)


@pytest.mark.parametrize(
    "loss, bias", [(Squared(), -0.4), (EpsInsensitive(0.0), 0.0), (Quantile(0.9), 2.0)]
)
def test_the_best_bias_is_a_mean_or_a_quantile(loss, bias):
    y, C = np.array([-3.0, 0.0, 2.0, -1.0, 0.0]), np.ones(5)
    assert loss.best_bias(np.zeros(5), y, C) == pytest.approx(bias)


def test_the_quadratic_dual():
    C = np.array([1.0, 2.0, 4.0])
    squared, tube = Squared().quadratic(Y, C), EpsInsensitive(0.3).quadratic(Y, C)
    assert squared.ridge == pytest.approx(1 / C) and np.all(np.isinf(squared.high))
    assert tube.kink == pytest.approx(0.3) and tube.high == pytest.approx(C)
    assert Huber(0.5).quadratic(Y, C).low == pytest.approx(-0.5 * C)
    tilted = Quantile(0.2).quadratic(Y, C)
    assert tilted.low == pytest.approx(-0.8 * C)
    assert tilted.high == pytest.approx(0.2 * C)


@pytest.mark.parametrize("make", [EpsInsensitive, Huber, Quantile])
def test_parameters_are_checked(make):
    with pytest.raises(ValueError, match=f"{make.__name__}: .* is not a number in"):
        make(-1.0)
