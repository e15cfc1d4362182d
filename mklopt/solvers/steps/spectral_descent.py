"""Projected gradient descent with spectral steps and a non-monotone search.

Problem. min over d in a convex set of a differentiable W(d); W and ∇W are known up to
the error of an inner solver.

Algorithm (Jain, Vishwanathan and Varma 2012, algorithm 1, after Birgin, Martínez and
Raydan). With λ the step length, p = d − P(d − λ∇W) and t = 1, then less,

    accept      W(d − t p) ≤ A − 1e-4 t ⟨p, ∇W⟩
    N           A is the average of Zhang and Hager: Q ← ηQ + 1, A ← A + (W − A)/Q,
                η between 0.1 and 1; it grows after a step with a tenth of the predicted
                decrease and falls after a rise; without N: A = W, Armijo's rule
    S           λ ← ⟨s, s⟩/⟨s, y⟩, s and y the last changes of d and ∇W; at most
                `longest`, and that where ⟨s, y⟩ ≤ 0 (λ_max, 10 in the paper). Ours,
                longest = None: no limit, and ten times the last λ where ⟨s, y⟩ ≤ 0.
                Without S: λ keeps its first value, 1/‖∇W‖∞; or, with `remember`, it is
                doubled if the first trial was accepted, else multiplied by t
    P           the inner solver is only as precise as a step needs, which the objective
                decides (`set_tolerance`); without P it is precise from the start

Between trials t is the minimum of a parabola, kept in [0.1 t, 0.5 t]. The error of the
inner solver is added to the right side of the comparison. If t falls below 1e-8, the
inner solver is made ten times as precise, and the search begins again.

Ours, `scaled`: ∇W is multiplied by max(d_m/max d, 1e-4), a metric in which parameters
move in proportion to their size. For ℓp prices near p = 1 the curvature d^{p−2} has no
bound, and plain spectral steps get ever shorter; in this metric they do not. It is for
sets that are products of intervals, such as d ≥ 0.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

Array = np.ndarray
SMALLEST_SCALE = 1e-4  # of the metric, relative to the largest: 0 would stay 0
SHORTEST_STEP = 1e-8  # if t is below this, the gradient is not precise enough
ENOUGH_DECREASE = 1e-4  # the part of ⟨p, ∇W⟩ by which a step must fall


class Objective(Protocol):
    """W(d), its gradient at the last d, and the set."""

    @property
    def noise(self) -> float:
        """The error of a value is at most this."""

    @property
    def work(self) -> float:
        """The work so far; a search yields a trial for each unit of it."""

    def value(self, d: Array) -> float:
        """W(d)."""

    def gradient(self) -> Array:
        """∇W at the last d for which W was computed."""

    def project(self, d: Array) -> Array:
        """The nearest point of the set."""

    def sharpen(self) -> None:
        """Make the inner solver more precise."""


class Point(NamedTuple):
    """A point d of the descent, with W, ∇W and the next move p."""

    d: Array
    value: float
    slope: Array
    move: Array

    @property
    def falls(self) -> float:
        """⟨p, ∇W⟩: the decrease that a linear model predicts."""
        return float(self.move @ self.slope)


def descend(
    objective: Objective,
    d: Array,
    *,
    spectral: bool = True,
    nonmonotone: bool = True,
    scaled: bool = True,
    remember: bool = False,
    longest: float | None = None,
) -> Iterator[Point]:
    """The points of the descent, one per step; a long search yields trials, too."""
    metric = by_size if scaled else np.ones_like
    d = objective.project(d)
    value, slope = objective.value(d), objective.gradient()
    length = first_length(metric(d) * slope)
    average = Average(value, nonmonotone)
    while True:
        scale = metric(d)
        target = objective.project(d - length * scale * slope)
        point = Point(d, value, slope, d - target)
        yield point
        t, trials, shown = 1.0, 0, objective.work
        while True:
            trial = d - t * point.move
            new = objective.value(trial)
            trials += 1
            enough = average.level - ENOUGH_DECREASE * t * point.falls
            if new <= enough + objective.noise:
                break
            t = parabola(t, new - value, point.falls)
            if t < SHORTEST_STEP:
                break
            if objective.work >= shown + 1:
                yield Point(trial, new, objective.gradient(), point.move)
                shown = objective.work
        if t < SHORTEST_STEP:
            objective.sharpen()
            value, slope = objective.value(d), objective.gradient()
            average, length = Average(value, nonmonotone), first_length(scale * slope)
            continue
        bend = objective.gradient()
        if spectral:
            length = spectral_length(trial - d, bend - slope, scale, length, longest)
        elif remember:
            length *= 2.0 if trials == 1 else t
        average.add(new, gain=(value - new) / max(t * point.falls, 1e-300))
        d, value, slope = trial, new, bend


def first_length(slope: Array) -> float:
    """A step that moves no coordinate by more than 1."""
    return 1 / max(float(np.max(np.abs(slope))), 1e-300)


def parabola(t: float, rise: float, falls: float) -> float:
    """The minimum of the parabola through both ends, between 0.1 t and 0.5 t."""
    curve = rise + t * falls
    best = 0.5 * t * t * falls / curve if curve > 0 else 0.5 * t
    return float(np.clip(best, 0.1 * t, 0.5 * t))


def spectral_length(
    s: Array, y: Array, scale: Array, last: float, longest: float | None = None
) -> float:
    """Barzilai and Borwein: the inverse of the curvature along the last step."""
    curve, most = float(s @ y), 1e30 if longest is None else longest
    if curve <= 0:
        return min(10 * last, most) if longest is None else longest
    return float(np.clip(float(s @ (s / scale)) / curve, 1e-30, most))


def by_size(d: Array) -> Array:
    """The metric: each parameter in proportion to its size, but not 0."""
    return np.maximum(d / max(float(np.max(d)), 1e-300), SMALLEST_SCALE)


class Average:
    """The value that a step is compared with: the last one, or an average of all."""

    def __init__(self, value: float, nonmonotone: bool):
        self.level, self.weight = value, 1.0
        self.mixing, self.lowest = (1.0, 0.1) if nonmonotone else (0.0, 0.0)

    def add(self, value: float, gain: float) -> None:
        """Include a value; gain: its decrease relative to the predicted one."""
        self.weight = self.mixing * self.weight + 1
        self.level += (value - self.level) / self.weight
        if self.lowest:
            change = 0.025 if gain > 0.1 else -0.025 if gain < 0 else 0.0
            self.mixing = float(np.clip(self.mixing + change, self.lowest, 1.0))
