"""Problems, runs and bounds of Orabona, Jie and Caputo (2012).

C = 1/(λN), and values are canonical, C Σ ℓ + ½‖w‖²: the paper's times 1/λ.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from mklopt import Problem, Result, certify, data, kernels, one_vs_rest, solve
from mklopt.formulations import BlockL1
from mklopt.solvers.steps.epochs import NOISE, PAID, PULL, TIME, Descent
from mklopt.tasks.one_vs_rest import OneVsRest

Array = np.ndarray


# ---- section 5.2 -----------------------------------------------------------------


def synthetic(n: int, seed: int) -> Problem:
    """Three classes, four kernels: 1 to 3 tell one class from the others, 4 all."""
    found = data.load("orabona_toy", n=n, seed=seed)
    grams = kernels.views(kernels.gaussians("mean"), found.views).fit(found.views)
    loss = "multiclass_hinge"
    return Problem(grams.grams(), found.y, loss, BlockL1(), C=6 / n, bias=False)


def solved(problem: Problem, tol: float = 1e-8) -> tuple[Result, OneVsRest]:
    """All classes at once, and one against the rest."""
    together = solve(problem, "hessian", tol=tol)
    apart = one_vs_rest(problem.with_(bias=True), "hessian", tol=tol)
    return together, apart


def quadrants(side: int) -> list[list[int]]:
    """The pixels of four squares that an image of side² pixels is cut into."""
    pixel, half = np.arange(side**2).reshape(side, side), side // 2
    parts = [pixel[i : i + half, j : j + half] for i in (0, half) for j in (0, half)]
    return [part.ravel().tolist() for part in parts]


# ---- runs ------------------------------------------------------------------------


def descent(problem: Problem, seed: int = 0) -> Descent:
    """A run of OBSCURE from w = 0."""
    shape = problem.formulation.strongly_convex
    return Descent(problem, shape, np.random.default_rng(seed))


def means(
    problem: Problem, epochs: Sequence[int], seeds: int, which: str = "average"
) -> Array:
    """[seed, epoch]: the objective at the mean of w_1 … w_T, or at the last of them.

    Stage 2 alone, from w = 0, in the ball that is known beforehand.
    """
    values = np.empty((seeds, len(epochs)))
    for seed in range(seeds):
        run = descent(problem, seed)
        R = run.radius
        for place, epoch in enumerate(epochs):
            while run.stage < epoch:
                run.epoch(R=R)
            B = run.coefficients(which)
            found = certify(problem, dual=np.zeros(problem.shape), coefficients=B)
            values[seed, place] = found.primal
    return values


def seconds_of(problem: Problem, R: float, T: int, rounds: int = 3) -> float:
    """Processor time of one of T steps of stage 2, the best of some rounds."""
    found = []
    for seed in range(rounds):
        run = descent(problem, seed)
        run.epoch(eta=1.0)
        run.begin()
        begun = time.process_time()
        while run.tally[TIME] < T:
            run.epoch(R=R)
        found.append((time.process_time() - begun) / float(run.tally[TIME]))
    return min(found)


# ---- lemma 2 and the theorems ----------------------------------------------------


def steepest(run: Descent) -> float:
    """L ≥ ‖z‖_{2,q} for every sample: theorems 3 and 4."""
    _, cost, roots, _ = run.samples
    radius = run.problem.loss.domain(run.problem.y).radius
    return float(np.max(cost * roots * radius))


def regret(run: Descent, f: Array, penalty: float) -> float:
    """Σ g_t(w_t) − g_t(u) of stage 2, u given by its predictions and ½‖u‖²."""
    values = run.problem.loss.value(f, run.problem.y)
    theirs = float(np.sum(run.seen * run.samples[1] * values))
    theirs += float(run.tally[TIME]) * run.lam * penalty
    return float(run.tally[PAID]) - theirs


def regret_bound(run: Descent, R: float) -> float:
    """Lemma 2: the regret is at most this for all ‖u‖_{2,p} ≤ R."""
    return 2 * R**2 * float(run.tally[PULL]) + 0.5 * float(run.tally[NOISE])


def theorem_3(T: Array, q: float, lam: float, R: float, L: float) -> Array:
    """What E f − f* is at most after T steps, in the paper's units (times ΣC: ours)."""
    c = (lam * R + L) * np.sqrt(q * (1 + np.log(T)))
    return np.asarray(c * np.minimum(c / (lam * T), 4 * R / np.sqrt(T)))
