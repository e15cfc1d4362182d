"""Products with the kernels of a stack: counted, and the last ones remembered.

    quad, against, combine, matvec, apply, products, rows      stack.py explains them

A result is remembered by the content of its argument, and is read-only. A subset asks
the stack that it is a part of: quad and combine are remembered for all subsets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import norms
from .norm_reads import NormReads
from .norms import frozen

if TYPE_CHECKING:
    from .stack import GramStack

Array = np.ndarray


@dataclass
class Count:
    """The passes of a stack and all its subsets."""

    passes: float = 0.0


class StackProducts:
    """Products of a GramStack; a base class of GramStack."""

    M: int
    n: int
    _store: Any
    _index: Array
    _whole: tuple[GramStack, Array] | None
    _count: Count
    _share: float  # of the passes of the whole stack
    _memory: dict[str, tuple]

    # ---- passes ---------------------------------------------------------------------

    @property
    def passes(self) -> float:
        """Passes so far, of this stack and of all its subsets together."""
        return self._count.passes

    @property
    def full_read(self) -> float:
        """The passes of reading every stored number once: 1/2 in packed storage."""
        return self._share * self._store.cost

    @property
    def bytes_read(self) -> int:
        """The bytes read from disk so far, for this file; 0 for kernels in memory."""
        return int(getattr(self._store, "bytes_read", 0))

    def count_reads(self, share: float) -> None:
        """Add reads of a share of all stored numbers to the count of passes.

        Parameters
        ----------
        share : float
            1 is one read of every number.
        """
        self._touch(share)

    def count_rows(self, rows: float) -> None:
        """Add rows that a solver read from `dense()` itself to the count of passes.

        Parameters
        ----------
        rows : float
            The number of rows, each read in all M kernels.
        """
        self._count.passes += self._share * rows / self.n

    def _touch(self, columns: float = 1) -> None:
        self._count.passes += self._share * self._store.cost * columns

    # ---- the operations -------------------------------------------------------------

    def quad(self: Any, A: Array) -> Array:
        """The quadratic forms (tr AᵀK_mA)_m, one pass.

        Parameters
        ----------
        A : array (n,) or (n, k)

        Returns
        -------
        array (M,)
            Read-only, and remembered.
        """
        found = self._quad_of_whole(A)
        if found is None:
            found = self._remembered("quad", A, self._quad)
        self._read(np.array(A, float), found)
        return found

    def _quad_of_whole(self: Any, A: Array) -> Array | None:
        """What the stack that this one is a part of remembers."""
        if self._whole is None:
            return None
        whole, index = self._whole
        found = whole._known("quad", A)
        return None if found is None else frozen(found[index])

    def combine(self: Any, theta: Array) -> Array:
        """The sum Σ θ_m K_m; kernels of weight 0 are not read.

        Parameters
        ----------
        theta : array (M,)

        Returns
        -------
        array (n, n)
            Read-only, and remembered.
        """
        if self._whole is None:
            return self._remembered("combine", theta, self._combine)
        whole, index = self._whole  # which remembers it for all its subsets
        filled = np.zeros(whole.M)
        filled[index] = theta
        return whole.combine(filled)

    def remembers_combine(self: Any, theta: Array) -> bool:
        """Whether combine(theta) costs no pass.

        Parameters
        ----------
        theta : array (M,)

        Returns
        -------
        bool
        """
        return self._known("combine", theta) is not None

    def matvec(self: Any, A: Array) -> Array:
        """The products (K_m A)_m, one pass for each column of A.

        Parameters
        ----------
        A : array (n,) or (n, k)

        Returns
        -------
        array (M, n) or (M, n, k)
            Read-only; the last one is remembered for `products`.
        """
        A = np.array(A, float)
        out = self._multiply(A[None], A.shape)
        whole, index = self._of_whole()
        if out.size <= norms.LARGEST_KEPT:
            whole._memory["products"] = ((A, index, frozen(out)),)
        return self._with_quad(A, out)

    def inside(self: Any, A: Array) -> Array:
        """The products (K_m A)_m at the samples where A is not 0; 0 elsewhere.

        Only the rows of these samples are read: for a loss with few support vectors a
        part of a pass. They are enough for ⟨A, K_mA⟩, which is remembered.

        Parameters
        ----------
        A : array (n,) or (n, k)

        Returns
        -------
        array (M, n) or (M, n, k)
            Read-only.
        """
        A = np.array(A, float)
        columns = A.reshape(self.n, -1)
        if not hasattr(self._store, "inside") or np.all(np.any(columns, axis=1)):
            return self.matvec(A)
        self._touch(columns.shape[1] * self._rows_of(columns))
        found = self._store.inside(self._index, columns[None])
        return self._with_quad(A, frozen(found.reshape(self.M, *A.shape)))

    def _with_quad(self: Any, A: Array, out: Array) -> Array:
        """The products with A; ⟨A, K_mA⟩ is remembered."""
        if self.storage != "factors":  # there quad is more accurate, and cheaper
            self._read(A, self._remember("quad", A, self.inner(A, out)))
        return out

    def products(self: Any, A: Array, kernels: Array) -> Array:
        """The products K_mA with some of the kernels, remembered or computed.

        Parameters
        ----------
        A : array (n,) or (n, k)
        kernels : array of int (r,)
            The numbers of the kernels.

        Returns
        -------
        array (r, n) or (r, n, k)
            Read-only.
        """
        found = self._products_known(A, kernels)
        return self.subset(kernels).matvec(A) if found is None else found

    def remembers_products(self: Any, A: Array, kernels: Array) -> bool:
        """Whether products(A, kernels) cost no pass.

        Parameters
        ----------
        A : array (n,) or (n, k)
        kernels : array of int (r,)

        Returns
        -------
        bool
        """
        return self._products_known(A, kernels) is not None

    def _products_known(self: Any, A: Array, kernels: Array) -> Array | None:
        whole, index = self._of_whole()
        numbers = index[kernels]
        for known, those, found in whole._memory["products"]:
            if np.array_equal(known, A) and np.all(np.isin(numbers, those)):
                order = np.argsort(those)
                return frozen(found[order[np.searchsorted(those[order], numbers)]])
        return None

    def apply(self: Any, B: Array) -> Array:
        """The products (K_m B_m)_m; kernels with B_m = 0 are not read.

        Parameters
        ----------
        B : array (M, n) or (M, n, k)

        Returns
        -------
        array of the shape of B
        """
        B = np.asarray(B, float)
        used = np.flatnonzero(np.any(B.reshape(self.M, -1) != 0, axis=1))
        if len(used) == self.M:
            return self._multiply(B, B.shape[1:])
        out = np.zeros(B.shape)
        if len(used):
            out[used] = self.subset(used).apply(B[used])
        return out

    def against(self, S: Array) -> Array:
        """The products (⟨K_m, S⟩)_m, one pass: quad(A) is against(A Aᵀ).

        Parameters
        ----------
        S : array (n, n)
            A symmetric matrix.

        Returns
        -------
        array (M,)

        Raises
        ------
        ValueError
            If S does not have the shape (n, n).
        """
        S = np.ascontiguousarray(S, dtype=float)
        if S.shape != (self.n, self.n):
            raise ValueError(
                f"S has shape {S.shape}; expected ({self.n}, {self.n}), symmetric"
            )
        self._touch()
        return np.asarray(self._store.against(self._index, S))

    def rows(self: Any, i: int | Array) -> Array:
        """Rows of all kernels.

        Parameters
        ----------
        i : int or array of int (r,)
            Negative numbers count from the end.

        Returns
        -------
        array (M, n), or (M, r, n) for an array of numbers

        Raises
        ------
        IndexError
            If there is no such row.
        """
        which = np.atleast_1d(np.arange(self.n)[np.asarray(i)])  # checks the range
        self._count.passes += self._share * len(which) / self.n
        found = self._store.rows(self._index, which)
        return np.asarray(found[:, 0] if np.ndim(i) == 0 else found)

    def sample_rows(self) -> Any:
        """What computes rows at few samples from points, for `BlockReader` (rows.py).

        None if the kernels are stored, or have to be asked for `rows`.
        """
        make = getattr(self._store, "sample_rows", None)
        return None if make is None else make(self._index)

    def _quad(self: Any, A: Array) -> Array:
        if self.storage == "factors":  # from LᵀA, which may be remembered
            return self._squares(self.fold(A))
        columns = A.reshape(self.n, -1)
        rows = self._rows_of(columns)
        self._touch(rows**2 if self.by_rows else rows)
        return np.asarray(self._store.quad(self._index, columns))

    def _combine(self: Any, theta: Array) -> Array:
        used = np.flatnonzero(theta)
        self._count.passes += self._share * self._store.cost * len(used) / self.M
        if len(used) == 0:
            return np.zeros((self.n, self.n))
        return np.asarray(self._store.combine(self._index[used], theta[used]))

    def _multiply(self: Any, blocks: Array, shape: tuple[int, ...]) -> Array:
        columns = blocks.reshape(len(blocks), self.n, -1)
        rows = self._rows_of(np.any(columns, axis=0)) if self.by_rows else 1
        self._touch(columns.shape[2] * rows)
        return np.asarray(
            self._store.matvec(self._index, columns).reshape(self.M, *shape)
        )

    def _remembered(self, name: str, key: Array, compute: Callable) -> Array:
        key = np.array(key, dtype=float, order="C")
        found = self._known(name, key)
        return self._remember(name, key, compute(key)) if found is None else found

    def _known(self, name: str, key: Array) -> Array | None:
        """A remembered result; None if it has to be computed."""
        for known, result in self._memory[name]:
            if np.array_equal(known, key):
                return result
        return None

    def _remember(self, name: str, key: Array, result: Array) -> Array:
        known = (*self._memory[name], (key, frozen(result)))
        self._memory[name] = known[-self._store.remembered :]
        return result

    def forget(self) -> None:
        """Forget all remembered results, so that the next ones are computed anew."""
        # Tuples are replaced, not changed: another thread may be reading one.
        kinds = ("quad", "combine", "product", "products", "fold", "unfold")
        self._memory: dict[str, tuple] = dict.fromkeys(kinds, ())
        self._reads = NormReads.none(self.M)
