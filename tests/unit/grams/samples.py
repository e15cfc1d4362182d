"""Kernels, and ways to store them."""

import numpy as np

from mklopt import GramStack

rng = np.random.default_rng(7)


def kernels(M=3, n=8, rank=4):
    L = rng.normal(size=(M, n, rank))
    return L @ L.transpose(0, 2, 1)


STORAGES = {
    "packed": lambda K: GramStack(K),
    "full": lambda K: GramStack(K, storage="full"),
    "single": lambda K: GramStack(K, dtype="float32"),
    "single-full": lambda K: GramStack(K, storage="full", dtype="float32"),
    "one-by-one": lambda K: GramStack(k for k in K),
    "factors": lambda K: GramStack.from_factors(
        [(np.linalg.svd(k)[0] * np.sqrt(np.linalg.svd(k)[1]))[:, :4] for k in K]
    ),
}
