"""Small conic programs, compiled once and solved often.

Problem. min ½zᵀPz + qᵀz subject to b − A z ∈ K, with columns of z that have names: x
and t. Handed to Clarabel directly, which costs a millisecond where a modelling layer
costs a hundred.

Guarantee. `error` is the largest of gap and residuals by Clarabel's own measures; only
`Solved` is to be believed, and means 1e-8, mostly 1e-12.
Reference: Goulart and Chen (2024), Clarabel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

Array = np.ndarray
Block = tuple[str, int, float]  # cone, number of rows, exponent (power cones only)


# Where rounding spoils the last steps towards 1e-13, a looser goal stops before them,
# and less of what Clarabel adds to its linear systems helps. Steep power cones
# (exponents near 1) stall at full steps: then shorter ones, and other scalings. "Almost
# solved" means 5e-5 to Clarabel; what counts here is the error that was reached, which
# may be the larger, the more has been tried.
SMALL, SHORT, LINE, PLAIN = (
    {"static_regularization_constant": 1e-10, "static_regularization_proportional": 0},
    {"max_step_fraction": 0.9},
    {"linesearch_backtrack_step": 0.5},
    {"equilibrate_enable": False},
)
INFEASIBLE = {"tol_infeas_abs": 1e-10, "tol_infeas_rel": 1e-10}
ATTEMPTS: tuple[tuple[float, float, dict[str, Any]], ...] = (
    (1e-13, 1e-10, {"max_iter": 100}),  # the goal, what is enough, and how
    (1e-10, 1e-9, SMALL),
    *((1e-9, 1e-9, how) for how in (SHORT, LINE, PLAIN)),
    *((1e-8, 1e-8, how) for how in ({}, SHORT, LINE, PLAIN)),
)


@dataclass
class Solution:
    """What Clarabel found: status, z, its multipliers y, and how far off they are."""

    status: str
    z: Array
    y: Array
    error: float = np.inf  # the largest of gap and residuals, relatively


def _read(found: Any) -> Solution:
    """What Clarabel found, and how far it is from a solution by its own measures."""
    primal, dual = found.obj_val, found.obj_val_dual
    gap = abs(primal - dual) / max(1.0, min(abs(primal), abs(dual)))
    worst = max(gap, found.r_prim, found.r_dual)
    error = worst if np.isfinite(worst) else np.inf
    return Solution(str(found.status), np.array(found.x), np.array(found.z), error)


def call_clarabel(
    P: Any, q: Array, A: Any, b: Array, blocks: list[Block], tol: float, **settings: Any
) -> Solution:
    """min ½zᵀPz + qᵀz subject to b − A z ∈ K: one quiet run of Clarabel on one thread.

    Parameters
    ----------
    P, A : sparse matrices in CSC format
        Of P the upper triangle is read.
    q, b : arrays
    blocks : list of (cone, rows, exponent)
        The cones that K is made of, in the order of the rows of A.
    tol : float
        The goal for gap and residuals.
    **settings
        Other settings of Clarabel by their names.

    Returns
    -------
    Solution
    """
    import clarabel

    chosen = clarabel.DefaultSettings()
    goals = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tol)
    quiet = {"verbose": False, "max_threads": 1}
    for name, value in (goals | quiet | settings).items():
        setattr(chosen, name, value)
    cones = [_clarabel_cone(block) for block in blocks]
    return _read(clarabel.DefaultSolver(P, q, A, b, cones, chosen).solve())


@dataclass
class Cones:
    """min ½zᵀPz + qᵀz subject to b − A z ∈ K, and where x and t stand in z."""

    P: sp.csc_matrix
    q: Array
    A: sp.csc_matrix
    b: Array
    blocks: list[Block]
    x: Array
    t: Array
    offset: float  # what the objective adds to ½zᵀPz + qᵀz

    def solve(self, q: Array, P=None, row=None, rhs=None, b=None) -> Solution:
        """Another linear term q; P added to the quadratic one; rows z = rhs on top."""
        A, b, blocks = self.A, self.b if b is None else b, self.blocks
        if row is not None:
            A, b = sp.csc_matrix(sp.vstack([row, A])), np.concatenate([rhs, b])
            blocks = [("zero", len(rhs), 0.0), *blocks]
        P = self.P if P is None else sp.csc_matrix(self.P + P)
        best = Solution("", np.empty(0), np.empty(0))
        for goal, enough, manner in ATTEMPTS:
            now = call_clarabel(P, q, A, b, blocks, goal, **INFEASIBLE | manner)
            if now.status == "Solved" or "Infeasible" in now.status:
                return now
            best = min(best, now, key=lambda solution: solution.error)
            if best.error <= enough:
                return replace(best, status="Solved")
        return best

    def at(self, x: Array) -> Solution:
        """The least objective where x is given; its multipliers come first in y."""
        return self.solve(self.q, row=self.unit_rows(), rhs=x)

    def cost(self, gx: Any, gt: Any = 0.0) -> Array:
        """A linear term: gx on the columns of x, gt on those of t, 0 elsewhere."""
        q = np.zeros(self.A.shape[1])
        q[self.x] = np.ravel(gx)
        q[self.t] = gt
        return q

    def unit_rows(self) -> sp.csc_matrix:
        """Rows that read x off z."""
        return unit_rows(self.x, self.A.shape[1])


def unit_rows(columns: Array, n: int) -> sp.csc_matrix:
    """Rows that read some of n columns."""
    size = len(columns)
    return sp.csc_matrix((np.ones(size), (np.arange(size), columns)), shape=(size, n))


def _clarabel_cone(block: Block) -> Any:
    import clarabel

    kind, size, exponent = block
    if kind == "exp":
        return clarabel.ExponentialConeT()
    if kind == "pow":
        return clarabel.PowerConeT(exponent)
    types = {
        "zero": clarabel.ZeroConeT,
        "nonneg": clarabel.NonnegativeConeT,
        "soc": clarabel.SecondOrderConeT,
    }
    return types[kind](size)
