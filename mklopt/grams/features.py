"""What a stack of factors does in feature space, with K_m = L_m L_mᵀ.

    fold(A)          (L_mᵀA)_m, one below the other: R numbers for each column
    unfold(w)        Σ_m L_m w_m, the predictions of feature weights
    feature_norms(w) (‖w_m‖)_m

The factors side by side, with all of their products, are a Panel (factors.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .factors import Panel
from .norms import frozen

Array = np.ndarray


class StackFeatures:
    """What a GramStack of factors does; a base class of GramStack."""

    M: int
    n: int
    _store: Any
    _index: Array

    @property
    def factors(self: Any) -> list[Array] | None:
        """The factors L_m given to `from_factors`, read-only; None for other stacks."""
        if self.storage != "factors":
            return None
        return [frozen(self._store.factor(m)) for m in self._index]

    @property
    def ranks(self) -> Array:
        """The numbers of columns of the factors, (M,)."""
        return np.asarray(self._store.ranks(self._index))

    @property
    def owner(self) -> Array:
        """The kernel that each of the R feature weights belongs to, (R,)."""
        return np.repeat(np.arange(self.M), self.ranks)

    def panel(self) -> Panel:
        """The factors side by side, with products (factors.py)."""
        return self._store.panel(self._index)  # type: ignore[no-any-return]

    def fold(self: Any, A: Array) -> Array:
        """L_mᵀA of all kernels, one below the other; one read of the factors.

        Parameters
        ----------
        A : array (n,) or (n, k)

        Returns
        -------
        array (R,) or (R, k)
            Read-only, and remembered.
        """
        if self._whole is not None:
            whole, index = self._whole
            if (found := whole._known("fold", A)) is not None:
                starts = np.cumsum([0, *whole.ranks])
                kept = [np.arange(starts[m], starts[m + 1]) for m in index]
                return frozen(found[np.concatenate([[], *kept]).astype(int)])
        return self._remembered("fold", A, self._fold)

    def _fold(self: Any, A: Array) -> Array:
        self._touch()
        found = self.panel().fold(A.reshape(self.n, -1))
        return found.reshape(-1, *A.shape[1:])

    def unfold(self: Any, w: Array) -> Array:
        """The predictions Σ_m L_m w_m; kernels with w_m = 0 are not read.

        Parameters
        ----------
        w : array (R,) or (R, k)
            The feature weights of all kernels, one below the other.

        Returns
        -------
        array (n,) or (n, k)
            Read-only, and remembered.
        """
        return self._remembered("unfold", w, self._unfold)

    def _unfold(self: Any, w: Array) -> Array:
        columns, owner = w.reshape(len(w), -1), self.owner
        used = np.unique(owner[np.any(columns != 0, axis=1)])
        if len(used) == 0:
            return np.zeros((self.n, *w.shape[1:]))
        part = self.subset(used)
        part._touch()
        found = part.panel().unfold(columns[np.isin(owner, used)])
        return found.reshape(self.n, *w.shape[1:])

    def feature_norms(self, w: Array) -> Array:
        """The norms ‖w_m‖ of feature weights.

        Parameters
        ----------
        w : array (R,) or (R, k)

        Returns
        -------
        array (M,)
        """
        return np.sqrt(self._squares(w))

    def _squares(self: Any, w: Array) -> Array:
        squares = np.sum(w.reshape(len(w), -1) ** 2, axis=1)
        return np.bincount(self.owner, squares, minlength=self.M)
