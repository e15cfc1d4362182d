"""Kernels that are stored as factors: K_m = L_m L_mᵀ, and no n × n matrix.

The factors stand side by side in one (n, R) array F, in float64 or float32; in float32
the rounded factors are the data. With the feature weights w_m ∈ R^{r_m} of each kernel,
stacked in the same order,

    fold(A)      FᵀA: L_mᵀA of all kernels, (R, k)
    unfold(W)    F W = Σ_m L_m w_m, (n, k)
    gram         (F, 1)ᵀ diag(d) (F, 1), over some of the rows
    ascend       steps of dual coordinate ascent, one row after the other

All loops run on all threads in fixed blocks of rows (factor_loops.py). Sums over rows
are made in at most PIECES pieces of whole blocks, and these are added by the tree of
partition.py. The pieces depend on n alone: when workers of a cluster have one piece or
several each (kernels/cluster), sums have the same bits. Some of the rows keep the
pieces that they come from; fewer than FEW_ROWS are one piece.

Rounding. `fold_chain` and `unfold_chain` are the k of the error bounds γ_k |F|ᵀ|A| and
γ_k |F||W|; `fold_sizes` and `unfold_sizes` are these sums of absolute values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..util.threads import spread
from . import factor_loops, loops
from .factor_loops import BLOCK
from .partition import Node, Partition, is_block
from .storage import REMEMBERED, in_order

Array = np.ndarray
ROWS_AT_ONCE = 512  # rows of one product in `gram`
MANY_COLUMNS = 4  # from so many on, products are those of BLAS
PIECES = 16  # of rows, at most, with sums of their own; so many workers can have rows
FEW_ROWS = 4 * ROWS_AT_ONCE  # fewer are not worth several sums, nor several workers


def row_pieces(n: int) -> Partition:
    """The pieces of n rows."""
    return Partition(n, BLOCK, PIECES)


class Coordinates(NamedTuple):
    """Where dual coordinate ascent is: α, and w = scale ∘ Fᵀα in all columns of F."""

    scale: Array
    form: Array  # (5, n): ℓ, κ, r, low and high of max ℓα − κ|α| − ½rα²
    alpha: Array
    w: Array
    squares: Array  # Σ_j scale_j F_ij² of each row; -1: not known yet


class Panel:
    """Some columns of one (n, R) array, and products with them.

    runs: ranges of columns (first, last) in order, an (r, 2) array
    ends: where the pieces of rows begin, and n; by default those of n rows
    width: the number of columns of F, those outside of the runs included
    here: whether F is in this process
    """

    here = True

    def __init__(self, F: Array, runs: Array, ends: Array | None = None):
        self.F = F
        if ends is None:
            cut = row_pieces(len(F))
            ends = np.append(np.arange(cut.count) * cut.size, len(F))
        self._set(runs, ends, F.shape[1])

    def _set(self, runs: Array, ends: Array, width: int) -> None:
        self.runs, self.ends, self.width = runs, ends, width
        self.n, self.R = int(ends[-1]), int(np.sum(runs[:, 1] - runs[:, 0]))
        self.places = np.concatenate([np.arange(*run) for run in runs])
        # The blocks of rows: those of piece p are starts[p] … starts[p + 1] − 1.
        self.starts = np.cumsum([0, *-(-np.diff(ends) // BLOCK)])

    def cut(self, which: Array) -> Array:
        """Where the pieces begin among some of the rows, and their number.

        Few rows, and rows that are not in increasing order, are one piece.
        """
        if len(which) < FEW_ROWS or np.any(np.diff(which) <= 0):
            return np.array([0, len(which)])
        return np.searchsorted(which, self.ends)

    def _parts(self, first: int, last: int) -> Iterator[tuple[slice, slice]]:
        """The blocks first … last − 1, as ranges of rows and of blocks in a piece."""
        ends, starts = self.ends.tolist(), self.starts.tolist()
        for start, end, a, b in zip(ends, ends[1:], starts, starts[1:]):
            left, right = max(first, a), min(last, b)
            if left < right:
                stop = min(start + (right - a) * BLOCK, end)
                yield slice(start + (left - a) * BLOCK, stop), slice(left, right)

    @property
    def unfold_chain(self) -> int:
        """The k for which the error of `unfold` is at most γ_k times its sizes."""
        return self.R + len(self.runs) + 2

    @property
    def fold_chain(self) -> int:
        """The k for which the error of `fold` is at most γ_k times its sizes."""
        most, pieces = int(np.max(np.diff(self.starts))), len(self.ends) - 1
        return BLOCK + most + math.ceil(math.log2(pieces)) + 2

    def unfold(self, W: Array, sizes: bool = False) -> Array:
        """F W, (n, k) for W of shape (R, k); or the sums of absolute values."""
        wide = np.zeros((W.shape[1], self.width))
        wide[:, self.places] = W.T
        out = np.empty((self.n, W.shape[1]))
        many = W.shape[1] >= MANY_COLUMNS
        loop = factor_loops.times_sizes if sizes else factor_loops.times
        loop = _times if many and not sizes else loop

        def multiply(first: int, last: int) -> None:
            for rows, _ in self._parts(first, last):
                count = rows.stop - rows.start
                loop(self.F[rows], self.runs, wide, out[rows], 0, count)

        work = self.n * self.R * W.shape[1]
        spread(multiply, count=int(self.starts[-1]), work=work)
        return out

    def fold(self, A: Array, sizes: bool = False) -> Array:
        """FᵀA, (R, k) for A of shape (n, k); or the sums of absolute values."""
        A = np.ascontiguousarray(A)
        blocks = np.empty((self.starts[-1], A.shape[1], self.width))
        many = A.shape[1] >= MANY_COLUMNS
        loop = factor_loops.against_sizes if sizes else factor_loops.against
        loop = _against if many and not sizes else loop

        def multiply(first: int, last: int) -> None:
            for rows, some in self._parts(first, last):
                count = rows.stop - rows.start
                loop(self.F[rows], self.runs, A[rows], blocks[some], 0, count)

        work = self.n * self.R * A.shape[1]
        spread(multiply, count=int(self.starts[-1]), work=work)
        pieces = [blocks[a:b] for a, b in zip(self.starts, self.starts[1:])]
        total = tree_sum([_added(piece) if len(piece) else None for piece in pieces])
        total = np.zeros(blocks.shape[1:]) if total is None else total
        return np.ascontiguousarray(total[:, self.places].T)

    def ascend(self, at: Coordinates, rows: Array) -> tuple[float, int]:
        """Maximize over α_i of these rows in turn; see factor_loops.py."""
        gain, bounded = factor_loops.ascend(self.F, self.runs, rows, *at)
        return float(gain), int(bounded)

    def rows(self, which: Array) -> Panel:
        """Some of the rows, copied, with these columns only."""
        out = np.empty((len(which), self.R), self.F.dtype)
        work = out.size
        arguments = (self.F, self.runs, which, out)
        spread(factor_loops.gather, *arguments, count=len(which), work=work)
        return Panel(out, np.array([[0, self.R]]), self.cut(which))

    def gram(self, which: Array, d: Array) -> Array:
        """(F, 1)ᵀ diag(d) (F, 1) over the rows `which`, d ≥ 0: (R + 1, R + 1).

        The last column is Fᵀd, and its last entry Σd.
        """
        ends, scale = self.cut(which), np.sqrt(d)
        sums: list[Array | None] = [None] * (len(ends) - 1)

        def add(first: int, last: int) -> None:
            for p in range(first, last):
                some = slice(ends[p], ends[p + 1])
                if some.start < some.stop:
                    sums[p] = self._gram(which[some], scale[some])

        spread(add, count=len(sums), work=len(which) * self.R**2)
        total = tree_sum(sums)
        return np.zeros((self.R + 1, self.R + 1)) if total is None else total

    def _gram(self, which: Array, scale: Array) -> Array:
        """The sum of one piece, some rows at a time."""
        room, total = np.empty((min(ROWS_AT_ONCE, len(which)), self.R + 1)), None
        for start in range(0, len(which), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            rows = room[: len(which[some])]
            factor_loops.gather_scaled(
                self.F, self.runs, which[some], scale[some], rows
            )
            product = rows.T @ rows
            total = product if total is None else np.add(total, product, out=total)
        assert total is not None
        return total


def tree_sum(sums: list[Array | None]) -> Array | None:
    """The sum over pieces, by the tree; None: a piece that takes no part.

    The arrays are used up.
    """

    def leaf(node: Node) -> Array | None:
        return sums[node[0]] if is_block(node) else None

    return Partition.total(
        (0, len(sums)), leaf, lambda left, right: np.add(left, right, out=left)
    )


def _added(blocks: Array) -> Array:
    """The sum of some arrays, one after the other."""
    total = np.zeros(blocks.shape[1:])
    for block in blocks:
        total += block
    return total


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


def repeated(index: Array) -> bool:
    """Whether kernels are repeated, or there are none: columns have to be copied."""
    return len(np.unique(index)) < len(index) or len(index) == 0


def joined_runs(ends: Array, index: Array) -> Array:
    """The ranges of columns of these kernels, an (r, 2) array; neighbours share one."""
    runs = np.column_stack([ends[index], ends[np.add(index, 1)]])
    joined = [list(runs[0])]
    for first, last in runs[1:]:
        if first == joined[-1][1]:
            joined[-1][1] = last
        else:
            joined.append([first, last])
    return np.array(joined)


class FactorTable:
    """Which columns belong to which kernel, wherever the rows of F are."""

    storage, remembered = "factors", REMEMBERED
    ends: Array  # L_m = F[:, ends[m]:ends[m + 1]]
    n: int
    dtype: np.dtype

    @property
    def cost(self) -> float:
        """The cost of reading everything, in passes: 1 is M n² numbers of float64."""
        size = self.n * int(self.ends[-1]) * self.dtype.itemsize / 8
        return size / ((len(self.ends) - 1) * self.n**2)

    def ranks(self, index: Array) -> Array:
        """The numbers of columns r_m."""
        return np.diff(self.ends)[index]

    def panel(self, index: Array) -> Panel:
        """The columns of these kernels, in order, with products."""
        raise NotImplementedError

    def quad(self, index: Array, A: Array) -> Array:
        """(‖L_mᵀA‖²)_m for an (n, k) matrix A."""
        owner = np.repeat(np.arange(len(index)), self.ranks(index))
        squares = np.sum(self.panel(index).fold(A) ** 2, axis=1)
        return np.bincount(owner, squares, minlength=len(index))

    def chain(self, terms: int) -> int:
        """The largest number of additions that one product takes part in."""
        return terms + int(np.max(np.diff(self.ends), initial=0)) + 4


class Factors(FactorTable):
    """L_m = F[:, ends[m]:ends[m + 1]]; K_m = L_m L_mᵀ is never formed."""

    def __init__(self, factors: Any, ranks: Array | None = None):
        """Factors, which are copied, or one (n, R) array with their ranks."""
        if ranks is None:
            ranks = np.array([L.shape[1] for L in factors])
            factors = np.hstack(list(factors))
        self.F = np.ascontiguousarray(factors)
        self.ends = np.cumsum([0, *ranks])
        self.n, self.dtype = len(self.F), self.F.dtype

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

    def panel(self, index: Array, ends: Array | None = None) -> Panel:
        """The columns of these kernels, in order, with products; ends: as of Panel.

        They are copied if kernels are repeated, or if there are none.
        """
        if repeated(index):
            columns, owner = self._columns(index)
            copied = np.ascontiguousarray(self.F[:, columns])
            return Panel(copied, np.array([[0, len(owner)]]), ends)
        return Panel(self.F, joined_runs(self.ends, index), ends)

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
