"""The unit round-off and γ_n, against rounding that happened."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mklopt.util.rounding import U, gamma, interval


def test_u_is_the_largest_relative_error_of_one_rounding():
    assert 1 + U == 1 and 1 + 1.0001 * U > 1  # a tie goes to the even neighbour
    assert np.finfo(float).eps / 2 == U


def test_gamma_is_its_formula():
    for n in (1, 10, 10**6):
        exact = n * Fraction(U) / (1 - n * Fraction(U))
        assert abs(Fraction(gamma(n)) / exact - 1) < Fraction(2) ** -50


def test_gamma_bounds_an_inner_product_whose_errors_pile_up():
    """1 + U + U + …: every term is lost, and the bound is nearly reached."""
    n = 1000
    a, b = np.r_[1.0, np.full(n - 1, U)], np.ones(n)
    computed = 0.0
    for x, y in zip(a, b):
        computed += x * y
    error = abs(Fraction(computed) - sum(map(Fraction, a), Fraction(0)))
    size = float(np.abs(a) @ np.abs(b))
    assert 0.99 * gamma(n - 1) * size <= error <= gamma(n) * size


@pytest.mark.parametrize("digits", [1, 3, 10, 15])
def test_an_interval_is_shown_rounded_outward(digits):
    rng = np.random.default_rng(digits)
    sizes = 10.0 ** rng.uniform(-320, 305, size=200)
    for x in (*sizes, *-sizes, 0.1, 1e5, 99999.5, 5e-324):
        low, high = map(Fraction, interval(x, x, digits=digits).split(" ≤ f* ≤ "))
        assert low <= Fraction(x) <= high
        width = high - low
        assert width <= 10 * Fraction(10) ** -digits * max(map(abs, (low, high)))


def test_an_interval_says_what_it_assumes():
    assert interval(-math.inf, math.inf) == "-inf ≤ f* ≤ inf"
    assert interval(0.0, 150.0) == "0 ≤ f* ≤ 150"
    assert interval(1.5, 2.0, ["a", "b"]) == "1.5 ≤ f* ≤ 2, assuming a; and b"
