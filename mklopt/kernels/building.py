"""Kernels from points into a stack, in one pass over its memory, on all cores.

For ROWS points and STRIP others at a time, while their numbers are in the cache:

    t       products or distances, once for all kernels on the same features
    k(t)    exp(−t/scale) or (t + offset)^degree
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
from ..util.compiled import compiled, spread
from ..util.exponential import exp
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
    fitted: FittedKernels, storage: Any = "packed", dtype: Any = "float64"
) -> GramStack:
    """A stack of direct kernels, whose normalizations need their squares alone."""

    def fill(store: Triangles) -> None:
        where = (store.P, store.starts, store.full)
        what = (*_bases(fitted), *_rules(fitted), *_divisors(fitted))
        pairs = -(-fitted.n // ROWS) // 2 + 1  # of bands, the first with the last
        spread(fill_kernels, *where, *what, count=pairs, work=store.P.size)

    return filled_stack(fitted.squares(), fill, storage, dtype)


def _bases(fitted: FittedKernels) -> tuple[Array, ...]:
    """The points, one column each; features and kernels of each base; its kind."""
    places: dict[tuple, list[int]] = {}
    for m, kernel in enumerate(fitted.kernels):
        places.setdefault(kernel.base, []).append(m)
    sizes = [block.shape[1] for block in fitted.blocks.values()]
    starts = dict(zip(fitted.blocks, np.cumsum([0, *sizes])))
    some = [fitted.kernels[kernels[0]] for kernels in places.values()]
    columns = [
        starts[kernel.view] + np.arange(fitted.blocks[kernel.view].shape[1])[
            list(kernel.columns) if isinstance(kernel.columns, tuple) else kernel.columns
        ]
        for kernel in some
    ]
    return (
        np.concatenate([block.T for block in fitted.blocks.values()]),
        *_joined(columns),
        *_joined(list(places.values())),
        np.array([kernel.rule.shared == "distances" for kernel in some]),
    )


def _joined(parts: list) -> tuple[Array, Array]:
    """Lists of whole numbers one after the other, and where each begins and ends."""
    ends = np.cumsum([0, *map(len, parts)])
    return np.concatenate([np.asarray(part, int) for part in parts]), ends


def _rules(fitted: FittedKernels) -> tuple[Array, Array]:
    """degree and offset of powers; 0 and −scale of Gaussians."""
    degrees, numbers = np.zeros(fitted.M, int), np.empty(fitted.M)
    for m, kernel in enumerate(fitted.kernels):
        if isinstance(kernel.rule, Gaussian):
            numbers[m] = kernel.rule.slope(fitted.learned[m][0])
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


@njit(nogil=True, error_model="numpy")
def _evaluate(t, degree, number, k):
    """A rule of all numbers t of a tile: tiles are long, and so this loop is fast."""
    if degree == 0:
        for j in range(len(k)):
            k[j] = exp(t[j] / number)
        return
    for j in range(len(k)):
        k[j] = t[j] + number
    for _ in range(degree - 1):
        for j in range(len(k)):
            k[j] *= t[j] + number


@njit(nogil=True, error_model="numpy")
def _store(K, top, left, u, v, p, starts, full):
    """A tile: the rows from `top` on, the columns from `left` on, j ≥ i of them."""
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
    if full:
        for j in range(max(left, top + 1), right):
            for i in range(top, min(bottom, j)):
                p[starts[j] - j + i] = p[starts[i] + j - i]


@compiled()
def fill_kernels(
    P, starts, full, X, columns, features, order, ends, apart, degrees, numbers, u, v,
    first, last,
):  # fmt: skip
    """All kernels on bands of ROWS points: those numbered first:last from either end.

    A band of the upper triangle is the shorter, the later it comes: with the one that
    is as far from the other end it makes a piece of work of fixed size.
    """
    n = len(starts)
    bands, memory = (n - 1) // ROWS + 1, np.empty((2, ROWS * STRIP))
    for b in range(len(apart)):
        Z = X[columns[features[b] : features[b + 1]]]
        for piece in range(2 * first, 2 * last):
            band = piece // 2 if piece % 2 == 0 else bands - 1 - piece // 2
            if (band < piece // 2) or (piece % 2 == 1 and band == piece // 2):
                continue
            top, bottom = band * ROWS, min((band + 1) * ROWS, n)
            A = np.ascontiguousarray(Z[:, top:bottom].T)
            for left in range(top, n, STRIP):
                shape = (bottom - top, min(STRIP, n - left))
                t, k = memory[0, : shape[0] * shape[1]], memory[1, : shape[0] * shape[1]]
                fill_pairs(A, Z, apart[b], left, t.reshape(shape), 0, shape[0])
                for m in order[ends[b] : ends[b + 1]]:
                    _evaluate(t, degrees[m], numbers[m], k)
                    _store(k.reshape(shape), top, left, u[m], v[m], P[m], starts, full)
