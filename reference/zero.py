"""The largest C with all weights zero, as a conic program from the declarations.

    max t  over (t, α)   σ_V(−α, −tC) ≤ −t Σ C V(b),  Σα = 0,  σ_Ω(v, −1) ≤ −Ω(0),
                         ‖L_mᵀα‖ ≤ v_m

The first inequality says, by Fenchel and Young, that −α_i/(tC_i) ∈ ∂V(b, y_i); σ_V and
σ_Ω are the support functions of programs.py. The program has a few kernels only: those
that its solution violates join it until there are none. Accuracy: that of the conic
solver, about 1e-8, for losses with kinks; smooth ones leave the first inequality no
interior (mklopt/zero.py has a closed form for them).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Problem
from ..zero import longest
from .exact import OPTIONS, run
from .programs import Program, factors, norms_below, stacked

Array = np.ndarray


def C_zero(problem: Problem) -> float | Array:
    """The largest C, of the shape of problem.C, with all weights zero."""
    return problem.C * zero_point(problem)[0]


def zero_point(problem: Problem) -> tuple[float, Array]:
    """t with C_zero = t·C, and the α that shows w = 0 to be optimal there."""
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
        f = f + problem.loss.offset(f, problem.y, problem.costs)
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
