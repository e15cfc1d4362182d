"""What is known of the norms ‖α‖_{K_m} without reading K_m again.

A norm changes at most by the distance: for any α and any point p that K_m was read at,

    ‖α‖_{K_m} ≤ ‖p‖_{K_m} + √λ_max(K_m) ‖α − p‖

So a kernel whose bound stays below what matters need not be read at every new α. The
bound is always taken from the last α that the kernel was really read at.

Guarantee. `above` are upper bounds in exact arithmetic if `add` gets such bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..util.rounding import U, length_above

Array = np.ndarray
WORTH = 10_000_000  # numbers in all kernels: fewer are read in the time of the bounds


class NormReads(NamedTuple):
    """The last read of each kernel. It is replaced and never changed: see `add`."""

    points: tuple[Array, ...]  # α that some kernel was last read at
    last: Array  # (M,) the number of that point, −1 for a kernel that was never read
    plain: Array  # (M,) the norm at that point, in plain float64
    bound: Array  # (M,) an upper bound of it

    @classmethod
    def none(cls, M: int) -> NormReads:
        """No kernel was read."""
        return cls((), np.full(M, -1), np.zeros(M), np.zeros(M))

    def add(self, A: Array, index: Array, plain: Array, bound: Array) -> NormReads:
        """With the norms of A in the kernels of these numbers."""
        points, place = self._with_point(A)
        last = _with(self.last, index, place)
        used = np.bincount(last + 1, minlength=len(points) + 1)[1:] > 0
        if not np.all(used):  # what no kernel was last read at is forgotten
            last = np.append(np.cumsum(used) - 1, -1)[last]
        return NormReads(
            tuple(p for p, still in zip(points, used) if still),
            last,
            _with(self.plain, index, plain),
            _with(self.bound, index, bound),
        )

    def _with_point(self, A: Array) -> tuple[tuple[Array, ...], int]:
        """The points with A among them, and its place."""
        for place, point in enumerate(self.points):
            if np.array_equal(point, A):
                return self.points, place
        return (*self.points, A), len(self.points)

    def above(self, A: Array, root_sizes: Array) -> tuple[Array, Array, Array]:
        """Of every kernel: ‖A‖ or ∞, an upper bound of it, and whether it was read.

        root_sizes: upper bounds of √λ_max. What was not read at A has no plain norm.
        """
        with np.errstate(all="ignore"):  # what overflows is infinite, 0 · ∞ unknown
            far = [
                0.0 if np.array_equal(A, p) else length_above(A - p) * (1 + 4 * U)
                for p in self.points
            ]
            distance = np.array([*far, np.inf])[self.last]
            read = distance == 0
            more = (self.bound + root_sizes * distance) * (1 + 4 * U)
        more = np.where(np.isnan(more), np.inf, more)
        plain = np.where(read, self.plain, np.inf)
        return plain, np.where(read, self.bound, more), read


def _with(array: Array, index: Array, values: Array | int) -> Array:
    array = array.copy()
    array[index] = values
    return array
