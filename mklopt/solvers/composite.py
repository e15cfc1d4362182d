"""Composite kernel learning: weights on two levels, across groups and inside them.

Problem. CKL, ½‖u‖²_{r,s} with 1 ≤ r, s < 2: sparse inside groups and across them.
Hölder, used twice, writes it with θ_jk = g_j λ_jk, p(r) = r/(2 − r):

    ‖u‖²_{r,s} = min of Σ u_jk²/(g_j λ_jk) over ‖g‖_{p(s)} ≤ 1, all ‖λ_j‖_{p(r)} ≤ 1

Algorithm (Szafranski, Grandvalet and Rakotomamonjy 2008). A wrapper: the machine on
Σθ_jkK_jk for α, u = θ‖α‖_K; then the best weights for u on both levels,
λ_jk = (u_jk/‖u_j‖_r)^{2−r} and g_j = (‖u_j‖_r/‖u‖_{r,s})^{2−s}. Ours: Anderson's
acceleration (ahead.py), without which the last digits take thousands of machines.

Guarantee. The plain steps never raise the objective, which is convex: they alternate
between w and (g, λ). For s ≥ 2 no such g exists, and VSKL is for mirror.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..formulations.norms import norm
from ..problem import Problem
from .analytic import alternate
from .base import Steps, solver

Array = np.ndarray


@solver(
    "composite",
    needs={"two_levels"},
    losses={"quadratic"},
    accuracy=1e-6,
    reference="aflalo2011",
    guarantee="the objective never rises",
)
def composite(
    problem: Problem, *, start: Any = None, accelerate: str | None = "anderson"
) -> Steps:
    levels = Levels(problem.formulation)

    def reweight(theta: Array, v: Array) -> Array:
        across, inside = levels.best(theta * v)
        return across[levels.owner] * inside

    yield from alternate(problem, reweight, start, accelerate)


class Levels:
    """The weights of groups, and of kernels inside them."""

    def __init__(self, formulation: Any):
        self.r, self.s = formulation.exponents
        sizes = [len(group) for group in formulation.groups]
        members = np.concatenate([list(group) for group in formulation.groups])
        self.owner = np.empty(len(members), int)
        self.owner[members] = np.repeat(np.arange(len(sizes)), sizes)

    def best(self, u: Array) -> tuple[Array, Array]:
        """(g, λ) for given block norms."""
        sums = self.norms(u)
        total = norm(sums, self.s) or 1.0
        own = np.where(sums > 0, sums, 1.0)[self.owner]
        return (sums / total) ** (2 - self.s), (u / own) ** (2 - self.r)

    def norms(self, u: Array) -> Array:
        """‖u_j‖_r of every group."""
        top = float(np.max(u, initial=0.0)) or 1.0
        powers = np.bincount(self.owner, (u / top) ** self.r)
        return np.asarray(top * powers ** (1 / self.r))
