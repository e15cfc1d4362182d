"""Kernels that are stored as factors: K_m = L_m L_mᵀ, and no n × n matrix.

The factors stand side by side in one (n, R) array F, in float64 or float32; in float32
the rounded factors are the data. With the feature weights w_m ∈ R^{r_m} of each kernel,
stacked in the same order,

    fold(A)      FᵀA: L_mᵀA of all kernels, (R, k)
    unfold(W)    F W = Σ_m L_m w_m, (n, k)
    gram         (F, 1)ᵀ diag(d) (F, 1), over some of the rows

All loops run on all threads in fixed blocks of rows (factor_loops.py).

Rounding. `fold_chain` and `unfold_chain` are the k of the error bounds γ_k |F|ᵀ|A| and
γ_k |F||W|; `fold_sizes` and `unfold_sizes` are these sums of absolute values.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..util.threads import spread
from . import factor_loops, loops
from .factor_loops import BLOCK
from .storage import REMEMBERED, in_order

Array = np.ndarray
ROWS_AT_ONCE = 512  # rows of one product in `gram`
MANY_COLUMNS = 4  # from so many on, products are those of BLAS
PARTS = 8  # sums of `gram`, which are made apart; a fixed number, whatever the threads
SMALL_PART = 4 * ROWS_AT_ONCE  # rows: fewer are not worth a sum of their own


class Panel:
    """Some columns of one (n, R) array, and products with them.

    runs: ranges of columns (first, last) in order, an (r, 2) array
    """

    def __init__(self, F: Array, runs: Array):
        self.F, self.runs = F, runs
        self.n, self.R = len(F), int(np.sum(runs[:, 1] - runs[:, 0]))
        self.places = np.concatenate([np.arange(*run) for run in runs])

    @property
    def unfold_chain(self) -> int:
        """The k for which the error of `unfold` is at most γ_k times its sizes."""
        return self.R + len(self.runs) + 2

    @property
    def fold_chain(self) -> int:
        """The k for which the error of `fold` is at most γ_k times its sizes."""
        return BLOCK + -(-self.n // BLOCK) + 2

    def unfold(self, W: Array, sizes: bool = False) -> Array:
        """F W, (n, k) for W of shape (R, k); or the sums of absolute values."""
        wide = np.zeros((W.shape[1], self.F.shape[1]))
        wide[:, self.places] = W.T
        out = np.empty((self.n, W.shape[1]))
        many = W.shape[1] >= MANY_COLUMNS
        loop = factor_loops.times_sizes if sizes else factor_loops.times
        loop = _times if many and not sizes else loop
        work = self.n * self.R * W.shape[1]
        arguments = (self.F, self.runs, wide, out)
        spread(loop, *arguments, count=self.n, work=work, unit=BLOCK)
        return out

    def fold(self, A: Array, sizes: bool = False) -> Array:
        """FᵀA, (R, k) for A of shape (n, k); or the sums of absolute values."""
        A = np.ascontiguousarray(A)
        blocks = np.empty((-(-self.n // BLOCK), A.shape[1], self.F.shape[1]))
        many = A.shape[1] >= MANY_COLUMNS
        loop = factor_loops.against_sizes if sizes else factor_loops.against
        loop = _against if many and not sizes else loop
        work = self.n * self.R * A.shape[1]
        arguments = (self.F, self.runs, A, blocks)
        spread(loop, *arguments, count=self.n, work=work, unit=BLOCK)
        total = np.zeros(blocks.shape[1:])
        for block in blocks:
            total += block
        return np.ascontiguousarray(total[:, self.places].T)

    def rows(self, which: Array) -> Panel:
        """Some of the rows, copied, with these columns only."""
        out = np.empty((len(which), self.R), self.F.dtype)
        work = out.size
        arguments = (self.F, self.runs, which, out)
        spread(factor_loops.gather, *arguments, count=len(which), work=work)
        return Panel(out, np.array([[0, self.R]]))

    def gram(self, which: Array, d: Array) -> Array:
        """(F, 1)ᵀ diag(d) (F, 1) over the rows `which`, d ≥ 0: (R + 1, R + 1).

        The last column is Fᵀd, and its last entry Σd.
        """
        scale, width = np.sqrt(d), self.R + 1
        parts = max(min(PARTS, -(-len(which) // SMALL_PART)), 1)
        total = np.zeros((parts, width, width))
        ends = np.linspace(0, len(which), parts + 1).astype(int)

        def add(first: int, last: int) -> None:
            room = np.empty((ROWS_AT_ONCE, width))
            for part in range(first, last):
                for start in range(ends[part], ends[part + 1], ROWS_AT_ONCE):
                    some = slice(start, min(start + ROWS_AT_ONCE, ends[part + 1]))
                    rows = room[: some.stop - some.start]
                    factor_loops.gather_scaled(
                        self.F, self.runs, which[some], scale[some], rows
                    )
                    total[part] += rows.T @ rows

        spread(add, count=parts, work=len(which) * self.R**2)
        for part in range(1, parts):
            total[0] += total[part]
        return total[0]


def _times(F: Array, runs: Array, W: Array, out: Array, first: int, last: int) -> None:
    """factor_loops.times by BLAS, a block of rows at a time."""
    for start in range(first, last, BLOCK):
        rows = slice(start, min(start + BLOCK, last))
        out[rows] = 0.0
        for left, right in runs:
            out[rows] += F[rows, left:right] @ W[:, left:right].T


def _against(
    F: Array, runs: Array, A: Array, out: Array, first: int, last: int
) -> None:
    """factor_loops.against by BLAS, a block of rows at a time."""
    for start in range(first, last, BLOCK):
        rows = slice(start, min(start + BLOCK, last))
        for left, right in runs:
            out[start // BLOCK, :, left:right] = A[rows].T @ F[rows, left:right]


class Factors:
    """L_m = F[:, ends[m]:ends[m + 1]]; K_m = L_m L_mᵀ is never formed."""

    storage, remembered = "factors", REMEMBERED

    def __init__(self, factors: Any, ranks: Array | None = None):
        """Factors, which are copied, or one (n, R) array with their ranks."""
        if ranks is None:
            ranks = np.array([L.shape[1] for L in factors])
            factors = np.hstack(list(factors))
        self.F = np.ascontiguousarray(factors)
        self.ends = np.cumsum([0, *ranks])
        self.n, self.dtype = len(self.F), self.F.dtype

    @property
    def cost(self) -> float:
        """The cost of reading everything, in passes: 1 is M n² numbers of float64."""
        size = self.F.size * self.F.itemsize / 8
        return size / ((len(self.ends) - 1) * self.n**2)

    @cached_property
    def finite(self) -> bool:
        """Whether all numbers are finite."""
        found = np.zeros(-(-self.n // BLOCK))

        def look(first: int, last: int) -> None:
            found[first // BLOCK] = factor_loops.unusual(self.F, first, last)

        spread(look, count=self.n, work=self.F.size, unit=BLOCK)
        return bool(np.all(found == 0))

    def factor(self, m: int) -> Array:
        """L_m, (n, r_m), in float64; without a copy if it is stored so."""
        part = self.F[:, self.ends[m] : self.ends[m + 1]]
        return part.astype(float, copy=False)

    def ranks(self, index: Array) -> Array:
        """The numbers of columns r_m."""
        return np.diff(self.ends)[index]

    def panel(self, index: Array) -> Panel:
        """The columns of these kernels, in order, with products.

        They are copied if kernels are repeated, or if there are none.
        """
        if len(np.unique(index)) < len(index) or len(index) == 0:
            columns, owner = self._columns(index)
            copied = np.ascontiguousarray(self.F[:, columns])
            return Panel(copied, np.array([[0, len(owner)]]))
        runs = np.column_stack([self.ends[index], self.ends[np.add(index, 1)]])
        joined = [list(runs[0])]
        for first, last in runs[1:]:
            if first == joined[-1][1]:
                joined[-1][1] = last
            else:
                joined.append([first, last])
        return Panel(self.F, np.array(joined))

    def _columns(self, index: Array) -> tuple[Array | slice, Array]:
        """The columns of F of these kernels, and the place in `index` of each owner."""
        ranks = np.diff(self.ends)[index]
        owner = np.repeat(np.arange(len(index)), ranks)
        if len(index) == len(self.ends) - 1 and in_order(index):
            return slice(None), owner
        within = np.arange(len(owner)) - np.repeat(np.cumsum(ranks) - ranks, ranks)
        return self.ends[index][owner] + within, owner

    def _part(self, index: Array) -> tuple[Array, Array]:
        """The columns of these kernels in float64, and the place of each owner."""
        columns, owner = self._columns(index)
        return self.F[:, columns].astype(float, copy=False), owner

    def combine(self, index: Array, theta: Array) -> Array:
        """Σ θ_m L_m L_mᵀ."""
        F, owner = self._part(index)
        return np.asarray((F * theta[owner]) @ F.T)

    def quad(self, index: Array, A: Array) -> Array:
        """(‖L_mᵀA‖²)_m for an (n, k) matrix A."""
        owner = np.repeat(np.arange(len(index)), self.ranks(index))
        squares = np.sum(self.panel(index).fold(A) ** 2, axis=1)
        return np.bincount(owner, squares, minlength=len(index))

    def against(self, index: Array, S: Array) -> Array:
        """(⟨K_m, S⟩)_m for a symmetric S."""
        F, owner = self._part(index)
        return np.bincount(owner, np.sum(F * (S @ F), axis=0), minlength=len(index))

    def matvec(self, index: Array, A: Array) -> Array:
        """(L_m L_mᵀA_m)_m for A of shape (1 or M, n, k)."""
        out = np.empty((len(index), *A.shape[1:]))
        arguments = (self.F, index, self.ends, np.ascontiguousarray(A), out)
        work = len(index) * self.F.size // (len(self.ends) - 1)
        spread(loops.through, *arguments, count=len(index), work=work)
        return out

    def rows(self, index: Array, which: Array) -> Array:
        """(M, r, n): the rows with these numbers."""
        return np.stack([self.factor(m)[which] @ self.factor(m).T for m in index])

    def diag(self, index: Array) -> Array:
        """(M, n): the diagonals, sums of squares of rows of L_m."""
        out = np.empty((len(index), self.n))
        for place, m in enumerate(index):
            for start in range(0, self.n, BLOCK):
                rows = self.F[start : start + BLOCK, self.ends[m] : self.ends[m + 1]]
                squares = np.square(rows, dtype=float)
                out[place, start : start + BLOCK] = np.sum(squares, axis=1)
        return out

    def kernel(self, m: int) -> Array:
        """(n, n): one kernel, multiplied out."""
        return np.asarray(self.factor(m) @ self.factor(m).T)

    def chain(self, terms: int) -> int:
        """The largest number of additions that one product takes part in."""
        return terms + int(np.max(np.diff(self.ends), initial=0)) + 4
