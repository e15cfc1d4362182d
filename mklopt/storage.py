"""How kernels lie in memory, and the loops over them: numba, one thread per core.

    Triangles   one row of numbers per kernel, float64 or float32: the upper triangle
                (packed, half the memory) or the whole matrix (full, contiguous rows)
    Factors     K_m = L_m L_mᵀ with L_m side by side in one (n, R) array

Every operation takes the numbers of the kernels it concerns, so that a subset of a
stack needs no copy: on all kernels in float64 it is one BLAS call, otherwise a loop of
ours at the same speed. Products are float64 whatever the storage.

Rounding. `chain(n)` is the length k for which an entry of `matvec` carries the error
γ_k |K||A|. A row is summed in strips of COLUMNS, in any order inside a strip (`_strip`
is compiled with reassociation), and a column in ROWS at a time; from strip to strip
strictly as written.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numba import config as _config
from numba import float32, float64, int64, njit, types, uint64

Array = np.ndarray
ROWS, COLUMNS, CHUNK = 32, 64, 2048
SHORT = 1500  # numbers: twice as many fit in the first cache
REMEMBERED = 4  # results of each operation that a stack keeps
ANY_ORDER = {"reassoc", "contract", "nsz"}
THREADS: int = _config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
READ_ONLY = types.Array(float64, 2, "C", readonly=True)


def compiled(*signatures: Any, **options: Any) -> Callable:
    """njit, compiled when the module is imported (no warm-up later) and cached."""
    return njit(list(signatures), nogil=True, cache=True, **options)


def _both(result: Any, *arguments: Any) -> list:
    """One signature for each type of storage (the first argument)."""
    return [result(kind[:, ::1], *arguments) for kind in (float64, float32)]


# ---- threads -----------------------------------------------------------------

_pool: ThreadPoolExecutor | None = None


def _forget_threads() -> None:
    global _pool
    _pool = None  # threads do not survive a fork


os.register_at_fork(after_in_child=_forget_threads)


def _spread(loop: Callable, *arguments: Any, count: int, work: int) -> None:
    """loop(*arguments, first, last) over range(count), shared out among threads."""
    global _pool
    threads = min(THREADS, count)
    if threads == 1 or work < 200_000:
        loop(*arguments, 0, count)
        return
    if _pool is None:
        _pool = ThreadPoolExecutor(THREADS)
    ends = [count * t // threads for t in range(threads + 1)]
    jobs = [_pool.submit(loop, *arguments, a, b) for a, b in pairwise(ends)]
    for job in jobs:
        job.result()


# ---- the loops ---------------------------------------------------------------


@compiled(
    *_both(types.void, int64[::1], float64[::1], float64[::1], int64, int64),
    fastmath=ANY_ORDER,
)
def _combine(P, index, theta, out, first, last):
    """out[first:last] = Σ θ_m P[m, first:last], four kernels at a time."""
    M = len(index)
    for start in range(first, last, CHUNK):
        end = min(start + CHUNK, last)
        o = out[start:end]
        o[:] = 0.0
        k = 0
        while k + 4 <= M:
            a, b, c, d = theta[k], theta[k + 1], theta[k + 2], theta[k + 3]
            p, q = P[index[k], start:end], P[index[k + 1], start:end]
            r, s = P[index[k + 2], start:end], P[index[k + 3], start:end]
            for j in range(end - start):
                o[j] += a * p[j] + b * q[j] + c * r[j] + d * s[j]
            k += 4
        while k < M:
            a, p = theta[k], P[index[k], start:end]
            for j in range(end - start):
                o[j] += a * p[j]
            k += 1


@compiled(
    *_both(types.void, int64[::1], float64[::1], float64[::1], int64, int64),
    fastmath=ANY_ORDER,
)
def _dots(P, index, w, out, first, last):
    """out[k] = ⟨P[index[k]], w⟩ for first ≤ k < last, four kernels at a time."""
    out[first:last] = 0.0
    for start in range(0, len(w), CHUNK):
        end = min(start + CHUNK, len(w))
        x = w[start:end]
        k = first
        while k + 4 <= last:
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
            k += 4
        while k < last:
            p = P[index[k], start:end]
            a = 0.0
            for j in range(end - start):
                a += p[j] * x[j]
            out[k] += a
            k += 1


@njit(nogil=True, fastmath=ANY_ORDER)
def _strip(p, i, x, t, left, right, a):
    """A row between two columns: its product with x; t += a·row."""
    total = 0.0
    for m in range(left, right):
        total += p[i + m] * x[m]
        t[m] += a * p[i + m]
    return total


@njit(nogil=True, fastmath=ANY_ORDER)
def _four(p, i, j, k, l, x, t, left, right, a, b, c, d):
    """The same for four rows: x and t are read once for all of them."""
    e = f = g = h = 0.0
    for m in range(left, right):
        z, q, r, u, v = x[m], p[i + m], p[j + m], p[k + m], p[l + m]
        e += q * z
        f += r * z
        g += u * z
        h += v * z
        t[m] += (a * q + b * r) + (c * u + d * v)
    return e, f, g, h


@njit(nogil=True)
def _corner(p, starts, x, t, i):
    """The entries of rows i to i + 3 in columns i to i + 3."""
    for j in range(i, i + 4):
        t[j] += p[starts[j]] * x[j]
        for m in range(j + 1, i + 4):
            q = p[starts[j] + m - j]
            t[j] += q * x[m]
            t[m] += q * x[j]


@compiled(
    *_both(
        types.void,
        int64[::1],
        int64[::1],
        float64[:, :, ::1],
        float64[:, :, ::1],
        int64,
        int64,
    )
)
def _matvec(P, index, starts, A, out, first, last):
    """out[k] = K_k A_k from upper triangles; A has one block, or one per kernel.

    Row after row, as they lie in memory: anything else loses the prefetcher. Four rows
    at a time only where `a` and `t` do not stay in the first cache beside one. Unsigned
    indices tell the compiler that none of them counts from the end.
    """
    n = A.shape[2]
    t = np.empty(n)
    s = (starts - np.arange(n)).astype(np.uint64)
    for k in range(first, last):
        p = P[index[k]]
        for column in range(A.shape[1]):
            a, y = A[k if len(A) > 1 else 0, column], out[k, column]
            y[:] = 0.0
            for top in range(0, n, ROWS):
                bottom = min(top + ROWS, n)
                t[top:] = 0.0
                fours = top if n <= SHORT else top + (bottom - top) // 4 * 4
                for i in range(top, fours, 4):
                    _corner(p, starts, a, t, i)
                    e = f = g = h = 0.0
                    for left in range(i + 4, n, COLUMNS):
                        l, r = uint64(left), uint64(min(left + COLUMNS, n))
                        one, two, three, four = _four(
                            p, s[i], s[i + 1], s[i + 2], s[i + 3], a, t, l, r,
                            a[i], a[i + 1], a[i + 2], a[i + 3],
                        )  # fmt: skip
                        e, f, g, h = e + one, f + two, g + three, h + four
                    t[i] += e
                    t[i + 1] += f
                    t[i + 2] += g
                    t[i + 3] += h
                for i in range(fours, bottom):
                    row = p[starts[i]] * a[i]
                    for left in range(i + 1, n, COLUMNS):
                        l, r = uint64(left), uint64(min(left + COLUMNS, n))
                        row += _strip(p, s[i], a, t, l, r, a[i])
                    t[i] += row
                for j in range(top, n):
                    y[j] += t[j]


@compiled(types.void(float64[::1], float64[:, ::1]))
def _unpack(flat, out):
    """An upper triangle as a symmetric matrix: some rows, then the same as columns."""
    n = len(out)
    for top in range(0, n, ROWS):
        bottom = min(top + ROWS, n)
        for i in range(top, bottom):
            s = i * n - i * (i + 1) // 2
            out[i, i:] = flat[s + i : s + n]
        for j in range(top, n):
            row = out[j]
            for i in range(top, min(bottom, j)):
                row[i] = out[i, j]


@compiled(*_both(types.void, int64[::1], int64[::1], int64[::1], float64[:, :, ::1]))
def _rows(P, index, starts, which, out):
    """Rows of symmetric matrices from their upper triangles."""
    for k in range(len(index)):
        p = P[index[k]]
        for place in range(len(which)):
            i, row = which[place], out[k, place]
            for j in range(i):
                row[j] = p[starts[j] + i - j]
            for j in range(i, len(row)):
                row[j] = p[starts[i] + j - i]


@compiled(
    *[
        types.UniTuple(float64, 4)(READ_ONLY, kind[::1], int64[::1], int64)
        for kind in (float64, float32)
    ]
)
def _store(K, out, starts, full):
    """Store (K + Kᵀ)/2; what validation asks about is measured on the way.

    Returns the largest entry, the largest asymmetry, the smallest diagonal entry, and
    0 or NaN: whether all entries are finite.
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


