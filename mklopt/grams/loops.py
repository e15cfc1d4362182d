"""The compiled loops over stored kernels: one thread works on a range of them.

Rounding. A row is summed in strips of COLUMNS, in any order inside a strip
(`_four_dots` is compiled with reassociation), and a column in groups of ROWS; strips
and groups are added strictly in the order written. `chain` of storage.py bounds the
error from this.
"""

import numpy as np
from numba import uint64

from ..util.compiled import compiled, inlined, prefetch

ROWS, COLUMNS = 32, 128  # the size of a tile; `chain` depends on it
TOGETHER = 4  # kernels that `combine` and `dots` read at a time
LINE = 8  # numbers in one line of memory
CHUNK = 2048  # numbers of each of these kernels that stay in the first cache
ANY_ORDER = {"reassoc", "contract", "nsz"}


@compiled(fastmath=ANY_ORDER)
def combine(P, index, theta, out, offset, fresh, first, last):
    """out[j] = Σ θ_m P[m, offset + j], first ≤ j < last, four kernels at a time.

    fresh = False: added to `out`. The kernels of a sum may come in parts of a multiple
    of four: it is the same sum, to the last bit.
    """
    M = len(index)
    for start in range(first, last, CHUNK):
        end = min(start + CHUNK, last)
        o, left, right = out[start:end], offset + start, offset + end
        if fresh:
            o[:] = 0.0
        for k in range(0, M - 3, 4):
            a, b, c, d = theta[k], theta[k + 1], theta[k + 2], theta[k + 3]
            p, q = P[index[k], left:right], P[index[k + 1], left:right]
            r, s = P[index[k + 2], left:right], P[index[k + 3], left:right]
            for j in range(end - start):
                o[j] += a * p[j] + b * q[j] + c * r[j] + d * s[j]
        for k in range(M // 4 * 4, M):
            a, p = theta[k], P[index[k], left:right]
            for j in range(end - start):
                o[j] += a * p[j]


@compiled(fastmath=ANY_ORDER)
def dots(P, index, w, pieces, out, first, last):
    """out[k] = ⟨P[index[k]], w⟩ for first ≤ k < last, four kernels at a time.

    Only the pieces between pieces[:, 0] and pieces[:, 1] are read.
    """
    out[first:last] = 0.0
    for piece in range(len(pieces)):
        start, end = pieces[piece, 0], pieces[piece, 1]
        x = w[start:end]
        for k in range(first, last - 3, 4):
            p, q = P[index[k], start:end], P[index[k + 1], start:end]
            r, s = P[index[k + 2], start:end], P[index[k + 3], start:end]
            a = b = c = d = 0.0
            for j in range(end - start):
                a += p[j] * x[j]
                b += q[j] * x[j]
                c += r[j] * x[j]
                d += s[j] * x[j]
            out[k] += a
            out[k + 1] += b
            out[k + 2] += c
            out[k + 3] += d
        for k in range(last - (last - first) % 4, last):
            p = P[index[k], start:end]
            a = 0.0
            for j in range(end - start):
                a += p[j] * x[j]
            out[k] += a


@inlined(fastmath=ANY_ORDER)
def _four_dots(p, i, j, k, l, x, left, right):
    """The products of four rows with x, between two columns."""
    e = f = g = h = 0.0
    for m in range(left, right):
        z = x[m]
        e += p[i + m] * z
        f += p[j + m] * z
        g += p[k + m] * z
        h += p[l + m] * z
    return e, f, g, h


@inlined(fastmath=ANY_ORDER)
def _add_four(p, i, j, k, l, t, left, right, a, b, c, d):
    """t += a·row + b·row + c·row + d·row for four rows, between two columns."""
    for m in range(left, right):
        t[m] += (a * p[i + m] + b * p[j + m]) + (c * p[k + m] + d * p[l + m])


@inlined()
def _fetch(p, i, j, k, l, left, right):
    """Ask for four rows, between two columns, before they are needed."""
    for m in range(left, right, uint64(LINE)):
        prefetch(p, i + m)
        prefetch(p, j + m)
        prefetch(p, k + m)
        prefetch(p, l + m)


@inlined()
def _corner(p, s, x, t, rows):
    """The entries of a few rows in these columns."""
    for a in range(len(rows)):
        j = rows[a]
        t[j] += p[s[j] + j] * x[j]
        for b in range(a + 1, len(rows)):
            m = rows[b]
            q = p[s[j] + m]
            t[j] += q * x[m]
            t[m] += q * x[j]


@compiled()
def matvec(P, index, starts, rows, A, out, first, last):
    """out[k] = K_k A_k from upper triangles; A has one block, or one per kernel.

    Only `rows` are read: the products there are right if A is 0 elsewhere.
    Rows are read in the order they have in memory, which the processor prefetches, four
    at a time, and twice: the second time they are in the first cache. In one loop, sums
    over rows and over columns hinder each other, and it takes half as long again.
    Meanwhile the next four rows are fetched: memory is never idle.
    Unsigned indices tell the compiler that none of them counts from the end.
    """
    n, count = A.shape[2], len(rows)
    t, s, at = np.empty(n), np.empty(n, np.uint64), np.empty(count + 4, np.uint64)
    for i in range(n):
        s[i] = starts[i] - i
    for j in range(count + 4):
        at[j] = rows[min(j, count - 1)]
    for k in range(first, last):
        p = P[index[k]]
        for column in range(A.shape[1]):
            a, y = A[k if len(A) > 1 else 0, column], out[k, column]
            y[:] = 0.0
            for top in range(0, count, ROWS):
                bottom = min(top + ROWS, count)
                begin, fours = rows[top], top + (bottom - top) // 4 * 4
                t[begin:] = 0.0
                for r in range(top, fours, 4):
                    _corner(p, s, a, t, at[r : r + 4])
                    h, i, j, l = at[r], at[r + 1], at[r + 2], at[r + 3]
                    q, u, v, w = s[h], s[i], s[j], s[l]
                    after = rows[r + 3] + 1
                    _add_four(
                        p, q, u, v, w, t, uint64(after), uint64(n),
                        a[h], a[i], a[j], a[l],
                    )  # fmt: skip
                    f, g, m, o = s[at[r + 4]], s[at[r + 5]], s[at[r + 6]], s[at[r + 7]]
                    b = c = d = e = 0.0
                    for left in range(after, n, COLUMNS):
                        right = uint64(min(left + COLUMNS, n))
                        _fetch(p, f, g, m, o, uint64(left), right)
                        one, two, three, four = _four_dots(
                            p, q, u, v, w, a, uint64(left), right
                        )
                        b, c, d, e = b + one, c + two, d + three, e + four
                    t[h] += b
                    t[i] += c
                    t[j] += d
                    t[l] += e
                _corner(p, s, a, t, at[fours:bottom])
                for j in range(begin, n):
                    y[j] += t[j]


@compiled()
def unpack(flat, out, first, last):
    """Rows first ≤ i < last of an upper triangle, and their mirror image, in `out`.

    They are filled in bands: ROWS rows, then the columns, while they are cached.
    """
    n = len(out)
    for top in range(first, last, ROWS):
        bottom = min(top + ROWS, last)
        for i in range(top, bottom):
            s = i * n - i * (i + 1) // 2
            row = out[i]
            for j in range(i, n):
                row[j] = flat[s + j]
        for j in range(top, n):
            row = out[j]
            for i in range(top, min(bottom, j)):
                row[i] = out[i, j]


@compiled()
def rows(P, index, starts, which, out):
    """Rows of symmetric matrices from their upper triangles."""
    for k in range(len(index)):
        p = P[index[k]]
        for place in range(len(which)):
            i, row = which[place], out[k, place]
            for j in range(i):
                row[j] = p[starts[j] + i - j]
            for j in range(i, len(row)):
                row[j] = p[starts[i] + j - i]


@compiled()
def part(P, index, starts, which, begins, out, first, last):
    """Upper triangles of the rows and columns `which`, which are in order."""
    for k in range(first, last):
        p, o = P[index[k]], out[k]
        for a in range(len(which)):
            s, t = starts[which[a]] - which[a], begins[a] - a
            for b in range(a, len(which)):
                o[t + b] = p[s + which[b]]


@inlined(fastmath=ANY_ORDER)
def _factored(L, shift):
    """Whether L + δI has a Cholesky factor, which is written over the lower L."""
    for i in range(len(L)):
        row = L[i]
        for j in range(i + 1):
            s, other = row[j], L[j]
            for k in range(j):
                s -= row[k] * other[k]
            row[j] = s / other[j] if j < i else np.sqrt(s + shift)
        if not row[i] > 0:
            return False
    return True


@compiled()
def screen(P, starts, which, rounding, passed, first, last):
    """passed[m]: the samples `which` of K_m + δI have a Cholesky factor.

    δ is `rounding` times the trace. The smallest number of all is added to it, so that
    0 is a kernel, while others without a diagonal are none.
    """
    L = np.empty((len(which), len(which)))
    for m in range(first, last):
        p, shift = P[m], 5e-324
        for j in range(len(which)):
            start = starts[which[j]]
            shift += rounding * p[start]
            for i in range(j, len(which)):
                L[i, j] = p[start + which[i] - which[j]]
        passed[m] = _factored(L, shift)


@compiled(fastmath=ANY_ORDER)
def squares(P, out, first, last):
    """out[m] = Σ P[m]²."""
    for m in range(first, last):
        p, total = P[m], 0.0
        for j in range(len(p)):
            a = np.float64(p[j])
            total += a * a
        out[m] = total


@compiled()
def store(K, out, starts, full):
    """Store (K + Kᵀ)/2, and measure in the same pass what validation needs.

    Returns the largest |K_ij|, the largest |K_ij − K_ji|, the smallest diagonal entry,
    and 0 if all entries are finite, NaN otherwise.
    """
    n = len(K)
    top = skew = nan = 0.0
    lowest = K[0, 0]
    for row in range(0, n, ROWS):
        for column in range(row, n, ROWS):
            for i in range(row, min(row + ROWS, n)):
                for j in range(max(i, column), min(column + ROWS, n)):
                    a, b = K[i, j], K[j, i]
                    nan += 0.0 * a + 0.0 * b
                    top = max(top, abs(a))
                    skew = max(skew, abs(a - b))
                    out[starts[i] + j - i] = 0.5 * a + 0.5 * b
            if full:
                for j in range(column, min(column + ROWS, n)):
                    for i in range(row, min(row + ROWS, j)):
                        out[starts[j] - j + i] = out[starts[i] + j - i]
        for i in range(row, min(row + ROWS, n)):
            lowest = min(lowest, K[i, i])
    return top, skew, lowest, nan


@compiled()
def products(A, starts, rows, out):
    """⟨A, K A⟩ = ⟨upper triangle of K, out⟩: out_ij = 2⟨A_i, A_j⟩, halved at i = j.

    Only `rows` are written; in all others A is 0.
    """
    n, k = A.shape
    for i in rows:
        place = starts[i]
        for j in range(i, n):
            s = 0.0
            for c in range(k):
                s += A[i, c] * A[j, c]
            out[place] = s if i == j else 2 * s
            place += 1


@compiled()
def fold(S, out):
    """⟨S, K⟩ = ⟨upper triangle of K, out⟩ for symmetric matrices."""
    n = len(S)
    place = 0
    for i in range(n):
        out[place] = S[i, i]
        for j in range(i + 1, n):
            out[place + j - i] = 2 * S[i, j]
        place += n - i


@compiled(fastmath=ANY_ORDER)
def through(F, index, ends, A, out, first, last):
    """out[k] = L (Lᵀ A_k) for the factors L of kernels index[first:last]."""
    for k in range(first, last):
        L = F[:, ends[index[k]] : ends[index[k] + 1]]
        a = A[k if len(A) > 1 else 0]
        folded = np.zeros((a.shape[1], L.shape[1]))
        for i in range(len(L)):
            for c in range(a.shape[1]):
                for r in range(L.shape[1]):
                    folded[c, r] += L[i, r] * a[i, c]
        for i in range(len(L)):
            for c in range(a.shape[1]):
                s = 0.0
                for r in range(L.shape[1]):
                    s += L[i, r] * folded[c, r]
                out[k, i, c] = s
