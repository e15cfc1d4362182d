"""SimpleMKL: reduced gradient descent in the kernel weights on the simplex.

Problem. Sparse MKL, ½(Σ‖w_m‖)² or LpNorm(1): min of J(θ) over θ ≥ 0, Σθ = 1.

Algorithm (Rakotomamonjy et al. 2008). The weight of a base kernel μ, the one with the
largest weight, is 1 minus all others, so that the reduced gradient is
r_m = ∂_mJ − ∂_μJ. The direction is −r, but 0 where it would make a zero weight
negative. It is followed to the first weight that reaches 0, and further from there
while J falls; then a golden-section search. Ours: directions are conjugate while the
same kernels move (steepest descent does not reach 1e-4 when C is large), and the SVM is
solved at the final weights, so that α belongs to θ.

Guarantee. J falls in every round. Linear convergence at best; it is made for an
accuracy of 1e-4.
"""

from collections.abc import Generator

import numpy as np

from ..certificates.certificate import Certificate
from ..problem import Problem
from .base import Array, Iterate, Steps, solver, up_to_C
from .machines.factory import machine_for
from .machines.machine import Machine
from .start import first_weights

GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
MAX_SECTIONS = 20  # of one golden-section search
PRECISION = 0.002  # of its step, relative to the step


@solver(
    "simple",
    needs={"simplex"},
    losses={"hinge", "eps_insensitive", "one_class"},
    accuracy=up_to_C(1000.0, 1e-4),
    reference="kloft2011",
    guarantee="J falls in every round",
)
def simple(problem: Problem, *, start: object = None) -> Steps:
    """Reduced gradient descent on the simplex."""
    theta, alpha = first_weights(problem, start)
    theta = theta / np.sum(theta)
    machine = machine_for(problem, alpha, sharpness=1e-5)
    machine.solve(theta)
    last = None
    while True:
        machine.set_tolerance((yield machine.iterate()))
        base = int(np.argmax(theta))
        value, steepest = machine.J, descent(theta, -0.5 * machine.v**2, base)
        direction = conjugate(steepest, last)
        last = (steepest, direction.copy())
        while True:  # from edge to edge, while J falls
            reach, leaves = edge(theta, direction)
            if not 0 < reach < np.inf:
                break
            trial = np.maximum(theta + reach * direction, 0.0)
            trial[leaves] = 0.0
            machine.solve(trial / np.sum(trial))
            if value <= machine.J:
                break
            theta, value = trial / np.sum(trial), machine.J
            payer = base if leaves != base else int(np.argmax(theta))
            direction[payer] += direction[leaves]
            direction[leaves] = 0.0
            machine.set_tolerance((yield machine.iterate()))
        if 0 < reach < np.inf:
            t = yield from golden_section(machine, theta, direction, value, reach)
            theta = np.maximum(theta + t * direction, 0.0)
            theta = theta / np.sum(theta)
        machine.solve(theta)


def conjugate(steepest: Array, last: tuple[Array, Array] | None) -> Array:
    """The direction of Polak and Ribière while the same kernels move, else −r."""
    if last is None or np.any((steepest != 0) != (last[1] != 0)):
        return steepest.copy()
    before, direction = last
    beta = max(0.0, float(steepest @ (steepest - before)) / float(before @ before))
    mixed = steepest + beta * direction
    return mixed if mixed @ steepest > 0 else steepest.copy()


def edge(theta: Array, direction: Array) -> tuple[float, int]:
    """The step at which the first weight reaches 0, and which weight that is."""
    if not np.any(direction > 0):  # at a corner only rounding is left
        return np.inf, 0
    ways = np.full(len(theta), np.inf)
    down = direction < 0
    ways[down] = -theta[down] / direction[down]
    leaves = int(np.argmin(ways))
    return float(ways[leaves]), leaves


def golden_section(
    machine: Machine, theta: Array, direction: Array, value: float, reach: float
) -> Generator[Iterate, Certificate, float]:
    """The step in [0, reach] where J is smallest, up to PRECISION.

    Long searches yield iterates, so that time limits can be kept.
    """
    values, shown = {0.0: value}, machine.work
    low, high = 0.0, reach
    for _ in range(MAX_SECTIONS):
        width = high - low
        first, second = high - GOLDEN * width, low + GOLDEN * width
        for t in (first, second):
            if t not in values:
                machine.solve(np.maximum(theta + t * direction, 0.0))
                values[t] = machine.J
            if machine.work >= shown + 1:
                yield machine.iterate()
                shown = machine.work
        low, high = (low, second) if values[first] < values[second] else (first, high)
        best = min(values, key=lambda t: values[t])
        if best > 0 and high - low < PRECISION * best:
            break
    return best


def descent(theta: Array, slope: Array, base: int) -> Array:
    """−r, with the change of the base kernel that keeps Σθ = 1."""
    reduced = slope - slope[base]
    direction = np.where((theta <= 0) & (reduced > 0), 0.0, -reduced)
    direction[base] = 0.0
    direction[base] = -np.sum(direction)
    return np.asarray(direction)
