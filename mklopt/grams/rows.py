"""Rows of all kernels for compiled loops; the reader counts passes itself.

    reader = RowReader(grams)
    moves = reader(loop, *arguments)      # loop(K, read, *arguments)

K is (M, n, n), read-only. For every row i of all M kernels that it reads, the loop adds
1 to read[0]; the reader turns this number into passes of the stack.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .stack import GramStack


class RowReader:
    """A stack in full storage, for compiled loops that read it row by row."""

    def __init__(self, grams: GramStack):
        self.grams = grams.full()
        self.K, self._read = self.grams.dense(), np.zeros(1)

    def __call__(self, loop: Callable, *arguments: Any) -> Any:
        """Run a compiled loop on the rows, and count the rows that it reads."""
        before = float(self._read[0])
        found = loop(self.K, self._read, *arguments)
        self.grams.count_rows(float(self._read[0]) - before)
        return found
