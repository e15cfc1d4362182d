"""Blocks of kernels in one process: answers, sums, and what is missing."""

import pickle

import numpy as np
import pytest

from mklopt.grams.stack import GramStack
from mklopt.grams.storage import Triangles
from mklopt.kernels.cluster.blocks import Blocks, Missing, Request, packed, unpacked

N, M = 6, 11


@pytest.fixture
def stack() -> GramStack:
    L = np.random.default_rng(0).normal(size=(M, N, 3))
    return GramStack(L @ L.transpose(0, 2, 1))


class Here:
    """Kernels of a stack in this process; counts how often blocks are made."""

    def __init__(self, stack):
        self.stack, self.M, self.n, self.made = stack, stack.M, stack.n, 0

    def store(self, first, last):
        self.made += 1
        return self.stack._store.samples(np.arange(first, last), np.arange(self.n))

    def packed(self, first, last):
        return self.store(first, last).P


class Elsewhere(Here):
    def store(self, first, last):
        return None


def request(operation, *shared, own=()):
    return Request(operation, np.arange(3, dtype=np.uint16), None, None, shared, own)


def test_answers_of_blocks_are_put_together(stack):
    blocks, a = Blocks(Here(stack)), np.arange(float(N))
    found = blocks.answer(request("quad", a[:, None]))
    np.testing.assert_allclose(found, stack.quad(a))
    sizes = blocks.answer(request("root_sizes"))
    np.testing.assert_allclose(sizes, stack._store.root_sizes)
    some = Request(
        *("matvec", np.array([2, 0]), np.array([1, 2]), np.array([1, 3, 0])),
        (a[None, :, None],),
    )
    np.testing.assert_allclose(
        blocks.answer(some)[:, :, 0], stack.matvec(a)[[9, 3, 0]], atol=1e-12
    )


def test_a_sum_follows_the_tree(stack):
    theta, blocks = np.arange(1.0, M + 1), Blocks(Here(stack))
    found = blocks.answer(request("combine", own=(theta,)))
    np.testing.assert_allclose(unpacked(found, N), stack.combine(theta))
    index = [np.arange(0, 4), np.arange(4, 8), np.arange(8, 11)]
    one, two, three = (packed(stack._store.combine(i, theta[i])) for i in index)
    np.testing.assert_array_equal(found, (one + two) + three)
    part = Request(
        *("combine", np.array([2]), None, None), own=(theta[8:],), node=(2, 3)
    )
    np.testing.assert_array_equal(blocks.answer(part), three)


def test_blocks_are_made_once_where_they_are_kept(stack):
    for keep, times in ((True, 3), (False, 6)):
        source = Here(stack)
        blocks = Blocks(source, keep)
        for _ in range(2):
            blocks.answer(request("quad", np.ones((N, 1))))
        assert source.made == times


def test_kernels_that_are_elsewhere_are_asked_for(stack):
    blocks, asked = Blocks(Elsewhere(stack)), request("quad", np.ones((N, 1)))
    with pytest.raises(Missing) as missing:
        blocks.answer(asked)
    assert pickle.loads(pickle.dumps(missing.value)).blocks == [0, 1, 2]
    for block in missing.value.blocks:
        blocks.put(block, Here(stack).packed(*blocks.cut.ends(block)))
    np.testing.assert_allclose(blocks.answer(asked), stack.quad(np.ones(N)))


def test_the_order_of_a_sweep_does_not_depend_on_the_past(stack):
    source = Here(stack)
    blocks = Blocks(source)
    blocks.store(0).direction = 1
    blocks.answer(request("quad", np.ones((N, 1))))
    assert blocks.store(0).direction == -1


def test_pickled_blocks_are_empty(stack):
    blocks = Blocks(Nothing())
    blocks.put(0, np.ones((1, 3)))
    again = pickle.loads(pickle.dumps(blocks))
    assert again.stores == {} and again.cut.M == 1 and again.keep


class Nothing:
    M, n = 1, 2

    def store(self, first, last):
        return None

    def packed(self, first, last):
        raise NotImplementedError


def test_packed_and_unpacked(stack):
    K = stack.kernel(3)
    np.testing.assert_array_equal(packed(K), stack._store.triangle(3))
    np.testing.assert_array_equal(unpacked(packed(K), N), K)
    frozen = packed(K)
    frozen.flags.writeable = False  # as arrays from the network may be
    assert isinstance(
        Triangles(N, 0, "packed", float).square(frozen.copy()), np.ndarray
    )
    np.testing.assert_array_equal(unpacked(frozen, N), K)
