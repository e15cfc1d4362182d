"""Where rounding is bounded: the unit round-off u, γ_n = n u/(1 − n u), and underflow.

A sum of n products computed in float64, in any order, is off by at most γ_n times the
sum of the absolute values of the products, plus n·2^-1075 for products that underflow:
`TINY` is more than 2^53 of them lose together. certificates/enclosure.py adds these
bounds up to lower ≤ f* ≤ upper; grams/psd.py uses them to prove K ⪰ 0.

Reference: Higham (2002), "Accuracy and Stability of Numerical Algorithms", chapters 2
(eq. 2.8, underflow) and 3.
"""

from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

import numpy as np

U = 2.0**-53  # the unit round-off of float64
TINY = 2.0**-1022  # the smallest normal number


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


def length_above(x: np.ndarray) -> float:
    """An upper bound of ‖x‖; scaled, because squares overflow and underflow."""
    top = float(np.max(np.abs(x), initial=0.0))
    if top == 0 or not np.isfinite(top):
        return top
    return top * float(np.linalg.norm(x / top)) * (1 + gamma(x.size + 8)) + TINY


def length_below(x: np.ndarray) -> float:
    """A lower bound of ‖x‖."""
    above = length_above(x)
    return max(above * (1 - 4 * gamma(x.size + 8)) - 2 * TINY, 0.0)
