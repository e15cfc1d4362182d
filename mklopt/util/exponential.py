"""exp of numbers that are not positive: the same bits on every processor.

With k = round(x/ln 2) and r = x − k ln 2, |r| ≤ ½ ln 2:

    exp(x) = 2^k · (1 + r + r² q(r))     q: a polynomial of degree 9

q is the best one in relative error (3.6e-18, by Remez's exchange in 60 digits).

Guarantee, for x ≤ 0. The relative error is at most 3e-16 where the result is a normal
number, the absolute error less than 2^-1074 below. exp(0) = 1 exactly, exp(−∞) = 0, NaN
stays NaN. Only additions, multiplications and integers are used, no fused operations:
an entry does not depend on its place in an array or on the processor. NumPy's exp
promises neither.
"""

import numpy as np

from .compiled import compiled, inlined

PER_LN2 = 1.4426950408889634
LN2, LN2_REST = 0.6931471805598903, 5.497923018708371e-14  # k·LN2 is exact
TO_INTEGER = 1.5 * 2.0**52  # x + this − this is x rounded to an integer
LOWEST = -745.2  # exp of it is less than half of the smallest number
# 2^k is 2^(k + 512) · 2^-512: both are normal numbers, and one product is rounded.
BIAS, BACK = 1023 + 512, 2.0**-512
Q0, Q1, Q2, Q3, Q4, Q5, Q6, Q7, Q8, Q9 = (
    0.5000000000000011, 0.16666666666666413, 0.041666666666530155,
    0.008333333333494461, 0.0013888888943630114, 0.00019841269506578688,
    2.480149309890655e-05, 2.7557586373840165e-06, 2.763024837921144e-07,
    2.5000061602835666e-08,
)  # fmt: skip


def series(r):
    """exp(r) = 1 + r + r² q(r), in this order of operations; also for lanes.py."""
    s = r * r
    low = (Q0 + r * Q1) + s * (Q2 + r * Q3)
    middle = (Q4 + r * Q5) + s * (Q6 + r * Q7)
    q = low + (s * s) * (middle + (s * s) * (Q8 + r * Q9))
    return 1.0 + (r + s * q)


_series = inlined(forceinline=True)(series)


@inlined(forceinline=True)
def exp(x):
    """exp(x) for one x ≤ 0, for compiled loops. They are vectorized with it."""
    back = 0.0 if x < LOWEST else BACK  # products that underflow take long
    x = LOWEST if x < LOWEST else x
    shifted = x * PER_LN2 + TO_INTEGER
    k = shifted - TO_INTEGER
    r = (x - k * LN2) - k * LN2_REST
    bits = (np.float64(shifted).view(np.int64) + BIAS) << 52  # of 2^(k + 512)
    return (_series(r) * np.int64(bits).view(np.float64)) * back


@compiled()
def exponentials(x):
    """exp of every entry of a contiguous vector x ≤ 0, in place."""
    for i in range(len(x)):
        x[i] = exp(x[i])
