"""A better dual point, cheaply: what a stochastic run ends with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from ...certificates.certificate import best_shrink
from ...problem import Problem
from ..machines.factory import dual_machine

Array = np.ndarray


def improve(
    problem: Problem, alpha: Array, theta: Array, budget: int | None = None
) -> Array:
    """A dual point at least as good as α, cheaply: what a stochastic run ends with.

    Some moves of the inner solver at fixed kernel weights θ (losses without one: steps
    towards the gradient of the loss, where the linearized dual is largest), then the
    best point of the segment from α to where they lead. The inner solver raises its own
    dual at θ; the search on the segment makes sure that the one with Ω* never falls.

    alpha: any numbers of the shape of the dual; made feasible first
    theta: θ ≥ 0, one per kernel
    budget: moves of one sample each, by default two per sample
    """
    old, n = problem.feasible(np.asarray(alpha, float)), problem.grams.n
    K, moves = problem.grams.combine(theta), max(2 * n if budget is None else budget, 1)
    kind = dual_machine(problem)
    if kind is None:
        new = _towards_the_gradient(problem, K, old, rounds=-(-moves // n))
    else:
        machine = kind(problem, old)
        machine.tol = 0.0
        new = problem.feasible(machine.solve_on(K, budget=moves).alpha)
    return _best_between(problem, old, new)


def _towards_the_gradient(problem: Problem, K: Array, alpha: Array, rounds: int):
    """Generalized conditional gradient on the dual at fixed kernel weights."""
    loss, y, costs = problem.loss, problem.y, problem.spread_costs
    for _ in range(rounds):
        f = K @ alpha
        b = loss.best_bias(f, y, problem.costs) if problem.bias else 0.0
        step = problem.feasible(-costs * loss.gradient(f + b, y)) - alpha
        linear, square = float(np.sum(step * f)), float(np.sum(step * (K @ step)))

        def loses(t, alpha=alpha, step=step, linear=linear, square=square):
            return (
                t * linear + 0.5 * t * t * square - problem.dual_loss(alpha + t * step)
            )

        alpha = alpha + _argmin(loses) * step
    return alpha


def _best_between(problem: Problem, old: Array, new: Array) -> Array:
    """The point of a segment with the best dual value, scaled as it likes."""
    middle = 0.5 * (old + new)
    ends = [problem.grams.quad(point) for point in (old, new, middle)]
    ends = [
        square + problem.grams.shift * np.sum(point**2)
        for square, point in zip(ends, (old, new, middle))
    ]
    cross = 2 * ends[2] - 0.5 * (ends[0] + ends[1])

    def loses(t: float) -> float:
        squares = (1 - t) ** 2 * ends[0] + t**2 * ends[1] + 2 * t * (1 - t) * cross
        v = np.sqrt(np.maximum(squares, 0.0))
        return -best_shrink(problem, old + t * (new - old), v)[1]

    t = _argmin(loses)
    return old if t == 0 else new if t == 1 else old + t * (new - old)


def _argmin(loses: Callable[[float], float]) -> float:
    """Where on [0, 1] a function with one valley is smallest; the ends included."""
    found = minimize_scalar(
        loses, bounds=(0.0, 1.0), method="bounded", options={"maxiter": 20}
    )
    return min((0.0, 1.0, float(found.x)), key=loses)
