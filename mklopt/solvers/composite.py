"""Composite kernel learning: weights on two levels, across groups and inside them.

Problem. CKL, ½‖u‖²_{r,s} with 1 ≤ r, s < 2: sparse inside groups and across them.
Hölder, used twice, writes it with θ_jk = g_j λ_jk, p(r) = r/(2 − r):

    ‖u‖²_{r,s} = min of Σ u_jk²/(g_j λ_jk) over ‖g‖_{p(s)} ≤ 1, all ‖λ_j‖_{p(r)} ≤ 1

Algorithm (Szafranski, Grandvalet and Rakotomamonjy 2008). The two levels in turn, after
solving the SVM with the kernel Σθ_jkK_jk; u = θ‖α‖_K:

    inside    λ_jk = (u_jk/‖u_j‖_r)^{2−r}, g held
    across    g_j ∝ a_j^{(2−s)/2}, a_j = Σ_k u_jk²/λ_jk, λ held

If both were updated after the same SVM, this would be the step of analytic.py, which
solves these problems too, and more accurately because it is accelerated.

Guarantee. The objective never rises, up to the tolerance of the SVM solver: every step
minimizes a convex function over one of w, λ, g. For s ≥ 2 no such g exists; mirror.py
solves VSKL.
"""

from itertools import count
from typing import Any

import numpy as np

from ..formulations.base import owners
from ..formulations.norms import norm
from ..problem import Problem
from .base import Array, Steps, solver
from .machines.factory import machine_for
from .start import first_weights


@solver(
    "composite",
    needs={"two_levels"},
    losses={"machine"},
    accuracy=1e-3,
    reference="aflalo2011",
    guarantee="the objective never rises",
)
def composite(problem: Problem, *, start: object = None) -> Steps:
    """The two levels of weights in turn."""
    theta, alpha = first_weights(problem, start)
    machine, levels = machine_for(problem, alpha), Levels(problem.formulation)
    across, inside = levels.split(theta)
    for t in count():
        machine.solve(across[levels.owner] * inside)
        machine.set_tolerance((yield machine.iterate()))
        u = machine.theta * machine.v
        if t % 2 == 0:
            inside = levels.inside(u, inside)
        else:
            across = levels.across(u, inside)


class Levels:
    """The weights of groups, g, and of kernels inside them, λ."""

    def __init__(self, formulation: Any):
        self.r, self.s = formulation.exponents
        self.owner = owners(formulation.groups)

    def split(self, theta: Array) -> tuple[Array, Array]:
        """g and λ with θ ∝ g_j λ_jk, both of norm 1."""
        sizes = self.norms(theta, self.r / (2 - self.r))
        inside = theta / np.where(sizes > 0, sizes, 1.0)[self.owner]
        return sizes / norm(sizes, self.s / (2 - self.s)), inside

    def inside(self, u: Array, held: Array) -> Array:
        """The best λ for block norms u; a group with u_j = 0 keeps its λ."""
        sums = self.norms(u, self.r)[self.owner]
        best = (u / np.where(sums > 0, sums, 1.0)) ** (2 - self.r)
        return np.where(sums > 0, best, held)

    def across(self, u: Array, inside: Array) -> Array:
        """The best g for block norms u and λ."""
        squares = u**2 / np.where(inside > 0, inside, 1.0)
        sizes = np.sqrt(np.bincount(self.owner, squares))
        return np.asarray((sizes / (norm(sizes, self.s) or 1.0)) ** (2 - self.s))

    def norms(self, u: Array, q: float) -> Array:
        """‖u_j‖_q of every group."""
        top = float(np.max(u, initial=0.0)) or 1.0
        return np.asarray(top * np.bincount(self.owner, (u / top) ** q) ** (1 / q))
