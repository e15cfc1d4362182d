"""C_zero: the largest C at which all kernel weights are zero, where a path begins.

w = 0 is optimal with a bias b when some α has −α_i/C_i ∈ ∂V(b, y_i), Σα = 0 and
v = (‖α‖_{K_m})_m ∈ ∂Ω(0), that is Ω*(v) = −Ω(0). b minimizes Σ C_i V(b), whatever the
size of C, and everything but the last condition scales with C: C_zero is C·t with the
largest t for which t v ∈ ∂Ω(0) for some such α.

    smooth losses   α = −C V'(b) is the only one: t by bisection on Ω*
    kinked losses   α may be chosen where V has a kink at b: with unbalanced classes the
                    hinge puts the larger one on its margin. For ∂Ω(0) = {v ≤ c} (group
                    lasso, elastic net) the best α minimizes ½ max (v_m/c_m)²: the dual
                    of one more MKL problem, ½(Σ c_m u_m)² with the support function of
                    the face [V'(b−), V'(b+)] as its loss, solved and certified here.
    all others      a conic program from the declarations, `by_program`:

                    max t  over (t, α)   σ_V(−α, −tC) ≤ −t Σ C V(b),  Σα = 0,
                                         σ_Ω(v, −1) ≤ −Ω(0),  ‖L_mᵀα‖ ≤ v_m

The first inequality says, by Fenchel and Young, that −α_i/(tC_i) ∈ ∂V(b, y_i); σ_V and
σ_Ω are the support functions of programs.py. The program has a few kernels only: those
that its solution violates join it until there are none. Smooth losses leave the first
inequality no interior.

Guarantee. What is returned does not exceed C_zero, up to rounding, and falls short of
it by the certified gap of that problem (1e-8) or the accuracy of the conic solver. 0: Ω
has no kink at 0, no C gives zero weights. inf: w = 0 is optimal for every C.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..formulations import Formulation
from ..formulations.block_norm import BlockL1
from ..formulations.losses.face import Face
from ..formulations.lp_norm import WeightedLpNorm
from ..problem import Problem
from ..run.loop import solve
from .exact import OPTIONS, run
from .programs import Program, factors, norms_below, stacked

Array = np.ndarray
INF = float("inf")
THIN = 1e-12  # how much room a single slope is given: enclosures need some


def C_zero(problem: Problem) -> float | Array:
    """The largest C, of the shape of problem.C, with all weights zero."""
    return problem.C * zero_point(problem)[0]


def zero_point(problem: Problem) -> tuple[float, Array]:
    """t with C_zero = t·C, and the α that shows w = 0 to be optimal there."""
    f = np.zeros(problem.shape)
    if problem.bias:
        f = f + problem.loss.best_bias(f, problem.y, problem.costs)
    if problem.loss.smoothness is None:
        corner = box_corner(problem.formulation, problem.grams.M)
        simple = problem.loss.quadratic(problem.y, problem.costs) is not None
        if corner is None or not simple:
            return by_program(problem)
        if not np.any(corner):
            return 0.0, np.zeros(problem.shape)
        alpha = shortest(problem, f, corner)
    else:
        slope = problem.loss.gradient(f, problem.y)
        alpha = problem.feasible(-problem.spread_costs * slope)
    v = np.sqrt(np.maximum(problem.grams.quad(alpha), 0.0))
    t = longest(problem.formulation, v)
    return t, alpha * (t if np.isfinite(t) else 1.0)


def longest(formulation: Formulation, v: Array) -> float:
    """The largest t with t v ∈ ∂Ω(0), by bisection on Ω*(t v) ≤ −Ω(0)."""
    top = float(np.max(v, initial=0.0))
    if top == 0:
        return INF
    least = -formulation.value(np.zeros(len(v)))
    # A derived Ω* is known to 1e-9 only, and so is where it leaves its minimum.
    room = 0.0 if formulation.closed("conjugate") else 1e-9 * (1 + abs(least))

    def inside(t: float) -> bool:
        with np.errstate(over="ignore"):
            return formulation.conjugate(t * v) <= least + room

    low, high = 1e-6 / top, 1 / top
    if not inside(low):
        return 0.0
    while inside(high):
        low, high = high, 2 * high
        if high > 1e100:
            return INF
    while high - low > 1e-15 * high and low < 0.5 * (low + high) < high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if inside(middle) else (low, middle)
    return low


def box_corner(formulation: Formulation, M: int) -> Array | None:
    """c with ∂Ω(0) = {0 ≤ v ≤ c}; None where it has another shape."""
    axes = np.eye(M)
    corner = np.full(M, longest(formulation, axes[0]))
    if not _reaches(formulation, corner) or not np.any(corner):
        corner = np.array([longest(formulation, axis) for axis in axes])
    return corner if _reaches(formulation, corner) else None


def _reaches(formulation: Formulation, corner: Array) -> bool:
    """Whether the box up to the corner, and no more of each axis, is in ∂Ω(0)."""
    if not np.all(np.isfinite(corner)):
        return False
    if not np.any(corner):  # no kink at all: ∂Ω(0) = {0}
        return longest(formulation, np.ones(len(corner))) == 0
    beyond = [longest(formulation, axis) for axis in np.eye(len(corner))[[0, -1]]]
    ends = corner[[0, -1]]
    inside = longest(formulation, corner) >= 1 - 1e-9
    return inside and bool(np.all(beyond <= ends * (1 + 1e-6)))


def shortest(problem: Problem, f: Array, corner: Array) -> Array:
    """The α of the face at f that minimizes max v_m/c_m."""
    h = 1e-9 * (1 + np.abs(f))
    slopes = [problem.loss.gradient(f + side * h, problem.y) for side in (-1, 1)]
    low, high = slopes[0] - THIN, slopes[1] + THIN
    face = Face(tuple(low.tolist()), tuple(high.tolist()))
    prior = 1 / np.maximum(corner, 1e-150) ** 2
    another = problem.with_(loss=face, formulation=WeightedLpNorm(1.0, prior))
    start = None
    if np.ptp(corner) == 0:  # mostly the quicker way, and a good start if it stalls
        same = another.with_(formulation=BlockL1())
        start = solve(same, "hessian", tol=1e-8, max_iter=30)
        if start.converged:
            return start.dual
    return solve(another, "spicy", tol=1e-8, start=start, time_limit=60.0).dual


def by_program(problem: Problem) -> tuple[float, Array]:
    """The same t and α by the conic program, good to about 1e-8; kinked losses only."""
    grams, formulation = problem.grams, problem.formulation
    used, best = np.array([int(np.argmax(np.sum(grams.diag(), axis=1)))]), 0.0
    alpha = np.zeros(problem.shape)
    for _ in range(grams.M):
        program, t = _program(problem, used)
        tries = (run(program, "CLARABEL", settings) for settings in OPTIONS["CLARABEL"])
        if all(value is None for value in tries):
            unbounded = "unbounded" in str(program.problem.status)
            return (np.inf if unbounded else best), alpha
        found = program.dual_point()
        v = np.sqrt(np.maximum(grams.quad(found), 0.0))
        size = min(longest(formulation, v), 1.0)
        if float(t.value) * size >= best:
            best, alpha = float(t.value) * size, size * found
        late = np.setdiff1d(np.argsort(-v)[: len(used) + 3], used)
        if size >= 1 - 1e-9 or len(late) == 0:
            break
        used = np.union1d(used, late)
    return best, alpha


def _program(problem: Problem, used: Array) -> tuple[Program, Any]:
    """max t: α is a dual point of w = 0 at t·C, and Ω*(v) = −Ω(0) on some kernels."""
    import cvxpy as cp

    M = problem.grams.M
    L, slices = stacked(factors(problem.grams.subset(used)))
    alpha, t = cp.Variable(problem.shape), cp.Variable(nonneg=True)
    v = cp.Variable(M, nonneg=True)
    f = np.zeros(problem.shape)
    if problem.bias:
        f = f + problem.loss.best_bias(f, problem.y, problem.costs)
    losses = problem.loss.value(f, problem.y)
    whole = float(problem.costs @ losses)
    loss, loss_cones = problem.loss.epigraph(problem.y).support_program(
        -cp.vec(alpha, order="C"), -t * problem.costs
    )
    formulation = problem.formulation
    penalty, cones = formulation.epigraph(M).support_program(v, -np.ones(1))
    balance = [cp.sum(alpha, axis=0) == 0] if problem.bias else []
    constraints = [
        loss + t * whole <= 0,
        penalty <= -formulation.value(np.zeros(M)),
        *loss_cones,
        *cones,
        *norms_below(L.T @ alpha, slices, v[used]),
        *balance,
    ]
    return Program(cp.Problem(cp.Maximize(t), constraints), alpha), t
