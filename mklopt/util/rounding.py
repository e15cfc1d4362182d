"""Where rounding is bounded: the unit round-off u and γ_n = n u/(1 − n u).

A sum of n products computed in float64, in any order, is off by at most γ_n times the
sum of the absolute values of the products. certificates/enclosure.py adds these bounds
up to lower ≤ f* ≤ upper; grams/psd.py uses them to prove K ⪰ 0.

Reference: Higham (2002), "Accuracy and Stability of Numerical Algorithms", chapter 3.
"""

from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

U = 2.0**-53  # the unit round-off of float64


def gamma(n: int) -> float:
    """γ_n = n u/(1 − n u): the relative error of an inner product of n terms."""
    return n * U / (1 - n * U)


def interval(
    lower: float, upper: float, assumptions: Iterable[str] = (), digits: int = 10
) -> str:
    """lower ≤ f* ≤ upper in decimals, rounded outward, and what it assumes."""
    ends = _rounded(lower, digits, ROUND_FLOOR), _rounded(upper, digits, ROUND_CEILING)
    rests_on = "; and ".join(assumptions)
    return " ≤ f* ≤ ".join(ends) + (f", assuming {rests_on}" if rests_on else "")


def _rounded(x: float, digits: int, direction: str) -> str:
    number = Context(prec=digits, rounding=direction).create_decimal(x)
    if not number.is_finite() or number == 0:
        return f"{x:g}"
    number = number.normalize(Context(prec=digits))
    return f"{number:f}" if -5 < number.adjusted() < digits else f"{number:e}"
