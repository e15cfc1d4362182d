"""The working set: the problem of some kernels, the others unused."""

from __future__ import annotations

import numpy as np

from ...formulations.restricted import Restricted
from ...problem import Problem

Array = np.ndarray


def restricted(problem: Problem, kernels: Array) -> Problem:
    """The same problem with these kernels only."""
    M = problem.grams.M
    part = Restricted(problem.formulation, tuple(kernels.tolist()), M)
    return problem.with_(grams=problem.grams.subset(kernels), formulation=part)
