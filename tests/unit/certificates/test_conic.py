"""Ω by its conic form: cones, multipliers, points of the epigraph; what is false."""

from __future__ import annotations

import random
from decimal import localcontext
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from mklopt.certificates.checker import DIGITS, check
from mklopt.certificates.conic import Conic, inside, positive
from mklopt.certificates.reading import Refused
from tests.unit.certificates.samples import resigned, tiny

POWER = Fraction(0.3)
CONES = [("nonnegative", 2), ("second_order", 3), ("exponential", 3), ("power", POWER)]
# min t: u ≥ 0, ‖(u, 1)‖ ≤ x, u + 2x ≤ t, x = x' for a second copy of x.
TERMS = {
    "A": [[0, 2, 1.0], [0, 3, -1.0], [1, 0, -1.0], [2, 0, 1.0], [2, 2, 2.0],
          [2, 1, -1.0], [3, 3, -1.0], [4, 0, -1.0]],
    "b": [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    "cones": [["zero", 1], ["nonnegative", 2], ["second_order", 3]],
}  # fmt: skip


def rationals(*x) -> list[Fraction]:
    return [Fraction(a) for a in x]


@pytest.fixture(autouse=True)
def _digits():
    with localcontext(DIGITS):
        yield


@pytest.mark.parametrize("name, given", CONES, ids=str)
def test_no_point_of_a_cone_is_opposite_to_its_dual(name, given):
    """⟨s, y⟩ ≥ 0 for all s ∈ K and y ∈ K*, in rational numbers, near the border too."""
    rng = random.Random(0)
    size = 2 if name == "nonnegative" else 3
    found = {True: [], False: []}  # type: ignore[var-annotated]
    while min(map(len, found.values())) < 150:
        s = [
            Fraction(rng.choice([rng.gauss(0, 1), rng.randint(-1, 1)]))
            for _ in range(size)
        ]
        for dual, points in found.items():
            if inside(name, Fraction(given), s, dual):
                points.append(s)
    products = [
        sum(a * b for a, b in zip(s, y)) for s in found[False] for y in found[True]
    ]
    assert min(products) >= 0 and min(products) < 0.05


@pytest.mark.parametrize("dual", [False, True])
def test_the_border_of_curved_cones(dual):
    """A number is moved across the border by 1e-25: inside, and outside."""
    near = mpmath.mpf(10) ** -25
    with mpmath.workdps(60):
        a = mpmath.mpf(POWER.numerator) / POWER.denominator
        x, y = (a * 2, (1 - a) * 3) if dual else (mpmath.mpf(2), mpmath.mpf(3))
        z = mpmath.mpf(2) ** a * mpmath.mpf(3) ** (1 - a)
        e = (
            mpmath.exp(mpmath.mpf(2) / 3 - 1)
            if dual
            else 3 * mpmath.exp(mpmath.mpf(2) / 3)
        )
        grow = lambda x, sign: Fraction(int(x * (1 + sign * near) * 2**180), 2**180)  # noqa: E731
        for sign in (1, -1):
            s = [grow(x, 0), grow(y, 0), grow(z, -sign)]
            assert inside("power", POWER, s, dual) == (sign > 0)
            first = [Fraction(-3), Fraction(-2)] if dual else [Fraction(2), Fraction(3)]
            last = 3 * e if dual else e
            s = [*first, grow(last, sign)]
            assert inside("exponential", Fraction(3), s, dual) == (sign > 0)


def test_faces_of_curved_cones():
    for s, good in (((-1, 0, 0), True), ((1, 0, 5), False), ((0, -1, 5), False),
                    ((0, 0, -1), False), ((0, 1, 0), False)):  # fmt: skip
        assert inside("exponential", Fraction(3), rationals(*s), False) == good, s
    for s, good in (((0, 1, 0), True), ((0, -1, 1), False), ((1, 0, 1), False)):
        assert inside("exponential", Fraction(3), rationals(*s), True) == good, s
    for s, good in (((0, 1, 0), True), ((0, 1, 1), False), ((-1, 1, 0), False)):
        assert inside("power", POWER, rationals(*s), False) == good, s
    assert inside("zero", Fraction(1), rationals(3), True)
    assert not inside("zero", Fraction(1), rationals(3), False)


def test_a_sum_of_logarithms_needs_room():
    assert not positive([(Fraction(1), Fraction(1))], Fraction(0))
    assert not positive([(Fraction(1), 1 + Fraction(1, 10**31))], Fraction(0))
    assert positive([(Fraction(1), 1 + Fraction(1, 10**29))], Fraction(0))


def test_bounds_of_a_small_form():
    """Ω(u) = u + 2√(u² + 1): Ω*(v) = −√(4 − (v − 1)²) for 1 ≤ v < 3."""
    conic = Conic(TERMS, 1)
    top = 10**9  # τ, and the unit of the multiplier: 2 ≥ ‖(1, √3)‖
    y = [-2 * top, 0, top, 2 * top, -top, -int(top * 3**0.5)]
    value = conic.conjugate([Fraction(4)], y)
    assert 0 <= value + Fraction(3**0.5) < 1e-8
    with pytest.raises(Refused, match="second_order"):
        conic.conjugate([Fraction(4)], [*y[:5], y[5] - 1])
    with pytest.raises(Refused, match="no Aᵀy"):
        conic.conjugate([Fraction(4)], [y[0] + 1, *y[1:]])
    x = int(top * 2**0.5) + 1
    assert float(conic.penalty([Fraction(1)], [top, top + 2 * x, x, x, top])) == (
        pytest.approx(1 + 2 * 2**0.5, abs=1e-8)
    )


def linear(u_of_t=1.0) -> dict:
    """Σu as a conic form: u ≥ 0, u_of_t·u ≤ t."""
    return {
        "A": [[0, 0, -1.0], [1, 0, u_of_t], [1, 1, -1.0]],
        "b": [0.0, 0.0], "cones": [["nonnegative", 2]],
    }  # fmt: skip


def conic_claim(terms=None, multiplier=(0, 1), epigraph=(2, 2, 1), **more) -> dict:
    """The claim of `tiny`, f* = 2, with Σu by its conic form."""
    claim = tiny(formulation=["Conic", terms or linear()], **more)
    claim["dual"]["multiplier"] = list(multiplier)
    claim["primal"]["epigraph"] = list(epigraph)
    return claim


def test_a_claim_by_hand_is_proved():
    found = check(resigned(conic_claim()))
    assert found["lower"] <= 2 <= found["upper"] and "Conic" in found["statement"]
    assert check(resigned(conic_claim(multiplier=[0, 7], epigraph=[14, 14, 7])))


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"multiplier": [1, 1]}, "too small for the dual"),  # g = τ − 1
        ({"multiplier": [-1, 1]}, "outside of the cone"),
        ({"multiplier": [0, -1]}, "no Aᵀy"),
        ({"multiplier": [0, 0]}, "no Aᵀy"),
        ({"multiplier": [0]}, "one integer per row"),
        ({"epigraph": [2, 1, 1]}, "outside of the cone"),
        ({"epigraph": [1, 2, 1]}, "too small for the norms"),
        ({"epigraph": [-2, 2, 1]}, "too small for the norms"),
        ({"epigraph": [2, 2, -1]}, "one integer per column"),
        ({"epigraph": [2, 2, 0]}, "one integer per column"),
        ({"epigraph": [2, 3, 1]}, "upper = .* is not proved"),
        ({"multiplier": [0, 1.0]}, "other keys or types"),
        ({"lower": 2.0}, "lower = .* is not proved"),
    ],
)
def test_points_that_show_nothing_are_refused(change, reason):
    with pytest.raises(Refused, match=reason):
        check(resigned(conic_claim(**change)))


