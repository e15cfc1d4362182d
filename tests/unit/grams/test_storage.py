"""How kernels are stored: memory, precision, subsets, and the chain of additions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mklopt import GramStack
from mklopt.util.rounding import gamma

rng = np.random.default_rng(7)


def kernels(M=3, n=8, rank=4):
    L = rng.normal(size=(M, n, rank))
    return L @ L.transpose(0, 2, 1)


def test_packed_storage_takes_half_the_memory():
    K = kernels(M=2, n=100)
    assert GramStack(K)._store.P.nbytes == K.nbytes * 101 / 200
    assert GramStack(K, dtype="float32")._store.P.nbytes == K.nbytes * 101 / 400


def test_single_precision_entries_are_the_kernels():
    """What float32 stores is what is certified, not what it was rounded from."""
    grams = GramStack(kernels(), dtype="float32")
    kernel = grams.kernel(0)
    np.testing.assert_array_equal(kernel, kernel.astype(np.float32))


def test_the_chain_of_a_tiled_product_covers_its_rounding():
    """n larger than a tile: errors of one sign pile up, and stay under γ_chain."""
    n = 300
    rng = np.random.default_rng(3)
    K = rng.uniform(1.0, 1.0 + 1e-3, size=(1, n, n))
    K[0] = (K[0] + K[0].T) / 2 + n * np.eye(n)
    grams, a = GramStack(K), rng.uniform(1.0, 1.0 + 1e-3, size=n)
    assert grams.chain(n) < n / 2
    got, worst = grams.matvec(a)[0], 0.0
    for i in range(n):
        terms = [Fraction(float(k)) * Fraction(float(x)) for k, x in zip(K[0, i], a)]
        true = sum(terms, Fraction(0))
        worst = max(worst, float(abs(Fraction(float(got[i])) - true) / true))
    assert 0 < worst <= gamma(grams.chain(n))
