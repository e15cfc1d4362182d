"""⟨x, z⟩ and ‖x − z‖² for all pairs of points, every entry in one fixed order.

    products(A, B)     ⟨a_i, b_j⟩ = Σ_k a_ik b_jk
    distances(A, B)    ‖a_i − b_j‖² = Σ_k (a_ik − b_jk)²        nothing cancels

Guarantee. An entry is the sum of its terms for k = 1, 2, … one after the other, in
plain float64 (no fused operations, no other order). It depends on its two points alone,
not on the block it is computed in, the threads, or the computer. The matrix of a set of
points with itself is symmetric to the last bit. A matrix product by BLAS guarantees
none of this. Four rows and four features at a time keep most of its speed.
"""

import numpy as np
from numba import boolean, float64, int64, njit, types

from ..util.compiled import READ_ONLY, compiled
from ..util.threads import spread

Array = np.ndarray
STRIP = 128  # columns of Z that stay in the cache while all rows of A are read


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


@njit(nogil=True, inline="always")
def _term(a, z, apart):
    return (a - z) * (a - z) if apart else a * z


@compiled(types.void(*[READ_ONLY] * 2, boolean, int64, float64[:, ::1], *[int64] * 2))
def fill_pairs(A, Z, apart, start, out, first, last):
    """Rows first:last of `out`, for the columns of Z from `start` on."""
    d, width = len(Z), out.shape[1]
    fours = d // 4 * 4
    for left in range(0, width, STRIP):
        right = min(left + STRIP, width)
        here, there = start + left, start + right
        out[first:last, left:right] = 0.0
        i = first
        while i + 4 <= last:
            o, p = out[i, left:right], out[i + 1, left:right]
            q, r = out[i + 2, left:right], out[i + 3, left:right]
            for k in range(0, fours, 4):
                s, t = Z[k, here:there], Z[k + 1, here:there]
                u, v = Z[k + 2, here:there], Z[k + 3, here:there]
                a0, a1, a2, a3 = A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3]
                b0, b1 = A[i + 1, k], A[i + 1, k + 1]
                b2, b3 = A[i + 1, k + 2], A[i + 1, k + 3]
                c0, c1 = A[i + 2, k], A[i + 2, k + 1]
                c2, c3 = A[i + 2, k + 2], A[i + 2, k + 3]
                e0, e1 = A[i + 3, k], A[i + 3, k + 1]
                e2, e3 = A[i + 3, k + 2], A[i + 3, k + 3]
                for j in range(right - left):
                    w, x, y, z = s[j], t[j], u[j], v[j]
                    f = o[j] + _term(a0, w, apart) + _term(a1, x, apart)
                    o[j] = f + _term(a2, y, apart) + _term(a3, z, apart)
                    f = p[j] + _term(b0, w, apart) + _term(b1, x, apart)
                    p[j] = f + _term(b2, y, apart) + _term(b3, z, apart)
                    f = q[j] + _term(c0, w, apart) + _term(c1, x, apart)
                    q[j] = f + _term(c2, y, apart) + _term(c3, z, apart)
                    f = r[j] + _term(e0, w, apart) + _term(e1, x, apart)
                    r[j] = f + _term(e2, y, apart) + _term(e3, z, apart)
            for k in range(fours, d):
                s = Z[k, here:there]
                a, b, c, e = A[i, k], A[i + 1, k], A[i + 2, k], A[i + 3, k]
                for j in range(right - left):
                    o[j] += _term(a, s[j], apart)
                    p[j] += _term(b, s[j], apart)
                    q[j] += _term(c, s[j], apart)
                    r[j] += _term(e, s[j], apart)
            i += 4
        while i < last:
            o = out[i, left:right]
            for k in range(0, fours, 4):
                s, t = Z[k, here:there], Z[k + 1, here:there]
                u, v = Z[k + 2, here:there], Z[k + 3, here:there]
                a, b, c, e = A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3]
                for j in range(right - left):
                    f = o[j] + _term(a, s[j], apart) + _term(b, t[j], apart)
                    o[j] = f + _term(c, u[j], apart) + _term(e, v[j], apart)
            for k in range(fours, d):
                s, a = Z[k, here:there], A[i, k]
                for j in range(right - left):
                    o[j] += _term(a, s[j], apart)
            i += 1
