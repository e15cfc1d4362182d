"""Where a run is judged: what it promised, against a reference it has never seen.

Judged is the certificate of the returned point, dual ≤ f* ≤ primal with relative gap
ε, by an interval [lower, upper] around f* from elsewhere. A run holds when

    it converged, and 0 ≤ ε ≤ tol
    lower ≤ primal ≤ upper + ε|primal|     and     lower − ε|primal| ≤ dual ≤ upper
    the two intervals around f* meet

The reason is a sentence: the measured numbers, or every condition that does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..certificates.certificate import Certificate, relative
from ..run.result import STATUS, Result

ROUNDING = 1e-12  # relative error of primal and dual values, which are plain float64


@dataclass(frozen=True)
class Verdict:
    """A judged run.

    Parameters
    ----------
    holds : bool
        Whether every condition holds.
    reason : str
        The measured numbers, or the conditions that do not hold.
    above, below : float
        How far primal and dual lie outside the reference interval, relative.
    """

    holds: bool
    reason: str
    above: float = math.nan
    below: float = math.nan


def judge_run(result: Result, reference: Any, tol: float) -> Verdict:
    """Judge a result that promised a relative gap of tol.

    Parameters
    ----------
    result : Result
        What `mklopt.solve` returned.
    reference : Reference
        Anything with lower, upper and relative_gap.
    tol : float
        The relative gap that was promised.

    Returns
    -------
    Verdict
    """
    found = result.certificate
    above = max(0.0, relative(found.primal - reference.upper, reference.upper))
    below = max(0.0, relative(reference.lower - found.dual, reference.upper))
    faults = [*_run_faults(result, tol), *_bound_faults(found, reference, tol)]
    good = f"gap {found.relative_gap:.1e} ≤ {tol:.0e}, meets the reference"
    return Verdict(not faults, "; ".join(faults) or good, above, below)


def _run_faults(result: Result, tol: float) -> Iterator[str]:
    gap = result.certificate.relative_gap
    if result.status != "converged":
        more = f": {result.message}" if result.message else ""
        yield f"{result.status}, {STATUS[result.status]}{more}"
    if not 0 <= gap <= tol * (1 + 1e-6) + 1e-15:
        yield f"the certified gap is {gap:.1e}; promised is {tol:.0e}"


def _bound_faults(found: Certificate, reference: Any, tol: float) -> Iterator[str]:
    gap = found.relative_gap * abs(found.primal)
    slack = ROUNDING * abs(reference.upper)
    if reference.relative_gap > tol:
        yield f"the reference itself is known to {reference.relative_gap:.1e} only"
    if found.primal < reference.lower - slack:
        yield "the primal value lies below the reference interval: one of them is wrong"
    if found.dual > reference.upper + slack:
        yield "the dual value lies above the reference interval: one of them is wrong"
    if found.primal > reference.upper + gap + slack:
        yield "the primal value is farther above the reference than its gap allows"
    if found.dual < reference.lower - gap - slack:
        yield "the dual value is farther below the reference than its gap allows"
    if found.enclosure.reason:
        yield found.enclosure.reason
    if found.lower > reference.upper or found.upper < reference.lower:
        yield "its interval and the reference interval do not meet"
