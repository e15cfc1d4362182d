"""A better dual point at little cost, for stochastic solvers.

Step. At fixed kernel weights θ, some moves of the inner solver, or, for losses without
one, steps of the generalized conditional gradient method: towards −C V'(f), where the
linearized dual is largest. Then the best point between the old and the new α.

Guarantee. The dual value with Ω* never falls: the moves raise the dual value at θ only,
but the search on the segment includes both of its ends.
"""

from collections.abc import Callable

import numpy as np

from ...certificates.certificate import best_shrink
from ...problem import Array, Problem
from ..machines.factory import dual_machine

SEARCH = {"maxiter": 20}  # evaluations on a segment


def improve(
    problem: Problem, alpha: Array, theta: Array, budget: int | None = None
) -> Array:
    """A dual point that is at least as good as α.

    alpha: any numbers in the shape of the dual; they are made feasible first
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
    """Generalized conditional gradient steps on the dual at fixed kernel weights."""
    loss, y, costs = problem.loss, problem.y, problem.spread_costs
    for _ in range(rounds):
        f = K @ alpha
        b = loss.best_bias(f, y, problem.costs) if problem.bias else 0.0
        step = problem.feasible(-costs * loss.gradient(f + b, y)) - alpha
        linear, square = float(np.sum(step * f)), float(np.sum(step * (K @ step)))

        def minus_dual(t, alpha=alpha, step=step, linear=linear, square=square):
            loss = problem.dual_loss(alpha + t * step)
            return t * linear + 0.5 * t * t * square - loss

        alpha = alpha + _argmin(minus_dual) * step
    return alpha


def _best_between(problem: Problem, old: Array, new: Array) -> Array:
    """The point of a segment with the best dual value after scaling."""
    grams, points = problem.grams, (old, new, 0.5 * (old + new))
    first, last, middle = (grams.quad(p) + grams.shift * np.sum(p**2) for p in points)
    cross = 2 * middle - 0.5 * (first + last)

    def minus_dual(t: float) -> float:
        squares = (1 - t) ** 2 * first + t**2 * last + 2 * t * (1 - t) * cross
        v = np.sqrt(np.maximum(squares, 0.0))
        return -best_shrink(problem, old + t * (new - old), v)[1]

    t = _argmin(minus_dual)
    return old if t == 0 else new if t == 1 else old + t * (new - old)


def _argmin(function: Callable[[float], float]) -> float:
    """The minimizer of a unimodal function on [0, 1], the ends included."""
    from scipy.optimize import minimize_scalar

    ends = (0.0, 1.0)
    found = minimize_scalar(function, bounds=ends, method="bounded", options=SEARCH)
    return min((*ends, float(found.x)), key=function)
