"""The diagnosis: what is wrong with a solver, in words, from all of its failures.

Every failure is explained by the hypotheses that hold (hypotheses.py). Where none does,
it says what is known of the run (stopped early, out of time, wrong weights), and
otherwise "not diagnosed".

A bug shows on many problems, a coincidence on one: every failure has one vote for what
explains it best, and parts of one for what explains it less well.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ...certificates.certificate import relative
from .case import NOT_CERTIFIED, Case, Explanation, infeasibility
from .hypotheses import HYPOTHESES
from .other_points import halves

Array = np.ndarray
MISMATCH = 0.3  # of the error: so much goes away when α and θ are made to fit
SMALL_GAP = 1e-2  # below it a run is on the right way
AS_GOOD = 0.95  # of the votes: what has so many is not told from the best
SAME_VALUE = 1e-3  # relative: values of J nearer than this are the same
AHEAD = 0.5  # the cosine of the angle between a step and the way, at least
STILL_FALLING = 0.9  # a gap below this part of an earlier one is still falling
NO_PROOF = "this is an observation, not a proof"


def observed(case: Case) -> Explanation:
    """What is known of a run that no hypothesis explains."""
    answer, gap, gaps = case.answer, case.error, case.answer.gaps
    off = ""
    if case.given.dual is not None:
        far, words = infeasibility(case.problem, case.given.dual)
        off = f"; {words}" if far**2 > case.tol else ""
    falling = len(gaps) == 1 or (len(gaps) > 1 and gaps[-1] < STILL_FALLING * gaps[-2])
    if answer.ended == "finished" and falling:
        words = f"stopped early: the gap was still falling when it ended at {gap:.1e}"
        return Explanation("stopped early", f"{words}{off}; {NO_PROOF}")
    if answer.ended == "time_limit" and gaps[-1] < STILL_FALLING * gaps[len(gaps) // 2]:
        words = f"out of time: the gap fell to {gaps[-1]:.1e} in {answer.seconds:.3g} s"
        return Explanation("out of time", words + off)
    if not np.any(case.weights):
        return Explanation("wrong weights", f"all weights are 0{off}")
    for found in halves(case):
        if found.error <= min(MISMATCH * gap, SMALL_GAP):  # one part of what is wrong
            return found
    if (inner := case.of_svm(case.dual, case.weights)) <= case.explained:
        return _wrong_weights(case, inner)
    if off:
        words = f"dual infeasible: {off[2:]}; gap {gap:.1e}"
        return Explanation("dual infeasible", words)
    return Explanation("not diagnosed", f"not diagnosed: the gap stays at {gap:.1e}")


def _wrong_weights(case: Case, inner: float) -> Explanation:
    """α solves the SVM at weights that are wrong: where did they come from?

    J(θ), the value of the SVM at θ, falls on the way of every descent from equal
    weights to the right ones. Nothing of this is certified: it is an observation.
    """
    if case.answer.ended == "returned" and case.error < SMALL_GAP:
        gap = f"{case.error:.1e}"
        words = f"stopped early: α solves the SVM at the weights, gap {gap}; {NO_PROOF}"
        return Explanation("stopped early", words)
    solves = f"α solves the SVM at these weights ({inner:.1e})"
    right, theta = case.best_weights, case.weights
    equal = case.problem.formulation.weights(np.ones(len(theta)))
    first, here, last = (case.svm_value(x) for x in (equal, theta, right))
    moved = case.answer.ended != "stagnated"  # it stood still: it was not on its way
    if moved and here > first * (1 + SAME_VALUE):
        words = (
            f"gradient sign: {solves}, and they are worse than equal weights (J = "
            f"{here:.4g}, equal {first:.4g}, optimal {last:.4g}), as after steps along "
            f"+∇J in place of −∇J; {NO_PROOF}"
        )
        return Explanation("gradient sign", words)
    way = (first - here) / max(first - last, 1e-300)
    if moved and SAME_VALUE < way < 1 + SAME_VALUE and _ahead(equal, theta, right):
        words = (
            f"stopped early: {solves}, and they have made {way:.0%} of the way from "
            f"equal weights to the optimum, by value; {NO_PROOF}"
        )
        return Explanation("stopped early", words)
    off_by = float(np.linalg.norm(theta - right))
    far = relative(off_by, float(np.linalg.norm(right)))
    words = (
        f"wrong weights: {solves}, but they are not those of Ω: {far:.2g} of their "
        "length from the reference; the cause is not known"
    )
    return Explanation("wrong weights", words)


def _ahead(start: Array, here: Array, end: Array) -> bool:
    """Whether a step from the start to here leads towards the end."""
    step, way = here - start, end - start
    return float(step @ way) > AHEAD * float(np.linalg.norm(step) * np.linalg.norm(way))


def explanations(case: Case) -> list[Explanation]:
    """All that explains a failure, the best first; otherwise what was observed.

    Looked at is where the solver was going, and then the best point on its way.
    """
    with np.errstate(all="ignore"):
        for here in (case, replace(case, given=case.answer.given or case.given)):
            found = [e for e in ranked(here) if e.error <= here.explained]
            if found:
                return found
        return [observed(case)]


def ranked(case: Case) -> list[Explanation]:
    """What all hypotheses say of a failure, by how much of it they explain."""
    told = [e for hypothesis in HYPOTHESES for e in _tried(hypothesis, case)]
    return sorted(told, key=lambda e: -decades(e, case))


def _tried(hypothesis: Callable, case: Case) -> list[Explanation]:
    """What a hypothesis says; nothing where it cannot be tried on this candidate."""
    try:
        return list(hypothesis(case))
    except NOT_CERTIFIED:
        return []


def decades(found: Explanation, case: Case) -> float:
    """How many powers of ten the changed pair is better, down to the tolerance."""
    if not math.isfinite(found.error):
        return 0.0
    bottom = max(found.error, case.tol)
    return round(found.share * math.log10(min(case.error, 10.0) / bottom), 1)


def diagnose(cases: Sequence[Case]) -> list[Explanation]:
    """For each failure one explanation: of the kind that explains most, if it does.

    Where another kind explains all of it as well, both are named.
    """
    told = [explanations(case) for case in cases]
    votes: dict[str, float] = defaultdict(float)
    for case, some in zip(cases, told):
        most = max(decades(some[0], case), 1e-9)
        for kind in dict.fromkeys(e.kind for e in some):
            best = max(decades(e, case) for e in some if e.kind == kind)
            votes[kind] += best / most if len(some) > 1 else 1.0
    top = max(votes.values(), default=0.0)
    kinds = sorted(k for k in votes if votes[k] >= AS_GOOD * top)
    return [_joined(some, kinds) for some in told]


def _joined(some: list[Explanation], kinds: list[str]) -> Explanation:
    """What is said of one failure: all that the numbers do not tell apart."""
    firsts = [next((e for e in some if e.kind == kind), None) for kind in kinds]
    found = [e for e in firsts if e is not None] or some[:1]
    best = min(found, key=some.index)
    others = [e for e in found if e is not best]
    kind = " or ".join(e.kind for e in [best, *others])
    words = "; or ".join(e.words for e in [best, *others])
    return replace(best, kind=kind, words=words)
