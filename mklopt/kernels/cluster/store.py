"""Kernels on the workers of a Dask cluster, with the operations of storage.py.

    store = Cluster(client, source)       source: see blocks.py

What moves is in traffic.py: quad sends α and brings one number per kernel; combine adds
triangles on the workers, and brings one triangle. Failures: see workers.py.

Kernels in use. A solver of a sparse problem asks for few kernels again and again. They
are brought here once, as triangles (Kept). An operation on r kernels is done here if

    r ≤ M/8,  and r triangles fit in `memory`,  and r ≤ 256 for quad and against

The last one because quad needs so little traffic that bringing many kernels for it
does not pay. The rule does not look at workers or at the past: results have the same
bits in every run.
"""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import Any

import numpy as np

from ...grams.kernel_cache import Kept
from ...grams.partition import Node, Piece
from ...grams.storage import REMEMBERED, Triangles
from .blocks import Blocks, Request, Source, packed, unpacked
from .traffic import HEADER, Moved, model
from .workers import Client, Future, Owners, Workers, by_owner

Array = np.ndarray
SHARE = 8  # one kernel of so many, at most, is a working set
MOST_QUAD = 256  # kernels that are brought here for a quad


class Cluster(Workers):
    """Kernels in blocks on workers; the operations are documented in stack.py."""

    storage, remembered, sized = "cluster", REMEMBERED, True

    def __init__(
        self, client: Client, source: Source, memory: int, patience: float = 60.0
    ):
        self.sample = source.store(0, min(4, source.M))
        self.dtype, self.cost = self.sample.dtype, self.sample.cost
        me = weakref.ref(self)  # no cycle: the workers are freed at once
        fetch = lambda numbers, P: me()._fetch(numbers, P)  # type: ignore[union-attr]  # noqa: E731
        self.kept = Kept(source.n, self.dtype, memory, fetch)
        super().__init__(client, Blocks(source, keep=False), patience)

    # ---- operations on all blocks ----------------------------------------------------

    def _each(
        self,
        operation: str,
        index: Array,
        *shared: Array,
        own: tuple = (),
        **about: Any,
    ) -> Array:
        """The answers for these kernels, in their order."""
        pieces = {piece.block: piece for piece in self.cut.pieces(index)}
        if self.lost:
            groups = [[piece] for piece in pieces.values()]
            asked = [self._request(operation, g, shared, own) for g in groups]
            found = [self.here.answer(request) for request in asked]
        else:
            groups = []

            def plan(owners: Owners, moved: Moved) -> list[Future]:
                mine = by_owner(list(pieces), owners)
                groups[:] = [[pieces[b] for b in blocks] for blocks in mine.values()]
                self._expect(operation, index, groups, moved, **about)
                return [
                    self._submit(owner, self._request(operation, g, shared, own), moved)
                    for owner, g in zip(mine, groups)
                ]

            found = self._results(plan, operation)
        return _placed(found, groups, len(index))

    def _request(
        self, operation: str, pieces: list[Piece], shared: tuple, own: tuple = ()
    ) -> Request:
        """One task: what is asked of these pieces."""
        blocks = np.array([piece.block for piece in pieces], np.uint16)
        places = np.concatenate([piece.places for piece in pieces])
        mine = tuple(array[places] for array in own)
        if all(piece.numbers is None for piece in pieces):
            return Request(operation, blocks, None, None, shared, mine)
        counts = np.array([len(piece.places) for piece in pieces], np.int32)
        some = [self._numbers(piece) for piece in pieces]
        numbers = np.concatenate(some).astype(np.int32)
        return Request(operation, blocks, counts, numbers, shared, mine)

    def _numbers(self, piece: Piece) -> Array:
        return np.arange(len(piece.places)) if piece.numbers is None else piece.numbers

    def _expect(
        self,
        operation: str,
        index: Array,
        groups: list[list[Piece]],
        moved: Moved,
        **about: Any,
    ) -> None:
        """Add what the model says about an operation."""
        moved.calls += 1
        sizes = dict(itemsize=self.dtype.itemsize) | about
        sent, moved.model_received = model(
            operation, self.n, len(index), len(groups), **sizes
        )
        moved.model_sent = sent + sum(map(_addresses, groups))

    def combine(self, index: Array, theta: Array) -> Array:
        """Σ θ_m K_m."""
        theta = np.ascontiguousarray(theta, float)
        if self._small(index):
            return self.kept.ask("combine", index, theta)
        pieces = {piece.block: piece for piece in self.cut.pieces(index)}
        if self.lost:
            request = self._request("combine", list(pieces.values()), (), (theta,))
            return unpacked(self.here.answer(request), self.n)

        def plan(owners: Owners, moved: Moved) -> list[Future]:
            groups: list[list[Piece]] = []

            def asked(node: Node, blocks: list[int]) -> Request:
                groups.append([pieces[b] for b in blocks])
                request = self._request("combine", groups[-1], (), (theta,))
                request.node = node
                return request

            size = 4 * self.n * (self.n + 1)
            found = self._tree(owners, list(pieces), asked, size, moved)
            self._expect("combine", index, groups, moved)
            return [found]

        return unpacked(self._results(plan, "combine")[0], self.n)

    # ---- the operations of a store ---------------------------------------------------

    def _small(self, index: Array, most: int | None = None) -> bool:
        """Whether these kernels are brought here, by the rule at the top."""
        few = len(index) <= self.M // SHARE and self.kept.fits(index)
        return few and (most is None or len(index) <= most)

    def _fetch(self, numbers: Array, P: Array) -> None:
        P[:] = self._each("triangles", numbers)

    def quad(self, index: Array, A: Array) -> Array:
        """(tr AᵀK_mA)_m for an (n, k) matrix A."""
        if self._small(index, MOST_QUAD):
            return self.kept.ask("quad", index, A)
        return self._each("quad", index, A, columns=A.shape[1])

    def against(self, index: Array, S: Array) -> Array:
        """(⟨K_m, S⟩)_m for a symmetric S."""
        if self._small(index, MOST_QUAD):
            return self.kept.ask("against", index, S)
        return self._each("against", index, packed(S))

    def matvec(self, index: Array, A: Array) -> Array:
        """(K_m A_m)_m for A of shape (1 or M, n, k)."""
        if self._small(index):
            return self.kept.ask("matvec", index, A)
        if len(A) == 1:
            return self._each("matvec", index, A, columns=A.shape[2])
        return self._each("matvec", index, own=(A,), columns=A.shape[2], separate=True)

    def rows(self, index: Array, which: Array) -> Array:
        """(M, r, n): the rows with these numbers."""
        if self._small(index):
            return self.kept.ask("rows", index, which)
        return self._each("rows", index, which, columns=len(which))

    def diag(self, index: Array) -> Array:
        """(M, n): the diagonals."""
        return self._each("diag", index)

    @cached_property
    def root_sizes(self) -> Array:
        """Upper bounds of √λ_max(K_m)."""
        return self._each("root_sizes", np.arange(self.M))

    def traces(self, index: Array) -> Array:
        """Σ_i max(K_ii, 0) of each kernel: no diagonal comes here."""
        return self._each("traces", index)

    def shifts(self, index: Array) -> Array:
        """δ_m for which K_m + δ_m I is proved to be positive semi-definite."""
        return self._each("shifts", index)

    def samples(self, index: Array, which: Array) -> Triangles:
        """The kernels between some of the samples, in order, packed; they come here."""
        P = self._each("samples", index, which, columns=len(which))
        return Triangles(len(which), len(P), "packed", self.dtype, P)

    def triangle(self, m: int) -> Array:
        """The upper triangle, row after row."""
        return self._each("triangles", np.array([m]))[0].astype(float)

    def kernel(self, m: int) -> Array:
        """(n, n): one kernel."""
        return unpacked(self.triangle(m), self.n)

    def chain(self, terms: int) -> int:
        """The largest number of additions that one product takes part in."""
        here = Triangles(self.n, 0, "packed", self.dtype)  # kernels in use
        return max(int(self.sample.chain(terms)), here.chain(terms))

    def quad_chain(self, columns: int) -> int:
        """The k for which the error of `quad` is at most γ_k Σ|K_ij||A_i||A_j|."""
        here = Triangles(self.n, 0, "packed", self.dtype)
        return max(int(self.sample.quad_chain(columns)), here.quad_chain(columns))


def _placed(found: list[Array], groups: list[list[Piece]], count: int) -> Array:
    """The answers of tasks in the order of the index."""
    out = np.empty((count, *found[0].shape[1:]), found[0].dtype)
    for answers, pieces in zip(found, groups):
        out[np.concatenate([piece.places for piece in pieces])] = answers
    return out


def _addresses(pieces: list[Piece]) -> int:
    """The bytes that say which kernels a task is about."""
    size = HEADER + 2 * len(pieces)
    if any(piece.numbers is not None for piece in pieces):
        size += 4 * len(pieces) + 4 * sum(len(piece.places) for piece in pieces)
    return size
