"""What is wrong with a solver, in words, from all of its failures.

Every failure is explained by the hypotheses that hold (hypotheses.py). Where none does,
what is known of the run is said (stopped early, out of time, weights at fault), and
otherwise "not diagnosed".

A bug shows on many problems, a coincidence on one: every failure has one vote for what
explains it best, and parts of one for what explains it less well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ...formulations.derive.epigraph import DerivationError
from ...formulations.fixed_weights import FixedWeights
from .case import Case, badness, distance
from .hypotheses import HYPOTHESES, Finding, stale
from .sandbox import Point

APART = 0.3  # of the badness: α and θ do not belong together


def observed(case: Case) -> Finding:
    """The facts of the run."""
    answer, gap = case.answer, case.badness
    off = ""
    if case.point.dual is not None:
        far, words = distance(case.problem, case.point.dual)
        off = f"; {words}" if far**2 > case.tol else ""
    gaps = answer.gaps
    falling = len(gaps) == 1 or (len(gaps) > 1 and gaps[-1] < 0.9 * gaps[-2])
    if answer.ended == "finished" and falling:
        words = f"stopped early: the gap was still falling when it ended at {gap:.1e}"
        return Finding("stopped early", words + off)
    if answer.ended == "time_limit" and gaps[-1] < 0.9 * gaps[len(gaps) // 2]:
        words = f"out of time: the gap fell to {gaps[-1]:.1e} in {answer.seconds:.3g} s"
        return Finding("out of time", words + off)
    if not np.any(case.weights):
        return Finding("wrong weights", f"all weights are 0{off}")
    fixed = case.problem.with_(formulation=FixedWeights(np.maximum(case.weights, 0)))
    inner = badness(fixed, Point(case.dual, case.weights))
    for found in stale(case):
        if found.badness <= min(APART * gap, 1e-2):  # one part of what is wrong
            return found
    if inner <= case.bar and answer.ended == "returned" and gap < 1e-2:
        words = (
            f"stopped early: the gap is {gap:.1e}, the machine at these weights solved"
        )
        return Finding("stopped early", words)
    if inner <= case.bar:
        words = (
            f"wrong weights: α solves the machine at these weights ({inner:.1e}), but "
            f"they are not those of Ω: {_apart(case)}"
        )
        return Finding("wrong weights", words)
    if off:
        return Finding("dual infeasible", f"dual infeasible: {off[2:]}; gap {gap:.1e}")
    return Finding("not diagnosed", f"not diagnosed: the gap stays at {gap:.1e}")


def _apart(case: Case) -> str:
    right, theta = case.reference.weights, case.weights
    far = np.linalg.norm(theta - right) / max(float(np.linalg.norm(right)), 1e-300)
    return f"{far:.2g} of their length from the reference"


def findings(case: Case) -> list[Finding]:
    """All that explains a failure, the best first; otherwise what was observed.

    Looked at is where the solver was going, and then the best point on its way.
    """
    with np.errstate(all="ignore"):
        for here in (case, replace(case, point=case.answer.given or case.point)):
            told = [f for hypothesis in HYPOTHESES for f in _told(hypothesis, here)]
            found = [f for f in told if f.badness <= here.bar]
            if found:
                return sorted(found, key=lambda f: -_decades(f, here))
        return [observed(case)]


def _told(hypothesis: Callable, case: Case) -> list[Finding]:
    """What a hypothesis says; nothing where a candidate defeats its arithmetic."""
    try:
        return list(hypothesis(case))
    except (ValueError, ArithmeticError, DerivationError):
        return []


def _decades(finding: Finding, case: Case) -> float:
    """How much better the changed pair is, down to the tolerance."""
    if not math.isfinite(finding.badness):
        return 0.0
    bottom = max(finding.badness, case.tol)
    return round(finding.share * math.log10(min(case.badness, 10.0) / bottom), 1)


def diagnose(cases: Sequence[Case]) -> list[Finding]:
    """For each failure one finding: of the kind that explains most, where it does."""
    told = [findings(case) for case in cases]
    votes: dict[str, float] = {}
    for case, some in zip(cases, told):
        most = max(_decades(some[0], case), 1e-9)
        for kind in {f.kind for f in some}:
            best = max(_decades(f, case) for f in some if f.kind == kind)
            votes[kind] = votes.get(kind, 0.0) + (best / most if len(some) > 1 else 1.0)
    overall = max(votes, key=lambda kind: votes[kind]) if votes else ""
    return [next((f for f in some if f.kind == overall), some[0]) for some in told]
