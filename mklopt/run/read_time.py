"""How long one read of all kernels takes, measured on a part of them.

Blocks of consecutive kernels are read once each, at places spread over the stack, more
and more of them until the time is long enough to be measured:

    seconds of all = M · (seconds of the largest blocks) / (their kernels)

A small stack is read as a whole. It takes about LONG_ENOUGH seconds, at most a few
times as long, and compilation is not measured. Kernels that are read by rows are read
at FEW_ROWS samples; distances, which are kept, are not measured.
"""

import time

import numpy as np

from ..grams.stack import GramStack
from ..util.threads import with_blas_alone

BLOCKS = 4  # places in the stack
LONG_ENOUGH = 0.15  # seconds
GROWTH = 4  # of the number of kernels, from one trial to the next
FEW_ROWS = 200  # of kernels that are read by rows
LARGEST_CHOLESKY = 1000  # points


@with_blas_alone
def seconds_of_read(grams: GramStack) -> float:
    """Seconds of one quad over all kernels, by a measurement on some of them."""
    apart, alpha = grams.apart(), np.random.default_rng(0).normal(size=grams.n)
    share = min(FEW_ROWS / grams.n, 1.0) if grams.by_rows else 1.0
    alpha[round(share * grams.n) :] = 0.0
    apart.subset(np.arange(min(BLOCKS, grams.M))).quad(alpha)  # compiles
    each = 1
    while True:
        kernels = _blocks(grams.M, each)
        alpha = -1.1 * alpha  # not one that is remembered
        begun = time.perf_counter()
        apart.subset(kernels).quad(alpha)
        took = time.perf_counter() - begun
        if took >= LONG_ENOUGH or len(kernels) == grams.M:
            return took * grams.M / len(kernels) / share**2
        each *= GROWTH


def _blocks(M: int, each: int) -> np.ndarray:
    """The numbers of kernels in blocks that begin at equal distances."""
    if BLOCKS * each >= M:
        return np.arange(M)
    starts = np.arange(BLOCKS) * (M // BLOCKS)
    return np.asarray((starts[:, None] + np.arange(each)).ravel())


@with_blas_alone
def seconds_of_cholesky(n: int) -> float:
    """Seconds of a Cholesky factorization of n points, extrapolated if n is large."""
    size = min(n, LARGEST_CHOLESKY)
    matrix = np.full((size, size), 0.5) + np.eye(size)
    begun = time.perf_counter()
    np.linalg.cholesky(matrix)
    return (time.perf_counter() - begun) * (n / size) ** 3
