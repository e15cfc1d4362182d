"""How kernels are stored in memory.

    Triangles   one row of numbers per kernel, float64 or float32: the upper triangle
                (packed, half the memory) or the whole matrix (full, contiguous rows)
    Factors     K_m = L_m L_mᵀ with L_m side by side in one (n, R) array (factors.py)

Every operation takes `index`, the numbers of the kernels it concerns, so that a subset
of a stack needs no copy. The loops of loops.py run on all threads. Results are float64
for every storage. What the operations compute is documented in stack.py, under the same
names.

A store is `sized` if it knows `root_sizes`, bounds of √λ_max. One that is not in memory
has `identity()`, bytes that name all of its kernels, and `content(index)` for a digest.

Rounding. `chain(n)` is the length k for which the error of an entry of `matvec` is at
most γ_k |K||A|.
"""

from __future__ import annotations

import sys
import threading
from functools import cached_property
from typing import Any

import numpy as np

from ..util.rounding import TINY, gamma
from ..util.threads import spread
from . import loops
from .loops import CHUNK, COLUMNS, ROWS, TOGETHER

Array = np.ndarray
REMEMBERED = 4  # results of each operation that a stack keeps
_kept = threading.local()


def _scratch(size: int) -> Array:
    """Memory that a thread keeps for one operation: new memory would cost more time."""
    if getattr(_kept, "size", -1) != size:
        _kept.row, _kept.size = np.empty(size), size
    return _kept.row


def _taken(given: list[Array]) -> tuple[Array, int]:
    """The oldest of some arrays, taken out, and how many references it has."""
    room = given.pop(0)  # atomic: no two threads get the same one
    return room, sys.getrefcount(room)


class Rooms:
    """Memory of the last (n, n) results: used again once nobody else has the result.

    New memory costs ten times as long as the numbers that are written to it. A view of
    a result is a reference, too.
    """

    MOST, ALONE = REMEMBERED + 2, _taken([np.empty(1)])[1]

    def __init__(self) -> None:
        self._given: list[Array] = []

    def new(self, n: int) -> Array:
        """An (n, n) array; its numbers are anything."""
        room = self._free()
        if room is None:
            room = np.empty((n, n))
        if len(self._given) < self.MOST:
            self._given.append(room)
        room.flags.writeable = True
        return room

    def _free(self) -> Array | None:
        for _ in range(len(self._given)):
            try:
                room, references = _taken(self._given)
            except IndexError:  # other threads were faster
                return None
            if references == self.ALONE:
                return room
            self._given.append(room)
        return None

    def __reduce__(self) -> tuple:
        return Rooms, ()  # a copy has no memory yet


def used_rows(A: Array) -> Array:
    """The numbers of the rows of an (n, k) matrix that are not 0; one at least."""
    rows = np.flatnonzero(np.any(A, axis=1))
    return rows if len(rows) else np.arange(1)


