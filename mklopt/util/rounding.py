"""Rounding errors: the unit round-off u and γ_n = n u/(1 − n u).

Reference: Higham (2002), "Accuracy and Stability of Numerical Algorithms", chapter 3.
"""

from __future__ import annotations

U = 2.0**-53  # unit round-off


def gamma(n: int) -> float:
    """γ_n = n u/(1 − n u): the error of an n-term inner product in any order."""
    return n * U / (1 - n * U)
