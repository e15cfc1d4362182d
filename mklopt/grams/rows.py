"""Rows of all kernels, for solvers that go from sample to sample; passes are counted.

RowReader, for compiled loops that choose their samples themselves:

    reader = RowReader(grams)
    moves = reader(loop, *arguments)      # loop(K, read, *arguments)

K is (M, n, n), read-only. For every row i of all M kernels that it reads, the loop adds
1 to read[0]; the reader turns this number into passes of the stack.

BlockReader, for epochs, whose samples are known in advance:

    reader = BlockReader(grams)
    for block in reader.blocks(order):
        ...                               # steps; they read and write F at the block
        reader.add(block, changes, F)     # F[m, c] += Σ_i changes[c, i] K_m(x_i, ·)

The kernels between the samples of a block are all that its steps need: F = (K_mα)_m is
changed at these samples in every step, and elsewhere once, when the block is over.
There are three ways to read:

    whole      (M, n, n) in memory, or made if it is small: one block of all samples
    computed   from points (kernels/sample_rows.py): only rows that changed are computed
    rows       of all samples of a block, as the stack gives them
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .stack import GramStack

Array = np.ndarray
MAX_WHOLE = 2**27  # numbers that may be stored in full: 1 GB
MAX_READ = 2**25  # numbers of the rows that are read at once: 256 MB
MOST_ROWS = 64  # that are read at once
MOST_COMPUTED = 512  # samples of a block whose rows are computed


class RowReader:
    """A stack in full storage, for compiled loops that read it row by row."""

    def __init__(self, grams: GramStack):
        self.grams = grams.full()
        self.K, self._read = self.grams.uncounted(), np.zeros(1)

    def __call__(self, loop: Callable, *arguments: Any) -> Any:
        """Run a compiled loop on the rows, and count the rows that it reads."""
        before = float(self._read[0])
        found = loop(self.K, self._read, *arguments)
        self.grams.count_rows(float(self._read[0]) - before)
        return found


class Block(NamedTuple):
    """A part of an epoch."""

    order: Array  # the sample of each step
    place: Array  # of these samples in `numbers`
    numbers: Array  # the different samples of the block
    inner: Array  # (M, b, b): the kernels between them
    rows: Array | None = None  # (M, b, n), if they were read


class BlockReader:
    """The kernels of a stack, block by block, in the order of an epoch."""

    def __init__(self, grams: GramStack):
        self.grams, self.whole = grams, whole_kernels(grams)
        self.computed = grams.sample_rows() if self.whole is None else None
        self.size = self._size()

    def _size(self) -> int:
        """The steps of a block: as many as memory allows."""
        M, n = self.grams.M, self.grams.n
        if self.whole is not None:
            return n
        if self.computed is not None:
            return int(np.clip(np.sqrt(MAX_READ / M), 1, MOST_COMPUTED))
        return int(np.clip(MAX_READ // (M * n), 1, MOST_ROWS))

    def blocks(self, order: Array) -> Iterator[Block]:
        """The blocks of an epoch; between two of them `add` has to be called."""
        if self.whole is not None:
            yield Block(order, order, np.arange(self.grams.n), self.whole)
            return
        for first in range(0, len(order), self.size):
            some = order[first : first + self.size]
            numbers, place = np.unique(some, return_inverse=True)
            yield self._block(some, place.reshape(-1), numbers)

    def _block(self, some: Array, place: Array, numbers: Array) -> Block:
        if self.computed is not None:
            self.grams.count_rows(len(numbers) ** 2 / self.grams.n)
            return Block(some, place, numbers, self.computed.between(numbers))
        rows = np.ascontiguousarray(self.grams.rows(numbers), dtype=float)
        inner = np.ascontiguousarray(rows[:, :, numbers])
        return Block(some, place, numbers, inner, rows)

    def part(self, block: Block, F: Array) -> Array:
        """F at the samples of a block: F itself if these are all, else a copy."""
        if self.whole is not None:
            return F
        return np.ascontiguousarray(F[:, :, block.numbers])

    def add(self, block: Block, changes: Array, F: Array) -> None:
        """F[m, c] += Σ_i changes[c, i] K_m(x_i, ·), i over the samples of the block.

        Not for a block of all samples: there the steps have changed F itself.
        """
        if block.rows is not None:
            F += np.matmul(changes, block.rows)
            return
        changed = np.flatnonzero(np.any(changes != 0, axis=0))
        if len(changed) and self.computed is not None:
            self.computed.add(block.numbers[changed], changes[:, changed], F)
            self.grams.count_rows(len(changed))


def whole_kernels(grams: GramStack) -> Array | None:
    """(M, n, n) in float64, or None if rows have to be read in blocks.

    Packed triangles and factors are stored in full if they are small enough.
    """
    small = grams.M * grams.n**2 <= MAX_WHOLE and grams.storage in ("packed", "factors")
    if grams.storage != "full" and not small:
        return None
    return grams.full().uncounted() if grams.dtype == float else None
