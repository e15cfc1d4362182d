"""Declarations that sort: Σ λ_i u_(i) in M rows instead of M².

Problem. CVXPY writes a sum of sorted entries (`dotsort`, `sum_largest`) with M² or kM
inequalities. Where the order of u is known, it is linear: with s = (u_(1) ≥ u_(2) ≥ …)

    min F(u, s)   subject to   s = u[π],   s_1 ≥ … ≥ s_M ≥ 0                  (π)

for a permutation π, F being the declaration with λᵀs in the place of each sorted sum.

Step. Solve (π). The multipliers of s = u[π] are the slopes that the sorted sums have to
have in u. Where, inside every run of equal s, the largest k of them sum to no more than
the first k of λ, they lie in the hull of all permutations of λ there (Rado): they are
slopes, and u is optimal without the order. If not, sort each run by them and solve
again: the old u still fits the new order, and is not optimal there.

Guarantee. The value falls with every new order, so no order comes twice; it takes one
to three. Whatever does not settle is left to the declaration as CVXPY writes it.
Reference: Bach (2013), Learning with submodular functions, section 3.2 (λ as a base).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .cones import Array, Cones, Solution, unit_rows

MAX_ORDERS = 20  # orders to try; one to three are usual
NOISE = 1e-9  # by how much sums of slopes may be above those of λ, relatively
UNSETTLED = "Unsettled"


def in_order(node: Any, x: Any, s: Any) -> Any:
    """A tree of CVXPY with its sorted sums over x replaced by sums over s."""
    lam = _coefficients(node, x)
    if lam is not None:
        return lam @ s
    parts = [in_order(part, x, s) for part in node.args]
    same = all(new is old for new, old in zip(parts, node.args))
    return node if same else node.copy(parts)


def _coefficients(node: Any, x: Any) -> Array | None:
    """λ, decreasing, where a node is Σ λ_i x_(i)."""
    import cvxpy as cp

    if not isinstance(node, cp.dotsort | cp.sum_largest):
        return None
    inner = node.args[0]
    while isinstance(inner, cp.abs):  # x ≥ 0
        inner = inner.args[0]
    if inner is not x:
        return None
    if isinstance(node, cp.sum_largest):
        return np.clip(node.k - np.arange(x.size), 0.0, 1.0)
    given = np.ravel(node.args[1].value)
    return np.sort(np.append(given, np.zeros(x.size - len(given))))[::-1]


@dataclass
class Ordered(Cones):
    """(π) in cones, its last rows being s_1 ≥ … ≥ s_M ≥ 0; s: where it stands in z."""

    s: Array

    @classmethod
    def of(cls, cones: Cones, s: Array) -> Ordered:
        """The cones of F(u, s), with the chain s_1 ≥ … ≥ s_M ≥ 0 below them."""
        M, n = len(s), cones.A.shape[1]
        falls = sp.diags([-np.ones(M), np.ones(M - 1)], [0, 1], shape=(M, M))
        chain = sp.csc_matrix(falls @ unit_rows(s, n))
        parts = {**vars(cones), "s": s}
        parts["A"] = sp.csc_matrix(sp.vstack([cones.A, chain]))
        parts["b"] = np.append(cones.b, np.zeros(M))
        parts["blocks"] = [*cones.blocks, ("nonneg", M, 0.0)]
        return cls(**parts)

    def solve(self, q: Array, P=None, row=None, rhs=None, b=None) -> Solution:
        """The optimum over all orders, from one that suits q and the rows."""
        M, n = len(self.s), self.A.shape[1]
        row = sp.csc_matrix((0, n)) if row is None else row
        rhs = np.zeros(0) if rhs is None else rhs
        order = np.argsort((q - row.T @ rhs)[self.x], kind="stable")
        for _ in range(MAX_ORDERS):
            linked = sp.vstack([row, self._link(sp.identity(M, format="csr")[order])])
            zeros = np.append(rhs, np.zeros(M))
            found = super().solve(q, P, linked, zeros, b)
            if "DualInfeasible" in found.status:  # unbounded in one order: in all
                return found
            if found.status != "Solved":
                break
            slopes = -found.y[len(rhs) : len(rhs) + M]
            better = self._improved(slopes, found)
            if better is None:
                return replace(found, y=np.delete(found.y, len(rhs) + np.arange(M)))
            order = order[better]
        return replace(found, status=UNSETTLED)

    def _improved(self, slopes: Array, found: Solution) -> Array | None:
        """Runs of equal s sorted by their slopes; None where u is optimal."""
        s, push = found.z[self.s], found.y[len(found.y) - len(self.s) :]
        size = np.max(np.abs(slopes), initial=1e-300)
        tied = -np.diff(s) * size <= push[:-1] * np.max(np.abs(s))
        better = np.lexsort((-slopes, np.append(0, np.cumsum(~tied))))
        lam = slopes + np.diff(push, prepend=0.0)
        above = np.cumsum(slopes[better] - lam)
        return better if np.max(above) > NOISE * size else None

    def at(self, x: Array) -> Solution:
        """x is given, and so is its order: no chain. Equal entries share their λ."""
        M, rows = len(x), len(self.b) - len(x)
        levels, level = np.unique(-x, return_inverse=True)
        member = sp.csr_matrix((np.ones(M), (level, np.arange(M))))
        count = np.bincount(level, minlength=len(levels))
        means = sp.csr_matrix(sp.diags(1 / count) @ member)[np.sort(level)]
        free = Cones(self.P, self.q, self.A[:rows], self.b[:rows], self.blocks[:-1],
                     self.x, self.t, self.offset)  # fmt: skip
        fixed = sp.vstack([self.unit_rows(), self._link(means)])
        return free.solve(self.q, row=fixed, rhs=np.append(x, np.zeros(M)))

    def _link(self, chosen: Any) -> Any:
        """Rows of s − chosen x."""
        return unit_rows(self.s, self.A.shape[1]) - chosen @ self.unit_rows()
