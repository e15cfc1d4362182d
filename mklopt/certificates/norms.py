"""The norms v_m = ‖α‖_{K_m} of a certificate, from as few kernels as possible.

A dual value needs Ω*(v), and Ω* increases: upper bounds of v_m are enough for kernels
that do not matter. Which ones matter is asked as solvers price kernels: at an optimum
u = prox_γΩ(u + γv). A kernel is read if it is in use, or if the prox is positive at
LONGER times its bound; all others keep the bound from their last read
(grams/norm_reads.py).

Guarantee. v is never below the true norms by more than rounding. Ω*(v) is that of the
kernels that were read, or all kernels are read.
"""

import numpy as np

from ..problem import Problem
from .enclosure import finite, largest_scale

Array = np.ndarray
LONGER = 1.05  # solvers let kernels enter early, as if α were longer by this factor
ALL = 0.7  # if more kernels than this share have to be read, all are
ROUNDING = 1e-6  # relative: much more than the rounding of a norm
SAME = 1e-10  # relative: Ω* has the same value


def enough_norms(problem: Problem, alpha: Array, theta: Array) -> Array:
    """v_m = ‖α‖_{K_m} for kernels in use and those that may come into use at α.

    For all others an upper bound, if that changes nothing. θ are weights near those of
    the primal point: θ > 0 for kernels in use.
    """
    grams, used = problem.grams, theta > 0
    if _all_matter(problem) or not np.any(used):
        return grams.norms(alpha)
    plain, above, read = grams.norms_above(alpha)
    new = used & ~read
    if np.mean(read | new) > ALL:
        return grams.norms(alpha)
    while np.any(new):
        known = np.count_nonzero(read)
        grams.subset(new).quad(alpha)
        plain, above, read = grams.norms_above(alpha)
        new = _priced(problem, np.where(read, plain, above), theta) & ~read
        if np.mean(read | new) > ALL or np.count_nonzero(read) <= known:
            return grams.norms(alpha)
    v = np.where(read, plain, above)
    return v if _same(problem, v, read) else grams.norms(alpha)


def _all_matter(problem: Problem) -> bool:
    formulation = problem.formulation
    smooth = "smooth_dual" in formulation.traits
    return smooth or not formulation.closed("prox") or not problem.grams.bounds_norms


def near_use(problem: Problem, v: Array, theta: Array) -> Array:
    """The numbers of the kernels in use, and of those that rounding may bring into use.

    Their norms have to be known as exactly as possible.
    """
    if _all_matter(problem) or not np.any(theta):
        return np.arange(len(v))
    return np.flatnonzero((theta > 0) | _priced(problem, v, theta, 1 + ROUNDING))


def _priced(problem: Problem, v: Array, theta: Array, longer: float = LONGER) -> Array:
    """The kernels that may come into use, as if their norms were longer times v."""
    with np.errstate(all="ignore"):  # what overflows is read
        v = np.minimum(v, 1e150)
        u, gamma = theta * v, float(np.mean(theta[theta > 0]))
        z = u + gamma * longer * v
        if not np.all(np.isfinite(z)):
            return np.ones(len(v), bool)
        return ~(problem.formulation.prox(z, gamma) <= 0)


def _same(problem: Problem, v: Array, read: Array) -> bool:
    """Whether the kernels that were not read change nothing in Ω*."""
    least = np.where(read, v, 0.0)
    s, t = largest_scale(problem, v), largest_scale(problem, least)
    if s < t * (1 - SAME):
        return False
    conjugate = problem.formulation.conjugate
    high, low = finite(lambda: conjugate(s * v)), finite(lambda: conjugate(s * least))
    return high <= low + SAME * abs(low)
