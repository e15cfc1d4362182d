"""The same problem on a part of the samples: a cheap way to good first weights.

A quarter of the samples needs a sixteenth of every kernel; of kernels that are read by
rows so many samples are taken that their kernels fit in memory. The C is larger, so
that the loss keeps its size: the weights of the small problem are near those of the
whole one.
They are the last ones, whose kernels are the end of packed storage, so that nothing is
copied. If their labels are not as those of all, samples may be sorted. Then blocks are
taken, because memory is read in blocks, and spread evenly.
"""

import numpy as np

from ...problem import Array, Problem

PART = 4  # one sample of so many is taken, for a working set of kernels
BLOCK = 8  # neighbours that are taken together: numbers in one line of memory
ALIKE = 0.25  # how far means and spreads of labels may differ, relative to the spread
FEWEST = 100  # samples that say something about the weights
WORTH = 100_000_000  # numbers in all kernels: reading fewer takes less than the steps
MOST_BYTES = 1_500_000_000  # of the kernels of the small problem, which are in memory


def samples_of(problem: Problem, part: int = PART) -> Array | None:
    """The numbers of the samples of the small problem; None if it is not worth while.

    One sample of `part` is taken, fewer if kernels are read by rows. Both classes have
    to be there in the proportion of the whole problem, roughly.
    """
    n, y, M = problem.grams.n, problem.y, problem.grams.M
    stored = problem.grams.storage in ("packed", "full", "disk")
    if problem.grams.by_rows:
        stored, part = True, max(part, int(n * np.sqrt(4 * M / MOST_BYTES)) + 1)
    if n // part < FEWEST or M * n**2 < WORTH:
        return None
    which = _last_or_blocks(problem, part)
    size = len(which) * (len(which) + 1) // 2 * problem.grams.dtype.itemsize
    large = M * size > MOST_BYTES
    if not stored or len(which) < FEWEST or large or len(problem.shape) > 1:
        return None
    if problem.loss.labels == "real":
        return which
    share, whole = np.mean(y[which] > 0), np.mean(y > 0)
    return which if 0.5 * whole <= share and 0.5 * (1 - whole) <= 1 - share else None


def _last_or_blocks(problem: Problem, part: int) -> Array:
    """The last samples if their labels are as those of all; else blocks."""
    n, y = problem.grams.n, problem.y
    last = np.arange(n - n // part, n)
    if problem.grams.by_rows or len(problem.shape) > 1 or not _alike(y[last], y):
        blocks = np.arange(0, n - BLOCK + 1, part * BLOCK)
        return (blocks[:, None] + np.arange(BLOCK)).ravel()
    return last


def _alike(some: Array, y: Array) -> bool:
    """Whether the mean and the spread of these labels are near those of all."""
    spread = float(np.std(y))
    near = abs(float(np.mean(some) - np.mean(y))) <= ALIKE * spread
    return near and abs(float(np.std(some)) - spread) <= ALIKE * spread


def on_samples(problem: Problem, which: Array) -> Problem:
    """The problem on these samples, with a C that keeps the size of the loss."""
    costs = problem.costs[which] / share_of_costs(problem, which)
    return problem.with_(
        grams=problem.grams.samples(which), y=problem.y[which], C=costs
    )


def share_of_costs(problem: Problem, which: Array) -> float:
    """What is lost of ΣC if only these samples are left."""
    return float(np.sum(problem.costs[which]) / np.sum(problem.costs))


def on_all(problem: Problem, which: Array, alpha: Array) -> Array:
    """α of the small problem as a point of the whole one, 0 elsewhere."""
    out = np.zeros(problem.shape)
    out[which] = alpha * share_of_costs(problem, which)
    return problem.feasible(out)
