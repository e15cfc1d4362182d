"""An array of kernels that counts what NumPy reads of it, as passes.

Solvers of one's own often work on `grams.dense()`. Each NumPy operation on it, or on a
view such as K[m], counts the numbers it takes as read once: np.tensordot(theta, K, 1)
is one pass. Results are plain arrays. What leaves NumPy is not counted: compiled code,
and arrays made with np.asarray(K).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
Count = Callable[[int], None]  # called with so many numbers that were read


class CountedArray(np.ndarray):
    """A read-only view of kernels; `count` is told the size of what is read."""

    count: Count | None = None

    def __array_finalize__(self, source: Any) -> None:
        """Views of kernels count, too."""
        self.count = getattr(source, "count", None)

    def __getitem__(self, key: Any) -> Any:
        """A view, not read; or a copy, read once and plain from then on."""
        found = super().__getitem__(key)
        if isinstance(found, CountedArray) and not np.may_share_memory(found, self):
            return self._read(found)
        return found

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **options: Any
    ) -> Any:
        """Operators, and sums by methods."""
        return getattr(ufunc, method)(*map(_plain, inputs), **options)

    def __array_function__(
        self, function: Any, types: Any, arguments: Any, options: Any
    ) -> Any:
        """Functions of NumPy such as tensordot and einsum."""
        if function in VIEWS:
            return super().__array_function__(function, types, arguments, options)
        return function(*map(_plain, arguments), **_plain(options))

    def dot(self, other: Any, out: Any = None) -> Any:
        """The product, as a plain array."""
        return np.dot(_plain(self), other, out)

    def _read(self, array: Array) -> Array:
        if self.count is not None:
            self.count(array.size)
        return array.view(np.ndarray)


VIEWS = {  # they read nothing
    *(np.shape, np.ndim, np.size, np.transpose, np.swapaxes, np.moveaxis, np.reshape),
    *(np.may_share_memory, np.shares_memory, np.iscomplexobj),
}


def _plain(given: Any) -> Any:
    """Arguments with plain arrays in place of counted ones, which are read once."""
    if isinstance(given, CountedArray):
        return given._read(given)
    if isinstance(given, list | tuple):
        return type(given)(_plain(part) for part in given)
    if isinstance(given, dict):
        return {name: _plain(part) for name, part in given.items()}
    return given


def counted(kernels: Array, count: Count) -> CountedArray:
    """A view of kernels that tells how many numbers of it are read."""
    view = kernels.view(CountedArray)
    view.count = count
    return view
