"""What is wrong with a point, on anybody's own problem: causes, certified and ranked.

    found = mklopt.diagnose(problem, dual=alpha, weights=theta)
    print(found)                  # the table of causes
    found.causes[0].words         # the one that explains most

Every hypothesis of the exam (hypotheses.py) is tried. It changes one thing, the problem
or the point, and the changed pair is certified. How much of the gap it explains is
counted in powers of ten, from the gap as it is down to the tolerance:

    explains = log(gap / gap with the change) / log(gap / tol)

A cause that explains everything is a fact about the point ("optimal for 2·C") and no
proof of how it came about. Where no change explains it, the cause is not known; what
was observed of the point is said all the same.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ...certificates.certificate import Certificate
from ...problem import Problem
from ...tasks.certify import certify
from ...util.extras import need
from ...util.tables import as_text, plain_table
from ...util.tables import html as as_html
from .answer import Answer, Candidate
from .case import Case, Explanation
from .diagnosis import decades, observed, ranked

Array = np.ndarray
MOST = 0.5  # of it: a change that leaves more does not explain the gap
AT_LEAST = 0.1  # of the gap in powers of ten: what explains less is no cause
MAX_SHOWN = 6  # causes in the table
NOTHING = "not diagnosed"  # what is said where nothing was observed
VAGUE = ("dual not optimal", "weights not optimal", "dual infeasible", "wrong weights")


@dataclass(frozen=True)
class Cause:
    """One hypothesis about a point, and what is left of the gap with it.

    Parameters
    ----------
    kind, words : str
        What it is: in short, and in words.
    gap : float
        The error of the changed pair: its certified gap, or the square of the distance
        of α from the feasible set; NaN for an observation, which changes nothing.
    explains : float
        The share of the gap that it explains, in powers of ten, from 0 to 1; NaN for an
        observation.
    whole : bool
        Whether it explains the gap: what is left is a hundredth of it, or ten times the
        tolerance, and at most half of the powers of ten.
    """

    kind: str
    words: str
    gap: float
    explains: float
    whole: bool

    @property
    def observed(self) -> bool:
        """Whether it is an observation: nothing was changed, nothing is certified."""
        return math.isnan(self.gap)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What `mklopt.diagnose` found; `print` shows a table of causes.

    Parameters
    ----------
    certificate : Certificate
        Of the point as it was given.
    error : float
        The certified relative gap, or the square of the distance of α from the feasible
        set, whichever is larger.
    tol : float
        The gap at which nothing is wrong.
    causes : list of Cause
        By how much they explain; one of each kind.
    """

    certificate: Certificate = field(repr=False)
    error: float
    tol: float
    causes: list[Cause] = field(repr=False)

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong: the error is at most tol."""
        return self.error <= self.tol

    @property
    def known(self) -> bool:
        """Whether some cause explains the whole gap, and says more than which half."""
        return any(cause.whole for cause in self.causes)

    @property
    def certain(self) -> Cause | None:
        """The only cause that explains the whole gap; None if there are more, or none.

        It is certified that the point is what the cause says. Why it is, is not.
        """
        whole = [cause for cause in self.causes if cause.whole]
        return whole[0] if len(whole) == 1 else None

    @property
    def summary(self) -> str:
        """One sentence: the cause, several that cannot be told apart, or not known."""
        if self.passed:
            return f"nothing is wrong: the gap is {self.error:.1e}"
        whole = [cause for cause in self.causes if cause.whole]
        if self.certain:
            return f"explained by one change: {whole[0].words}"
        if whole:
            told = "; or ".join(cause.words for cause in whole)
            return f"these cannot be told apart: {told}"
        if not self.causes:
            return f"not known: no hypothesis explains the gap of {self.error:.1e}"
        first = self.causes[0]
        return (
            f"not known; {'observed' if first.observed else 'nearest'}: {first.words}"
        )

    def table(self) -> Any:
        """The causes, with the gap that each leaves.

        Returns
        -------
        rich.table.Table
        """
        found = plain_table("", ("", "cause"), ("gap with it", "explains"))
        for rank, cause in enumerate(self.causes[:MAX_SHOWN], 1):
            found.add_row(str(rank), cause.kind, *_cells(cause))
        return found

    def to_frame(self) -> Any:
        """All causes as a table.

        Returns
        -------
        pandas.DataFrame
            One row per cause: kind, words, gap, explains, whole.
        """
        need("pandas")
        import pandas as pd

        columns = ["kind", "words", "gap", "explains", "whole"]
        return pd.DataFrame([asdict(cause) for cause in self.causes], columns=columns)

    def __str__(self) -> str:
        head = f"gap {self.error:.1e}, asked for {self.tol:.0e}"
        if not self.causes:
            return f"{head}\n{self.summary}"
        words = [
            f"{rank}. {cause.words}"
            for rank, cause in enumerate(self.causes[:MAX_SHOWN], 1)
        ]
        return "\n".join([head, as_text(self.table(), 100), *words, self._verdict()])

    def _verdict(self) -> str:
        """The summary, with causes by their number in the table."""
        whole = [str(n) for n, cause in enumerate(self.causes, 1) if cause.whole]
        if len(whole) == 1:
            return f"explained by one change: cause {whole[0]}"
        if whole:
            return f"these cannot be told apart: causes {', '.join(whole)}"
        which = "observed is" if self.causes[0].observed else "nearest is"
        return f"not known; {which} 1"

    def _repr_html_(self) -> str:
        names = ("", "cause", "what it says"), ("gap with it", "explains")
        found = plain_table("", *names)
        for rank, cause in enumerate(self.causes[:MAX_SHOWN], 1):
            found.add_row(str(rank), cause.kind, cause.words, *_cells(cause))
        return as_html(found, self.summary)


def _cells(cause: Cause) -> tuple[str, str]:
    if cause.observed:
        return "observed", "–"
    return f"{cause.gap:.1e}", f"{cause.explains:.0%}"


def diagnose(problem: Problem, *, tol: float = 1e-6, **given: Any) -> Diagnosis:
    """Say what may be wrong with a point: causes, each certified, the best first.

    Parameters
    ----------
    problem : Problem
        The problem that the point should solve.
    tol : float
        The relative gap at which nothing is wrong.
    **given
        The point, as `mklopt.certify` takes it: dual, weights, coefficients, w with
        maps, f with weights or norms, and b.

    Returns
    -------
    Diagnosis
        `causes`, `summary`, `to_frame()`; `print` shows the table.

    Raises
    ------
    ValueError
        If `mklopt.certify` does not take the point, or tol is not between 0 and 1.

    Examples
    --------
    >>> from mklopt.formulations import LpNorm
    >>> y = np.array([1.0, -1.0])
    >>> problem = Problem(np.eye(2)[None], y, formulation=LpNorm(p=2), C=10)
    >>> diagnose(problem, dual=-y, weights=[1.0]).causes[0].kind
    'sign reversed'
    """
    if not 0 < tol < 1:
        raise ValueError(f"tol = {tol!r}: give a relative gap between 0 and 1")
    certificate = certify(problem, **given)
    point = _candidate(certificate, given)
    case = Case(problem, Answer("returned", "", point, point, point), tol, point)
    if case.error <= tol:
        return Diagnosis(certificate, case.error, tol, [])
    with np.errstate(all="ignore"):
        causes = _causes(case)
    return Diagnosis(certificate, case.error, tol, causes)


def _candidate(found: Certificate, given: dict[str, Any]) -> Candidate:
    """The point as it was given; where it was something else, as it was completed."""
    dual, weights, B = given.get("dual"), None, None
    if all(part is None for name, part in given.items() if name not in ("dual", "b")):
        return Candidate(np.array(dual, float), bias=given.get("b"))
    if given.get("f") is None:
        weights = given.get("weights")
    if weights is None and found.weights is None:
        B = found.coefficients if found.features is None else _expanded(found)
    weights = found.weights if weights is None and B is None else weights
    dual, weights = (None if a is None else np.array(a, float) for a in (dual, weights))
    return Candidate(dual, weights, B, bias=given.get("b"))


def _expanded(found: Certificate) -> Array:
    """Coefficients of feature weights: L_mᵀB_m = w_m."""
    factors = found.problem.grams.factors or []
    assert found.features is not None
    parts = np.split(found.features, np.cumsum([L.shape[1] for L in factors])[:-1])
    return np.array([np.linalg.lstsq(L.T, w)[0] for L, w in zip(factors, parts)])


def _causes(case: Case) -> list[Cause]:
    """One cause of each kind; what only says which half is wrong comes after others."""
    found: dict[str, Cause] = {}
    for told in ranked(case):
        cause = _cause(told, case)
        if told.kind not in found and cause.explains >= AT_LEAST:
            found[told.kind] = cause
    seen = _cause(observed(case), case)
    if any(cause.whole for cause in found.values()) or seen.kind == NOTHING:
        return list(found.values())
    if seen.kind in VAGUE:
        found |= {seen.kind: found.get(seen.kind, seen)}
    else:
        found = {seen.kind: seen} | found
    return list(found.values())


def _cause(told: Explanation, case: Case) -> Cause:
    total = math.log10(min(case.error, 10.0) / case.tol)
    share = min(max(decades(told, case) / max(total, 0.1), 0.0), 1.0)
    share = math.nan if math.isnan(told.error) else share
    enough = told.error <= case.explained and share >= MOST
    whole = enough and told.kind not in VAGUE
    return Cause(told.kind, told.words, told.error, share, whole)
