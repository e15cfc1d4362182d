"""The unit round-off and γ_n, against rounding that happened."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mklopt.util.rounding import U, gamma


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
