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
    all others      a conic program from the declarations, `zero_point_by_program`:

                    max t  over (t, α)   σ_V(−α, −tC) ≤ −t Σ C V(b),  Σα = 0,
                                         σ_Ω(v, −1) ≤ −Ω(0),  ‖L_mᵀα‖ ≤ v_m

The first inequality says, by Fenchel and Young, that −α_i/(tC_i) ∈ ∂V(b, y_i); σ_V and
σ_Ω are the support functions of programs.py. The program begins with one kernel; those
that its solution violates join it until there are none. Smooth losses leave the first
inequality no interior.

Guarantee. What is returned does not exceed C_zero, up to rounding, and falls short of
it by the certified gap of that problem (1e-8) or the accuracy of the conic solver. 0: Ω
has no kink at 0, no C gives zero weights. inf: w = 0 is optimal for every C.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from ..formulations import Formulation
from ..formulations.block_norm import BlockL1
from ..formulations.derive.epigraph import DerivationError
from ..formulations.losses.face import Face
from ..formulations.lp_norm import WeightedLpNorm
from ..problem import Problem
from ..run.loop import solve
from .exact import attempts, runs
from .programs import (
    Program,
    balance,
    conjugate_loss,
    conjugate_penalty,
    factors,
    norms_below,
    stacked,
)

Array = np.ndarray
INF = float("inf")
FACE_MARGIN = 1e-12  # how much wider a single slope is made: enclosures need room


