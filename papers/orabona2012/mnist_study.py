"""Section 5.8: digits of MNIST at the paper's sizes, kernels computed on the fly.

Four quadrants of 14 × 14 pixels × (linear, cubic, Gaussian), 12 kernels. The paper
leaves open the polynomial, the width, λ and p. Here they are degree 3, the mean
distance, C = 1 (chosen on 5000 training digits that were left out, before the first
judged run), λ = 1/(CN), p dual to q = 2 ln 12. Grey values go from 0.1 to 1.1, kernels
have unit diagonals, an epoch is a random order of the samples.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mklopt import Problem, data, kernels
from mklopt.claims.items import Scale, study
from mklopt.formulations import BlockNorm
from mklopt.solvers.obscure import published_exponent
from mklopt.solvers.steps.epochs import UPDATES, Descent

from .headline_studies import Clock, Row, until
from .settings import quadrants
from .studies import KEY, printed_radius

Array = NDArray[np.float64]
C, STAGE_1 = 1.0, 5  # the latter: epochs of stage 1 at most


@lru_cache(maxsize=2)
def digits(part: str, mode: str) -> tuple[Array, Array]:
    """Images with grey values from 0.1 to 1.1, and their classes; at tiny of 5000."""
    if mode == "tiny":
        train, test = data.load("mnist5k").split(4000, seed=0)
        found = test if part == "test" else train
    else:
        found = data.load("mnist", **({"part": part} if part == "test" else {}))
    return found.X / 255 + 0.1, found.y


def _parts(scale: Scale) -> list[Row]:
    few, many = scale.of((200, 600), (2000, 6000), (20_000, 60_000))
    return [{"n": few, "last": scale.of(40, 100, 500)}, {"n": many, "last": 10}]


@study(KEY, parts=_parts)
def mnist(scale: Scale, n: int, last: int) -> list[Row]:
    """Test errors after 5, 10 and the last epoch: few epochs on three times as many
    digits, and many epochs on fewer."""
    return one_run(n, sorted({10, last}), scale)


def _whole_parts(scale: Scale) -> list[Row]:
    return [{"n": scale.of(600, 60_000, 60_000)}]


@study(KEY, parts=_whole_parts)
def all_digits(scale: Scale, n: int) -> list[Row]:
    """Test errors after 5 and 10 epochs on all digits, quick as in full."""
    return one_run(n, [10], scale)


def one_run(n: int, epochs: list[int], scale: Scale) -> list[Row]:
    """After stage 1, and after so many epochs of both stages."""
    X, y = digits("train", scale.mode)
    X_test, y_test = digits("test", scale.mode)
    tests = scale.of(500, 10_000, 10_000)
    chosen = np.random.default_rng(scale.seed).permutation(len(y))[:n]
    three = kernels.linear() + kernels.polynomials([3]) + kernels.gaussians("mean")
    family = kernels.views(three, quadrants(28))
    fitted = family.fit(X[chosen], normalize="spherical")
    norm, grams = BlockNorm(published_exponent(fitted.M)), fitted.lazy("100MB")
    problem = Problem(grams, y[chosen], "multiclass_hinge", norm, C, bias=False)
    rng = np.random.default_rng(scale.seed)
    run = Descent(problem, norm.strongly_convex, rng, "shuffle", "last", None)
    clock, rows = Clock(), []

    def shown(stage: str) -> Row:
        sums = fitted.cross_sums(X_test[:tests], run.omega)
        classes = np.concatenate([np.argmax(K @ run.B, axis=1) for K in sums])
        error = 100 * float(np.mean(classes != y_test[:tests]))
        at = {"n": n, "stage": stage, "epochs": run.epochs, "error": error}
        share = run.updates / n  # of the last epoch's steps
        work = {"updates": float(run.tally[UPDATES]), "share": share}
        return {**at, **work, "seconds": clock.seconds, "objective": run.objective}

    with clock:
        while run.epochs < STAGE_1 and not run.separated:
            run.epoch(eta=fitted.M ** (-2 / run.q))
    rows.append(shown("online"))
    R, first = printed_radius(run), run.epochs
    run.begin()
    for epoch in epochs:
        until(run, clock, epoch - first, R)
        rows.append(shown("stage 2"))
    return rows
