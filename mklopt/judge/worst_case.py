"""A claimed rate against the exact worst case, by PEPit (the optional extra `pepit`).

A rate is a bound for a class of functions. PEPit computes the worst case of the class
by a semidefinite program (performance estimation). A claim is *right* when the worst
case stays below its bound, and *tight* when it reaches it. With L = γ = 1 and
‖x_0 − x*‖ ≤ 1 (or D_h(x*, x_0) ≤ 1) the bounds are

    proximal point       F(x_t) − F* ≤ 1/(2t)         (what SpicyMKL does)
    proximal gradient    F(x_t) − F* ≤ 1/(2t)         (ISTA)
    accelerated          F(x_t) − F* ≤ 2/(t + 1)²     (FISTA)
    Bregman gradient     F(x_t) − F* ≤ 1/t            (relative smoothness)

Users reach it as `mklopt.rates.worst_case`, or by `worst_case` of a claim there.
Reference: Goujaud et al. (2024), PEPit; Bauschke, Bolte and Teboulle (2017).
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ..util import extras
from ..util.checks import check_whole


class NotTestable(ValueError):
    """Why a claim cannot be tested here."""


class WorstCase(NamedTuple):
    """The exact worst case after t steps, beside the bound that is claimed.

    Parameters
    ----------
    method : str
        One of METHODS.
    t : int
        The number of steps.
    worst, claimed : float
        The largest F(x_t) − F* of the class of functions, and the bound.
    """

    method: str
    t: int
    worst: float
    claimed: float

    @property
    def right(self) -> bool:
        """Whether the worst case stays below the bound."""
        return self.worst <= self.claimed * (1 + 1e-4)

    @property
    def tight(self) -> bool:
        """Whether the bound is right, and the worst case reaches it."""
        return self.right and self.worst >= self.claimed * (1 - 1e-3)


def worst_case(method: str, t: int) -> WorstCase:
    """Compute the worst case of a class of functions after t steps of a method.

    Parameters
    ----------
    method : str
        "proximal point", "proximal gradient", "accelerated proximal gradient" or
        "bregman gradient".
    t : int
        The number of steps, at least 1.

    Returns
    -------
    WorstCase
        `right` and `tight` compare it with the claimed bound.

    Raises
    ------
    NotTestable
        If PEPit is not installed.
    ValueError
        If the method is not known, or t is not a number of steps.
    """
    if method not in METHODS:
        raise ValueError(f"method = {method!r}; choose one of {', '.join(METHODS)}")
    check_whole(t, "t, the number of steps,", 1)
    if said := extras.missing("PEPit"):
        raise NotTestable(said)
    with warnings.catch_warnings():  # of its own docstrings
        warnings.simplefilter("ignore")
        import PEPit.functions
        import PEPit.primitive_steps
    problem = PEPit.PEP()
    run, bound = METHODS[method]
    run(PEPit, problem, t)
    return WorstCase(method, t, float(problem.solve(verbose=0)), bound(t))


def _proximal_point(pepit: Any, problem: Any, t: int) -> None:
    F = problem.declare_function(pepit.functions.ConvexFunction)
    best, x = F.stationary_point(), problem.set_initial_point()
    problem.set_initial_condition((x - best) ** 2 <= 1)
    for _ in range(t):
        x, _, value = pepit.primitive_steps.proximal_step(x, F, 1)
    problem.set_performance_metric(value - F(best))


def _proximal_gradient(
    pepit: Any, problem: Any, t: int, momentum: bool = False
) -> None:
    """Steps x ← prox(y − ∇g(y)) from y = x, or extrapolated as by Nesterov."""
    g = problem.declare_function(pepit.functions.SmoothConvexFunction, L=1)
    omega = problem.declare_function(pepit.functions.ConvexFunction)
    F = g + omega
    best, x = F.stationary_point(), problem.set_initial_point()
    problem.set_initial_condition((x - best) ** 2 <= 1)
    y, a = x, 1.0
    for _ in range(t):
        new, _, _ = pepit.primitive_steps.proximal_step(y - g.gradient(y), omega, 1)
        longer = 0.5 * (1 + (1 + 4 * a * a) ** 0.5) if momentum else a
        y, a, x = new + (a - 1) / longer * (new - x), longer, new
    problem.set_performance_metric(F(x) - F(best))


def _bregman(pepit: Any, problem: Any, t: int) -> None:
    smooth = {"reuse_gradient": True}  # one gradient at each point
    g = problem.declare_function(pepit.functions.ConvexFunction, **smooth)
    rest = problem.declare_function(pepit.functions.ConvexFunction, **smooth)
    h = g + rest  # h − g is convex: g is 1-smooth relative to h
    best, x = g.stationary_point(), problem.set_initial_point()
    start = h(best) - h(x) - h.gradient(x) * (best - x)
    problem.set_initial_condition(start <= 1)
    step = pepit.primitive_steps.bregman_gradient_step
    for _ in range(t):
        x, _, _ = step(g.gradient(x), h.gradient(x), h, 1)
    problem.set_performance_metric(g(x) - g(best))


_accelerated = partial(_proximal_gradient, momentum=True)

METHODS: dict[str, tuple[Callable[[Any, Any, int], None], Callable[[Any], Any]]] = {
    "proximal point": (_proximal_point, lambda t: 1 / (2 * t)),
    "proximal gradient": (_proximal_gradient, lambda t: 1 / (2 * t)),
    "accelerated proximal gradient": (_accelerated, lambda t: 2 / (t + 1) ** 2),
    "bregman gradient": (_bregman, lambda t: 1 / t),
}
