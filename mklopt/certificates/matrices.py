"""The kernels of a certificate file, exactly. This file needs Python, nothing else.

Factor      K = L Lᵀ from the n rows of L
Triangle    K from its upper triangle; K + δI ⪰ 0 is proved, see `positive`
Rule        K* from points, by a rule; every entry is known to `radius`:
              gaussian    exp(−rate ‖x_i − x_j‖²)       with 32 digits
              power       (⟨x_i, x_j⟩ + offset)^degree  exactly
            divided by numbers D, and by r_i r_j. Points and parameters are floats, so
            that all but exp and divisions is exact.

Rounding of a Gaussian. x, exp(−x) and its multiple of 2^100 are correctly rounded to 32
digits, a relative error of 5e-32 each; exp(−x) (5x + 10) 1e-32 < 2e-31. Rounding down
to multiples of 2^−100 adds less than 8e-31. Together they are below 2^−99 = 1.6e-30.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from operator import mul
from typing import Any

BITS = 100  # of an entry that is rounded
FINE = Context(prec=32, Emin=MIN_EMIN, Emax=MAX_EMAX)
GRID, NEAR = Decimal(1 << BITS), Fraction(1, 1 << (BITS - 1))
Grid = tuple[list[int], int]  # integers k and an exponent e: the numbers k · 2^−e


def grid(values: list[float]) -> Grid:
    """Floats as integers over one power of two."""
    ratios = [x.as_integer_ratio() for x in values]
    e = max((d.bit_length() - 1 for _, d in ratios), default=0)
    return [k << (e - d.bit_length() + 1) for k, d in ratios], e


def dot(a: Any, b: Any) -> Any:
    """The inner product, as far as the shorter of the two goes."""
    return sum(map(mul, a, b))


class Factor:
    """K = L Lᵀ from the n rows of L."""

    radius = Fraction(0)

    def __init__(self, values: list[float], n: int):
        numbers, self.e = grid(values)
        width = len(values) // n
        self.rows = [numbers[i * width : (i + 1) * width] for i in range(n)]

    def times(self, a: Grid) -> Grid:
        """K a = L (Lᵀ a), exactly."""
        folded = [dot(column, a[0]) for column in zip(*self.rows)]
        return [dot(row, folded) for row in self.rows], 2 * self.e + a[1]

    def unfolded(self, w: Grid) -> tuple[list, Fraction]:
        """L w and ‖w‖², exactly."""
        e = self.e + w[1]
        image = [Fraction(dot(row, w[0]), 1 << e) for row in self.rows]
        return image, Fraction(dot(w[0], w[0]), 1 << 2 * w[1])


class Square:
    """K from integers over a power of two."""

    rows: list[list[int]]
    e: int
    radius = Fraction(0)

    def times(self, a: Grid) -> Grid:
        """K a, exactly."""
        return [dot(row, a[0]) for row in self.rows], self.e + a[1]


class Triangle(Square):
    """K from its upper triangle, row after row."""

    def __init__(self, values: list[float], n: int):
        numbers, self.e = grid(values)
        self.rows, self.floats = square(numbers, n), square(values, n)

    def positive(self, shift: Fraction) -> bool:
        """K + shift·I = R Rᵀ + (a matrix with dominant diagonal), R of integers."""
        n = len(self.rows)
        if not any(map(any, self.rows)):
            return True
        trace = sum(abs(self.floats[i][i]) for i in range(n)) + n * float(shift)
        for part in (0.5, 0.1, 0.9):  # of what Rump's proof in floats would leave
            R = cholesky(self.floats, float(shift) - part * (n + 2) * 2.0**-51 * trace)
            if R is not None and self._dominant(R, shift):
                return True
        return False

    def _dominant(self, R: list[list[float]], shift: Fraction) -> bool:
        bits = 56 - math.frexp(max(abs(x) for row in R for x in row))[1]
        whole = [[scaled(*x.as_integer_ratio(), bits) for x in row] for row in R]
        room = []  # diagonal entry − Σ |others|, in units of 4^−bits
        for i, row in enumerate(whole):
            shifted = Fraction(self.rows[i][i], 1 << self.e) + shift
            room.append(math.floor(shifted * Fraction(4) ** bits) - dot(row, row))
            for j in range(i):
                entry = scaled(self.rows[i][j], 1 << self.e, 2 * bits)
                rest = abs(entry - dot(row, whole[j])) + 1  # 1: entry was rounded
                room[i] -= rest
                room[j] -= rest
        return min(room) >= 0


class Rule(Square):
    """K* of points by a rule: within `radius` of `rows`."""

    def __init__(self, name: str, terms: dict[str, Any], columns: list, n: int):
        numbers, e = grid([x for column in columns for x in column])
        points = [numbers[i::n] for i in range(n)]
        if name == "gaussian":
            rate = Fraction(terms["rate"]) / (1 << 2 * e)
            entries, self.e, self.radius = gaussian(points, rate), BITS, NEAR
        else:
            c = Fraction(terms["offset"])
            bits = max(2 * e, c.denominator.bit_length() - 1)
            times, added = 1 << (bits - 2 * e), int(c * (1 << bits))
            products = (dot(x, z) for i, x in enumerate(points) for z in points[i:])
            entries = [(times * t + added) ** terms["degree"] for t in products]
            self.e = bits * terms["degree"]
        if terms["divisors"]:
            entries = self._divided(entries, terms["divisors"], n)
        self.rows = square(entries, n)

    def _divided(self, entries: list[int], steps: list, n: int) -> list[int]:
        """The entries over all D and r_i r_j, with BITS bits for the largest."""
        D, rows, e = 1, [1] * n, 0  # the divisors are D rows_i rows_j 2^−e
        for step in steps:
            whole, bits = grid(step if type(step) is list else [step])
            if type(step) is list:
                rows, e = [*map(mul, rows, whole)], e + 2 * bits
            else:
                D, e = D * whole[0], e + bits
        least = D * min(rows) ** 2
        up = BITS - max(map(abs, entries)).bit_length() + least.bit_length()
        divisors = (D * rows[i] * r for i in range(n) for r in rows[i:])
        self.e += up - e
        self.radius = self.radius * Fraction(1 << e, least) + 2 * Fraction(2) ** -self.e
        return [scaled(k, 1, up) // d for k, d in zip(entries, divisors)]


def gaussian(points: list[list[int]], rate: Fraction) -> list[int]:
    """The upper triangle of exp(−rate ‖x_i − x_j‖²), times 2^BITS."""
    squares = [dot(x, x) for x in points]
    up, down = rate.numerator, Decimal(rate.denominator)
    entries = []
    for i, x in enumerate(points):
        for z, own in zip(points[i:], squares[i:]):
            t = Decimal(up * (2 * dot(x, z) - squares[i] - own))
            y = FINE.exp(FINE.divide(t, down))
            entries.append(int(FINE.multiply(y, GRID)))
    return entries


def square(values: list, n: int) -> list[list]:
    """A symmetric matrix from its upper triangle."""
    starts = [i * n - i * (i + 1) // 2 for i in range(n)]
    return [[values[starts[min(i, j)] + max(i, j)] for j in range(n)] for i in range(n)]


def scaled(k: int, power_of_two: int, bits: int) -> int:
    """k / power_of_two · 2^bits, rounded down."""
    by = bits - power_of_two.bit_length() + 1
    return k << by if by >= 0 else k >> -by


def cholesky(K: list[list[float]], shift: float) -> list[list[float]] | None:
    """The rows of a lower triangle, each up to its diagonal; None: it broke down."""
    R: list[list[float]] = []
    for i, given in enumerate(K):
        row: list[float] = []
        for j, other in enumerate(R):
            row.append((given[j] - dot(row, other)) / other[j])
        pivot = given[i] + shift - dot(row, row)
        if not 0 < pivot < math.inf:
            return None
        R.append([*row, math.sqrt(pivot)])
    return R


def product(kernel: Any, shift: Fraction, a: Grid) -> tuple[list, Fraction, Fraction]:
    """(K + shift·I)a, its product with a, and ‖a‖₁ times the radius of entries."""
    k, e = kernel.times(a)
    own = [shift * Fraction(x, 1 << a[1]) for x in a[0]]
    image = [Fraction(x, 1 << e) + y for x, y in zip(k, own)]
    quad = Fraction(dot(k, a[0]), 1 << (e + a[1]))
    quad += shift * Fraction(dot(a[0], a[0]), 1 << 2 * a[1])
    size = Fraction(sum(map(abs, a[0])), 1 << a[1])
    error = kernel.radius * size
    return image, quad + error * size, error
