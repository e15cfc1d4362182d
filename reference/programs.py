"""The primal program, and the dual program derived from the same two declarations.

    primal  min  Σ C_i V(f_i, y_i) + Ω(u),   f = Σ_m L_m w_m + b,   ‖w_m‖ ≤ u_m
    dual    max  −σ_V(−α, −C) − σ_Ω(v, −1),  ‖L_mᵀα‖ ≤ v_m,   Σα = 0 with a bias

where K_m = L_m L_mᵀ and σ is the support function of an epigraph: C V*(−α/C) is σ_V at
(−α, −C) and Ω*(v) is σ_Ω at (v, −1), both stated in cones by `support_program`.
No conjugate is written by hand here, and no closed form is used.

The multiplier of f = Σ L_m w_m + b in the primal is α itself.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..formulations.derive.declaration import split
from ..grams.psd import root
from ..grams.stack import GramStack
from ..problem import Problem

Array = np.ndarray


@dataclass
class Program:
    """A CVXPY problem with the parts that the solution is read from.

    Attributes
    ----------
    problem : cvxpy.Problem
    alpha : cvxpy.Variable or cvxpy.Constraint
        The variable α (dual), or the constraint whose multiplier is α (primal).
    w : cvxpy.Variable or None
        The weight vectors below each other, in the coordinates of the factors L_m.
    slices : list of slice or None
        The rows of `w` that belong to each kernel.
    """

    problem: Any
    alpha: Any
    w: Any = None
    slices: list[slice] | None = None

    def dual_point(self) -> Array:
        """α of the last solve."""
        if hasattr(self.alpha, "dual_value"):
            return np.array(self.alpha.dual_value, float)
        return np.array(self.alpha.value, float)

    def weight_vectors(self) -> list[Array]:
        """w_m of the last solve, in the coordinates of L_m."""
        assert self.slices is not None
        w = np.array(self.w.value, float)
        return [w[part] for part in self.slices]

    def norms(self) -> Array:
        """‖w_m‖ of the last solve."""
        return np.array([np.linalg.norm(w) for w in self.weight_vectors()])


def factors(grams: GramStack) -> list[Array]:
    """L_m with K_m = L_m L_mᵀ, without the directions that rounding made up.

    Narrow factors make small programs. What is dropped shows in the certificate, which
    looks at K_m itself.
    """
    given = grams.factors
    if given is not None and all(L.shape[1] <= L.shape[0] for L in given):
        return list(given)
    return [root(grams.kernel(m), shift) for m, shift in enumerate(grams.shift)]


def stacked(parts: list[Array]) -> tuple[Array, list[slice]]:
    """All factors side by side, and the columns of each."""
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
    """The primal as a CVXPY problem, with f as explicit variables.

    Parameters
    ----------
    problem : Problem
    parts : list of arrays, optional
        L_m with K_m = L_m L_mᵀ; by default `factors(problem.grams)`.

    Returns
    -------
    Program
    """
    import cvxpy as cp

    L, slices = stacked(factors(problem.grams) if parts is None else parts)
    w, losses, link, loss_extra = _fit(problem, L)
    u = cp.Variable(problem.grams.M, nonneg=True)
    penalty, extra = split(problem.formulation.penalty(u))
    constraints = [link, *norms_below(w, slices, u), *extra, *loss_extra]
    made = cp.Problem(cp.Minimize(losses + penalty), constraints)
    return Program(made, link, w, slices)


def svm_program(problem: Problem, theta: Array) -> Program:
    """One SVM on Σ θ_m K_m: a quadratic program where the loss is piecewise quadratic.

    With K_θ = F Fᵀ the penalty ½Σ‖w_m‖²/θ_m is ½‖z‖² for f = F z + b.
    """
    import cvxpy as cp

    parts = factors(problem.grams)
    F = np.hstack([np.sqrt(t) * L for t, L in zip(theta, parts) if t > 0])
    z, losses, link, extra = _fit(problem, F)
    objective = cp.Minimize(losses + 0.5 * cp.sum_squares(z))
    return Program(cp.Problem(objective, [link, *extra]), link, z)


def _fit(problem: Problem, L: Array) -> tuple[Any, Any, Any, list]:
    """w, Σ C V(f), the constraint f = L w + b, and those of the loss."""
    import cvxpy as cp

    many = problem.shape[1:]
    w, f = cp.Variable((L.shape[1], *many)), cp.Variable(problem.shape)
    predicted = L @ w
    if problem.bias:
        predicted = predicted + np.ones((len(L), 1)) @ cp.Variable((1, *many))
    losses, extra = split(problem.loss.expression(f, problem.y))
    return w, problem.costs @ losses, f == predicted, extra


def dual(problem: Problem, parts: list[Array] | None = None) -> Program:
    """The dual as a CVXPY problem, derived from the declarations alone.

    Parameters
    ----------
    problem : Problem
    parts : list of arrays, optional
        L_m with K_m = L_m L_mᵀ; by default `factors(problem.grams)`.

    Returns
    -------
    Program
    """
    import cvxpy as cp

    L, slices = stacked(factors(problem.grams) if parts is None else parts)
    alpha = cp.Variable(problem.shape)
    v = cp.Variable(problem.grams.M, nonneg=True)
    loss, loss_cones = conjugate_loss(problem, alpha, problem.costs)
    penalty, penalty_cones = conjugate_penalty(problem, v)
    cones = norms_below(L.T @ alpha, slices, v)
    constraints = [*loss_cones, *penalty_cones, *cones, *balance(problem, alpha)]
    return Program(cp.Problem(cp.Maximize(-loss - penalty), constraints), alpha)


def conjugate_loss(problem: Problem, alpha: Any, costs: Any) -> tuple[Any, list]:
    """Σ C V*(−α/C) = σ_V(−α, −C) and its cones; α and C may be CVXPY expressions."""
    import cvxpy as cp

    epigraph = problem.loss.epigraph(problem.y)
    return epigraph.support_program(-cp.vec(alpha, order="C"), -costs)


def conjugate_penalty(problem: Problem, v: Any) -> tuple[Any, list]:
    """Ω*(v) = σ_Ω(v, −1) and its cones."""
    epigraph = problem.formulation.epigraph(problem.grams.M)
    return epigraph.support_program(v, -np.ones(1))


def balance(problem: Problem, alpha: Any) -> list:
    """Σα = 0 where the problem has a bias."""
    import cvxpy as cp

    return [cp.sum(alpha, axis=0) == 0] if problem.bias else []