@compiled(types.void(float64[:, ::1], float64[::1]))
def _products(A, out):
    """⟨A, K A⟩ = ⟨upper triangle of K, out⟩: out_ij = 2⟨A_i, A_j⟩, halved at i = j."""
    n, k = A.shape
    place = 0
    for i in range(n):
        for j in range(i, n):
            s = 0.0
            for c in range(k):
                s += A[i, c] * A[j, c]
            out[place] = s if i == j else 2 * s
            place += 1


@compiled(types.void(READ_ONLY, float64[::1]))
def _fold(S, out):
    """⟨S, K⟩ = ⟨upper triangle of K, out⟩ for symmetric matrices."""
    n = len(S)
    place = 0
    for i in range(n):
        out[place] = S[i, i]
        for j in range(i + 1, n):
            out[place + j - i] = 2 * S[i, j]
        place += n - i


@compiled(
    types.void(
        float64[:, ::1],
        int64[::1],
        int64[::1],
        float64[:, :, ::1],
        float64[:, :, ::1],
        int64,
        int64,
    ),
    fastmath=ANY_ORDER,
)
def _through(F, index, ends, A, out, first, last):
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


_kept = threading.local()


def _scratch(size: int) -> Array:
    """Memory of a thread for one operation: fresh pages cost more than filling them."""
    if getattr(_kept, "size", -1) != size:
        _kept.row, _kept.size = np.empty(size), size
    return _kept.row


