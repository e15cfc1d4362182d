"""SPG and PGD of Jain et al. (2012): as released, and as printed.

    min over d ≥ 0 of W(d) = r(d) + max over α of 1ᵀα − ½ αᵀYK(d)Yα,   r(d) = ½‖d‖_p²

Written anew from the paper (section 4, algorithm 1) and from what the program does,
which is more than the paper says. What we would improve is in mklopt/solvers/spg.py;
the two meet only in an appendix of the page. Seconds are CPU seconds of this process.

SVMs    LibSVM's SMO, which ends when no pair violates its condition by ε. It goes on
        from the last α. Weights below 1e-5 count as 0; ∇r at d < 1e-4 is that at 1e-4
        for 1 < p < 2 (program).
SPG     d − s(d − P(d − λ∇W)) with s = 1, then less, until W ≤ C_n − 1e-4 s⟨p, ∇W⟩.
        C_n is the average of Zhang and Hager, whose η moves by 0.025 in [0.1, 1]: up
        where the first trial falls by more than 0.9 of what the model says, down where
        it falls by less than 0.1. λ = ⟨s, s⟩/⟨s, y⟩ in [λ_min, 10], first 1/‖∇W‖∞.
        Printed: λ_min = 1e-30, λ = 10 where ⟨s, y⟩ ≤ 0, s = ½, ¼, … Program: λ_min =
        0.01, 1/‖∇W‖∞ there, and while s > 0.1 the minimum of a parabola is tried.
P       ε is 0.1, then 0.01 once ‖p_1‖_2 is in [1, 5], 0.001 once it is below 1 (p_1 is
        p at λ = 1), and a tenth where s < 1e-8, down to 1e-5. Without P: ε = 1e-6.
PGD     P(d − s∇W) with s = 1 in every step, then less, until W falls by 1e-4 s‖p_1‖².
End     an absolute gap of 1e-3 for sums; ‖p_1‖_2 or ‖p_1‖_∞ below 0.04 for products.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from mklopt.formulations.norms import dual_exponent, norm
from mklopt.gmkl.families import Product
from mklopt.util.compiled import compiled

Array = np.ndarray
UNUSED, THRESHOLD = 1e-5, 1e-4  # weights that count as 0; the least d in ∇r
GAMMA, DECAY, LEAST_STEP = 1e-4, 0.5, 1e-64
BAD, GOOD, CHANGE, TIGHT = 0.1, 0.9, 0.025, 0.1  # of the average
COARSE, FINEST, SHORT = 0.1, 1e-5, 1e-8  # ε at first and at last; steps that lower it
GAP, SLOPE = 1e-3, 0.04  # where the paper stops: sums, products
MOST_MOVES = 10**7  # of SMO in one SVM: a budget, never met by a run that ends


@dataclass(frozen=True)
class Rules:
    """Which of the choices above a method makes."""

    spectral: bool = True
    nonmonotone: bool = True
    tuned: bool = True
    printed: bool = False
    precision: float = 1e-6  # ε without tuning


SPG = Rules()
PGD = Rules(spectral=False, nonmonotone=False, tuned=False)
METHODS = {
    "SPG": SPG,
    "PGD": PGD,
    "SPG printed": replace(SPG, printed=True),
    "PGD printed": replace(PGD, printed=True),
}
ABLATION = {
    "PGD": PGD,
    "+S": replace(PGD, spectral=True),
    "+N": replace(PGD, nonmonotone=True),
    "+N+S": replace(SPG, tuned=False),
    "SPG": SPG,
}


@compiled()
def libsvm(K, y, C, alpha, g, eps, most):  # type: ignore[no-untyped-def]
    """Moves of SMO until no pair violates its condition by eps, in place; how many.

    α carries the sign of the label, g = y − Kα.
    """
    n = len(y)
    for moves in range(most):
        i, j, top, bottom, best = -1, -1, -np.inf, np.inf, 0.0
        for k in range(n):  # the steepest way up
            if alpha[k] < (C if y[k] > 0 else 0.0) and g[k] > top:
                top, i = g[k], k
        for k in range(n):  # the partner that gains most
            if alpha[k] > (0.0 if y[k] > 0 else -C):
                bottom = min(bottom, g[k])
                if i >= 0 and top > g[k]:
                    bend = max(K[i, i] + K[k, k] - 2 * K[i, k], 1e-12)
                    if (top - g[k]) ** 2 / bend > best:
                        best, j = (top - g[k]) ** 2 / bend, k
        if top - bottom < eps or j < 0:
            return moves
        bend = max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12)
        most_up = (C if y[i] > 0 else 0.0) - alpha[i]
        most_down = alpha[j] - (0.0 if y[j] > 0 else -C)
        step = min((top - g[j]) / bend, most_up, most_down)
        alpha[i] = (C if y[i] > 0 else 0.0) if step == most_up else alpha[i] + step
        alpha[j] = (0.0 if y[j] > 0 else -C) if step == most_down else alpha[j] - step
        for k in range(n):
            g[k] -= step * (K[i, k] - K[j, k])
    return most


@dataclass(frozen=True)
class Price:
    """r(d) = ½‖d‖_p² as the program computes it."""

    p: float

    def value(self, d: Array) -> float:
        """r(d)."""
        return 0.5 * norm(d, self.p) ** 2

    def gradient(self, d: Array) -> Array:
        """∇r(d); for 1 < p < 2 its curvature at 0 is cut off."""
        if self.p == 1:
            return np.full(len(d), float(np.sum(d)))
        size = norm(np.where(d > UNUSED, d, 0.0), self.p)
        least = THRESHOLD if self.p != 2 else 0.0
        return np.asarray(np.maximum(d, least) ** (self.p - 1) * size ** (2 - self.p))


class Inner:
    """W and ∇W by SVMs of precision ε, with what they cost."""

    def __init__(self, family: Any, price: Price, y: Array, C: float, eps: float):
        self.family, self.price, self.y, self.C, self.eps = family, price, y, C, eps
        self.alpha, self.svms, self.moves = np.zeros(len(y)), 0, 0

    def value(self, d: Array) -> float:
        """W(d), too small by what the SVM leaves."""
        used = np.where(d > UNUSED, d, 0.0)
        K = np.ascontiguousarray(self.family.combine(used))
        g = self.y - K @ self.alpha
        self.moves += libsvm(K, self.y, self.C, self.alpha, g, self.eps, MOST_MOVES)
        self.svms += 1
        bend = float(self.alpha @ K @ self.alpha)
        self.dual = float(self.y @ self.alpha)  # 1ᵀα
        return self.price.value(used) + self.dual - 0.5 * bend

    def gradient(self, d: Array) -> Array:
        """∇W where `value` was asked last."""
        self.halves = 0.5 * self.family.gradient(d, self.alpha)
        return np.asarray(self.price.gradient(d) - self.halves)

    def gap(self, value: float) -> float:
        """W as reported less the dual value at the same α; products have none."""
        if isinstance(self.family, Product):
            return np.inf
        top = norm(self.halves, dual_exponent(self.price.p))
        return abs(value - (self.dual - 0.5 * top**2))


@dataclass(frozen=True)
class State:
    """Where a descent is after a step, and what it has cost so far."""

    d: Array
    value: float
    gap: float  # absolute, as the program computes it
    slope: float  # the smaller of ‖p_1‖_2 and ‖p_1‖_∞ decides, which is ‖p_1‖_∞
    svms: int
    moves: int
    seconds: float
    step: float
    eps: float
    failed: int  # searches that ended in a step below 1e-8

    @property
    def ends(self) -> bool:
        """Whether the paper stops here."""
        return self.gap < GAP if self.gap < np.inf else self.slope < SLOPE


def descend(inner: Inner, d: Array, rules: Rules) -> Iterator[State]:
    """The states of a method, one per step; the first one is the start."""
    begun, idle = time.process_time(), 0.0
    inner.eps = COARSE if rules.tuned else rules.precision
    value = inner.value(d)
    slope = inner.gradient(d)
    length, level, weight, mixing = 1 / largest(slope), 0.0, 0.0, 1.0
    step, failed = 1.0, 0
    while True:
        unit = np.maximum(d - slope, 0.0) - d
        spent = time.process_time() - begun - idle
        shown = State(d, value, inner.gap(value), float(np.max(np.abs(unit))),
                      inner.svms, inner.moves, spent, step, inner.eps,
                      failed)  # fmt: skip
        yield shown
        idle = time.process_time() - begun - spent  # what the reader took
        finer = finer_precision(float(np.linalg.norm(unit)), inner.eps)
        if rules.tuned and finer < inner.eps:
            inner.eps = finer
            value, slope = inner.value(d), inner.gradient(d)
            unit = np.maximum(d - slope, 0.0) - d
        mixing = mixing if rules.nonmonotone else 0.0
        level = (mixing * weight * level + value) / (mixing * weight + 1)
        weight = mixing * weight + 1
        way = np.maximum(d - length * slope, 0.0) - d if rules.spectral else unit
        falls = -float(way @ slope) if rules.spectral else float(unit @ unit)
        step, new, first = 1.0, np.inf, np.nan
        while True:
            ahead = d + step * way if rules.spectral else d - step * slope
            trial = np.maximum(ahead, 0.0)
            new = inner.value(trial)
            first = new if np.isnan(first) else first
            if new <= level - GAMMA * step * falls or step < LEAST_STEP:
                break
            step = shorter(step, new - value, falls, rules.printed)
        failed += step < SHORT
        if rules.tuned and step < SHORT and inner.eps > FINEST:
            mixing = max(TIGHT, mixing - CHANGE)
            inner.eps *= 0.1
            inner.value(d)
            slope = inner.gradient(d)
            new = inner.value(trial)
        bend = inner.gradient(trial)
        model = falls - float(way @ way) / (2 * length)
        if rules.nonmonotone and model:
            mixing = mixed(mixing, (value - first) / model)
        if rules.spectral:
            length = spectral(trial - d, bend - slope, bend, rules.printed)
        d, value, slope = trial, new, bend


def finer_precision(size: float, eps: float) -> float:
    """ε by ‖p_1‖_2."""
    wanted = 1e-3 if size < 1 else 1e-2 if size <= 5 else COARSE
    return min(wanted, eps)


def shorter(step: float, rise: float, falls: float, printed: bool) -> float:
    """The next trial: half of it, or in the program the minimum of a parabola."""
    if printed or step <= 0.1:
        return DECAY * step
    factor = 0.5 * step * falls / (rise + step * falls or 1e-300)
    tried = step * (factor if factor < 0.9 else DECAY)
    return tried if tried > 0.1 else DECAY * step


def mixed(mixing: float, ratio: float) -> float:
    """η after a step whose first trial fell by so much of what the model said."""
    change = CHANGE if ratio > GOOD else -CHANGE if ratio < BAD else 0.0
    return float(np.clip(mixing + change, TIGHT, 1.0))


def spectral(s: Array, y: Array, slope: Array, printed: bool) -> float:
    """λ of the next step."""
    curve = float(s @ y)
    if curve <= 0:
        return 10.0 if printed else 1 / largest(slope)
    return float(np.clip(float(s @ s) / curve, 1e-30 if printed else 0.01, 10.0))


def largest(slope: Array) -> float:
    """‖∇W‖∞."""
    return max(float(np.max(np.abs(slope))), 1e-30)


@cache
def warm_up() -> None:
    """Compile what is compiled before any clock starts."""
    y = np.array([1.0, -1.0])
    inner = Inner(Product([1 - np.eye(2)]), Price(2.0), y, 1.0, 1e-3)
    inner.value(np.ones(1))


def run(
    inner: Inner, rules: Rules, most: int, start: Array | None = None
) -> tuple[State, dict[str, Any]]:
    """Where a method ends within so many SVMs, and what that cost.

    there: the paper stops here;  svm, seconds, moves, steps: what it took;  near_svm,
    near_seconds: what it took until the reported gap was 1e-3 of W
    """
    warm_up()
    d = np.full(inner.family.M, 1 / inner.family.M) if start is None else start
    near: dict[str, Any] = {}
    states = enumerate(descend(inner, d, rules))
    for steps, state in states:  # noqa: B007
        if not near and state.gap <= GAP * abs(state.value):
            near = {"near_svm": state.svms, "near_seconds": state.seconds}
        if state.ends or state.svms >= most:
            break
    cost = {"svm": state.svms, "seconds": state.seconds, "moves": state.moves}
    end = {"steps": steps, "there": state.ends, "W": state.value}
    end |= {"gap": state.gap, "slope": state.slope, "eps": state.eps}
    lost = {"near_svm": state.svms, "near_seconds": state.seconds}
    return state, cost | end | {"failed": state.failed} | (near or lost)
