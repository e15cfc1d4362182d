"""Kernels of a certificate file: exact products, proofs of ⪰ 0, rules of points."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from mklopt.certificates import matrices

mpmath.mp.dps = 60


def test_dominance_is_exact():
    """A matrix that is indefinite by less than float64 can see is not proved ⪰ 0."""
    tiny = 2.0**-60
    assert matrices.Triangle([1.0, 1.0 - 2.0**-20, 1.0], 2).positive(Fraction(0))
    singular = matrices.Triangle([1.0, 1.0, 1.0], 2)
    assert not singular.positive(Fraction(0))  # ⪰ 0, yet with no room for a proof
    assert singular.positive(Fraction(1e-14))
    indefinite = matrices.Triangle([tiny, 1.0, tiny], 2)
    assert not indefinite.positive(Fraction(0))


def test_arithmetic_is_exact():
    assert matrices.grid([0.5, -3.0, 0.125]) == ([4, -24, 1], 3)
    assert matrices.dot([1, 2, 3], [4, 5]) == 14
    assert matrices.square([1, 2, 3, 4, 5, 6], 3) == [[1, 2, 3], [2, 4, 5], [3, 5, 6]]
    assert matrices.scaled(-5, 8, 1) == -2 and matrices.scaled(5, 8, 5) == 20
    R = matrices.cholesky([[4.0, 2.0], [2.0, 10.0]], 0.0)
    assert R == [[2.0], [1.0, 3.0]] and matrices.cholesky([[-1.0]], 0.5) is None


def test_products_know_the_shift():
    """K = LLᵀ with L = (1, ½)ᵀ, as a factor and as a triangle; a = (2, −1)/2."""
    a, shift = ([2, -1], 1), Fraction(3)
    kinds = (matrices.Factor([1.0, 0.5], 2), matrices.Triangle([1.0, 0.5, 0.25], 2))
    for kernel in kinds:
        image, quad, error = matrices.product(kernel, shift, a)
        assert error == 0
        assert image == [Fraction(3, 4) + 3, Fraction(3, 8) - Fraction(3, 2)]
        assert quad == Fraction(3, 4) ** 2 + 3 * Fraction(5, 4)


def test_dominance_counts_the_rounding_of_every_entry():
    """K is indefinite by 2^−112, less than one unit of the integers, R Rᵀ is not."""
    a = 2.0**-80
    K = matrices.Triangle([a, a * (1 + 2.0**-32), 0.0, a, 0.0, 1.0], 3)
    R = [[2.0**-40], [2.0**-40, 0.0], [0.0, 0.0, 1.0]]
    assert not K._dominant(R, Fraction(0))
    singular = matrices.Triangle([1.0, 0.0, 1.0], 2)  # K = R Rᵀ: no room for rounding
    assert not singular._dominant([[1.0], [0.0, 1.0]], Fraction(0))
    unit = Fraction(1, 4**55)
    assert singular._dominant([[1.0], [0.0, 1.0]], unit)
    assert not singular._dominant([[1.0], [0.0, 1.0]], unit * Fraction(9, 10))


def test_dominance_rounds_the_diagonal_down():
    """The room of a diagonal entry is at most what is there, in whole units."""
    one = matrices.Triangle([1.0], 1)
    unit = Fraction(1, 4**55)  # of R = 1
    assert one._dominant([[1.0]], Fraction(0))
    assert not one._dominant([[1.0]], -unit / 2)


# ---- rules -----------------------------------------------------------------------

n = 6
rng = np.random.default_rng(0)
COLUMNS = [list(map(float, column)) for column in rng.normal(size=(3, n)) * 2.0]
R = list(map(float, rng.uniform(1e-6, 3.0, n)))
DIVISORS: tuple[list, ...] = (
    [],
    [Fraction(0.3)],
    [R],
    [Fraction(7), R, Fraction(1e-9), R],
    [Fraction(1e40)],
)
RULES = (
    ("gaussian", {"rate": 0.37}),
    ("gaussian", {"rate": 1e-300}),
    ("gaussian", {"rate": 1e5}),
    ("power", {"degree": 1, "offset": 0}),
    ("power", {"degree": 3, "offset": 0.7}),
    ("power", {"degree": 40, "offset": 1e-20}),
)


def truth(name, terms, columns, i, j):
    """An entry with 60 digits."""
    x, z = ([mpmath.mpf(column[k]) for column in columns] for k in (i, j))
    if name == "gaussian":
        square = mpmath.fsum((a - b) ** 2 for a, b in zip(x, z))
        k = mpmath.exp(-mpmath.mpf(terms["rate"]) * square)
    else:
        offset = mpmath.mpf(terms["offset"])
        k = (mpmath.fsum(a * b for a, b in zip(x, z)) + offset) ** terms["degree"]
    for step in terms["divisors"]:
        row = isinstance(step, list)
        k /= mpmath.mpf(step[i]) * step[j] if row else number(step)
    return k


def number(x):
    return mpmath.mpf(x.numerator) / x.denominator


@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS[:1], []], ids=len)
@pytest.mark.parametrize("divisors", DIVISORS, ids=range(len(DIVISORS)))
@pytest.mark.parametrize("name, terms", RULES)
def test_entries_of_rules_are_known_to_their_radius(name, terms, divisors, columns):
    terms = {**terms, "divisors": divisors}
    if name == "power" and not columns and not terms["offset"]:
        terms["offset"] = 1.0
    K = matrices.Rule(name, terms, columns, n)
    radius, largest = number(K.radius), mpmath.mpf(0)
    for i in range(n):
        for j in range(n):
            assert K.rows[i][j] == K.rows[j][i]
            exact = truth(name, terms, columns, i, j)
            off = abs(exact - mpmath.mpf(K.rows[i][j]) / mpmath.mpf(2) ** K.e)
            assert off <= radius + abs(exact) * mpmath.mpf(10) ** -55
            largest = max(largest, abs(exact))
    rows = [step for step in divisors if isinstance(step, list)]
    ratio = mpmath.mpf(max(R) / min(R)) ** (2 * len(rows))
    assert radius <= largest * ratio * mpmath.mpf(2) ** -90
    assert (radius == 0) == (name == "power" and not divisors)


def test_the_radius_widens_products():
    """K = exp(−‖x_i − x_j‖²) of two points; a = (1, −2)/4, ‖a‖₁ = ¾."""
    terms = {"rate": 1.0, "divisors": []}
    K = matrices.Rule("gaussian", terms, [[0.0, 1.0]], 2)
    image, quad, error = matrices.product(K, Fraction(0), ([1, -2], 2))
    k = Fraction(K.rows[0][1], 1 << K.e)
    assert error == K.radius * Fraction(3, 4) > 0
    assert image == [Fraction(1, 4) - k / 2, k / 4 - Fraction(1, 2)]
    assert quad == Fraction(5, 16) - k / 4 + error * Fraction(3, 4)
    assert abs(k - Fraction(float(mpmath.exp(-1)))) < Fraction(1, 2**53)
