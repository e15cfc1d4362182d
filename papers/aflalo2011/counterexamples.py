"""Printed rates of Aflalo et al. (2011) that fail, each with the problem that shows it.

For every t ≥ 2 the exact worst case exceeds item 3 of theorem 3.1, too:
`mklopt.rates.worst_case("mirror descent as printed", t)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mklopt import GramStack, Problem
from mklopt.claims.counterexamples import Step, counterexample
from mklopt.formulations import VSKL
from mklopt.formulations.norms import dual_exponent
from mklopt.solvers.steps.simplex_oracle import Oracle

Array = np.ndarray
RHO = 0.4  # between 0 and 1/√2


@dataclass(frozen=True)
class TwoPieces:
    """f(x) = max(⟨a, x⟩, ⟨b, x⟩ − ρ) on the unit disc, |a| = |b| = 1, ⟨a, b⟩ = −ρ.

    With Φ = ½‖x‖² it has L = σ = 1, and Γ = ½ bounds the divergence from 0.
    """

    rho: float = RHO

    @property
    def slopes(self) -> Array:
        """a and b, the rows."""
        return np.array([[1.0, 0.0], [-self.rho, np.sqrt(1 - self.rho**2)]])

    def pieces(self, x: Array) -> Array:
        """⟨a, x⟩ and ⟨b, x⟩ − ρ."""
        return np.asarray(self.slopes @ x - np.array([0.0, self.rho]))

    def least(self) -> float:
        """An upper bound of min f: the least value on a grid of the circle."""
        turned = np.linspace(0, 2 * np.pi, 20001)
        circle = np.stack([np.cos(turned), np.sin(turned)])
        values = self.slopes @ circle - np.array([[0.0], [self.rho]])
        return float(np.min(np.max(values, axis=0)))


@counterexample("aflalo2011", "theorem 3.1, item 3", problem=TwoPieces, most=2)
def shrinking_steps(f: TwoPieces, most: int) -> list[Step]:
    """With the steps √(2σΓ/t)/L the best of t iterates is within L√(2Γ/(σt))."""
    x, best, found = np.zeros(2), np.inf, []
    for t in range(1, most + 1):
        pieces = f.pieces(x)
        best = min(best, float(np.max(pieces)))
        found.append(Step(t, best - f.least(), np.sqrt(1 / t)))
        x = x - f.slopes[int(np.argmax(pieces))] / np.sqrt(t)
        x = x / max(1.0, float(np.linalg.norm(x)))
    return found


def small_identities(q: float = 3.0) -> Problem:
    """Four kernels 2e-7 I: every α_i is at C, nothing is left to estimate."""
    y = np.where(np.arange(100) % 2 == 0, 1.0, -1.0)
    grams = GramStack(np.stack([2e-7 * np.eye(100)] * 4))
    return Problem(grams, y, "hinge", VSKL(((0, 1), (2, 3)), q), 1e6)


@counterexample("aflalo2011", "appendix A, L_G", problem=small_identities, most=1)
def lipschitz_constant(problem: Problem, most: int) -> list[Step]:
    """The constant L_G of theorem 3.1 bounds the gradient of G."""
    oracle = Oracle(problem, *problem.formulation.simplices(problem.grams.M))
    oracle.machine.tol = oracle.wanted = 1e-3
    for _ in oracle.solve(np.full(4, 0.5)):
        pass
    star = dual_exponent(problem.formulation.q)  # type: ignore[attr-defined]
    power = (star * (star + 1) - 1) / (star * (star + 1))
    size = float(problem.grams.diag()[0, 0]) * problem.grams.n * float(problem.C) ** 2
    printed = 0.5 * 2 ** (1 / star) * size**power  # with τ = 1, which only helps it
    return [Step(1, float(np.max(np.abs(oracle.slope))), printed)]