def in_order(index: Array) -> bool:
    """Whether the numbers of kernels count up one by one."""
    return bool(np.all(np.diff(index) == 1))


# ---- two kinds of storage (lazy.py has the third) -----------------------------


class Triangles:
    """(M, L) numbers: entry (i, j ≥ i) of kernel m is P[m, starts[i] + j − i]."""

    remembered = REMEMBERED

    def __init__(self, n: int, M: int, storage: str, dtype: Any):
        rows = np.arange(n)
        self.n, self.storage, self.full = n, storage, storage == "full"
        self.starts = rows * (n + 1) if self.full else rows * n - rows * (rows - 1) // 2
        size = n * n if self.full else n * (n + 1) // 2
        self.P = np.empty((M, size), dtype)

    @property
    def cost(self) -> float:
        """What reading everything costs, in passes: 1 = M n² numbers of float64."""
        return self.P.shape[1] * self.P.itemsize / (8 * self.n**2)

    def _whole(self, index: Array) -> bool:
        """All kernels in float64: then a product is one call of BLAS."""
        return len(index) == len(self.P) and self.P.dtype == float and in_order(index)

    def store(self, m: int, K: Array) -> tuple[float, float, float, float]:
        return _store(K, self.P[m], self.starts, self.full)

    def combine(self, index: Array, theta: Array) -> Array:
        flat = np.empty(self.P.shape[1]) if self.full else _scratch(self.P.shape[1])
        if self._whole(index):
            np.matmul(theta, self.P, out=flat)
        else:
            count, work = len(flat), len(flat) * len(index)
            _spread(_combine, self.P, index, theta, flat, count=count, work=work)
        if self.full:
            return flat.reshape(self.n, self.n)
        out = np.empty((self.n, self.n))
        _unpack(flat, out)
        return out

    def quad(self, index: Array, A: Array) -> Array:
        if self.full:
            return self._against(index, (A @ A.T).ravel())
        w = _scratch(self.P.shape[1])
        _products(A, w)
        return self._against(index, w)

    def against(self, index: Array, S: Array) -> Array:
        """(⟨K_m, S⟩)_m for a symmetric S."""
        if self.full:
            return self._against(index, S.ravel())
        w = _scratch(self.P.shape[1])
        _fold(S, w)
        return self._against(index, w)

    def _against(self, index: Array, w: Array) -> Array:
        if self._whole(index):
            return np.asarray(self.P @ w)
        out = np.empty(len(index))
        work = len(w) * len(index)
        _spread(_dots, self.P, index, w, out, count=len(index), work=work)
        return out

    def matvec(self, index: Array, A: Array) -> Array:
        """(K_m A_m)_m for A of shape (1 or M, n, k)."""
        columns = np.ascontiguousarray(A.transpose(0, 2, 1))
        out = np.empty((len(index), A.shape[2], self.n))
        work = out.size * self.n
        arguments = (self.P, index, self.starts, columns, out)
        _spread(_matvec, *arguments, count=len(index), work=work)
        return np.ascontiguousarray(out.transpose(0, 2, 1))

    def rows(self, index: Array, which: Array) -> Array:
        out = np.empty((len(index), len(which), self.n))
        _rows(self.P, index, self.starts, which, out)
        return out

    def diag(self, index: Array) -> Array:
        return self.P[np.ix_(index, self.starts)].astype(float)

    def kernel(self, m: int) -> Array:
        flat = self.P[m].astype(float)
        if self.full:
            return flat.reshape(self.n, self.n)
        out = np.empty((self.n, self.n))
        _unpack(flat, out)
        return out

    def triangle(self, m: int) -> Array:
        """The upper triangle, row after row, in float64."""
        if not self.full:
            return self.P[m].astype(float)
        return self.kernel(m)[np.triu_indices(self.n)]

    def chain(self, terms: int) -> int:
        """Additions between a product and the sum it ends in, at most."""
        tiles = ROWS + COLUMNS + -(-self.n // ROWS) + -(-self.n // COLUMNS)
        return min(terms, tiles) + 2


class Factors:
    """L_m = F[:, ends[m]:ends[m + 1]]; K_m = L_m L_mᵀ is never formed."""

    storage, remembered = "factors", REMEMBERED

    def __init__(self, factors: Sequence[Array]):
        self.F = np.ascontiguousarray(np.hstack(factors))
        self.ends = np.cumsum([0, *(L.shape[1] for L in factors)])
        self.n = len(self.F)

    @property
    def cost(self) -> float:
        return self.F.size / ((len(self.ends) - 1) * self.n**2)

    def factor(self, m: int) -> Array:
        return self.F[:, self.ends[m] : self.ends[m + 1]]

    def _columns(self, index: Array) -> tuple[Array | slice, Array]:
        """The columns of F that belong to the kernels, and to which kernel each."""
        ranks = np.diff(self.ends)[index]
        owner = np.repeat(np.arange(len(index)), ranks)
        if len(index) == len(self.ends) - 1 and in_order(index):
            return slice(None), owner
        within = np.arange(len(owner)) - np.repeat(np.cumsum(ranks) - ranks, ranks)
        return self.ends[index][owner] + within, owner

    def combine(self, index: Array, theta: Array) -> Array:
        columns, owner = self._columns(index)
        F = self.F[:, columns]
        return np.asarray((F * theta[owner]) @ F.T)

    def quad(self, index: Array, A: Array) -> Array:
        columns, owner = self._columns(index)
        squares = np.sum((self.F[:, columns].T @ A) ** 2, axis=1)
        return np.bincount(owner, squares, minlength=len(index))

    def against(self, index: Array, S: Array) -> Array:
        columns, owner = self._columns(index)
        F = self.F[:, columns]
        return np.bincount(owner, np.sum(F * (S @ F), axis=0), minlength=len(index))

    def matvec(self, index: Array, A: Array) -> Array:
        out = np.empty((len(index), *A.shape[1:]))
        arguments = (self.F, index, self.ends, np.ascontiguousarray(A), out)
        work = len(index) * self.F.size // (len(self.ends) - 1)
        _spread(_through, *arguments, count=len(index), work=work)
        return out

    def rows(self, index: Array, which: Array) -> Array:
        return np.stack([self.factor(m)[which] @ self.factor(m).T for m in index])

    def diag(self, index: Array) -> Array:
        columns, owner = self._columns(index)
        squares = (self.F[:, columns] ** 2).T
        out = np.zeros((len(index), self.n))
        np.add.at(out, owner, squares)
        return out

    def kernel(self, m: int) -> Array:
        return np.asarray(self.factor(m) @ self.factor(m).T)

    def chain(self, terms: int) -> int:
        return terms + int(np.max(np.diff(self.ends), initial=0)) + 4
