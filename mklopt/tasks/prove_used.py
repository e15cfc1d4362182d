"""Kernels that every minimizer uses, proved by solving the problem without each one.

If f* of the problem without kernel m is larger than f*, no minimizer has w_m = 0:

    lower(f* without m) > upper(f*)     proves ‖w_m*‖ > 0

It needs no strong convexity, so that it works for the hinge with a sum of norms, where
a gap alone proves nothing. Each kernel costs one solve, which begins at the dual point
of the result and ends as soon as its lower bound is large enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate
from ..run.loop import solve
from ..run.result import Result
from ..solvers.steps.working_set import restricted
from ..util.checks import check_kernels, check_limit

Array = np.ndarray


def prove_used(
    result: Result, used: Sequence[int] | None = None, *, tol: float = 1e-6
) -> Array:
    """Which kernels are proved to be used by every minimizer.

    Parameters
    ----------
    result : Result
        Of the problem with all kernels.
    used : sequence of int, optional
        The kernels to try; those with ‖w_m‖ > 0 at the certified point by default.
    tol : float
        The relative gap at which the solve without a kernel gives up.

    Returns
    -------
    array of int
        The numbers of the kernels that are proved, in order.

    Examples
    --------
    >>> prove_used(result)  # doctest: +SKIP
    array([ 3, 17])
    """
    if not isinstance(result, Result):
        raise ValueError(f"prove_used takes a Result, got {type(result).__name__}")
    check_limit(tol, "tol", 0)
    problem, facts = result.problem, result.intervals()
    M, upper = problem.grams.M, result.certificate.upper
    chosen = np.flatnonzero(result.certificate.norms > 0)
    if used is not None:
        chosen = check_kernels(used, "used", M)
    if M == 1:
        return chosen[facts.used[chosen]]
    proved = [
        m for m in chosen.tolist() if facts.used[m] or _needed(problem, m, upper, tol)
    ]
    return np.array(proved, dtype=int)


def _needed(problem: Any, m: int, upper: float, tol: float) -> bool:
    """Whether the problem without kernel m has a larger optimum."""
    rest = np.delete(np.arange(problem.grams.M), m)

    def enough(found: Certificate, trace: Any) -> bool:
        return found.dual > upper + 1e-9 * abs(upper)

    without = solve(restricted(problem, rest), tol=tol, callback=enough)
    return bool(without.certificate.lower > upper)
