"""The same problem on a part of the kernels: first weights for a large stack.

Kernels that are spread evenly say nearly as much as all of them, at a small part of the
cost of a pass. Where all kernels are in use, Ω* of S of M kernels is smaller, for equal
norms by the factor c = Ω*(1, …, 1 on M)/Ω*(1, …, 1 on S), for ℓp (M/S)^{1 − 1/p}. With
Ω* homogeneous of degree k and s = c^{1/(k−1)},

    max_α  D_C(α) − c Ω*_S(α)   =   1/s  max_β  D_{sC}(β) − Ω*_S(β),    β = sα,

where D_C is the dual value of the loss. So the problem on S kernels is solved with sC,
and its solution is divided by s. For ℓ1 c = 1.
"""

from typing import NamedTuple

import numpy as np

from ...certificates.certificate import Certificate
from ...problem import Array, Problem
from ..base import Steps, certify_iterate
from .working_set import restricted

FEWEST_KERNELS = 2000  # of the smallest problem, or a few times as many
PART = 8  # each problem has this many times the kernels of the one before
MANY = PART * FEWEST_KERNELS  # with fewer kernels a pass costs less than small problems


class Smaller(NamedTuple):
    """A problem on some of the kernels, and the factor s of its dual variables."""

    problem: Problem
    kernels: Array
    scale: float


def sizes(M: int) -> list[int]:
    """The numbers of kernels of smaller problems, the smallest one first."""
    found: list[int] = []
    while M > MANY:
        M = M // PART
        found.insert(0, M)
    return found


def spread(M: int, count: int) -> Array:
    """The numbers of so many kernels, evenly spread among M."""
    return np.arange(count) * M // count


def on_kernels(problem: Problem, kernels: Array) -> Smaller:
    """The problem on these kernels, with a C that keeps the size of the solution."""
    small = restricted(problem, kernels)
    scale = dual_scale(problem, len(kernels))
    return Smaller(small.with_(C=scale * problem.C), kernels, scale)


def dual_scale(problem: Problem, count: int) -> float:
    """s for so many of the kernels; 1 where Ω* is not homogeneous."""
    M = problem.grams.M
    ones, some = np.ones(M), np.zeros(M)
    some[spread(M, count)] = 1.0
    found = map(problem.formulation.conjugate, (some, ones, 2 * ones))
    few, one, two = map(np.float64, found)
    with np.errstate(all="ignore"):
        s = (one / few) ** (1 / (np.log2(two / one) - 1))
    return float(s) if np.isfinite(s) and s > 0 else 1.0


def coarse(problem: Problem, steps: Steps, gap: float, most: int) -> Certificate:
    """The first point of a solver with this relative gap, after at most so many."""
    found = None
    for _ in range(most):
        found = certify_iterate(problem, steps.send(found))  # type: ignore[arg-type]
        if found.relative_gap <= gap:
            break
    steps.close()
    assert found is not None
    return found
