"""A printed step of Suzuki and Tomioka (2009) that may rise, with the problem."""

from __future__ import annotations

import numpy as np

from mklopt.claims.counterexamples import Step as Row
from mklopt.claims.counterexamples import counterexample

from .formulas import Squared, Step


def small_kernels(times: float = 3.0) -> Step:
    """Three kernels on 14 samples; γ is `times` what the linearization allows."""
    rng, n, M = np.random.default_rng(0), 14, 3
    L = rng.normal(size=(M, n, 3))
    K = L @ L.transpose(0, 2, 1)
    size = float(np.trace(np.sum(K, axis=0)))
    both = 0.5 * np.sum(K, axis=0) / size + 0.5 * np.ones((n, n)) / n
    most = times / (2 * np.linalg.eigvalsh(both)[-1])
    loss = Squared(np.where(np.arange(n) < 10, 1.0, -1.0))
    gamma = np.full(M, 0.5 * most / size)
    return Step(K, loss, 0.01, np.zeros((M, n)), 0.0, gamma, 0.5 * most / n)


@counterexample("suzuki2009", "section 4.1", problem=small_kernels)
def linearized_steps(step: Step, most: int) -> list[Row]:
    """Linearized steps with the γ of eq. (3), which grow without a bound, descend."""
    value, found = step.objective(step.alpha, step.b), []
    for t in range(1, most + 1):
        step = step.moved(*step.linearized())
        before, value = value, step.objective(step.alpha, step.b)
        found.append(Row(t, value, before))
    return found
