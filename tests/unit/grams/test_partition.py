"""Blocks of kernels, their owners, and the tree of sums."""

from itertools import pairwise

import numpy as np
import pytest

from mklopt.grams.partition import MOST_BLOCKS, Partition, is_block, share_out


@pytest.mark.parametrize("M", [1, 3, 4, 5, 60, 1023, 1024, 1025, 10**5 + 1])
def test_blocks_have_multiples_of_four_kernels_and_cover_all(M):
    cut = Partition(M)
    ends = [cut.ends(b) for b in range(cut.count)]
    assert ends[0][0] == 0 and ends[-1][1] == M
    assert all(a[1] == b[0] for a, b in pairwise(ends))
    assert all((b - a) % 4 == 0 for a, b in ends[:-1])
    assert 1 <= cut.count <= MOST_BLOCKS


@pytest.mark.parametrize("n", [1, 1023, 1025, 16 * 1024, 16 * 1024 + 1, 581_012])
def test_units_and_the_most_blocks_may_be_others(n):
    cut = Partition(n, 1024, 16)
    ends = [cut.ends(b) for b in range(cut.count)]
    assert ends[0][0] == 0 and ends[-1][1] == n and cut.count <= 16
    assert all((b - a) % 1024 == 0 for a, b in ends[:-1])
    assert cut.count == -(-n // 1024) or cut.size > 1024


def test_pieces_keep_the_order_that_was_asked_for():
    cut, index = Partition(20), np.array([17, 3, 0, 19, 1, 2, 8])
    pieces = cut.pieces(index)
    assert [p.block for p in pieces] == [0, 2, 4]
    out = np.full(len(index), -1)
    for p in pieces:
        first, last = cut.ends(p.block)
        out[p.places] = first + (
            np.arange(last - first) if p.numbers is None else p.numbers
        )
    np.testing.assert_array_equal(out, index)


def test_a_whole_block_needs_no_numbers():
    whole, part = Partition(8).pieces(np.arange(7))
    assert whole.numbers is None and part.numbers is not None
    assert part.numbers.tolist() == [0, 1, 2]
    assert Partition(8).pieces(np.array([1, 0, 2, 3]))[0].numbers is not None


def text(cut, used, whose=None):
    """The sum as text with brackets; nodes of one owner are computed by that owner."""

    def leaf(node, alone=False):
        blocks = [b for b in range(*node) if b in used]
        if is_block(node):
            return str(blocks[0]) if blocks else None
        if whose is None or alone or len({whose[b] for b in blocks}) != 1:
            return None
        return cut.total(node, lambda n: leaf(n, True), lambda a, b: f"({a}+{b})")

    return cut.total(cut.root, leaf, lambda a, b: f"({a}+{b})")


def test_the_order_of_a_sum_does_not_depend_on_owners():
    cut, rng = Partition(4 * 11), np.random.default_rng(0)
    assert text(Partition(16), range(4)) == "((0+1)+(2+3))"
    for _ in range(50):
        used = set(rng.permutation(11)[: rng.integers(1, 12)].tolist())
        plain = text(cut, used)
        whose = dict(enumerate(rng.integers(0, 3, 11).tolist()))
        assert text(cut, used, whose) == plain
    assert text(cut, set()) is None


def test_blocks_are_shared_evenly_and_neighbours_stay_together():
    whose = share_out({}, 8, ["a", "b", "c"])
    assert "".join(whose[b] for b in range(8)) == "aaabbbcc"


@pytest.mark.parametrize("count", [8, 150, 151, 253, 256])
@pytest.mark.parametrize("owners", [2, 4, 8])
def test_two_four_and_eight_owners_get_one_node_each(count, owners):
    cut = Partition(4 * count)
    whose, alone = share_out({}, count, range(owners)), []

    def leaf(node):
        if len({whose[b] for b in range(*node)}) > 1:
            return None
        alone.append(node)
        return node

    cut.total(cut.root, leaf, lambda a, b: (a, b))
    assert len(alone) == owners


def test_few_blocks_change_hands():
    before = share_out({}, 9, ["a", "b", "c"])
    without = share_out(before, 9, ["a", "c"])
    assert all(without[b] == before[b] for b in range(9) if before[b] != "b")
    assert sorted(without.values()).count("a") in (4, 5)
    after = share_out(without, 9, ["a", "c", "d"])
    assert sum(after[b] != without[b] for b in range(9)) == 3
    assert set(share_out({}, 2, list("abcd"))) == {0, 1}


def test_nothing_moves_when_nobody_comes_or_goes():
    for present in ("ab", "abc", "abcde"):
        whose = share_out({}, 256, list(present))
        assert share_out(whose, 256, list(present)[::-1]) == whose
