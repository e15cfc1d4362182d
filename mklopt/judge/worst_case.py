"""Claims against worst cases: performance estimation by PEPit (an optional extra).

A rate in a paper is a bound for a class of functions; PEPit computes the worst case of
the class by a semidefinite program. A claim is *right* when the worst case stays below
its bound, and *tight* when it reaches it.

    proximal point       F(x_t) − F* ≤ ‖x_0 − x*‖²/(2γt)      (what SpicyMKL does)
    proximal gradient    F(x_t) − F* ≤ L‖x_0 − x*‖²/(2t)      (ISTA)
    accelerated          F(x_t) − F* ≤ 2L‖x_0 − x*‖²/(t + 1)² (FISTA)
    Bregman gradient     F(x_t) − F* ≤ L D_h(x*, x_0)/t       (relative smoothness)

Reference: Goujaud et al. (2024), PEPit; Bauschke, Bolte and Teboulle (2017).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from .rates import NotTestable


class WorstCase(NamedTuple):
    claim: str
    t: int
    worst: float  # computed, for ‖x_0 − x*‖ = 1 (or D_h = 1) and L = γ = 1
    claimed: float

    @property
    def right(self) -> bool:
        return self.worst <= self.claimed * (1 + 1e-4)

    @property
    def tight(self) -> bool:
        return self.right and self.worst >= self.claimed * (1 - 1e-3)


def worst_case(claim: str, t: int) -> WorstCase:
    """The worst case of a class of functions after t steps, beside what is claimed."""
    if claim not in METHODS:
        raise ValueError(f"claim = {claim!r}; choose one of {', '.join(METHODS)}")
    if not isinstance(t, int) or t < 1:
        raise ValueError(f"t = {t!r}; give a number of steps ≥ 1")
    method, bound = METHODS[claim]
    return WorstCase(claim, t, _solved(method, t), bound(t))


def _solved(method: Callable[[Any, int], None], t: int) -> float:
    try:
        with warnings.catch_warnings():  # of its own docstrings
            warnings.simplefilter("ignore")
            import PEPit.functions
            import PEPit.primitive_steps
    except ImportError:
        raise NotTestable("PEPit is not installed: pip install mklopt[pepit]") from None
    problem = PEPit.PEP()
    method(problem, t)
    return float(problem.solve(verbose=0))


def _proximal_point(problem: Any, t: int) -> None:
    from PEPit.functions import ConvexFunction
    from PEPit.primitive_steps import proximal_step

    F = problem.declare_function(ConvexFunction)
    best, x = F.stationary_point(), problem.set_initial_point()
    problem.set_initial_condition((x - best) ** 2 <= 1)
    for _ in range(t):
        x, _, value = proximal_step(x, F, 1)
    problem.set_performance_metric(value - F(best))


def _composite(problem: Any) -> tuple[Any, Any, Any, Any, Any]:
    from PEPit.functions import ConvexFunction, SmoothConvexFunction

    g = problem.declare_function(SmoothConvexFunction, L=1)
    omega = problem.declare_function(ConvexFunction)
    F = g + omega
    best, x = F.stationary_point(), problem.set_initial_point()
    problem.set_initial_condition((x - best) ** 2 <= 1)
    return g, omega, F, best, x


def _proximal_gradient(problem: Any, t: int) -> None:
    from PEPit.primitive_steps import proximal_step

    g, omega, F, best, x = _composite(problem)
    for _ in range(t):
        x, _, _ = proximal_step(x - g.gradient(x), omega, 1)
    problem.set_performance_metric(F(x) - F(best))


def _accelerated(problem: Any, t: int) -> None:
    from PEPit.primitive_steps import proximal_step

    g, omega, F, best, x = _composite(problem)
    y, a = x, 1.0
    for _ in range(t):
        new, _, _ = proximal_step(y - g.gradient(y), omega, 1)
        longer = 0.5 * (1 + (1 + 4 * a * a) ** 0.5)
        y, a, x = new + (a - 1) / longer * (new - x), longer, new
    problem.set_performance_metric(F(x) - F(best))


def _bregman(problem: Any, t: int) -> None:
    from PEPit.functions import ConvexFunction
    from PEPit.primitive_steps import bregman_gradient_step

    smooth = {"reuse_gradient": True}  # one gradient at each point
    g = problem.declare_function(ConvexFunction, **smooth)
    rest = problem.declare_function(ConvexFunction, **smooth)
    h = g + rest  # h − g is convex: g is 1-smooth relative to h
    best, x = g.stationary_point(), problem.set_initial_point()
    start = h(best) - h(x) - h.gradient(x) * (best - x)
    problem.set_initial_condition(start <= 1)
    for _ in range(t):
        x, _, _ = bregman_gradient_step(g.gradient(x), h.gradient(x), h, 1)
    problem.set_performance_metric(g(x) - g(best))


METHODS: dict[str, tuple[Callable[[Any, int], None], Callable[[int], float]]] = {
    "proximal point": (_proximal_point, lambda t: 1 / (2 * t)),
    "proximal gradient": (_proximal_gradient, lambda t: 1 / (2 * t)),
    "accelerated proximal gradient": (_accelerated, lambda t: 2 / (t + 1) ** 2),
    "bregman gradient": (_bregman, lambda t: 1 / t),
}
