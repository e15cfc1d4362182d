"""A claimed rate against the exact worst case, by PEPit (the optional extra `pepit`).

A rate is a bound for a class of functions. PEPit computes the worst case of the class
by a semidefinite program (performance estimation). A claim is *right* when the worst
case stays below its bound, and *tight* when it reaches it. With L = γ = σ = 1 and
‖x_0 − x*‖ ≤ 1 (or D_h(x*, x_0) ≤ 1) the bounds are

    proximal point       F(x_t) − F* ≤ 1/(2t)         (what SpicyMKL does)
    … with growing γ     F(x_t) − F* ≤ 1/(2 Σγ_s)     (γ_s = 1, 2, 4, …)
    proximal gradient    F(x_t) − F* ≤ 1/(2t)         (ISTA)
    accelerated          F(x_t) − F* ≤ 2/(t + 1)²     (FISTA)
    projected gradient   F(x_t) − F* ≤ 1/(2t)         (PGD with the step 1/L)
    Bregman gradient     F(x_t) − F* ≤ 1/t            (relative smoothness)
    mirror descent       min over s ≤ t of G(x_s) − G* ≤ (1 + ½Σs²)/Σs, s_t = √(2/t)

The last one is theorem 3.1 item 1 of aflalo2011 with the right constant. In norms that
are not Euclidean PEPit has no mirror descent: the entropy is not covered, nor is the
log M in its Γ. REFUTED has a printed bound that a worst case exceeds:

    … as printed         min over s ≤ t of G(x_s) − G* ≤ √(2/t)     (item 3)

Users reach it as `mklopt.rates.worst_case`, or by `worst_case` of a claim there;
`mklopt.worst_case_table` has a table for all solvers.
Reference: Goujaud et al. (2024), PEPit; Bauschke, Bolte and Teboulle (2017); Taylor,
Hendrickx and Glineur (2017).
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..util import extras
from ..util.checks import check_whole

Array = np.ndarray
GROWTH = 2.0  # of γ from one proximal step to the next: Σγ_s = 2^t − 1


class NotTestable(ValueError):
    """Why a claim cannot be tested here."""


class WorstCase(NamedTuple):
    """The exact worst case after t steps, beside the bound that is claimed.

    Parameters
    ----------
    method : str
        One of METHODS or REFUTED.
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
        "proximal point", "growing proximal point", "proximal gradient", "accelerated
        proximal gradient", "projected gradient", "bregman gradient" or "mirror
        descent"; or "mirror descent as printed", whose bound is exceeded.
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
    known = METHODS | REFUTED
    if method not in known:
        raise ValueError(f"method = {method!r}; choose one of {', '.join(known)}")
    check_whole(t, "t, the number of steps,", 1)
    if said := extras.missing("PEPit"):
        raise NotTestable(said)
    with warnings.catch_warnings():  # of its own docstrings
        warnings.simplefilter("ignore")
        import PEPit.functions
        import PEPit.primitive_steps
    problem = PEPit.PEP()
    run, bound = known[method]
    run(PEPit, problem, t)
    return WorstCase(method, t, float(problem.solve(verbose=0)), float(bound(t)))


def _proximal_point(pepit: Any, problem: Any, t: int, growth: float = 1.0) -> None:
    """Steps x ← prox of γF at x, with γ = 1, growth, growth², …"""
    F = problem.declare_function(pepit.functions.ConvexFunction)
    best, x = F.stationary_point(), problem.set_initial_point()
    problem.set_initial_condition((x - best) ** 2 <= 1)
    for s in range(t):
        x, _, value = pepit.primitive_steps.proximal_step(x, F, growth**s)
    problem.set_performance_metric(value - F(best))


def _projected_gradient(pepit: Any, problem: Any, t: int) -> None:
    """Steps x ← P(x − ∇F(x)) onto a convex set."""
    F = problem.declare_function(pepit.functions.SmoothConvexFunction, L=1)
    domain = problem.declare_function(pepit.functions.ConvexIndicatorFunction)
    best, x = (F + domain).stationary_point(), problem.set_initial_point()
    problem.set_initial_condition((x - best) ** 2 <= 1)
    for _ in range(t):
        x, _, _ = pepit.primitive_steps.proximal_step(x - F.gradient(x), domain, 1)
    problem.set_performance_metric(F(x) - F(best))


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


def _mirror(pepit: Any, problem: Any, t: int) -> None:
    """Mirror descent from x_1, with subgradients of length 1 and h 1-strongly convex.

    ∇h(x_{s+1}) = ∇h(x_s) − s_s g_s with the steps of `mirror_steps`.
    """
    G = problem.declare_function(pepit.functions.ConvexLipschitzFunction, M=1)
    h = problem.declare_function(pepit.functions.StronglyConvexFunction, mu=1)
    best, x = G.stationary_point(), problem.set_initial_point()
    slope, height = h.oracle(x)
    problem.set_initial_condition(h(best) - height - slope * (best - x) <= 1)
    move = pepit.primitive_steps.bregman_gradient_step
    for step in mirror_steps(t):
        g, value = G.oracle(x)
        problem.set_performance_metric(value - G(best))  # PEPit takes the least
        x, slope, _ = move(g, slope, h, step)


def mirror_steps(t: int) -> Array:
    """√(2Γσ/s)/L for s = 1 … t, with L = Γ = σ = 1."""
    return np.sqrt(2 / np.arange(1, t + 1))


def _mirror_bound(t: Any) -> Any:
    """(Γ + Σs²L²/(2σ))/Σs, for one t or several."""
    steps = mirror_steps(int(np.max(t)))
    found = (1 + 0.5 * np.cumsum(steps**2)) / np.cumsum(steps)
    return found[np.asarray(t) - 1]


_growing = partial(_proximal_point, growth=GROWTH)
_accelerated = partial(_proximal_gradient, momentum=True)

Method = tuple[Callable[[Any, Any, int], None], Callable[[Any], Any]]
METHODS: dict[str, Method] = {
    "proximal point": (_proximal_point, lambda t: 1 / (2 * t)),
    "growing proximal point": (_growing, lambda t: 0.5 / (GROWTH**t - 1)),
    "proximal gradient": (_proximal_gradient, lambda t: 1 / (2 * t)),
    "accelerated proximal gradient": (_accelerated, lambda t: 2 / (t + 1) ** 2),
    "projected gradient": (_projected_gradient, lambda t: 1 / (2 * t)),
    "bregman gradient": (_bregman, lambda t: 1 / t),
    "mirror descent": (_mirror, _mirror_bound),
}
REFUTED: dict[str, Method] = {
    "mirror descent as printed": (_mirror, lambda t: (2 / t) ** 0.5),
}
