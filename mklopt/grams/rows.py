"""Rows of all kernels for compiled loops, with a count of its own.

    reader = RowReader(grams)
    moves = reader(loop, *arguments)      # loop(K, read, *arguments)

K is (M, n, n), read-only. The loop adds the rows that it reads, of all M kernels each,
to read[0]; the reader turns them into passes of the stack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .stack import GramStack


class RowReader:
    """A stack in full storage, for loops that read it row by row."""

    def __init__(self, grams: GramStack):
        self.grams = grams.full()
        self.K, self._read = self.grams.dense(), np.zeros(1)

    def __call__(self, loop: Callable, *arguments: Any) -> Any:
        """Run a compiled loop on the rows, and count what it has read."""
        before = float(self._read[0])
        found = loop(self.K, self._read, *arguments)
        self.grams.count_rows(float(self._read[0]) - before)
        return found
