"""Kernels from points into a stack, in one pass over its memory, on all cores.

For ROWS points and STRIP others at a time, while their numbers are in the cache:

    t       products or distances, once for all kernels on the same features
    k(t)    exp(t · (−1/scale)) or (t + offset)^degree
    k / u   the normalizations that need no more than the squares k(x, x)

Guarantee. An entry is the number that `Kernel.of` computes from the same two points, to
the last bit. These kernels are positive semi-definite by a theorem: t is a product or a
squared distance of points, and offset ≥ 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..grams.stack import GramStack, filled_stack
from ..grams.storage import Triangles
from ..util.compiled import compiled, inlined
from ..util.exponential import exp
from ..util.threads import spread
from .pairwise import fill_pairs
from .psd_theorem import psd_shift

if TYPE_CHECKING:
    from .fitted import FittedKernels

Array = np.ndarray
ROWS, STRIP = 32, 256  # points at a time: 32 kB of distances
BY_SQUARES = {"unit_trace", "spherical"}


def build(
    fitted: FittedKernels, storage: Any = "packed", dtype: Any = "float64"
) -> GramStack:
    """A stack of direct kernels, whose normalizations learn from squares k(x, x)."""

    def fill(store: Triangles) -> None:
        where = (store.P, store.starts, store.full)
        what = (*_bases(fitted), *fitted.rules(), *fitted.divisors())
        bands = -(-fitted.n // ROWS)
        squares = np.zeros((bands, fitted.M))
        spread(fill_kernels, *where, *what, squares, count=bands, work=store.P.size)
        store.squares = np.sum(squares, axis=0)
        if store.dtype == float:
            store.theorem = psd_shift(fitted, every, traces)

    every = np.arange(fitted.M)
    diagonals = fitted.squares(every)
    traces = diagonals.sum(axis=1)
    return filled_stack(diagonals, fill, storage, dtype)


def _bases(fitted: FittedKernels) -> tuple[Array, ...]:
    """The points, one column each; features and kernels of each base; its kind."""
    table = fitted.kernels
    ends = np.concatenate([[0], np.cumsum(np.bincount(table.base))])
    order = np.argsort(table.base, kind="stable")
    return fitted.points, table.columns, table.ends, order, ends, table.apart


@inlined(error_model="numpy")
def evaluate(t, degree, number, k):
    """The raw kernel of all numbers t of a tile, in one long loop that is fast."""
    if degree == 0:
        for j in range(len(k)):
            k[j] = exp(t[j] * number)
        return
    for j in range(len(k)):
        k[j] = t[j] + number
    for _ in range(degree - 1):
        for j in range(len(k)):
            k[j] *= t[j] + number


@inlined(error_model="numpy", forceinline=True)
def _divide(k, number, a, row):
    """Divide by one number, or by a · row where there is a row."""
    if len(row) > 0:
        for j in range(len(k)):
            k[j] /= a * row[j]
    elif number != 1.0:
        for j in range(len(k)):
            k[j] /= number


@inlined(error_model="numpy")
def _store(K, top, left, m, numbers, place, rows, p, starts, full, sums):
    """A tile: the rows from `top` on, the columns from `left` on, j ≥ i of them.

    Returns the sum of their squares; `sums` is memory for it, one number per column.
    """
    for j in range(K.shape[1]):
        sums[j] = 0.0
    bottom, right = top + len(K), left + K.shape[1]
    for i in range(top, bottom):
        begin = max(left, i)
        k = K[i - top, begin - left :]
        for s in range(len(numbers)):
            r = place[s, m]
            if r < 0:
                _divide(k, numbers[s, m], 1.0, k[:0])
            else:
                _divide(k, 1.0, rows[r, i], rows[r, begin:right])
        stored = p[starts[i] + begin - i :]
        for j in range(len(k)):
            stored[j] = k[j]
            x = np.float64(stored[j])  # as it is stored, in float32 perhaps
            sums[j] += x * x
    if full:
        for j in range(max(left, top + 1), right):
            for i in range(top, min(bottom, j)):
                p[starts[j] - j + i] = p[starts[i] + j - i]
    total = 0.0
    for j in range(K.shape[1]):
        total += sums[j]
    return total


@inlined()
def _gathered(X, columns):
    """The rows of X with these numbers."""
    Z = np.empty((len(columns), X.shape[1]))
    for f in range(len(columns)):
        for i in range(X.shape[1]):
            Z[f, i] = X[columns[f], i]
    return Z


@compiled()
def fill_kernels(
    P, starts, full, X, columns, features, order, ends, apart, degrees, numbers,
    divisors, place, rows, squares, first, last,
):  # fmt: skip
    """All kernels on some bands of ROWS points, in the order 0, −1, 1, −2, ….

    squares[piece, m] is the sum of the squares of what is stored of K_m, j ≥ i.

    The later a band of the upper triangle, the shorter it is: in this order the halves
    of all bands are the same amount of work.
    """
    n, memory, sums = len(starts), np.empty((2, ROWS * STRIP)), np.empty(STRIP)
    bands = (n - 1) // ROWS + 1
    for b in range(len(apart)):
        Z = _gathered(X, columns[features[b] : features[b + 1]])
        A = np.empty((ROWS, len(Z)))
        for piece in range(first, last):
            band = piece // 2 if piece % 2 == 0 else bands - 1 - piece // 2
            top = band * ROWS
            height = min(ROWS, n - top)
            for i in range(height):
                for f in range(len(Z)):
                    A[i, f] = Z[f, top + i]
            for left in range(top, n, STRIP):
                width = min(STRIP, n - left)
                t, k = memory[0, : height * width], memory[1, : height * width]
                fill_pairs(A, Z, apart[b], left, t.reshape(height, width), 0, height)
                for e in range(ends[b], ends[b + 1]):
                    m = order[e]
                    evaluate(t, degrees[m], numbers[m], k)
                    how = (m, divisors, place, rows, P[m], starts, full, sums)
                    K = k.reshape(height, width)
                    squares[piece, m] += _store(K, top, left, *how)
