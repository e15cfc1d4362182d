"""Blocks of kernels in one process: what a worker of a cluster has, and answers.

A *source* makes stores (storage.py) of neighbouring kernels:

    source.n, source.M                 the numbers of samples and kernels
    source.store(first, last)          the kernels first … last − 1; None: they have to
                                       be sent here, as source.packed(first, last)

Every answer is put together from answers of single blocks, so that it has the same bits
whichever process has which blocks. A sum follows the tree of partition.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...grams.partition import Node, Partition, is_block
from ...grams.psd import proved_shifts
from ...grams.storage import Triangles
from ...util.threads import blas_alone, threads

Array = np.ndarray


class Source(Protocol):
    """What kernels are made from, wherever they are needed."""

    n: int
    M: int

    def store(self, first: int, last: int) -> Any:
        """A store of some neighbouring kernels; None if it cannot be made here."""

    def packed(self, first: int, last: int) -> Array:
        """Their packed triangles, one per row, where the data are."""


@dataclass
class Missing(Exception):
    """Blocks that have to be sent to a process before it can answer."""

    blocks: list[int]


@dataclass
class Request:
    """An operation on some kernels of some blocks.

    shared: arguments for all of them; own: arrays with one row per kernel. Numbers are
    small types: this is what moves.
    """

    operation: str
    blocks: Array  # (b,)
    counts: Array | None  # (b,) how many kernels of each; None: all, in order
    numbers: Array | None  # their numbers in the blocks, one block after the other
    shared: tuple = ()
    own: tuple = ()
    node: Node | None = None  # for combine: where in the tree


class Blocks:
    """The blocks of a stack that this process has; made when they are first asked."""

    def __init__(self, source: Source, keep: bool = True):
        self.source, self.keep = source, keep
        self.cut = self._cut()
        self.stores: dict[int, Any] = {}
        self.lock = threading.Lock()

    def _cut(self) -> Partition:
        return Partition(self.source.M)

    def __getstate__(self) -> dict[str, Any]:
        return {"source": self.source, "keep": self.keep}  # blocks are made anew

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def put(self, block: int, P: Array) -> None:
        """Take the packed triangles of a block."""
        P = np.array(P)  # a copy that can be written, as compiled loops expect
        self.stores[block] = Triangles(self.source.n, 0, "packed", P.dtype, P)

    def store(self, block: int) -> Any:
        """The kernels of a block."""
        with self.lock:
            found = self.stores.get(block)
            if found is None:
                found = self.source.store(*self.cut.ends(block))
                if found is not None and self.keep:
                    self.stores[block] = found
        return found

    def answer(self, asked: Any) -> Array:
        """What is asked of some blocks; Missing if these have to be sent first."""
        blocks = asked.blocks.tolist()
        with threads(1), blas_alone():
            if self.keep and (absent := [b for b in blocks if self.store(b) is None]):
                raise Missing(absent)
            return self._answer(asked)

    def _answer(self, asked: Request) -> Array:
        """The answers of all blocks, one after the other; of combine, their sum."""
        parts = dict(zip(asked.blocks.tolist(), self._pieces(asked)))
        if asked.operation == "combine":
            return self._sum(asked.node or self.cut.root, parts)
        found = [self._of(asked, block, *part) for block, part in parts.items()]
        return np.concatenate(found)

    def _pieces(self, asked: Request) -> list[tuple[Array, tuple]]:
        """For each block: the numbers of kernels, and their own arguments."""
        if asked.counts is None:
            ends = [self.cut.ends(b) for b in asked.blocks.tolist()]
            numbers = [np.arange(last - first) for first, last in ends]
        else:
            cuts = np.cumsum(asked.counts)[:-1]
            numbers = np.split(np.asarray(asked.numbers, np.int64), cuts)
        cuts = np.cumsum([len(some) for some in numbers])[:-1]
        own = [np.split(array, cuts) for array in asked.own]
        return [(some, tuple(o[i] for o in own)) for i, some in enumerate(numbers)]

    def _of(self, asked: Request, block: int, numbers: Array, own: tuple) -> Array:
        store = self.store(block)
        if hasattr(store, "direction"):  # of a sweep, which decides the order of sums
            store.direction = -1
        special: Callable | None = SPECIAL.get(asked.operation)
        if special is not None:
            first = self.cut.ends(block)[0]
            return special(store, numbers, first, *asked.shared)
        found = getattr(store, asked.operation)(numbers, *asked.shared, *own)
        return np.asarray(found)

    def _sum(self, node: Node, parts: dict[int, tuple[Array, tuple]]) -> Array:
        """Σ θ_m K_m under a node of the tree, packed."""

        def leaf(at: Node) -> Array | None:
            if not is_block(at) or at[0] not in parts:
                return None
            return packed(self._of(ALONE, at[0], *parts[at[0]]))

        found = self.cut.total(node, leaf, np.add)
        assert found is not None
        return found


ALONE = Request("combine", np.zeros(0), None, None)


def packed(S: Array) -> Array:
    """The upper triangle of a symmetric matrix, row after row."""
    out = Triangles(len(S), 1, "packed", float)
    out.store(0, np.ascontiguousarray(S))
    return out.P[0]


def unpacked(P: Array, n: int) -> Array:
    """The symmetric matrix of an upper triangle."""
    P = np.array(P)  # compiled loops expect arrays that can be written
    return Triangles(n, 0, "packed", float, P).square(P)


# ---- what is not an operation of stores ------------------------------------------


def _triangles(store: Any, numbers: Array, first: int) -> Array:
    return np.array([store.triangle(m) for m in numbers], store.dtype)


def _shifts(store: Any, numbers: Array, first: int) -> Array:
    return proved_shifts(store, numbers, first + numbers)[0]


def _root_sizes(store: Any, numbers: Array, first: int) -> Array:
    return np.asarray(store.root_sizes[numbers])


def _traces(store: Any, numbers: Array, first: int) -> Array:
    return np.asarray(np.sum(np.maximum(store.diag(numbers), 0.0), axis=1))


def _samples(store: Any, numbers: Array, first: int, which: Array) -> Array:
    return np.asarray(store.samples(numbers, which).P)


def _against(store: Any, numbers: Array, first: int, S: Array) -> Array:
    return np.asarray(store.against(numbers, unpacked(S, store.n)))


SPECIAL: dict[str, Callable] = {
    "triangles": _triangles,
    "shifts": _shifts,
    "root_sizes": _root_sizes,
    "traces": _traces,
    "samples": _samples,
    "against": _against,
}
