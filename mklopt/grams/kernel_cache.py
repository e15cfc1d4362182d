"""Kept: packed triangles of the kernels in use, for stacks that are not in memory.

Solvers of sparse problems ask for few kernels again and again: their working set. Read
from disk or computed once, these kernels stay in memory, in a table of fixed size. The
kernels that were not asked for longest make room for new ones.

    kept = Kept(n, dtype, limit, fetch)
    kept.of(index)                 (Triangles, places in it), or None: too many kernels
    kept.ask("quad", index, A)     what Triangles.quad answers, or None: too many

`fetch(numbers, P)` writes the packed triangles of these kernels to the rows of P. Of a
method only a weak reference is kept: with its store the memory is free at once.

Guarantee. At most `limit` bytes are kept; while kernels are fetched, BLOCK_BYTES more
are in use (or one kernel, if that is larger). Results have the bits of a packed stack.
A kernel whose fetch fails is not kept. Memory that was never used costs nothing: the
system gives it when it is first written.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import ismethod
from threading import RLock
from typing import Any
from weakref import WeakMethod

import numpy as np

from .storage import Triangles, in_order

Array = np.ndarray
Fetch = Callable[[Array, Array], None]
BLOCK_BYTES = 2**26  # of kernels that are fetched together, then moved to free places


class Kept:
    """Packed triangles of at most `limit` bytes, fetched when they are first needed."""

    def __init__(self, n: int, dtype: Any, limit: int, fetch: Fetch):
        self.n, self.dtype = n, np.dtype(dtype)
        self._fetch: Any = WeakMethod(fetch) if ismethod(fetch) else lambda: fetch
        self.size = n * (n + 1) // 2 * self.dtype.itemsize  # bytes of one kernel
        self.limit = int(limit)
        self.capacity = max(self.limit // self.size, 0)
        self.lock = RLock()
        self.clear()

    def clear(self) -> None:
        """Forget all kernels and give their memory back."""
        with self.lock:
            self._table: Triangles | None = None
            self._place: dict[int, int] = {}  # of each kernel that is kept
            self._owner = np.full(self.capacity, -1)  # the kernel at each place
            self._used = np.zeros(self.capacity, np.int64)  # when it was last asked for
            self._time = 0

    @property
    def fetch(self) -> Fetch:
        """The function that makes kernels."""
        return self._fetch()  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, m: int) -> bool:
        return int(m) in self._place

    def __reduce__(self) -> tuple:
        # Without its content.
        return Kept, (self.n, self.dtype, self.limit, self.fetch)

    def fits(self, index: Array) -> bool:
        """Whether so many kernels can be kept at once."""
        return len(index) <= self.capacity

    def holds(self, index: Array) -> bool:
        """Whether all these kernels are kept now."""
        with self.lock:
            return self.fits(index) and all(int(m) in self._place for m in index)

    def of(self, index: Array) -> tuple[Triangles, Array] | None:
        """The table and the places of these kernels in it; None if they are too many.

        The places hold until the next call: where threads share a stack, hold `lock`.
        """
        if not self.fits(index):
            return None
        with self.lock:
            if self._table is None:
                self._table = Triangles(self.n, self.capacity, "packed", self.dtype)
            self._time += 1
            here = [m for m in map(int, index) if m in self._place]
            self._used[[self._place[m] for m in here]] = self._time
            missing = np.setdiff1d(index, here)
            if len(missing):
                self._fill(missing, self._room(len(missing)))
            places = [self._place[m] for m in map(int, index)]
            return self._table, np.array(places, np.int64)

    def ask(self, operation: str, index: Array, *arguments: Any) -> Any:
        """What an operation of Triangles gives for these kernels; None: too many."""
        with self.lock:
            found = self.of(index)
            if found is None:
                return None
            table, places = found
            return getattr(table, operation)(places, *arguments)

    def _room(self, count: int) -> Array:
        """Places that are free or were not used longest, in order; they are free then.

        Kernels of the present call are the last to go, and all of them have room.
        """
        age = np.where(self._owner < 0, -1, self._used)
        places = np.sort(np.argsort(age, kind="stable")[:count])
        for m in self._owner[places]:
            self._place.pop(int(m), None)
        self._owner[places] = -1
        return places

    def _fill(self, numbers: Array, places: Array) -> None:
        assert self._table is not None
        P, step = self._table.P, max(BLOCK_BYTES // self.size, 1)
        for k in range(0, len(numbers), step):
            some, to = numbers[k : k + step], places[k : k + step]
            if in_order(to):
                self.fetch(some, P[to[0] : to[-1] + 1])
            else:
                block = np.empty((len(some), P.shape[1]), self.dtype)
                self.fetch(some, block)
                P[to] = block
            self._owner[to], self._used[to] = some, self._time
            self._place.update(zip(map(int, some), map(int, to)))
