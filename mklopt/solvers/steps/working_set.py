"""The working set: the problem restricted to it, and how many kernels may enter it.

Kernels are priced in certificates/pricing.py. `active` and `spicy` take the norms that
it needs from the products of the certificate.
"""

import numpy as np

from ...formulations.base import Formulation
from ...formulations.restricted import Restricted
from ...problem import Array, Problem

MANY = 100_000  # kernels: with more of them zeros are not filled in


def restricted(problem: Problem, kernels: Array) -> Problem:
    """The same problem with these kernels only."""
    part = _part(problem.formulation, kernels, problem.grams.M)
    return problem.with_(grams=problem.grams.subset(kernels), formulation=part)


def _part(formulation: Formulation, kernels: Array, M: int) -> Formulation:
    same = vars(type(formulation)).get("same_for_part", False)
    if same and M > MANY:
        return formulation
    return Restricted(formulation, tuple(kernels.tolist()), M)


def at_most(values: Array, count: int) -> Array:
    """The largest `count` of some values ≥ 0, the others set to 0.

    Of equal values those of the first kernels are kept.
    """
    if np.count_nonzero(values) <= count:
        return values
    least = np.partition(values, -count)[-count]
    kept = values > least
    equal = np.flatnonzero(values == least)
    kept[equal[: count - np.count_nonzero(kept)]] = True
    return np.where(kept, values, 0.0)
