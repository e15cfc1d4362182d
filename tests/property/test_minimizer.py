"""What a loose gap proves of the minimizer agrees with what a tight gap proves.

Both sets of intervals contain the minimizer, so they overlap. No tolerance is needed,
and the solution is known as well as the tight gap allows.
"""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem
from mklopt.certificates.certificate import certify
from mklopt.certificates.minimizer import minimizer_facts
from mklopt.formulations import (
    VSKL,
    ElasticNet,
    GroupLasso,
    LpNorm,
    SparseBlockNorm,
)
from mklopt.run.loop import solve

LOSSES = ("squared", "logistic", "huber", "hinge", "eps_insensitive", "quantile")
FORMULATIONS = 7
NAMES = ("norms", "weights", "dual_norms", "predictions", "dual")


def formulation(which, M):
    halves = [list(range(M // 2)), list(range(M // 2, M))]
    return [
        GroupLasso(), LpNorm(1), LpNorm(4 / 3), LpNorm(2), ElasticNet(0.5),
        VSKL(halves), SparseBlockNorm(),
    ][which % FORMULATIONS]  # fmt: skip


def random_problem(seed):
    """A small problem: everything follows from the seed."""
    rng = np.random.default_rng(seed)
    n, M = int(rng.integers(8, 40)), int(rng.integers(2, 9))
    X = rng.normal(size=(n, M))
    loss = LOSSES[seed % len(LOSSES)]
    f = X[:, 0] + 0.5 * X[:, 1]
    real = loss in ("squared", "huber", "eps_insensitive", "quantile")
    y = f + 0.3 * rng.normal(size=n) if real else np.where(f > np.median(f), 1.0, -1.0)
    if rng.random() < 0.3:
        grams = GramStack.from_factors([X[:, [m]] for m in range(M)])
    else:
        distance = (X[:, None] - X[None]) ** 2
        scale = rng.uniform(0.5, 3, M)
        grams = GramStack(np.exp(-distance / scale).transpose(2, 0, 1))
        grams.verify_psd()
    C = float(10 ** rng.uniform(-2, 2))
    omega = formulation(seed // len(LOSSES), M)
    return Problem(grams, y, loss, omega, C, bool(rng.random() < 0.7))


def check(seed):
    """Facts of a loose point (perhaps of coefficients) and of a tight one."""
    problem = random_problem(seed)
    tight = solve(problem, tol=1e-11, max_iter=300)
    best = tight.certificate
    rng = np.random.default_rng(seed + 1)
    noise = 10 ** rng.uniform(-6, -1)
    alpha = best.alpha * (1 + noise * rng.normal(size=best.alpha.shape))
    theta = tight.weights * np.exp(noise * rng.normal(size=problem.grams.M))
    given = {"weights": theta}
    if seed % 3 == 0:
        given = {"coefficients": np.multiply.outer(theta, alpha)}
    loose = certify(problem, alpha, **given)
    one, two = minimizer_facts(loose), minimizer_facts(best)
    wrong = []
    for name in NAMES:
        (a, b), (c, d) = getattr(one, name), getattr(two, name)
        if np.any(a > d) or np.any(c > b) or np.any(a > b):
            wrong.append(name)
    if one.bias[0] > two.bias[1] or two.bias[0] > one.bias[1]:
        wrong.append("bias")
    for facts, other in ((one, two), (two, one)):
        if np.any(facts.used & other.unused):
            wrong.append("used")
        if np.any(facts.unused & (other.norms.lower > 0)):
            wrong.append("unused")
    return wrong, problem, one, two


@pytest.mark.parametrize("chunk", range(4))
def test_intervals_of_loose_and_tight_gaps_overlap(chunk):
    for seed in range(chunk, 42, 4):
        wrong, problem, *_ = check(seed)
        assert not wrong, f"seed {seed}, {problem}: {wrong}"


@pytest.mark.full
@pytest.mark.parametrize("chunk", range(20))
def test_two_thousand_problems(chunk):
    for seed in range(1000 + chunk, 3000, 20):
        wrong, problem, *_ = check(seed)
        assert not wrong, f"seed {seed}, {problem}: {wrong}"
