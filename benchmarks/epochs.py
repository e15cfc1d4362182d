"""One epoch of the stochastic solvers: `make bench NAME=epochs`.

The labels have no pattern, so that nearly every step is an update, the expensive kind
of step. n = 2000 samples, k = 10 classes, M = 6 kernels; the time of an epoch of both
stages of OBSCURE (Orabona, Jie and Caputo 2012) is a ratio to one pass over the
kernels (harness.py), measured in turns. Neither may take more than 6 passes. Runs on
data, and the growth of a step with n, are measured by papers/orabona2012/studies.py.

    python -m benchmarks epochs --samples 500
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks import harness
from mklopt.formulations.block_norm import BlockNorm
from mklopt.grams.stack import GramStack
from mklopt.problem import Problem
from mklopt.solvers.steps.epochs import TIME, UPDATES, Descent

LIMIT = 6.0  # passes


def problem(n: int, k: int, M: int) -> tuple[Problem, np.ndarray]:
    """Gaussian kernels of noise, classes at random; and the kernels as an array."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(M, n, 10)), rng.permutation(np.arange(n) % k)
    squares = np.sum(X**2, axis=2)
    apart = squares[:, :, None] + squares[:, None] - 2 * X @ X.transpose(0, 2, 1)
    K = np.exp(-np.maximum(apart, 0.0) / 2)
    grams = GramStack(K, storage="full")
    return Problem(grams, y, "multiclass_hinge", BlockNorm(1.25), 1.0, bias=False), K


def cost(n: int, k: int = 10, M: int = 6, rounds: int = 9) -> list[str]:
    """A line for each stage: its epoch in passes."""
    at, K = problem(n, k, M)
    shape = at.formulation.strongly_convex
    first, second = (Descent(at, shape, np.random.default_rng(0)) for _ in range(2))
    epochs = (partial(first.epoch, eta=1e-3), partial(second.epoch, R=1.0))
    one, *both = harness.medians(harness.one_pass(K), *epochs, rounds=rounds)
    lines = []
    for run, name, took in zip((first, second), ("stage 1", "stage 2"), both):
        updates = run.tally[UPDATES] / run.tally[TIME]
        what = f"{name}, n = {n}, k = {k}, M = {M}, {updates:.0%} updates: passes"
        lines.append(harness.at_most(what, took / one, LIMIT))
    return lines


def main() -> None:
    """Both stages at one size."""
    parser = harness.parser(__doc__)
    parser.add_argument("--samples", type=harness.positive, default=2000, metavar="n")
    lines = cost(parser.parse_args().samples)
    harness.report(harness.console(), "epochs", __doc__, [], lines)


if __name__ == "__main__":
    main()
