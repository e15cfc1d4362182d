"""Ω by its conic form, in a certificate file. This file needs Python, nothing else.

    Ω(u) = inf { t : b − A (u', t, x) ∈ K for some u' ≥ u and some x }

K is a product of cones. What the file shows of Ω:

multiplier  y in integers, in the dual cone K*, with Aᵀy = (g, −τ, 0), τ > 0, g ≥ τ v.
            0 ≤ yᵀ(b − A z) is τ⟨u, v⟩ ≤ ⟨g, u'⟩ ≤ bᵀy + τt, so that Ω*(v) ≤ bᵀy/τ.
epigraph    z = (u', t, x) in integers, and last their denominator: b − A z ∈ K and
            u' ≥ u show Ω(u) ≤ t.

All of it is rational, but for exponential and power cones: there a sum of logarithms
must be ≥ 0. It has to be at least 1e-30 (1 + the sum of all sizes): each logarithm of
60 digits is good to 1e-58 of this.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

if __package__:
    from .reading import demand, exact
else:  # python -I checker.py: the file beside it
    from reading import demand, exact  # type: ignore[no-redef]

LEAST = Decimal("1e-30")  # of a sum of logarithms, relative to all sizes
SIZES = {"exponential": 3, "power": 3}  # the others say how many rows they have
KINDS = ("zero", "nonnegative", "second_order", *SIZES)
NONE = Fraction(0)
MULTIPLIER, EPIGRAPH = "the multiplier", "the point of the epigraph"


class Conic:
    """(A, b, K) of a file, and what a multiplier and a point of the epigraph show."""

    def __init__(self, terms: dict[str, Any], M: int):
        self.M, self.b = M, [exact(x) for x in terms["b"]]
        self.cones: list[tuple[str, Fraction, int, int]] = []
        start = 0
        for cone in terms["cones"]:
            name, given, size = self._cone(cone)
            self.cones.append((name, given, start, start + size))
            start += size
        demand(start == len(self.b), "b and the cones differ in number")
        demand({*map(len, terms["A"])} <= {3}, "an entry of A has other parts")
        self.entries = [(i, j, exact(x)) for i, j, x in terms["A"]]
        whole = all(type(k) is int and k >= 0 for i, j, _ in terms["A"] for k in (i, j))
        demand(whole, "an entry of A has another place")
        self.width = 1 + max((j for _, j, _ in self.entries), default=0)
        fits = all(i < len(self.b) for i, _, _ in self.entries)
        fits &= M < self.width <= len(self.entries)
        demand(fits, "A, b and the kernels differ in number")

    def _cone(self, cone: list) -> tuple[str, Fraction, int]:
        """The name of a cone, its number, and its rows."""
        name, given = cone if len(cone) == 2 else ("", 0)
        good = type(name) is str and name in KINDS and type(given) is not str
        demand(good, "a cone is not known")
        size = SIZES.get(name, given)
        good = 0 < given < 1 if name == "power" else given == size
        demand(good and type(size) is int and size > 0, f"{name} has a wrong number")
        return name, exact(given), size

    def conjugate(self, squares: list[Fraction], y: list[int]) -> Fraction:
        """At least Ω*(√squares), shown by the multiplier y."""
        demand(len(y) == len(self.b), f"{MULTIPLIER} is not one integer per row")
        sums = [NONE] * self.width
        for i, j, x in self.entries:
            sums[j] += x * y[i]
        g, tau = sums[: self.M], -sums[self.M]
        right = tau > 0 and not any(sums[self.M + 1 :])
        demand(right, f"{MULTIPLIER} has no Aᵀy = (g, −τ, 0)")
        large = all(a >= 0 and a * a >= tau * tau * v for a, v in zip(g, squares))
        demand(large, f"{MULTIPLIER} is too small for the dual point")
        self._inside([Fraction(k) for k in y], MULTIPLIER)
        return sum((b * k for b, k in zip(self.b, y)), NONE) / tau

    def penalty(self, squares: list[Fraction], point: list[int]) -> Fraction:
        """At least Ω(√squares), shown by a point of the epigraph."""
        fits = len(point) == self.width + 1 and point[-1] > 0
        demand(fits, f"{EPIGRAPH} is not one integer per column")
        z = [Fraction(k, point[-1]) for k in point[:-1]]
        large = all(a >= 0 and a * a >= u for a, u in zip(z, squares))
        demand(large, f"{EPIGRAPH} is too small for the norms")
        s = list(self.b)
        for i, j, x in self.entries:
            s[i] -= x * z[j]
        self._inside(s, EPIGRAPH)
        return z[self.M]

    def _inside(self, s: list[Fraction], what: str) -> None:
        for name, given, start, stop in self.cones:
            good = inside(name, given, s[start:stop], what == MULTIPLIER)
            demand(good, f"{what} is outside of the cone {name} of row {start}")


def inside(name: str, given: Fraction, s: list[Fraction], dual: bool) -> bool:
    """Whether s lies in a cone, or in its dual cone."""
    if name == "zero":
        return dual or not any(s)
    if name == "nonnegative":
        return min(s) >= 0
    if name == "second_order":
        return s[0] >= 0 and s[0] ** 2 >= sum((x * x for x in s[1:]), NONE)
    x, y, z = s
    if name == "exponential":  # y exp(x/y) ≤ z
        if dual:
            x, y = x - y, -x
        if y <= 0:
            return y == 0 and x <= 0 <= z
        return z > 0 and positive([(Fraction(1), z / y)], -x / y)
    if dual:  # x^a y^(1 − a) ≥ |z|
        x, y = x / given, y / (1 - given)
    if z == 0:
        return min(x, y) >= 0
    parts = [(given, x / abs(z)), (1 - given, y / abs(z))]
    return min(x, y) > 0 and positive(parts, NONE)


def positive(logarithms: list[tuple[Fraction, Fraction]], rest: Fraction) -> bool:
    """Whether Σ c ln q + rest is at least 1e-30 (1 + the sum of all sizes)."""
    terms = [number(rest)]
    terms += [number(c) * number(q).ln() for c, q in logarithms]
    return sum(terms) >= LEAST * (1 + sum(map(abs, terms)))


def number(x: Any) -> Decimal:
    """A rational number with the digits of the context."""
    return Decimal(x.numerator) / Decimal(x.denominator)
