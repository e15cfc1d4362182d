"""Pricing of kernels: the norms v_m = ‖α‖_{K_m}, read of as few kernels as possible.

Pricing. At an optimum u = prox_γΩ(u + γv) for every γ > 0, with u_m = ‖w_m‖. So a
kernel may come into use if the prox is positive at the current point,

    prox_γΩ(u + γ s v)_m > 0,      s ≥ 1

with s > 1, as if α were longer, a little early. Solvers choose their working sets by
it: it is the one place where kernels are priced.

A dual value needs Ω*(v), and Ω* increases: upper bounds of v_m are enough for kernels
that do not matter. A kernel is read if it is in use, or if its price is positive at
its bound; all others keep the bound from their last read (grams/norm_reads.py).

Guarantee. v is never below the true norms by more than rounding. Ω*(v) is that of the
kernels that were read, or all kernels are read.
"""

from collections.abc import Callable

import numpy as np

from ..formulations import Formulation
from ..problem import Problem
from .enclosure import finite, largest_scale

Array = np.ndarray
LONGER = 1.05  # solvers let kernels enter early, as if α were longer by this factor
ALL = 0.7  # if more kernels than this share have to be read, all are
MANY = 10_000  # kernels: with more of them, few rounds of reads cost less than many
WORTH_KEEPING = 0.1  # if a smaller share was read, all are read, and remembered
ROUNDING = 1e-6  # relative: much more than the rounding of a norm
SAME = 1e-10  # relative: Ω* has the same value


def prices(
    formulation: Formulation, v: Array, gamma: Array | float, u: Array | float = 0.0
) -> Array:
    """prox_γΩ(u + γv): positive for kernels that may come into use.

    gamma: one step for all kernels, or one for each
    """
    return formulation.prox(u + gamma * v, gamma)


def priced(
    problem: Problem, v: Array, theta: Array, longer: float = LONGER
) -> tuple[Array, Array]:
    """Which kernels may come into use, as if α were longer; and their prices.

    θ are weights near those of the primal point; γ is the mean of those in use.
    """
    with np.errstate(all="ignore"):  # what overflows may come into use
        v, used = np.minimum(v, 1e150), theta > 0
        gamma = float(np.mean(theta[used])) if np.any(used) else 1.0
        if not np.all(np.isfinite(theta * v + gamma * (longer * v))):
            return np.ones(len(v), bool), np.full(len(v), np.inf)
        found = prices(problem.formulation, longer * v, gamma, u=theta * v)
        return ~(found <= 0), found


def enough_norms(problem: Problem, alpha: Array, theta: Array) -> Array:
    """v_m = ‖α‖_{K_m} for kernels in use and those that may come into use at α.

    For all others an upper bound, if that changes nothing. θ are weights near those of
    the primal point: θ > 0 for kernels in use.
    """
    if not np.any(theta > 0):
        return problem.grams.norms(alpha)
    asked = lambda v: priced(problem, v, theta)[0]  # noqa: E731
    v, read = read_where(problem, alpha, theta > 0, asked)
    if np.all(read) or _same(problem, v, read):
        return v
    return _all_norms(problem, alpha, read)


def norms_near(problem: Problem, alpha: Array, u: Array) -> Array:
    """The same at a primal point that is given by its block norms u."""
    if _all_matter(problem):
        return problem.grams.norms(alpha)
    theta = problem.formulation.weights(u)
    return enough_norms(problem, alpha, np.where(np.isfinite(theta), theta, 0.0))


def read_where(
    problem: Problem, alpha: Array, used: Array, asked: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """v_m for kernels in use and those that are asked for at v; bounds for the others.

    asked(v): a mask of kernels; it must not ask for fewer of them at larger v. Also
    returned is which kernels were read: all, if most of them would have to be; those
    that were read already are not read again.
    """
    grams = problem.grams
    if _all_matter(problem):
        return grams.norms(alpha), np.ones(grams.M, bool)
    plain, above, read = grams.norms_above(alpha)
    new, first = (used | ~np.isfinite(above)) & ~read, np.count_nonzero(read)
    while np.mean(read | new) <= ALL:
        known = np.count_nonzero(read)
        if np.any(new):
            if grams.M > MANY and known > first:
                new |= _next_largest(np.where(read, 0.0, above), int(known - first))
            grams.subset(new).quad(alpha)
            plain, above, read = grams.norms_above(alpha)
            if np.count_nonzero(read) <= known:
                break
        v = np.where(read, plain, above)
        new = asked(v) & ~read
        if not np.any(new):
            return v, read
    return _all_norms(problem, alpha, read), np.ones(grams.M, bool)


def _next_largest(v: Array, count: int) -> Array:
    """The kernels with the `count` largest bounds: what is read doubles every time."""
    return v >= max(float(np.partition(v, -count)[-count]), 1e-300)


def _all_norms(problem: Problem, alpha: Array, read: Array) -> Array:
    """v of all kernels, of which some were read at α."""
    grams = problem.grams
    if np.mean(read) < WORTH_KEEPING:
        return grams.norms(alpha)
    grams.subset(~read).quad(alpha)
    return grams.norms_above(alpha)[0]


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
    return np.flatnonzero((theta > 0) | priced(problem, v, theta, 1 + ROUNDING)[0])


def _same(problem: Problem, v: Array, read: Array) -> bool:
    """Whether the kernels that were not read change nothing in Ω*."""
    least = np.where(read, v, 0.0)
    s, t = largest_scale(problem, v), largest_scale(problem, least)
    if s < t * (1 - SAME):
        return False
    conjugate = problem.formulation.conjugate
    high, low = finite(lambda: conjugate(s * v)), finite(lambda: conjugate(s * least))
    return high <= low + SAME * abs(low)
