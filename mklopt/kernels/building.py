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
from numba import njit

from ..grams.stack import GramStack, filled_stack
from ..grams.storage import Triangles
from ..util.compiled import compiled
from ..util.exponential import INNER, exp
from ..util.threads import spread
from .functions import Gaussian, Kernel, Power
from .pairwise import fill_pairs

if TYPE_CHECKING:
    from .fitted import FittedKernels

Array = np.ndarray
ROWS, STRIP = 32, 256  # points at a time: 32 kB of distances
BY_SQUARES = {"unit_trace", "spherical"}


def is_direct(kernel: Kernel) -> bool:
    """Whether it is built here: from points, by a rule of ours, and surely PSD."""
    rule = kernel.rule
    if isinstance(rule, Gaussian):
        return not rule.given
    return isinstance(rule, Power) and rule.offset >= 0


def build(
    fitted: FittedKernels,
    squares: Array,
    storage: Any = "packed",
    dtype: Any = "float64",
) -> GramStack:
    """A stack of direct kernels that have learned from their squares (M, n)."""

    def fill(store: Triangles) -> None:
        where = (store.P, store.starts, store.full)
        what = (*_bases(fitted), *_rules(fitted), *_divisors(fitted))
        bands = -(-fitted.n // ROWS)
        squares = np.zeros((bands, fitted.M))
        spread(fill_kernels, *where, *what, squares, count=bands, work=store.P.size)
        store.squares = np.sum(squares, axis=0)

    return filled_stack(squares, fill, storage, dtype)


def _bases(fitted: FittedKernels) -> tuple[Array, ...]:
    """The points, one column each; features and kernels of each base; its kind."""
    places: dict[tuple, list[int]] = {}
    for m, kernel in enumerate(fitted.kernels):
        places.setdefault(kernel.base, []).append(m)
    sizes = {view: block.shape[1] for view, block in fitted.blocks.items()}
    starts = dict(zip(sizes, np.cumsum([0, *sizes.values()])))
    some = [fitted.kernels[kernels[0]] for kernels in places.values()]
    columns = [np.arange(sizes[k.view])[k.columns,] + starts[k.view] for k in some]
    return (
        np.ascontiguousarray(np.hstack(list(fitted.blocks.values())).T),
        *_joined(columns),
        *_joined(list(places.values())),
        np.array([kernel.rule.shared == "distances" for kernel in some]),
    )


def _joined(parts: list) -> tuple[Array, Array]:
    """Lists of whole numbers one after the other, and where each begins and ends."""
    ends = np.cumsum([0, *map(len, parts)])
    return np.concatenate([np.asarray(part, int) for part in parts]), ends


def _rules(fitted: FittedKernels) -> tuple[Array, Array]:
    """degree and offset of powers; 0 and −1/scale of Gaussians."""
    degrees, numbers = np.zeros(fitted.M, int), np.empty(fitted.M)
    for m, kernel in enumerate(fitted.kernels):
        if isinstance(kernel.rule, Gaussian):
            numbers[m] = kernel.rule.rate(fitted.learned[m][0])
        elif isinstance(kernel.rule, Power):
            degrees[m], numbers[m] = kernel.rule.degree, kernel.rule.offset
    return degrees, numbers


def _divisors(fitted: FittedKernels) -> tuple[Array, Array]:
    """u, v (M, steps, n): step s divides K_m by u_ms v_msᵀ; at least one step."""
    steps = fitted.normalize
    u, v = np.ones((2, fitted.M, max(len(steps), 1), fitted.n))
    for m in range(fitted.M):
        for s, step in enumerate(steps):
            u[m, s] = fitted.learned[m][s + 1]  # a trace, or roots
            v[m, s] = u[m, s] if step == "spherical" else 1.0
    return u, v


@njit(**INNER, error_model="numpy")
def _evaluate(t, degree, number, k):
    """A rule of all numbers t of a tile: tiles are long, and so this loop is fast."""
    if degree == 0:
        for j in range(len(k)):
            k[j] = exp(t[j] * number)
        return
    for j in range(len(k)):
        k[j] = t[j] + number
    for _ in range(degree - 1):
        for j in range(len(k)):
            k[j] *= t[j] + number


@njit(**INNER, error_model="numpy")
def _store(K, top, left, u, v, p, starts, full, sums):
    """A tile: the rows from `top` on, the columns from `left` on, j ≥ i of them.

    Returns the sum of their squares; `sums` is memory for it, one number per column.
    """
    for j in range(K.shape[1]):
        sums[j] = 0.0
    bottom, right, last = top + len(K), left + K.shape[1], len(u) - 1
    for i in range(top, bottom):
        begin = max(left, i)
        k = K[i - top, begin - left :]
        for s in range(last):
            w = v[s, begin:right]
            for j in range(len(k)):
                k[j] /= u[s, i] * w[j]
        place, a, w = p[starts[i] + begin - i :], u[last, i], v[last, begin:right]
        for j in range(len(k)):
            place[j] = k[j] / (a * w[j])
            x = np.float64(place[j])  # as it is stored, in float32 perhaps
            sums[j] += x * x
    if full:
        for j in range(max(left, top + 1), right):
            for i in range(top, min(bottom, j)):
                p[starts[j] - j + i] = p[starts[i] + j - i]
    total = 0.0
    for j in range(K.shape[1]):
        total += sums[j]
    return total


@njit(**INNER)
def _gathered(X, columns):
    """The rows of X with these numbers."""
    Z = np.empty((len(columns), X.shape[1]))
    for f in range(len(columns)):
        for i in range(X.shape[1]):
            Z[f, i] = X[columns[f], i]
    return Z


@compiled()
def fill_kernels(
    P, starts, full, X, columns, features, order, ends, apart, degrees, numbers, u, v,
    squares, first, last,
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
            rows = min(ROWS, n - top)
            for i in range(rows):
                for f in range(len(Z)):
                    A[i, f] = Z[f, top + i]
            for left in range(top, n, STRIP):
                width = min(STRIP, n - left)
                t, k = memory[0, : rows * width], memory[1, : rows * width]
                fill_pairs(A, Z, apart[b], left, t.reshape(rows, width), 0, rows)
                for e in range(ends[b], ends[b + 1]):
                    m = order[e]
                    _evaluate(t, degrees[m], numbers[m], k)
                    K = k.reshape(rows, width)
                    squares[piece, m] += _store(
                        K, top, left, u[m], v[m], P[m], starts, full, sums
                    )
