"""⟨x, z⟩ and ‖x − z‖² for all pairs of points, every entry in one fixed order.

    products(A, B)     ⟨a_i, b_j⟩ = Σ_k a_ik b_jk
    distances(A, B)    ‖a_i − b_j‖² = Σ_k (a_ik − b_jk)²        nothing cancels

Guarantee. An entry is the sum of its terms for k = 1, 2, … one after the other, in
plain float64 (no fused operations, no other order). It depends on its two points alone,
not on the block it is computed in, the threads, or the computer. The matrix of a set of
points with itself is symmetric to the last bit. A matrix product by BLAS guarantees
none of this. Four features at a time, from a part of Z in the cache, keep its speed.
"""

import numpy as np
from numba import boolean, float64, int64, types

from ..util.compiled import READ_ONLY, compiled, inlined
from ..util.threads import spread

Array = np.ndarray
STRIP, CHUNK = 128, 16  # columns and rows of Z in the first cache, for all rows of A


def products(A: Array, B: Array) -> Array:
    """⟨a_i, b_j⟩ for all rows of A and B."""
    return pairs(A, np.ascontiguousarray(B.T), False)


def distances(A: Array, B: Array) -> Array:
    """‖a_i − b_j‖² for all rows of A and B."""
    return pairs(A, np.ascontiguousarray(B.T), True)


def pairs(A: Array, Z: Array, apart: bool) -> Array:
    """Products, or distances if `apart`, of rows of A with columns of Z."""
    out = np.empty((len(A), Z.shape[1]))
    arguments = (np.ascontiguousarray(A), Z, apart, 0, out)
    spread(fill_pairs, *arguments, count=len(A), work=out.size * max(len(Z), 1))
    return out


@inlined(forceinline=True)
def _term(a, z, apart):
    return (a - z) * (a - z) if apart else a * z


@compiled(types.void(*[READ_ONLY] * 2, boolean, int64, float64[:, ::1], *[int64] * 2))
def fill_pairs(A, Z, apart, start, out, first, last):
    """Rows first:last of `out`, for the columns of Z from `start` on.

    Two rows and four features at a time: less would be slower, more is no faster.
    """
    d, width, spare = len(Z), out.shape[1], np.empty(STRIP)
    spare[:] = 0.0  # np.zeros takes longer to compile
    for left in range(0, width, STRIP):
        right = min(left + STRIP, width)
        here, there = start + left, start + right
        out[first:last, left:right] = 0.0
        for low in range(0, d, CHUNK):
            high = min(low + CHUNK, d)
            fours = high - (high - low) % 4
            for i in range(first, last, 2):
                l = min(i + 1, last - 1)
                o = out[i, left:right]
                p = out[l, left:right] if l > i else spare[: right - left]
                for k in range(low, fours, 4):
                    w, x = Z[k, here:there], Z[k + 1, here:there]
                    y, z = Z[k + 2, here:there], Z[k + 3, here:there]
                    a, b, c, e = A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3]
                    q, r, s, t = A[l, k], A[l, k + 1], A[l, k + 2], A[l, k + 3]
                    for j in range(right - left):
                        f = o[j] + _term(a, w[j], apart) + _term(b, x[j], apart)
                        o[j] = f + _term(c, y[j], apart) + _term(e, z[j], apart)
                        f = p[j] + _term(q, w[j], apart) + _term(r, x[j], apart)
                        p[j] = f + _term(s, y[j], apart) + _term(t, z[j], apart)
                for k in range(fours, high):
                    w, a, q = Z[k, here:there], A[i, k], A[l, k]
                    for j in range(right - left):
                        o[j] += _term(a, w[j], apart)
                        p[j] += _term(q, w[j], apart)
