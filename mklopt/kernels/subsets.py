"""Random subsets of features with random widths, for `subset_gaussians`.

One stream of random numbers, kernel after kernel: the size of the subset, uniform on
1, …, d; a permutation of all features, of which the first are the subset; χ² with one
degree of freedom, σ = 5χ² + 0.1. The numbers are those of NumPy's Generator, called
one after the other, to the last bit. Compiled, a million take seconds; a few are drawn
before it would be compiled.
"""

import math

import numpy as np

from ..util.arrays import Array
from ..util.compiled import compiled

TOGETHER = 2**22  # features that are permuted at a time, at most
SURE = 6.0  # standard deviations of the number of columns, for which there is memory
WORTH = 200_000  # features to permute from which on compiling is worth its time


def draw_subsets(M: int, d: int, seed: int) -> tuple[Array, Array, Array]:
    """All columns one after the other (int32), the number of each subset (M,), σ (M,).

    M times d is more than the memory that is needed: parts are drawn, and appended.
    """
    rng = np.random.default_rng(seed)
    widths, sigmas = np.empty(M, np.int32), np.empty(M)
    expected = M * (d + 1) / 2 + SURE * d * math.sqrt(M / 12)
    columns, used = np.empty(min(M * d, int(expected)), np.int32), 0
    size, draw = max(1, TOGETHER // d), _draw if M * d > WORTH else _draw.py_func
    drawn = np.empty(min(size, M) * d, np.int32)
    for m in range(0, M, size):
        part = slice(m, m + size)
        count = draw(rng, d, 1.0, drawn, widths[part], sigmas[part])
        if used + count > len(columns):
            columns = np.resize(columns, M * d)
        columns[used : used + count] = drawn[:count]
        used += count
    return columns[:used], widths, sigmas


@compiled()
def _draw(rng, d, df, columns, widths, sigmas):
    """Fill the arrays; returns the number of columns.

    `df` is an argument because a constant would change how χ² is rounded.
    """
    end, member, order = 0, np.zeros(d, np.bool_), np.empty(d, np.int64)
    for m in range(len(widths)):
        size = rng.integers(1, d + 1)
        for f in range(d):
            order[f] = f
        rng.shuffle(order)  # what rng.permutation(d) does
        for i in range(size):
            member[order[i]] = True
        for f in range(d):
            if member[f]:
                columns[end] = f
                end += 1
                member[f] = False
        widths[m] = size
        sigmas[m] = 5 * rng.chisquare(df) + 0.1
    return end