def chunks(firsts: Array, lasts: Array) -> Array:
    """(·, 2): the beginnings and ends of chunks between pairs of places."""
    counts = -(-(lasts - firsts) // CHUNK)
    place = np.arange(np.sum(counts)) - np.repeat(np.cumsum(counts) - counts, counts)
    begins = np.repeat(firsts, counts) + CHUNK * place
    return np.column_stack([begins, np.minimum(begins + CHUNK, lasts.repeat(counts))])


def in_order(index: Array) -> bool:
    """Whether these are consecutive numbers, each one more than the one before."""
    return bool(np.all(np.diff(index) == 1))


class Triangles:
    """(M, L) numbers: entry (i, j ≥ i) of kernel m is P[m, starts[i] + j − i]."""

    remembered, sized = REMEMBERED, True
    offset = 0  # where the numbers of a kernel begin in its row of P

    def __init__(
        self, n: int, M: int, storage: str, dtype: Any, P: Array | None = None
    ):
        """P: memory to use, with rows of L numbers or more."""
        rows = np.arange(n)
        self.n, self.storage, self.full = n, storage, storage == "full"
        self.starts = rows * (n + 1) if self.full else rows * n - rows * (rows - 1) // 2
        self.size = n * n if self.full else n * (n + 1) // 2
        self.P = np.empty((M, self.size), dtype) if P is None else P
        self.dtype = np.dtype(dtype)
        self.rooms = Rooms()
        self.squares: Array | None = None  # (M,) sums of squares of triangles
        self.theorem: Array | None = None  # (M,) δ: K_m + δ_m I ⪰ 0 by a theorem

    def last(self, count: int) -> Triangles:
        """The packed kernels between the last samples; nothing is copied."""
        found, first = Triangles(count, 0, "packed", self.dtype, self.P), -count
        found.offset, found.starts = int(self.starts[first]), self.starts[first:]
        return found

    @property
    def numbers(self) -> Array:
        """(M, L): the stored numbers alone."""
        return self.P[:, self.offset : self.offset + self.size]

    @property
    def cost(self) -> float:
        """The cost of reading everything, in passes: 1 is M n² numbers of float64."""
        return self.size * self.P.itemsize / (8 * self.n**2)

    def whole(self, index: Array) -> bool:
        """Whether these are all kernels, in order, and in float64."""
        return len(index) == len(self.P) and self.P.dtype == float and in_order(index)

    def store(self, m: int, K: Array) -> tuple[float, float, float, float]:
        """Put (K + Kᵀ)/2 in place m; returns the measures of loops.store."""
        return loops.store(K, self.P[m], self.starts, self.full)

    def screen(self, which: Array, rounding: float) -> Array:
        """(M,): whether each kernel passes loops.screen."""
        passed = np.empty(len(self.P), bool)
        arguments, work = (self.P, self.starts, which, rounding, passed), which.size**3
        spread(loops.screen, *arguments, count=len(passed), work=work * len(passed))
        return passed

    @cached_property
    def root_sizes(self) -> Array:
        """Upper bounds of √λ_max(K_m): λ_max is at most the Frobenius norm."""
        M, squares, whole = len(self.P), self.squares, False
        if squares is None:
            squares, whole = np.empty(M), self.full
            spread(loops.squares, self.P, squares, count=M, work=self.P.size)
        with np.errstate(over="ignore", invalid="ignore"):
            if not whole:  # every pair was counted once, and so was the diagonal
                diagonal = self.P[:, self.starts].astype(float)
                squares = np.maximum(2 * squares - np.sum(diagonal**2, axis=1), squares)
            above = squares * (1 + gamma(self.n**2 + 16)) + TINY
            above[np.isnan(above)] = np.inf  # ∞ − ∞
            return np.asarray(np.sqrt(np.sqrt(above)) * (1 + gamma(8)) + TINY)

    def quad_chain(self, columns: int) -> int:
        """The k for which the error of `quad` is at most γ_k Σ|K_ij||A_i||A_j|.

        It is also enough for ⟨A, K A⟩ from `matvec`.
        """
        strips = CHUNK + -(-self.size // CHUNK) + self.n + columns + 4
        return max(strips, self.chain(self.n) + self.n * columns + 4)

    def combine(self, index: Array, theta: Array) -> Array:
        """Σ θ_m K_m."""
        flat = np.empty(self.size) if self.full else _scratch(self.size)
        self.add(index, theta, flat, True)
        return self.square(flat)

    def add(self, index: Array, theta: Array, flat: Array, fresh: bool) -> None:
        """flat = Σ θ_m K_m of the stored numbers; not fresh: added to it."""
        arguments = (self.P, index, theta, flat, self.offset, fresh)
        work = len(flat) * len(index)
        spread(loops.combine, *arguments, count=len(flat), work=work, unit=CHUNK)

    def square(self, flat: Array) -> Array:
        """The stored numbers of one kernel as an (n, n) matrix."""
        if self.full:
            return flat.reshape(self.n, self.n)
        out = self.rooms.new(self.n)
        spread(loops.unpack, flat, out, count=self.n, work=out.size, unit=ROWS)
        return out

    def quad(self, index: Array, A: Array) -> Array:
        """(tr AᵀK_mA)_m for an (n, k) matrix A."""
        if self.full:
            return self.dots(index, (A @ A.T).ravel(), self.all_pieces)
        return self.dots(index, *self.folded(A, _scratch(self.offset + self.size)))

    def folded(self, A: Array, w: Array) -> tuple[Array, Array]:
        """w with ⟨A, KA⟩ = ⟨stored numbers, w⟩, and the pieces of it that are not 0."""
        rows = used_rows(A)
        loops.products(A, self.starts, rows, w)
        return w, self.pieces(rows)

    def pieces(self, rows: Array) -> Array:
        """(·, 2): where rows begin and end, those side by side joined, in chunks."""
        ends = self.starts + self.n - np.arange(self.n)
        apart = np.flatnonzero(np.diff(rows) > 1)
        firsts, lasts = np.append(0, apart + 1), np.append(apart, len(rows) - 1)
        return chunks(self.starts[rows[firsts]], ends[rows[lasts]])

    def against(self, index: Array, S: Array) -> Array:
        """(⟨K_m, S⟩)_m for a symmetric S."""
        if self.full:
            return self.dots(index, S.ravel(), self.all_pieces)
        w = _scratch(self.offset + self.size)
        loops.fold(S, w[self.offset :])
        return self.dots(index, w, self.all_pieces)

    @cached_property
    def all_pieces(self) -> Array:
        """Everything, in chunks."""
        return chunks(np.array([self.offset]), np.array([self.offset + self.size]))

    def dots(self, index: Array, w: Array, pieces: Array) -> Array:
        """(⟨stored numbers of K_m, w⟩)_m, of these pieces of them."""
        out = np.empty(len(index))
        arguments, work = (self.P, index, w, pieces, out), self.size * len(index)
        spread(loops.dots, *arguments, count=len(index), work=work, unit=TOGETHER)
        return out

    def matvec(self, index: Array, A: Array) -> Array:
        """(K_m A_m)_m for A of shape (1 or M, n, k)."""
        return self._matvec(index, A, np.arange(self.n))

    def inside(self, index: Array, A: Array) -> Array:
        """(K_m A)_m for A of shape (1, n, k) where rows of A are not 0; 0 elsewhere."""
        rows = used_rows(A[0])
        out = self._matvec(index, A, rows)
        out[:, np.delete(np.arange(self.n), rows)] = 0.0
        return out

    def _matvec(self, index: Array, A: Array, rows: Array) -> Array:
        columns = np.ascontiguousarray(A.transpose(0, 2, 1))
        out = np.empty((len(index), A.shape[2], self.n))
        work = out.size * self.n
        arguments = (self.P, index, self.starts, rows, columns, out)
        spread(loops.matvec, *arguments, count=len(index), work=work)
        return np.ascontiguousarray(out.transpose(0, 2, 1))

    def share_of(self, A: Array) -> float:
        """The share of the stored numbers that `quad` and `inside` read for (n, k)."""
        rows = used_rows(A)
        return 1.0 if self.full else float(np.sum(self.n - rows)) / self.size

    def rows(self, index: Array, which: Array) -> Array:
        """(M, r, n): the rows with these numbers."""
        out = np.empty((len(index), len(which), self.n))
        loops.rows(self.P, index, self.starts, which, out)
        return out

    def samples(self, index: Array, which: Array) -> Triangles:
        """The kernels between some of the samples, in order, packed."""
        found = Triangles(len(which), len(index), "packed", self.dtype)
        arguments = (self.P, index, self.starts, which, found.starts, found.P)
        spread(loops.part, *arguments, count=len(index), work=found.P.size)
        return found

    def diag(self, index: Array) -> Array:
        """(M, n): the diagonals."""
        return self.P[np.ix_(index, self.starts)].astype(float)

    def kernel(self, m: int) -> Array:
        """(n, n): one kernel, copied."""
        return self.square(self.numbers[m].astype(float))

    def triangle(self, m: int) -> Array:
        """The upper triangle, row after row, in float64."""
        if not self.full:
            return self.numbers[m].astype(float)
        return self.kernel(m)[np.triu_indices(self.n)]

    def chain(self, terms: int) -> int:
        """The largest number of additions that one product takes part in."""
        tiles = ROWS + COLUMNS + -(-self.n // ROWS) + -(-self.n // COLUMNS)
        return min(terms, tiles) + 2
