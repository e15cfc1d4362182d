"""What NumPy reads of dense kernels is counted; results are plain arrays."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack

M, N = 4, 6
RNG = np.random.default_rng(0)
FACTORS = RNG.normal(size=(M, N, 3))
KERNELS = FACTORS @ FACTORS.transpose(0, 2, 1)
THETA, ALPHA = np.arange(1.0, M + 1), RNG.normal(size=N)

READS = {
    "tensordot": (lambda K: np.tensordot(THETA, K, 1), 1),
    "einsum": (lambda K: np.einsum("i,mij,j->m", ALPHA, K, ALPHA), 1),
    "matmul": (lambda K: K @ ALPHA, 1),
    "dot": (lambda K: K.dot(ALPHA), 1),
    "sum": (lambda K: K.sum(axis=0), 1),
    "twice": (lambda K: 2 * K + K, 2),
    "one kernel": (lambda K: K[1] @ ALPHA, 1 / M),
    "each kernel": (lambda K: sum(t * k for t, k in zip(THETA, K)), 1),
    "a row": (lambda K: K[:, 2] @ ALPHA, 1 / N),
    "some samples": (lambda K: K[:, [0, 1]], 2 / N),
    "stacked": (lambda K: np.stack([K[0], K[1]]), 2 / M),
    "shape": (lambda K: np.zeros(K.shape), 0),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("storage", ["packed", "full"])
def test_reads_are_counted_as_passes(name, storage):
    read, passes = READS[name]
    stack = GramStack(KERNELS, storage=storage)
    found = read(stack.dense())
    assert stack.passes == pytest.approx(passes)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, read(np.array(stack.dense())), rtol=1e-12)


def test_a_part_of_a_stack_counts_its_share():
    stack = GramStack(KERNELS)
    stack.subset(np.array([0, 1])).dense().sum()
    assert stack.passes == pytest.approx(2 / M)


def test_what_leaves_numpy_is_plain_and_not_counted():
    stack = GramStack(KERNELS)
    plain = np.asarray(stack.dense())
    assert type(plain) is np.ndarray
    plain.sum()
    assert stack.passes == 0
    with pytest.raises(ValueError, match="read-only"):
        stack.dense()[0, 0, 0] = 1.0
