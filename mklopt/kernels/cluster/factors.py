"""Factors on the workers of a Dask cluster: rows in pieces, sums of R × R matrices.

    store = ClusterFactors(client, source)       the operations of grams/factors.py
    store.panel(index)                           a Panel whose rows are on workers

Each piece of rows (grams/factors.py) has one worker that keeps it in memory. Vectors
with one number per sample are here, and move in pieces; the factors do not move:

    unfold(W)    W goes to all workers, which send their part of F W
    fold(A)      each worker gets its part of A and sends one sum for each subtree of
                 pieces that it has; these are added here
    gram(J, d)   as fold; the sums are added on the workers, by the tree of
                 partition.py, and one triangle comes here
    rows(J)      stay where they are: later requests name them, and workers keep the
                 copies of the last SELECTIONS; fewer than FEW_ROWS come here

Operations that need n × n matrices, or factors with repeated kernels, bring all factors
here once.

A *source* makes the factors of some rows:

    source.n, source.M, source.ranks, source.dtype
    source.local                   whether this process has all factors anyway
    source.store(first, last)      Factors of these rows; None: they have to be sent
    source.packed(first, last)     what is sent: the rows, or the points they are of
    source.made(sent)              Factors from what was sent

Failures are those of workers.py. Guarantee. Results have the bits of Factors in one
process, for any workers, any schedule and any failures.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...grams.factors import (
    Factors,
    FactorTable,
    Panel,
    joined_runs,
    repeated,
    row_pieces,
)
from ...grams.partition import Node, Partition, is_block
from .blocks import Blocks, packed, unpacked
from .traffic import Moved, row_model
from .workers import Client, Future, Owners, Workers, by_owner

Array = np.ndarray
SELECTIONS = 2  # of rows, that a worker keeps
_names = itertools.count()


@dataclass
class RowRequest:
    """An operation on the rows of some pieces, with the columns of some kernels."""

    operation: str
    index: Array  # (M,) kernels
    blocks: Array  # (b,) pieces
    name: int | None = None  # of a selection of rows; None: of all rows
    rows: list[Array] | None = None  # of each piece, as `short_form`; None: all
    own: Array | None = None  # one line per row, one piece after the other
    shared: Array | None = None
    nodes: tuple[Node, ...] = ()  # the sums that are wanted
    sizes: bool = False  # sums of absolute values


# ---- on a worker ---------------------------------------------------------------------


class RowBlocks(Blocks):
    """The pieces of rows that this process has; made when they are first asked."""

    source: Any

    def __init__(self, source: Any, keep: bool = True):
        super().__init__(source, keep)
        self.selected: OrderedDict[int, dict[int, Panel]] = OrderedDict()

    def _cut(self) -> Partition:
        return row_pieces(self.source.n)

    def put(self, block: int, P: Array) -> None:
        """Take the rows of a piece, or the points that they are made from."""
        self.stores[block] = self.source.made(P)

    def _answer(self, asked: Any) -> Array:
        """The answers of all pieces, one after the other; of sums, one per node."""
        parts = dict(zip(asked.blocks.tolist(), self._parts(asked)))
        if asked.operation in ("fold", "gram"):
            return np.array([self._row_sum(asked, parts, node) for node in asked.nodes])
        return np.concatenate([self._part(asked, b, *parts[b]) for b in parts])

    def _parts(self, asked: RowRequest) -> list[tuple[Array, Array | None]]:
        """For each piece: the rows that are concerned, and their lines of `own`."""
        if asked.rows is None:
            sizes = [np.diff(self.cut.ends(b))[0] for b in asked.blocks.tolist()]
            which = [np.arange(size) for size in sizes]
        else:
            which = [long_form(rows) for rows in asked.rows]
        if asked.own is None:
            return [(rows, None) for rows in which]
        cuts = np.cumsum([len(rows) for rows in which])[:-1]
        return list(zip(which, np.split(asked.own, cuts)))

    def _row_sum(self, asked: RowRequest, parts: dict, node: Node) -> Array:
        """The sum of a node; of gram, its upper triangle: it is exactly symmetric."""

        def leaf(at: Node) -> Array | None:
            if not is_block(at) or at[0] not in parts:
                return None
            return self._part(asked, at[0], *parts[at[0]])

        found = self.cut.total(node, leaf, np.add)
        assert found is not None
        return packed(found) if asked.operation == "gram" else found

    def _part(
        self, asked: RowRequest, block: int, which: Array, own: Array | None
    ) -> Array:
        """The answer of one piece."""
        if asked.operation == "diag":
            return np.asarray(self.store(block).diag(asked.index).T)
        if asked.name is not None:
            panel = self._selected(asked, block, which)
        else:
            store = self.store(block)
            panel = store.panel(asked.index, np.array([0, store.n]))
        if asked.operation == "unfold":
            assert asked.shared is not None
            return panel.unfold(asked.shared, asked.sizes)
        if asked.operation == "rows":
            return panel.rows(which).F
        assert own is not None
        if asked.operation == "fold":
            return panel.fold(own, asked.sizes)
        return panel.gram(which, own)

    def _selected(self, asked: RowRequest, block: int, which: Array) -> Panel:
        """Rows of a piece that later requests will ask for, too; copied once."""
        assert asked.name is not None
        with self.lock:
            copies = self.selected.setdefault(asked.name, {})
            self.selected.move_to_end(asked.name)
            while len(self.selected) > SELECTIONS:
                self.selected.popitem(last=False)
        found = copies.get(block)
        if found is None:
            store = self.store(block)
            found = store.panel(asked.index, np.array([0, store.n])).rows(which)
            if self.keep:
                copies[block] = found
        return found


def short_form(numbers: Array) -> Array:
    """Increasing numbers in few bytes: as they are, or bits for all up to the last."""
    if len(numbers) == 0 or 32 * len(numbers) < numbers[-1]:
        return numbers.astype(np.int32)
    bits = np.zeros(numbers[-1] + 1, bool)
    bits[numbers] = True
    return np.packbits(bits)


def long_form(found: Array) -> Array:
    """The numbers of a short form."""
    if found.dtype == np.int32:
        return found.astype(np.int64)
    return np.flatnonzero(np.unpackbits(found))


# ---- here ----------------------------------------------------------------------------


class Selection:
    """Some of the rows, in increasing order, and those of each piece."""

    def __init__(self, cut: Partition, numbers: Array | None, name: int | None = None):
        self.numbers, self.name = numbers, name
        starts = np.arange(cut.count) * cut.size
        if numbers is None:
            self.ends, self.rows = np.append(starts, cut.M), None
            self.blocks = list(range(cut.count))
        else:
            self.ends = np.searchsorted(numbers, np.append(starts, cut.M))
            parts = np.split(numbers, self.ends[1:-1])
            self.rows = [short_form(p - start) for p, start in zip(parts, starts)]
            self.blocks = np.flatnonzero(np.diff(self.ends)).tolist()
        self.count = int(self.ends[-1])

    def part(self, array: Array, blocks: list[int]) -> Array:
        """The lines of some pieces."""
        ends = self.ends
        return np.concatenate([array[ends[b] : ends[b + 1]] for b in blocks])

    def joined(self, parts: list[Array], groups: list[list[int]]) -> Array:
        """The lines of all pieces in order; parts: those of each group of pieces."""
        out = np.empty((self.count, *parts[0].shape[1:]), parts[0].dtype)
        for part, blocks in zip(parts, groups):
            start = 0
            for b in blocks:
                rows = out[self.ends[b] : self.ends[b + 1]]
                rows[:] = part[start : start + len(rows)]
                start += len(rows)
        return out


class ClusterPanel(Panel):
    """Some columns of the factors on workers, all rows or some, and products."""

    here = False

    def __init__(
        self, store: ClusterFactors, index: Array, some: Selection, runs: Array
    ):
        self.store, self.index, self.some = store, index, some
        width = int(store.ends[-1]) if some.numbers is None else int(runs[-1, 1])
        self._set(runs, some.ends, width)

    def unfold(self, W: Array, sizes: bool = False) -> Array:
        """F W, (n, k) for W of shape (R, k); or the sums of absolute values."""
        W = np.ascontiguousarray(W, float)
        return self.store.each("unfold", self.index, self.some, W, sizes)

    def fold(self, A: Array, sizes: bool = False) -> Array:
        """FᵀA, (R, k) for A of shape (n, k); or the sums of absolute values."""
        A = np.ascontiguousarray(A, float)
        return self.store.fold(self.index, self.some, A, sizes)

    def rows(self, which: Array) -> Panel:
        """Some of the rows, with these columns only; few of them come here."""
        numbers = self._numbers(which)
        runs = np.array([[0, self.R]])
        if len(cut := self.cut(which)) > 2:
            some = Selection(self.store.cut, numbers, next(_names))
            return ClusterPanel(self.store, self.index, some, runs)
        sorted_ones, back = np.unique(numbers, return_inverse=True)
        F = self.store.brought(self.index, sorted_ones)
        return Panel(np.ascontiguousarray(F[back]), runs, cut)

    def gram(self, which: Array, d: Array) -> Array:
        """(F, 1)ᵀ diag(d) (F, 1) over the rows `which`, d ≥ 0: (R + 1, R + 1)."""
        if len(self.cut(which)) == 2:
            return self.rows(which).gram(np.arange(len(which)), d)
        some = Selection(self.store.cut, self._numbers(which))
        return self.store.gram(self.index, some, np.asarray(d, float), self.R)

    def _numbers(self, which: Array) -> Array:
        return which if self.some.numbers is None else self.some.numbers[which]


class ClusterFactors(FactorTable, Workers):
    """L_m of all kernels, rows in pieces on workers; K_m = L_m L_mᵀ."""

    contents = "factors"
    source: Any

    def __init__(self, client: Client, source: Any, patience: float = 60.0):
        self.ends = np.cumsum([0, *source.ranks])
        self.dtype = np.dtype(source.dtype)
        super().__init__(client, RowBlocks(source, keep=False), patience)
        self.everything = Selection(self.cut, None)

    # ---- what is asked of workers ----------------------------------------------------

    def each(
        self,
        operation: str,
        index: Array,
        some: Selection,
        shared: Array | None = None,
        sizes: bool = False,
    ) -> Array:
        """The answers of all pieces, one below the other."""

        def asked(blocks: list[int]) -> RowRequest:
            return self._request(
                operation, index, some, blocks, shared=shared, sizes=sizes
            )

        if self.lost:
            return np.concatenate([self.here.answer(asked([b])) for b in some.blocks])
        groups: list[list[int]] = []

        def plan(owners: Owners, moved: Moved) -> list[Future]:
            mine = by_owner(some.blocks, owners)
            groups[:] = mine.values()
            self._expect(operation, index, some, groups, moved, shared)
            return [self._submit(who, asked(b), moved) for who, b in mine.items()]

        return some.joined(self._results(plan, operation), groups)

    def fold(self, index: Array, some: Selection, A: Array, sizes: bool) -> Array:
        """FᵀA over some rows: sums of subtrees from the workers, added here."""

        def asked(blocks: list[int], nodes: list[Node]) -> RowRequest:
            own = some.part(A, blocks)
            return self._request(
                "fold", index, some, blocks, own=own, nodes=tuple(nodes), sizes=sizes
            )

        if self.lost:
            return np.asarray(self.here.answer(asked(some.blocks, [self.cut.root]))[0])
        known: list[list[Node]] = []

        def plan(owners: Owners, moved: Moved) -> list[Future]:
            mine, nodes = by_owner(some.blocks, owners), self._nodes(some, owners)
            known[:] = [nodes[who] for who in mine]
            self._expect("fold", index, some, list(mine.values()), moved, A)
            moved.model_received *= sum(map(len, known))
            return [
                self._submit(who, asked(b, nodes[who]), moved)
                for who, b in mine.items()
            ]

        answers = self._results(plan, "fold")
        found = {n: S for N, sums in zip(known, answers) for n, S in zip(N, sums)}
        total = self.cut.total(self.cut.root, found.get, np.add)
        assert total is not None
        return total

    def gram(self, index: Array, some: Selection, d: Array, R: int) -> Array:
        """(F, 1)ᵀ diag(d) (F, 1) over some rows, added on the workers."""

        def asked(node: Node, blocks: list[int]) -> RowRequest:
            own = some.part(d, blocks)
            return self._request("gram", index, some, blocks, own=own, nodes=(node,))

        if self.lost:
            triangle = self.here.answer(asked(self.cut.root, some.blocks))[0]
            return unpacked(triangle, R + 1)

        def plan(owners: Owners, moved: Moved) -> list[Future]:
            mine = by_owner(some.blocks, owners)
            self._expect("gram", index, some, list(mine.values()), moved, d)
            size = moved.model_received
            return [self._tree(owners, some.blocks, asked, size, moved)]

        return unpacked(self._results(plan, "gram")[0][0], R + 1)

    def brought(self, index: Array, numbers: Array) -> Array:
        """Some rows of the factors of these kernels, in increasing order."""
        if len(numbers) == 0:
            return np.empty((0, np.sum(self.ranks(index))), self.dtype)
        if self.source.local:
            return self.whole.panel(index).rows(numbers).F
        return self.each("rows", index, Selection(self.cut, numbers))

    def _request(
        self,
        operation: str,
        index: Array,
        some: Selection,
        blocks: list[int],
        **of: Any,
    ) -> RowRequest:
        rows = None if some.rows is None else [some.rows[b] for b in blocks]
        numbers = np.array(blocks, np.uint16)
        kernels = np.asarray(index, np.int32)
        return RowRequest(operation, kernels, numbers, some.name, rows, **of)

    def _nodes(self, some: Selection, owners: Owners) -> dict[Any, list[Node]]:
        """The largest subtrees whose pieces have one owner, of each owner."""
        found: dict[Any, list[Node]] = {}

        def leaf(node: Node) -> Node | None:
            whose = {owners[b] for b in some.blocks if node[0] <= b < node[1]}
            if len(whose) != 1:
                return None
            found.setdefault(whose.pop(), []).append(node)
            return node

        self.cut.total(self.cut.root, leaf, lambda left, right: left)
        return found

    def _expect(
        self,
        operation: str,
        index: Array,
        some: Selection,
        groups: list[list[int]],
        moved: Moved,
        given: Array | None,
    ) -> None:
        """Add what the model says about an operation."""
        moved.calls += 1
        ranks = int(np.sum(self.ranks(index)))
        moved.model_sent, moved.model_received = row_model(
            operation,
            rows=some.count,
            ranks=ranks,
            tasks=len(groups),
            kernels=len(index),
            columns=1 if given is None or given.ndim == 1 else given.shape[1],
            chosen=0 if some.rows is None else self.n,
            itemsize=self.dtype.itemsize,
        )

    # ---- the operations of a store ---------------------------------------------------

    def panel(self, index: Array) -> Panel:
        """The columns of these kernels, in order, with products."""
        if repeated(index):
            return self.whole.panel(index)
        runs = joined_runs(self.ends, index)
        return ClusterPanel(self, index, self.everything, runs)

    def diag(self, index: Array) -> Array:
        """(M, n): the diagonals."""
        found = self.each("diag", index, self.everything)
        return np.ascontiguousarray(found.T)

    def factor(self, m: int) -> Array:
        """L_m, (n, r_m), in float64; it comes here."""
        if self.source.local:
            return self.whole.factor(m)
        return self.each("rows", np.array([m]), self.everything).astype(float)

    @cached_property
    def whole(self) -> Factors:
        """All factors in this process, for what needs n × n matrices anyway."""
        found: Factors = self.source.store(0, self.n)
        return found

    def __getattr__(self, name: str) -> Any:
        if name not in ("combine", "against", "matvec", "rows", "kernel"):
            raise AttributeError(name)
        return getattr(self.whole, name)
