"""A printed convergence of Kloft et al. (2011) that fails, with the problem."""

from __future__ import annotations

import numpy as np

from mklopt import GramStack, Problem
from mklopt.certificates.certificate import certify
from mklopt.claims.counterexamples import Step, counterexample
from mklopt.formulations import BlockNorm
from mklopt.solvers.machines.factory import machine_for


def kernels_apart(C: float = 0.01, q: float = 4.0) -> Problem:
    """Three kernels that share no sample; with a small C α hardly follows θ."""
    parts = [np.diag(np.where(np.arange(12) // 4 == m, 1.0 + m, 0.0)) for m in range(3)]
    y = np.where(np.arange(12) % 2 == 0, 1.0, -1.0)
    return Problem(GramStack.from_factors(parts), y, "hinge", BlockNorm(q), C)


@counterexample("kloft2011", "below eq. (31)", problem=kernels_apart, most=20)
def the_wrapper_above_q_3(problem: Problem, most: int) -> list[Step]:
    """With (31), rightly normalized, the wrapper is a descent: gaps do not grow."""
    theta, machine = np.ones(problem.grams.M), machine_for(problem)
    first, found = np.inf, []
    for t in range(1, most + 1):
        machine.solve(theta)
        certificate = certify(problem, machine.point, theta)
        machine.set_tolerance(certificate)
        first = min(first, certificate.relative_gap) if t > 1 else np.inf
        found.append(Step(t, certificate.relative_gap, first))
        theta = problem.formulation.weights(theta * machine.v)
        if not np.max(theta) < 1e12 * np.min(theta):
            break
    return found
