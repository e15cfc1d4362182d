"""Printed rates of Orabona et al. (2012) that fail, with the problems that show it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mklopt import GramStack, Problem, reference
from mklopt.claims.counterexamples import Step, counterexample
from mklopt.formulations import BlockNorm

from .settings import descent, steepest

Array = np.ndarray


@dataclass(frozen=True)
class Line:
    """g_t(w) = σw²/2 + z_t w on [−R, R], z_t = 1, −1, 1, …; h = ½w², so that α = 1."""

    sigma: float = 1.0
    R: float = 1.0


@counterexample("orabona2012", "Algorithm 3 and lemma 2", problem=Line, most=2000)
def steps_without_t(line: Line, most: int) -> list[Step]:
    """The regret of Algorithm 3, as it is printed, is at most that of lemma 2."""
    sigma, R, w, s, paid = line.sigma, line.R, 1.0, 0.0, 0.0
    signs = np.where(np.arange(most) % 2 == 0, 1.0, -1.0)
    slopes, found = np.empty(most), []
    for t, z in enumerate(signs, 1):
        slopes[t - 1] = L = abs(sigma * w + z)
        s += 0.5 * (np.sqrt((sigma + s) ** 2 + L / R**2) - sigma - s)
        paid += 0.5 * sigma * w**2 + z * w
        if t % max(most // 8, 1) == 0:
            found.append(
                Step(t, _regret(line, paid, signs[:t]), _bound(line, slopes[:t]))
            )
        w = float(np.clip(w - (sigma * w + z) / (sigma + s), -R, R))
    return found


def _regret(line: Line, paid: float, signs: Array) -> float:
    """What was paid beyond the best w."""
    best = -np.mean(signs) / line.sigma
    each = 0.5 * line.sigma * best**2 + best * np.mean(signs)
    return float(paid - each * len(signs))


def _bound(line: Line, slopes: Array) -> float:
    """min over ξ ≥ 0 of Σ 4ξR² + L_t²/(t(σ + ξ))."""
    times = np.arange(1, len(slopes) + 1)
    return min(
        float(np.sum(4 * xi * line.R**2 + slopes**2 / (times * (line.sigma + xi))))
        for xi in np.append(0.0, np.logspace(-4, 2, 100))
    )


def three_classes() -> Problem:
    """Ninety samples close to three unit vectors, in two kernels."""
    rng, n = np.random.default_rng(0), 90
    y = np.arange(n) % 3
    factors = [np.eye(3)[y] + 0.05 * rng.normal(size=(n, 3)) for _ in range(2)]
    grams = GramStack.from_factors(factors)
    return Problem(grams, y, "multiclass_hinge", BlockNorm(1.25), 1.0, bias=False)


@counterexample("orabona2012", "theorem 4", problem=three_classes, most=100)
def steps_without_a_loss(problem: Problem, most: int) -> list[Step]:
    """Stage 1 separates the samples after at most q(2/η + L²)‖v‖² steps."""
    run, eta = descent(problem), 10.0
    _, longest = reference.hard_margin(problem).norm
    bound = run.q * (2 / eta + steepest(run) ** 2) * longest**2
    found: list[Step] = []
    while not run.separated and len(found) < most:
        run.epoch(eta=eta)
        found.append(Step(run.epochs, run.epochs * problem.grams.n, bound))
    return found
