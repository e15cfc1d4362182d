"""What workers make kernels and factors from: data, a file, or what is sent to them.

The methods of a source are in blocks.py, those for rows of factors in factors.py. A
source is pickled without what is large and need not be sent.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import numpy as np

from ...grams.factors import Factors
from ...grams.stack import GramStack
from ...grams.storage import Triangles
from ..fitted import FittedKernels
from ..low_rank import LowRankKernels

Array = np.ndarray


class FamilySource:
    """Kernels that are computed from data."""

    def __init__(self, fitted: FittedKernels, storage: str):
        fitted.subset(np.arange(1))  # what has to be learned is learned here, once
        self.fitted, self.storage = fitted, storage
        self.M, self.n = fitted.M, fitted.n

    def store(self, first: int, last: int) -> Any:
        """Some neighbouring kernels, in memory or computed when needed."""
        some = self.fitted.subset(np.arange(first, last))
        stack = some.grams() if self.storage == "packed" else some.lazy(cache=0)
        return stack._store

    def packed(self, first: int, last: int) -> Array:
        """Not needed: every worker can compute them."""
        raise NotImplementedError


class StackSource:
    """Kernels that are in the memory of one process, and sent to others."""

    def __init__(self, stack: GramStack | None, M: int = 0, n: int = 0):
        self.stack = stack
        self.M = M if stack is None else stack.M
        self.n = n if stack is None else stack.n

    def __reduce__(self) -> tuple:
        return StackSource, (None, self.M, self.n)  # without the kernels

    def store(self, first: int, last: int) -> Any:
        """Some neighbouring kernels, where the stack is."""
        if self.stack is None:
            return None
        samples = np.arange(self.n)
        return self.stack._store.samples(self.stack._index[first:last], samples)

    def packed(self, first: int, last: int) -> Array:
        """Their packed triangles."""
        return self.store(first, last).P


class FactorSource:
    """Factors in the memory of one process, whose rows are sent to others."""

    local = True

    def __init__(self, stack: GramStack):
        panel = stack.panel()
        if panel.width > panel.R or len(panel.runs) > 1:  # a part of the kernels
            panel = panel.rows(np.arange(stack.n))
        self.F, self.ranks = panel.F, stack.ranks
        self.M, self.n, self.dtype = stack.M, stack.n, stack.dtype

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"F": None}  # without the factors

    def store(self, first: int, last: int) -> Any:
        """Some rows, where the factors are."""
        return None if self.F is None else Factors(self.F[first:last], self.ranks)

    def packed(self, first: int, last: int) -> Array:
        """Some rows, to be sent."""
        return self.F[first:last]

    def made(self, sent: Array) -> Factors:
        """Factors of rows that were sent, in an array that can be written."""
        return Factors(np.array(sent), self.ranks)


class PointSource:
    """Features of points: the points of a piece are sent, features are made there."""

    local = False

    def __init__(self, fitted: LowRankKernels, dtype: np.dtype):
        self.features, self.ranks = fitted.compact(), fitted.ranks
        self.M, self.n, self.dtype = fitted.M, fitted.n, dtype
        self.views = dict(fitted.exact.blocks)
        self.widths = [np.shape(block)[1] for block in self.views.values()]
        self.names = list(self.views)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"views": None}  # without the points

    def packed(self, first: int, last: int) -> Array:
        """The points of some rows, all views side by side."""
        return np.hstack([block[first:last] for block in self.views.values()])

    def made(self, sent: Array) -> Factors:
        """The features of points."""
        cuts = np.cumsum(self.widths)[:-1]
        parts = np.split(np.array(sent), cuts, axis=1)
        views = {
            name: np.ascontiguousarray(part) for name, part in zip(self.names, parts)
        }
        F = self.features.cross_features(views).astype(self.dtype)
        ranks = self.ranks.tolist()
        return GramStack.from_factors(F, ranks=ranks, dtype=self.dtype)._store

    def store(self, first: int, last: int) -> Any:
        """The features of some points, where the points are."""
        return None if self.views is None else self.made(self.packed(first, last))


class FileSource:
    """Kernels in a file that every worker can read."""

    def __init__(self, path: str | os.PathLike, M: int, n: int, storage: str):
        self.path, self.M, self.n, self.storage = os.path.abspath(path), M, n, storage

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k != "file"}

    @cached_property
    def file(self) -> Any:
        """The store of the file, opened once in each process."""
        return GramStack.open(self.path, memory=0)._store

    def store(self, first: int, last: int) -> Any:
        """Some neighbouring kernels, read into memory or when needed."""
        if self.storage == "lazy":
            return Neighbours(self.file, first)
        store = Triangles(self.n, last - first, "packed", self.file.dtype)
        self.file.fetch(np.arange(first, last), store.P)
        store.root_sizes = self.file.root_sizes[first:last]
        return store

    def packed(self, first: int, last: int) -> Array:
        """Not needed: every worker can read them."""
        raise NotImplementedError


class Neighbours:
    """The kernels of a store from a number on, as a store."""

    OPERATIONS = ("quad", "against", "combine", "matvec", "rows", "samples", "diag")

    def __init__(self, store: Any, first: int):
        self.whole, self.first = store, first
        self.root_sizes = store.root_sizes[first:]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.whole, name)
        if name in self.OPERATIONS:
            return lambda index, *given: found(index + self.first, *given)
        if name in ("kernel", "triangle"):
            return lambda m: found(m + self.first)
        return found
