"""Algorithms 1 and 2 as the boxes have them, with pairs of variables (Q = 2).

Both maximize Σ y_iα_i − ½ Σ_m θ_m αᵀK_mα pair by pair, over 0 ≤ y_iα_i ≤ C, Σα = 0. The
interleaved one takes the analytic step in θ after every pair, the wrapper only when the
machine at θ is solved. What counts is the number of pairs: each needs two rows of every
kernel. They are written for small problems, to be read beside the paper; the solvers
`interleaved` and `analytic` are the ones to use.

Reference: Kloft et al. (2011), algorithms 1 and 2, eqs. (17), (21) and (22).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mklopt import Problem, certify
from mklopt.formulations import LpNorm

Array = np.ndarray
INF = float("inf")


@dataclass
class Chunks:
    """α, θ and the gradients g_m = K_mα of a run, pair after pair."""

    problem: Problem
    pairs: int = 0
    alpha: Array = field(init=False)
    theta: Array = field(init=False)
    g: Array = field(init=False)

    def __post_init__(self) -> None:
        M, n = self.problem.grams.M, self.problem.grams.n
        self.K, self.p = self.problem.grams.dense(), _exponent(self.problem)
        self.alpha, self.g = np.zeros(n), np.zeros((M, n))
        self.theta = np.full(M, M ** (-1 / self.p))

    def move(self) -> float:
        """The best step of the most violating pair (lines 3 to 5); its violation."""
        y, C, a = self.problem.y, self.problem.costs, self.alpha
        slope, low, high = y - self.theta @ self.g, np.minimum(y, 0), np.maximum(y, 0)
        i = int(np.argmax(np.where(a < C * high, slope, -INF)))
        j = int(np.argmin(np.where(a > C * low, slope, INF)))
        bend = self.theta @ (self.K[:, i, i] + self.K[:, j, j] - 2 * self.K[:, i, j])
        room = min(C[i] * high[i] - a[i], a[j] - C[j] * low[j])
        step = min(max(slope[i] - slope[j], 0.0) / bend, room)
        a[i], a[j] = a[i] + step, a[j] - step
        self.g += step * (self.K[:, i] - self.K[:, j])
        self.pairs += 1
        return float(slope[i] - slope[j])

    def reweight(self) -> None:
        """Line 9: eq. (17) with ‖w_m‖² = θ_m² αᵀK_mα."""
        quad = np.maximum(self.g @ self.alpha, 0.0)
        self.theta = LpNorm(self.p).weights(self.theta * np.sqrt(quad))

    @property
    def terms(self) -> tuple[float, float]:
        """L and S of line 7."""
        quad = self.g @ self.alpha
        return float(self.problem.y @ self.alpha), float(0.5 * self.theta @ quad)

    @property
    def gap(self) -> float:
        return certify(self.problem, dual=self.alpha, weights=self.theta).relative_gap


def _exponent(problem: Problem) -> float:
    assert isinstance(problem.formulation, LpNorm) and problem.loss.name == "hinge"
    return problem.formulation.p


def algorithm_2(
    problem: Problem,
    eps: float,
    *,
    S: float = -INF,
    violation: float = INF,
    most: int = 20_000,
) -> Chunks:
    """Until the objective moves by less than eps, as in line 8.

    S: what it begins with, −∞ in the box; then L − S is −∞ + ∞ and the test is lost
    violation: the largest one that may be left; the text asks for it, the box does not
    """
    run, L = Chunks(problem), -INF
    while run.pairs < most:
        left, before = run.move(), L - S
        L, S = run.terms
        with np.errstate(invalid="ignore"):
            moving = abs(1 - (L - S) / before) >= eps
        if not moving and left <= violation:
            break
        run.reweight()
    return run


def until(problem: Problem, gap: float, *, solved: float, most: int = 50_000) -> Chunks:
    """Pairs until the certified gap is small enough, θ moving whenever a pair violates
    its condition by at most `solved`: INF interleaves, a small number wraps.

    The gap is looked at after every tenth pair, for both alike.
    """
    run = Chunks(problem)
    while run.pairs < most:
        if run.move() <= solved:
            run.reweight()
        if run.pairs % 10 == 0 and run.gap <= gap:
            break
    return run
