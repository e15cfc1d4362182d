"""The oracle of VSKL for q = ∞ as a conic quadratic program, a check of BCA.

    max over α, γ, s   gain(α) − Σ_j s_j
    subject to         2 γ_j s_j ≥ Σ_{k∈j} λ_k αᵀK_kα,   γ ≥ 0,   Σγ ≤ 1

The product of two variables is a cone by 2γs = ½(γ + s)² − ½(γ − s)²:
‖(√2 z_j, γ_j − s_j)‖ ≤ γ_j + s_j with ‖z_j‖² the right-hand side.
Of several attempts the one is taken whose α, made feasible, proves the most.
Reference: Aflalo et al. (2011), eq. (13).
"""

from typing import NamedTuple

import numpy as np

from ..problem import Problem
from .exact import attempts, runs
from .programs import Program, balance, conjugate_loss, factors

Array = np.ndarray


class Best(NamedTuple):
    """G(λ) and where it is attained."""

    value: float
    alpha: Array
    gamma: Array


def conic_oracle(problem: Problem, lam: Array) -> Best:
    """G(λ) at in-group weights λ, by an interior-point method.

    Parameters
    ----------
    problem : Problem
        With a formulation on groups and q = ∞, such as VSKL(groups, inf).
    lam : array of shape (M,)
        λ ≥ 0, with sum 1 in each group.

    Returns
    -------
    Best
        The named tuple (value, alpha, gamma); gamma has one entry per group.

    Raises
    ------
    ValueError
        Where q is finite.
    RuntimeError
        Where no point is found.
    """
    import cvxpy as cp

    groups, q = problem.formulation.simplices(problem.grams.M)
    if q < np.inf:
        raise ValueError(
            f"q = {q}: the oracle is a conic quadratic program for q = ∞ only"
        )
    scaled = [np.sqrt(t) * L for t, L in zip(lam, factors(problem.grams))]
    roots = [np.hstack([scaled[k] for k in group]) for group in groups]
    alpha = cp.Variable(problem.shape)
    gamma, s = (cp.Variable(len(groups), nonneg=True) for _ in range(2))
    losses, cones = conjugate_loss(problem, alpha, problem.costs)
    for j, root in enumerate(roots):
        both = cp.hstack([np.sqrt(2) * root.T @ alpha, gamma[j] - s[j]])
        cones.append(cp.norm(both, 2) <= gamma[j] + s[j])
    constraints = [*cones, *balance(problem, alpha), cp.sum(gamma) <= 1]
    made = cp.Problem(cp.Maximize(-losses - cp.sum(s)), constraints)
    found: list[tuple[float, Best]] = []
    for _, value in runs(Program(made, alpha), attempts("CLARABEL")):
        point = problem.feasible(np.array(alpha.value))
        v = [np.linalg.norm(root.T @ point) for root in roots]
        proved = problem.dual_loss(point) - 0.5 * float(np.sum(v)) ** 2
        found.append((proved, Best(value, point, np.array(gamma.value))))
        if abs(value - proved) <= 1e-10 * abs(value):
            break
    if not found:
        raise RuntimeError(f"no point of the oracle of {problem!r} was found")
    return max(found, key=lambda pair: pair[0])[1]
