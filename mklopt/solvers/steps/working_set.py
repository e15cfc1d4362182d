"""The working set: which kernels enter it (pricing), and the problem restricted to it.

At an optimum u = prox_γΩ(u + γv) for every γ > 0, with u_m = ‖w_m‖ and v_m = ‖α‖_{K_m}.
So a kernel should enter the working set if the prox is positive at the current point:

    prox_γΩ(u + γ s v)_m > 0,      s ≥ 1

With s > 1, as if α were longer, kernels enter a little early. `active` and `spicy` both
price in this way. They take v from the product that the certificate needs anyway.
"""

import numpy as np

from ...formulations.base import Formulation
from ...formulations.restricted import Restricted
from ...problem import Array, Problem


def prices(
    formulation: Formulation, v: Array, gamma: Array | float, u: Array | float = 0.0
) -> Array:
    """prox_γΩ(u + γv): positive for kernels that should be in the working set.

    gamma: one step for all kernels, or one for each
    """
    return formulation.prox(u + gamma * v, gamma)


def restricted(problem: Problem, kernels: Array) -> Problem:
    """The same problem with these kernels only."""
    M = problem.grams.M
    part = Restricted(problem.formulation, tuple(kernels.tolist()), M)
    return problem.with_(grams=problem.grams.subset(kernels), formulation=part)


def at_most(values: Array, count: int) -> Array:
    """The largest `count` of some values ≥ 0, the others set to 0."""
    return np.where(values < np.sort(values)[-count:][0], 0.0, values)