def C_zero(problem: Problem) -> float | Array:
    """The largest C at which all kernel weights are zero.

    Parameters
    ----------
    problem : Problem
        Its C matters only where it is one number per sample: their ratios are kept.

    Returns
    -------
    float or array of shape (n,)
        Of the shape of `problem.C`. 0: no C gives zero weights, as Ω has no kink at 0.
        inf: w = 0 is optimal for every C.

    Examples
    --------
    >>> import numpy as np, mklopt
    >>> y = np.array([1.0, -1.0, 1.0, -1.0])
    >>> lasso = mklopt.formulations.GroupLasso()
    >>> problem = mklopt.Problem(np.eye(4)[None], y, "logistic", lasso)
    >>> round(mklopt.C_zero(problem), 6)  # α = C y/2, and ‖α‖ reaches 1
    1.0
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"C_zero takes a Problem, got {type(problem).__name__}")
    return problem.C * zero_point(problem)[0]


def zero_point(problem: Problem) -> tuple[float, Array]:
    """t with C_zero = t·C, and the α that shows w = 0 to be optimal there."""
    f = _best_constant(problem)
    if problem.loss.smoothness is not None:
        slope = problem.loss.gradient(f, problem.y)
        alpha = problem.feasible(-problem.spread_costs * slope)
    else:
        corner = box_corner(problem.formulation, problem.grams.M)
        simple = problem.loss.quadratic(problem.y, problem.costs) is not None
        if corner is None or not simple:
            return zero_point_by_program(problem)
        if not np.any(corner):
            return 0.0, np.zeros(problem.shape)
        alpha = _best_of_face(problem, f, corner)
    v = problem.grams.norms(alpha)
    if not np.all(np.isfinite(v)):
        raise ValueError(
            f"{problem!r} has no C_zero to start from: ‖α‖_K leaves the range of "
            "float64; rescale kernels, C or y towards 1"
        )
    t = largest_scale(problem.formulation, v)
    return t, alpha * (t if np.isfinite(t) else 1.0)


def _best_constant(problem: Problem) -> Array:
    """The predictions at w = 0: the best bias for every sample."""
    f = np.zeros(problem.shape)
    if problem.bias:
        f = f + problem.loss.best_bias(f, problem.y, problem.costs)
    return f


def largest_scale(formulation: Formulation, v: Array) -> float:
    """The largest t with t v ∈ ∂Ω(0), by bisection on Ω*(t v) ≤ −Ω(0)."""
    top = float(np.max(v, initial=0.0))
    if top == 0:
        return INF
    least = -formulation.value(np.zeros(len(v)))
    # A derived Ω* is known to 1e-9 only, and so is where it leaves its minimum.
    closed = formulation.closed("conjugate")
    room, accuracy = (0.0, 1e-15) if closed else (1e-9 * (1 + abs(least)), 1e-10)

    def inside(t: float) -> bool:
        # Just outside of its domain a derived Ω* may not be found at all.
        with np.errstate(over="ignore"), contextlib.suppress(DerivationError):
            return formulation.conjugate(t * v) <= least + room
        return False

    low, high = 1e-6 / top, 1 / top
    if not inside(low):
        return 0.0
    while inside(high):
        low, high = high, 2 * high
        if high > 1e100:
            return INF
    while high - low > accuracy * high and low < 0.5 * (low + high) < high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if inside(middle) else (low, middle)
    return low


# ---- ∂Ω(0) is a box ------------------------------------------------------------------


def box_corner(formulation: Formulation, M: int) -> Array | None:
    """c with ∂Ω(0) = {0 ≤ v ≤ c}; None where it has another shape."""
    axes = np.eye(M)
    corner = np.full(M, largest_scale(formulation, axes[0]))  # mostly all are equal
    if not _is_corner(formulation, corner) or not np.any(corner):
        corner = np.array([largest_scale(formulation, axis) for axis in axes])
    return corner if _is_corner(formulation, corner) else None


def _is_corner(formulation: Formulation, corner: Array) -> bool:
    """Whether the box up to the corner, and no more of each axis, is in ∂Ω(0)."""
    if not np.all(np.isfinite(corner)):
        return False
    if not np.any(corner):  # no kink at all: ∂Ω(0) = {0}
        return largest_scale(formulation, np.ones(len(corner))) == 0
    ends = np.eye(len(corner))[[0, -1]]
    beyond = [largest_scale(formulation, axis) for axis in ends]
    inside = largest_scale(formulation, corner) >= 1 - 1e-9
    return inside and bool(np.all(beyond <= corner[[0, -1]] * (1 + 1e-6)))


def _best_of_face(problem: Problem, f: Array, corner: Array) -> Array:
    """The α with −α/C ∈ ∂V(f) that minimizes max v_m/c_m: one more MKL problem."""
    h = 1e-9 * (1 + np.abs(f))
    slopes = [problem.loss.gradient(f + side * h, problem.y) for side in (-1, 1)]
    low, high = slopes[0] - FACE_MARGIN, slopes[1] + FACE_MARGIN
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


# ---- all other cases -----------------------------------------------------------------


def zero_point_by_program(problem: Problem) -> tuple[float, Array]:
    """The same t and α by the conic program, good to about 1e-8; kinked losses only."""
    grams, formulation = problem.grams, problem.formulation
    largest = np.argsort(-np.sum(grams.diag(), axis=1), kind="stable")
    used, best = largest[:1], 0.0
    alpha = np.zeros(problem.shape)
    while True:
        program, t = _program(problem, used)
        if next(runs(program, attempts("CLARABEL")), None) is None:
            if "unbounded" not in str(program.problem.status):
                return best, alpha
            if len(used) == grams.M:
                return INF, alpha
            used = np.union1d(used, largest[: 2 * len(used)])  # some α costs these none
            continue
        found = program.dual_point()
        v = grams.norms(found)
        size = min(largest_scale(formulation, v), 1.0)
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
    losses = problem.loss.value(_best_constant(problem), problem.y)
    loss, loss_cones = conjugate_loss(problem, alpha, t * problem.costs)
    penalty, cones = conjugate_penalty(problem, v)
    constraints = [
        loss + t * float(problem.costs @ losses) <= 0,
        penalty <= -problem.formulation.value(np.zeros(M)),
        *loss_cones,
        *cones,
        *norms_below(L.T @ alpha, slices, v[used]),
        *balance(problem, alpha),
    ]
    return Program(cp.Problem(cp.Maximize(t), constraints), alpha), t