@pytest.mark.parametrize(
    "terms",
    [
        {"A": []}, {"A": [[0, 0, -1.0]]}, {"A": [[0, 0]]}, {"b": [0.0]},
        {"A": [[0, 0, -1.0], [2, 0, 1.0], [1, 1, -1.0]]},
        {"A": [[0, 0, -1.0], [1, 0.0, 1.0], [1, 1, -1.0]]},
        {"A": [[0, 0, -1.0], [-1, 0, 1.0], [1, 1, -1.0]]},
        {"A": [[0, 0, -1.0], [1, 0, 1.0], [1, 3, -1.0]]},
        {"b": [0.0, float("inf")]}, {"cones": [["nonnegative", 1]]},
        {"cones": [["nonnegative", 2.0]]}, {"cones": [["free", 2]]},
        {"cones": [[2, "nonnegative"]]}, {"cones": [["nonnegative"]]},
        {"cones": [["zero", 0], ["nonnegative", 2]]}, {"cones": [["power", 1.0]]},
        {"cones": [["exponential", 2]]}, {"cones": [["zero", -1], ["nonnegative", 3]]},
    ],
)  # fmt: skip
def test_forms_that_are_none_are_refused(terms):
    with pytest.raises(Refused):
        check(resigned(conic_claim({**linear(), **terms})))


def test_a_negative_penalty_keeps_the_margin():
    """Ω(u) = u − 3: the bounds are 3 less, and the margin is of all magnitudes."""
    terms = {**linear(), "b": [0.0, 3.0]}
    low, up = (float(np.nextafter(x, y)) for x, y in ((-1.0, -2), (-1.0, 0)))
    given = dict(epigraph=[2, -1, 1], lower=low, upper=up)
    assert check(resigned(conic_claim(terms, **given)))
    for change in ({"lower": -1.0}, {"upper": -1.0}):
        with pytest.raises(Refused, match="not proved"):
            check(resigned(conic_claim(terms, **{**given, **change})))
