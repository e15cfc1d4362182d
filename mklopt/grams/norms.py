"""The norms ‖A‖ in the kernels of a stack, with what is known of them without a pass.

    norms(A)         √(⟨A, K_mA⟩ + δ_m‖A‖²)
    norms_above(A)   upper bounds, from the last read of each kernel (norm_reads.py)
    parts()          the kernels, so few at a time that (m, n) arrays are small
    spectral_roots   bounds of √λ_max(K_m), of all vectors or of those that sum to 0

Rounding. |K_ij| ≤ r_i r_j with r_i = √(K_ii + δ) (Cauchy–Schwarz), so that an error
γ_k Σ|K_ij||A_i||A_j| is at most γ_k (Σ r_i|A_i|)². Where an (M, n) array of r is too
large to keep, it is at most γ_k tr(K + δI) ‖A‖², which is a little more.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..util.rounding import TINY, U, gamma, length_above
from . import norm_reads
from .norm_reads import NormReads

if TYPE_CHECKING:
    from .stack import GramStack

Array = np.ndarray
LARGEST_KEPT = 20_000_000  # numbers of an (M, n) array that may be kept: 160 MB
IN_A_PART = 8_000_000  # numbers of an (m, n) array of one part: 64 MB
POWERS = 1 + 1e-10  # for the rounding of powers and roots of bounds
CANCELLED = 1e-9  # of ‖K‖_F², for differences of such squares
TOGETHER = 4  # parts begin at multiples of this, as loops over stored kernels do


class StackNorms:
    """What a GramStack knows of norms; the base class of GramStack."""

    M: int
    n: int
    shift: Array
    _store: Any
    _index: Array
    _whole: tuple[GramStack, Array] | None
    _roots: Array | None  # root_diag(self.shift)
    _trace: Array | None  # _traces
    _reads: NormReads

    # ---- parts ----------------------------------------------------------------------

    @property
    def is_large(self) -> bool:
        """Whether an (M, n) array is too large to be kept; `parts` are not."""
        return self.M * self.n > LARGEST_KEPT

    def parts(self: Any, columns: int = 1) -> Iterator[tuple[slice, GramStack]]:
        """The kernels, so few at a time that (m, n, columns) arrays are small.

        Parameters
        ----------
        columns : int

        Yields
        ------
        slice
            Which kernels these are.
        GramStack
            A stack of them; the stack itself, if it is small enough.
        """
        if self.M * self.n * columns <= LARGEST_KEPT:
            yield slice(0, self.M), self
            return
        size = IN_A_PART // (self.n * columns * TOGETHER) * TOGETHER or TOGETHER
        for first in range(0, self.M, size):
            part = slice(first, min(first + size, self.M))
            yield part, self.subset(part)

    # ---- norms ----------------------------------------------------------------------

    def norms(self: Any, A: Array, KA: Array | None = None) -> Array:
        """The norms √(tr AᵀK_mA + δ_m‖A‖²) of A in the certified kernels K_m + δ_m I.

        δ is the `shift` of the stack. Negative sums, which are rounding, count as 0.

        Parameters
        ----------
        A : array (n,) or (n, k)
        KA : array (M, n) or (M, n, k), optional
            What `matvec(A)` returned: then no pass is needed.

        Returns
        -------
        array (M,)
        """
        squares = self.quad(A) if KA is None else self.inner(A, KA)
        return np.sqrt(np.maximum(squares + self.shift * np.sum(A**2), 0.0))

    def norms_above(self, A: Array) -> tuple[Array, Array, Array]:
        """What is known of the norms of A without a pass (norm_reads.py).

        Parameters
        ----------
        A : array (n,) or (n, k)

        Returns
        -------
        three arrays (M,)
            The norms in plain float64, ∞ where a kernel was not read at A; upper bounds
            of them in exact arithmetic, ∞ where nothing is known; whether the kernel
            was read at A.
        """
        whole, index = self._of_whole()
        if not self.bounds_norms or np.all(whole._reads.last[index] < 0):
            nothing = np.full(self.M, np.inf)
            return nothing, nothing, np.zeros(self.M, bool)
        sizes = self.root_sizes()
        with np.errstate(over="ignore"):
            sizes = np.sqrt(sizes**2 + self.shift) * (1 + 8 * U)
        reads = whole._reads
        part = reads._replace(
            last=reads.last[index], plain=reads.plain[index], bound=reads.bound[index]
        )
        return part.above(A, sizes)

    def root_sizes(self: Any) -> Array:
        """(M,): upper bounds of √λ_max(K_m), from ‖K_m‖_F, or from the trace."""
        if getattr(self._store, "sized", False):
            return np.asarray(self._store.root_sizes[self._index])
        return np.sqrt(self._traces) * (1 + 4 * U)

    @property
    def bounds_norms(self) -> bool:
        """Whether norms can be bounded without a read, and reading takes long."""
        whole = self._of_whole()[0]
        sized = getattr(self._store, "sized", False)
        return sized and whole.M * self.n**2 >= norm_reads.WORTH

    def _of_whole(self: Any) -> tuple[GramStack, Array]:
        """The stack that this one is a part of, and the numbers of its kernels."""
        if self._whole is None:
            return self, np.arange(self.M)
        whole, index = self._whole
        whole, numbers = whole._of_whole()
        return whole, numbers[index]

    @np.errstate(all="ignore")  # a bound that overflows is infinite: nothing is known
    def _read(self, A: Array, squares: Array) -> None:
        """Remember that ⟨A, K_mA⟩ was read, with a bound of its rounding error."""
        if not self.bounds_norms:
            return
        columns = np.abs(A).reshape(self.n, -1)
        k = columns.shape[1]
        sums, total = self._absolute_sums(columns)
        error = gamma(self._store.quad_chain(k) + 8) * sums
        # Products α_iα_j that underflow lose at most 2^-1074, K_ij times in the sum.
        error += k * total * 2.0**-1070
        error += TINY * (np.sum(columns) + 4)
        shifted = self.shift * np.sum(A**2)
        plain = np.sqrt(np.maximum(squares + shifted, 0.0))
        above = (np.maximum(squares, 0.0) + error) * (1 + 8 * U)
        above = np.sqrt(above + shifted * (1 + gamma(A.size + 8))) * (1 + 8 * U) + TINY
        whole, index = self._of_whole()
        whole._reads = whole._reads.add(A, index, plain, above)

    def _absolute_sums(self, columns: Array) -> tuple[Array, Array]:
        """Upper bounds of Σ|K_ij||A_i||A_j|, summed over columns, and of Σ|K_ij|."""
        whole, index = self._of_whole()
        if whole.is_large:
            traces = whole._traces[index]
            length = length_above(columns) + self.n * columns.shape[1] * TINY
            return traces * length**2 * (1 + 8 * U), self.n * traces
        roots = self.root_diag(self.shift)
        sums = np.sum((roots @ columns + TINY) ** 2, axis=1)
        return sums, np.sum(roots, axis=1) ** 2

    @property
    def _traces(self: Any) -> Array:
        """(M,): upper bounds of tr(K_m + δ_m I), computed once."""
        if self._trace is None:
            far = getattr(self._store, "traces", None)  # of kernels on other machines
            traces = self._sums_of_diagonals() if far is None else far(self._index)
            above = traces * (1 + gamma(self.chain(self.n)))
            above = above + self.n * (self.shift + TINY)
            self._trace = frozen(above * (1 + gamma(self.n + 16)))
        return self._trace

    def _sums_of_diagonals(self: Any) -> Array:
        """(M,): Σ_i max(K_ii, 0) in plain float64."""
        sums = [np.sum(np.maximum(g.diag(), 0.0), axis=1) for _, g in self.parts()]
        return np.concatenate(sums)

    def inner(self: Any, A: Array, KA: Array) -> Array:
        """(⟨A, K_m A⟩)_m from what `matvec` returned, without a pass.

        From factors it is ‖L_mᵀA‖² instead, where nothing cancels.

        Parameters
        ----------
        A : array (n,) or (n, k)
        KA : array (M, n) or (M, n, k)

        Returns
        -------
        array (M,)
        """
        if self.storage == "factors":
            return np.asarray(self._store.quad(self._index, A.reshape(self.n, -1)))
        return np.asarray(KA.reshape(self.M, A.size) @ A.ravel())

    def diag(self) -> Array:
        """The diagonals, (M, n), read-only. Those of a large stack are not kept."""
        if self.is_large:
            return frozen(self._store.diag(self._index))
        return self._diag

    @cached_property
    def _diag(self) -> Array:
        # Memory is read in lines: this is expensive.
        if self._whole is not None and not self._whole[0].is_large:
            return frozen(self._whole[0].diag()[self._whole[1]])
        return frozen(self._store.diag(self._index))

    def root_diag(self, shift: Array) -> Array:
        """Upper bounds r of √(K_ii + δ): |K_ij| ≤ r_i r_j for i ≠ j (Cauchy–Schwarz).

        Parameters
        ----------
        shift : array (M,)
            δ, for which K_m + δ_m I is positive semi-definite.

        Returns
        -------
        array (M, n)
            Rounding is included in the bounds.
        """
        if shift is not self.shift:
            return self._root_diag(shift)
        if self._roots is None:
            if self._whole is None or self._whole[0].is_large:
                roots = self._root_diag(shift)
            else:
                whole, index = self._whole
                roots = whole.root_diag(whole.shift)[index]
            if self.is_large:
                return roots
            self._roots = frozen(roots)
        return self._roots

    def _root_diag(self: Any, shift: Array) -> Array:
        bound = np.maximum(self.diag(), 0.0) * (1 + gamma(self.chain(self.n))) + TINY
        return np.asarray(np.sqrt(bound + shift[:, None]) * (1 + gamma(4)))

    # ---- bounds of the kernels as operators -----------------------------------------

    def norm_of_diagonals(self: Any, q: float) -> Array:
        """(n,): upper bounds of the norm ‖·‖_q of (√(K_m,ii + δ_m))_m.

        Parameters
        ----------
        q : float
            From 1 to ∞.

        Returns
        -------
        array (n,)
        """
        found = np.zeros(self.n)
        for part, stack in self.parts():
            roots = stack.root_diag(stack.shift if stack is self else self.shift[part])
            sums = np.max(roots, axis=0) if q == np.inf else np.sum(roots**q, axis=0)
            found = np.maximum(found, sums) if q == np.inf else found + sums
        found = found if q == np.inf else found ** (1 / q)
        return np.asarray(found * POWERS)

    def spectral_roots(self: Any, centred: bool = False) -> Array:
        """(M,): upper bounds of √λ_max(K_m + δ_m I), from ‖K_m‖_F; one pass if centred.

        Parameters
        ----------
        centred : bool
            Of PK_mP with P = I − 11ᵀ/n instead: enough for vectors that sum to 0.

        Returns
        -------
        array (M,)
        """
        if self.storage == "factors":
            squares = np.array([_square_of_factor(L, centred) for L in self.factors])
        else:
            squares = self.root_sizes() ** 4 * POWERS
            if centred:
                squares = np.minimum(squares, self._centred_squares(squares))
        sizes = np.sqrt(np.maximum(squares, 0.0)) * (1 + gamma(self.n + 16))
        return np.asarray(np.sqrt(sizes + self.shift) * POWERS)

    def _centred_squares(self: Any, squares: Array) -> Array:
        """Upper bounds of ‖PKP‖_F² = ‖K‖_F² − 2‖K1‖²/n + (1ᵀK1)²/n²."""
        n, found = self.n, np.empty(self.M)
        for part, stack in self.parts():
            K1 = stack.matvec(np.ones(n))
            sums = np.sum(K1, axis=1) ** 2 / n**2 - 2 * np.sum(K1**2, axis=1) / n
            found[part] = squares[part] * (1 + CANCELLED) + sums
        return found


def _square_of_factor(L: Array, centred: bool) -> float:
    """An upper bound of ‖LLᵀ‖_F² = ‖LᵀL‖_F², of the centred columns."""
    L = np.asarray(L, float)
    S = L.T @ L
    found = float(np.sum(S**2))
    if centred:
        means = np.mean(L, axis=0)
        middle = S - len(L) * np.outer(means, means)
        trace = float(np.trace(S)) ** 2
        found = min(found, float(np.sum(middle**2)) + CANCELLED * trace)
    return found * (1 + gamma(4 * len(L))) * POWERS


def frozen(array: Array) -> Array:
    """An array, made read-only."""
    array.flags.writeable = False
    return array
