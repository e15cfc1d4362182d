"""How kernels are cut into blocks, who has which block, and in which order sums go.

Blocks. Kernels 0 … M−1 in blocks of neighbours, at most MOST_BLOCKS of them, each with
a multiple of four kernels except the last. The cut depends on M alone. Rows of factors
are cut in the same way, with other numbers (factors.py).

Tree. Σ_b S_b over blocks is added in pairs: node (a, b) is the sum of the blocks
a … b − 1, which is that of the first half and that of the second half. A block that
takes no part is left out. The shape depends on the blocks alone, so that the sum has
the same bits whoever computes which part of it.

Owners. Each block has an owner. At first these are runs of neighbouring blocks. When
owners come or go, as few blocks as possible change hands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .loops import TOGETHER

Array = np.ndarray
T = TypeVar("T")
MOST_BLOCKS = 256  # so many workers can have kernels
Node = tuple[int, int]  # the first block, and the first one after the last


class Piece(NamedTuple):
    """The kernels of one block that an operation concerns."""

    block: int
    places: Array  # where they are in the index that was asked for
    numbers: Array | None  # in the block; None: all of them, in order


class Partition:
    """M kernels in blocks of neighbours, and the tree above the blocks.

    unit: blocks have a multiple of it, except the last; most: so many blocks at most
    """

    def __init__(self, M: int, unit: int = TOGETHER, most: int = MOST_BLOCKS):
        units = -(-M // unit)
        self.M, self.size = M, unit * -(-units // most)
        self.count = -(-M // self.size)

    def ends(self, block: int) -> tuple[int, int]:
        """The first kernel of a block, and the first one after it."""
        return block * self.size, min((block + 1) * self.size, self.M)

    def pieces(self, index: Array) -> list[Piece]:
        """The blocks that have these kernels, in order, and which of theirs."""
        index = np.asarray(index)
        owner = index // self.size
        order = np.argsort(owner, kind="stable")
        blocks, begins = np.unique(owner[order], return_index=True)
        found = []
        for block, places in zip(map(int, blocks), np.split(order, begins[1:])):
            first, last = self.ends(block)
            numbers = index[places] - first
            every = np.array_equal(numbers, np.arange(last - first))
            found.append(Piece(block, places, None if every else numbers))
        return found

    @property
    def root(self) -> Node:
        """The node that is the sum of all blocks."""
        return 0, self.count

    @staticmethod
    def children(node: Node) -> tuple[Node, Node]:
        """The two nodes that a node is the sum of; the first has one more block."""
        middle = (node[0] + node[1] + 1) // 2
        return (node[0], middle), (middle, node[1])

    @classmethod
    def total(
        cls, node: Node, leaf: Callable[[Node], T | None], add: Callable[[T, T], T]
    ) -> T | None:
        """The sum of a node by the tree; leaf(node) is None where children are asked.

        None if no block under the node takes part: leaf returns None for a block, too.
        """
        found = leaf(node)
        if found is not None or is_block(node):
            return found
        left, right = (cls.total(c, leaf, add) for c in cls.children(node))
        if left is None or right is None:
            return right if left is None else left
        return add(left, right)


def is_block(node: Node) -> bool:
    """Whether a node is a single block."""
    return node[1] - node[0] == 1


def share_out(owners: dict[int, Any], count: int, present: Sequence[Any]) -> dict:
    """Who has which of `count` blocks, when these owners are present.

    An owner keeps its blocks, as many as everyone gets; others go to those with fewer,
    neighbours together. At first two, four, … owners get the blocks of one node each.
    """
    if not owners:
        return _first_owners((0, count), list(present))
    fair = {who: count // len(present) for who in present}
    held: dict[Any, list[int]] = {who: [] for who in present}
    for block in range(count):
        if owners.get(block) in held:
            held[owners[block]].append(block)
    # Those who have most keep one more, where the blocks cannot be shared evenly.
    for who in sorted(present, key=lambda who: -len(held[who]))[: count % len(present)]:
        fair[who] += 1
    kept = {b: who for who in present for b in held[who][: fair[who]]}
    room = iter(
        [who for who in present for _ in range(fair[who] - len(held[who][: fair[who]]))]
    )
    return {b: kept[b] if b in kept else next(room) for b in range(count)}


def _first_owners(node: Node, present: list) -> dict:
    """Each half of the blocks for half of the owners, as long as these are even."""
    count, half = node[1] - node[0], len(present) // 2
    if len(present) % 2 or count < len(present):
        return {node[0] + b: present[b * len(present) // count] for b in range(count)}
    left, right = Partition.children(node)
    return _first_owners(left, present[:half]) | _first_owners(right, present[half:])
