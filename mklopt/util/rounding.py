"""Where rounding is bounded: the unit round-off u and γ_n = n u/(1 − n u).

A sum of n products computed in float64, in any order, is off by at most γ_n times the
sum of the absolute values of the products. certificates/enclosure.py adds these bounds
up to lower ≤ f* ≤ upper; grams/psd.py uses them to prove K ⪰ 0.

Reference: Higham (2002), "Accuracy and Stability of Numerical Algorithms", chapter 3.
"""

U = 2.0**-53  # the unit round-off of float64


def gamma(n: int) -> float:
    """γ_n = n u/(1 − n u): the relative error of an inner product of n terms."""
    return n * U / (1 - n * U)
