"""Σθ_mK_m of a stack as an operator: products and parts of it, without the matrix.

    product(θ, A)         Σθ_mK_mA
    between(θ, I, J)      Σθ_mK_m between some samples and others
    products_at(A, J)     (K_mA)_m at some samples

A stack is read *by rows* where an n × n matrix would be too large
(kernels/by_rows.py has the number). Then only the rows with A_i ≠ 0 are computed, and
passes are counted accordingly. A stack of factors multiplies by its factors. All others
form the matrix once, and remember it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .stack import GramStack

Array = np.ndarray


class StackSums:
    """What a GramStack does with Σθ_mK_m; a base class of GramStack."""

    M: int
    n: int
    _store: Any
    _index: Array
    _whole: tuple[GramStack, Array] | None

    @property
    def by_rows(self) -> bool:
        """Whether SVMs and certificates read rows: Σθ_mK_m is too large as a matrix."""
        return bool(getattr(self._store, "by_rows", False))

    @property
    def kept_rows(self) -> int:
        """Bytes of rows that a stack which is read by rows keeps; 0 for others."""
        return int(self._store.limit) if self.by_rows else 0

    def product(self: Any, theta: Array, A: Array) -> Array:
        """The product Σθ_mK_mA; kernels of weight 0 are not read.

        Parameters
        ----------
        theta : array (M,)
        A : array (n,) or (n, k)

        Returns
        -------
        array (n,) or (n, k)
            In plain float64; by rows, and of factors, it is remembered.
        """
        if self.in_feature_space:
            h, weights = self.fold(A), theta[self.owner]
            return self.unfold(weights.reshape(-1, *[1] * (h.ndim - 1)) * h)
        if not self.by_rows:
            return self.combine(theta) @ A
        whole, index = self._of_whole()
        filled = np.zeros(whole.M)
        filled[index] = theta
        return whole._product(filled, A)

    def _product(self: Any, theta: Array, A: Array) -> Array:
        def compute(key: Array) -> Array:
            columns = A.reshape(self.n, -1)
            self._touch(columns.shape[1] * self._rows_of(columns) * self._part(theta))
            found = self._store.product(self._index, theta, columns)
            return found.reshape(A.shape)

        return self._remembered("product", np.append(theta, A), compute)

    def between(self: Any, theta: Array, rows: Array, columns: Array) -> Array:
        """Σθ_mK_m between some samples and others; by rows alone.

        Parameters
        ----------
        theta : array (M,)
        rows, columns : arrays of int (r,) and (c,)
            Numbers of samples, each at most once.

        Returns
        -------
        array (r, c)
        """
        size = len(rows) * len(columns) / self.n**2
        self._touch(size * self._part(theta))
        return self._store.between(self._index, theta, rows, columns)

    def products_at(self: Any, A: Array, columns: Array) -> Array:
        """The products (K_mA)_m at some samples; by rows alone.

        Parameters
        ----------
        A : array (n,)
        columns : array of int (c,)
            Numbers of samples.

        Returns
        -------
        array (M, c)
        """
        self._touch(self._rows_of(A[:, None]) * len(columns) / self.n)
        blocks = np.asarray(A, float)[None, :, None]
        return self._store.products_at(self._index, blocks, columns)[:, :, 0]

    def _rows_of(self: Any, columns: Array) -> float:
        """The share of rows that a product with (n, k) numbers computes or reads."""
        if not self.by_rows:
            share = getattr(self._store, "share_of", None)
            return 1.0 if share is None else share(columns)
        return np.count_nonzero(np.any(columns, axis=1)) / self.n

    def _part(self: Any, theta: Array) -> float:
        """The share of kernels in use."""
        return np.count_nonzero(theta) / self.M
