"""The primal program, and the dual program derived from the same two declarations.

    primal  min  Σ C_i V(f_i, y_i) + Ω(u),   f = Σ_m L_m w_m + b,   ‖w_m‖ ≤ u_m
    dual    max  −σ_V(−α, −C) − σ_Ω(v, −1),  ‖L_mᵀα‖ ≤ v_m,   Σα = 0 with a bias

where K_m = L_m L_mᵀ and σ is the support function of an epigraph: C V*(−α/C) is σ_V at
(−α, −C) and Ω*(v) is σ_Ω at (v, −1), both stated in cones by `support_program`.
No conjugate is written by hand here, and no closed form is used.

The multiplier of f = Σ L_m w_m + b in the primal is α itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..formulations.derive.epigraph import split
from ..grams.psd import root
from ..grams.stack import GramStack
from ..problem import Problem

Array = np.ndarray


@dataclass
class Program:
    """A CVXPY problem with the pieces one reads the solution from."""

    problem: Any  # cvxpy.Problem
    alpha: Any  # the variable α (dual) or the constraint whose multiplier is α (primal)
    w: Any = None
    bias: Any = None
    slices: list[slice] | None = None

    def dual_point(self) -> Array:
        if hasattr(self.alpha, "dual_value"):
            return np.array(self.alpha.dual_value, float)
        return np.array(self.alpha.value, float)

    def norms(self) -> Array:
        """‖w_m‖ of the primal solution."""
        assert self.slices is not None
        w = np.array(self.w.value, float)
        return np.array([np.linalg.norm(w[part]) for part in self.slices])


def factors(grams: GramStack) -> list[Array]:
    """L_m with K_m = L_m L_mᵀ, without the directions that rounding made up.

    Narrow factors make small programs. What is dropped shows in the certificate, which
    looks at K_m itself.
    """
    if grams.factors is not None:
        given = grams.factors
        if all(L.shape[1] <= L.shape[0] for L in given):
            return list(given)
    return [root(grams.kernel(m), shift) for m, shift in enumerate(grams.shift)]


def stacked(parts: list[Array]) -> tuple[Array, list[slice]]:
    ends = np.cumsum([0] + [L.shape[1] for L in parts])
    return np.hstack(parts), [slice(a, b) for a, b in pairwise(ends)]


def norms_below(blocks: Any, slices: list[slice], bounds: Any) -> list:
    """‖block_m‖ ≤ bound_m, Frobenius norms where there are several outputs."""
    import cvxpy as cp

    return [
        cp.norm(cp.vec(blocks[part], order="C"), 2) <= bounds[m]
        for m, part in enumerate(slices)
    ]


def primal(problem: Problem, parts: list[Array] | None = None) -> Program:
    """The primal as a CVXPY problem, with f as explicit variables."""
    import cvxpy as cp

    L, slices = stacked(factors(problem.grams) if parts is None else parts)
    many = problem.shape[1:]
    w, f = cp.Variable((L.shape[1], *many)), cp.Variable(problem.shape)
    u = cp.Variable(problem.grams.M, nonneg=True)
    bias = cp.Variable(many) if problem.bias else None
    predicted = _with_bias(L @ w, bias, problem)
    link = f == predicted
    penalty, extra = split(problem.formulation.penalty(u))
    losses, loss_extra = split(problem.loss.expression(f, problem.y))
    objective = problem.costs @ losses + penalty
    constraints = [link, *norms_below(w, slices, u), *extra, *loss_extra]
    return Program(
        cp.Problem(cp.Minimize(objective), constraints), link, w, bias, slices
    )


def _with_bias(predicted: Any, bias: Any, problem: Problem) -> Any:
    import cvxpy as cp

    if bias is None:
        return predicted
    if bias.ndim == 0:
        return predicted + bias
    ones = np.ones((problem.grams.n, 1))
    return predicted + ones @ cp.reshape(bias, (1, bias.size), order="C")


def machine(problem: Problem, theta: Array) -> Program:
    """One SVM on Σ θ_m K_m: a quadratic program where the loss is piecewise quadratic.

    With K_θ = F Fᵀ the penalty ½Σ‖w_m‖²/θ_m is ½‖z‖² for f = F z + b.
    """
    import cvxpy as cp

    parts = factors(problem.grams)
    F = np.hstack([np.sqrt(t) * L for t, L in zip(theta, parts) if t > 0])
    many = problem.shape[1:]
    z, f = cp.Variable((F.shape[1], *many)), cp.Variable(problem.shape)
    bias = cp.Variable(many) if problem.bias else None
    link = f == _with_bias(F @ z, bias, problem)
    losses, extra = split(problem.loss.expression(f, problem.y))
    objective = problem.costs @ losses + 0.5 * cp.sum_squares(z)
    return Program(cp.Problem(cp.Minimize(objective), [link, *extra]), link, z, bias)


def dual(problem: Problem, parts: list[Array] | None = None) -> Program:
    """The dual as a CVXPY problem, derived from the declarations alone."""
    import cvxpy as cp

    L, slices = stacked(factors(problem.grams) if parts is None else parts)
    alpha = cp.Variable(problem.shape)
    v = cp.Variable(problem.grams.M, nonneg=True)
    loss_epigraph = problem.loss.epigraph(problem.y)
    loss, loss_cones = loss_epigraph.support_program(
        -cp.vec(alpha, order="C"), -problem.costs
    )
    penalty, penalty_cones = problem.formulation.epigraph(
        problem.grams.M
    ).support_program(v, -np.ones(1))
    cones = norms_below(L.T @ alpha, slices, v)
    balance = [cp.sum(alpha, axis=0) == 0] if problem.bias else []
    constraints = [*loss_cones, *penalty_cones, *cones, *balance]
    return Program(cp.Problem(cp.Maximize(-loss - penalty), constraints), alpha)
