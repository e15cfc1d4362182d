"""One failure with all that is known of it, and the error that a candidate is given.

The error is max(relative gap, δ²): the gap after repair, and δ the relative distance of
α from the feasible set as it was given (a distance δ costs about δ²).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...certificates.certificate import Certificate, certify
from ...formulations.derive.epigraph import DerivationError
from ...formulations.fixed_weights import FixedWeights
from ...formulations.losses.domains import Box
from ...problem import Problem
from ...reference.graded_problems import reference_of
from ...run.loop import solve
from ...tasks import certify as completing
from .answer import Answer, Candidate

Array = np.ndarray
EXPLAINED = 0.01  # of the error: what is left of it where a hypothesis explains it
MAX_EXACT = 60  # samples: larger problems are solved by one of our fast solvers, …
SECONDS = 10.0  # … at most so long
NOT_CERTIFIED = (ValueError, ArithmeticError, DerivationError)


def infeasibility(problem: Problem, dual: Array) -> tuple[float, str]:
    """The relative distance of α from the feasible set, and the broken constraint."""
    domain, costs = problem.loss.domain(problem.y), problem.costs
    if isinstance(domain, Box):
        low, high = domain.ends(costs)
        out = np.maximum(np.maximum(low - dual, dual - high), 0.0) / costs
        off, words = float(np.max(out)), _outside(problem, dual, out)
    else:
        moved = domain.restore(dual, costs, False)
        off = float(np.max(np.abs(moved - dual)) / np.max(costs))
        words = f"α is outside the domain of the loss by {off:.2g}·C"
    if problem.bias and np.any(dual):
        total = np.atleast_1d(np.sum(dual, axis=0))
        worst = total[np.argmax(np.abs(total))]
        share = float(abs(worst) / np.sum(np.abs(dual)))
        if share > off:
            words = f"Σα = {worst:.3g} where a bias asks for 0 ({share:.1g} of Σ|α|)"
            return share, words
    return off, words


def _outside(problem: Problem, dual: Array, out: Array) -> str:
    i, count = int(np.argmax(out)), int(np.sum(out > 1e-9))
    others = f", and {count - 1} more" if count > 1 else ""
    return (
        f"α is outside the box by {out[i]:.2g}·C (sample {i}: α = {dual[i]:.3g}, "
        f"C = {problem.costs[i]:.3g}{others})"
    )


def certified(problem: Problem, given: Candidate) -> Certificate:
    """The certificate of a candidate; one of NOT_CERTIFIED where there is none."""
    parts = ("weights", "coefficients", "features")
    point: Any = {name: getattr(given, name) for name in parts}
    b = given.bias if problem.bias else None
    if given.dual is None or all(part is None for part in point.values()):
        return completing.certify(problem, dual=given.dual, **point, b=b)
    return certify(problem, given.dual, **point, bias=b)


def error_of(problem: Problem, given: Candidate) -> float:
    """max(relative gap after repair, δ²); ∞ where nothing can be certified."""
    try:
        gap = certified(problem, given).relative_gap
    except NOT_CERTIFIED:
        return math.inf
    if given.dual is None:
        return gap
    return max(gap, infeasibility(problem, given.dual)[0] ** 2)


def svm_dual(problem: Problem, weights: Array | None) -> Array | None:
    """α of the SVM at these weights, as exact as it can be; None: none was found."""
    if weights is None or not np.all(np.isfinite(weights) & (weights >= 0)):
        return None
    try:
        return completing.svm_dual(problem, weights)
    except NOT_CERTIFIED:
        return None


# ---- a failure ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """One failure: the problem, what was given for it, and what is true of it."""

    problem: Problem
    answer: Answer
    tol: float
    given: Candidate  # the one of the answer that is looked at

    @cached_property
    def best_weights(self) -> Array:
        """The weights of the optimum, as good as they are known."""
        if self.problem.grams.n <= MAX_EXACT:
            return reference_of(self.problem).weights
        found = solve(self.problem, tol=self.tol / 10, time_limit=SECONDS).certificate
        if found.weights is not None:
            return found.weights
        return self.problem.formulation.weights(found.norms)

    @cached_property
    def error(self) -> float:
        """The error of the candidate for the problem as it is."""
        return error_of(self.problem, self.given)

    @property
    def explained(self) -> float:
        """The error that a hypothesis must reach to explain this failure."""
        aim = max(10 * self.tol, EXPLAINED * min(self.error, 1.0))
        return min(aim, 0.03 * self.error)

    @cached_property
    def dual(self) -> Array:
        """α as given, or of the SVM at the weights, or 0."""
        if self.given.dual is not None:
            return self.given.dual
        found = svm_dual(self.problem, self.given.weights)
        return np.zeros(self.problem.shape) if found is None else found

    @cached_property
    def v(self) -> Array:
        """‖α‖_{K_m} for each kernel."""
        return self.problem.grams.norms(self.dual)

    @cached_property
    def weights(self) -> Array:
        """θ as given, or ‖w_m‖/‖α‖_{K_m} of the coefficients or feature weights."""
        if self.given.weights is not None:
            return self.given.weights
        B, grams = self.given.coefficients, self.problem.grams
        if self.given.features is not None:
            u = grams.feature_norms(self.given.features)
        else:
            if B is None:  # α alone
                found = certified(self.problem, self.given)
                if found.weights is not None:
                    return found.weights
                B = found.expansion
            squares = B * grams.apply(B)
            u = np.sqrt(np.maximum(squares.reshape(len(B), -1).sum(axis=1), 0.0))
        return np.divide(u, self.v, out=np.zeros_like(u), where=self.v > 1e-300)

    @cached_property
    def predictions(self) -> Array:
        """f of the candidate, with the best bias."""
        if self.given.coefficients is not None:
            f = np.sum(self.problem.grams.apply(self.given.coefficients), axis=0)
        elif self.given.features is not None:
            f = self.problem.grams.unfold(self.given.features)
        else:
            f = self.problem.grams.combine(self.weights) @ self.dual
        if self.problem.bias:
            f = f + self.problem.loss.best_bias(f, self.problem.y, self.problem.costs)
        return np.asarray(f)

    @cached_property
    def half_right(self) -> bool:
        """α is optimal with the weights it asks for, or θ with the α it asks for."""
        best = min(self.with_own_weights(self.problem), self.solved_again)
        return best <= self.explained

    @cached_property
    def solved_again(self) -> float:
        """The error with α of the SVM at these weights."""
        again = Candidate(None, self.weights, bias=self.given.bias)
        return error_of(self.problem, again)

    def with_own_weights(self, problem: Problem) -> float:
        """The error with the weights that α asks for; ∞ where α does not tell them."""
        if "smooth_dual" not in problem.formulation.traits:
            return math.inf
        same = problem.grams is self.problem.grams
        v = self.v if same else problem.grams.norms(self.dual)
        theta = problem.formulation.dual_weights(v)
        own = np.where(np.isfinite(theta), theta, 0.0)
        return error_of(problem, Candidate(self.dual, own, bias=self.given.bias))

    def of_svm(self, dual: Array, weights: Array) -> float:
        """The error of α for the SVM at these weights, the weights being fixed."""
        fixed = self.problem.with_(formulation=FixedWeights(np.maximum(weights, 0.0)))
        return error_of(fixed, Candidate(dual, weights))

    def svm_value(self, weights: Array) -> float:
        """J(θ): the value of the SVM at fixed weights θ."""
        weights = np.where(np.isfinite(weights) & (weights > 0), weights, 0.0)
        fixed = self.problem.with_(formulation=FixedWeights(weights))
        return completing.certify(fixed, weights=weights).primal

    def under(self, **changes: Any) -> float:
        """The error of the candidate for the problem with some parts exchanged.

        Also with the weights that the changed problem gives to α, unless α or θ is
        right as it is: a solver may mix up Ω in one place and not in another.
        """
        try:
            other = self.problem.with_(**changes)
        except ValueError:
            return math.inf
        found = error_of(other, self.given)
        if self.given.dual is None or self.half_right:
            return found
        return min(found, self.with_own_weights(other))

    def stretched(self, c: float) -> float:
        """The error of (cα, θ/c), the same w, for cC: with Ω multiplied by 1/c."""
        other = self.problem.with_(C=c * np.asarray(self.problem.C))
        dual, theta = self.given.dual, self.given.weights
        dual = None if dual is None else c * dual
        theta = None if theta is None else theta / c
        return error_of(other, replace(self.given, dual=dual, weights=theta))

    def after(self, **changes: Any) -> float:
        """The error of the candidate with some parts exchanged."""
        return error_of(self.problem, replace(self.given, **changes))


# ---- what may explain it -----------------------------------------------------


@dataclass(frozen=True)
class Explanation:
    """Why a candidate fails: the kind, in words, and the error of the changed pair.

    An observation without a changed pair certifies nothing: its error is NaN. Where α
    or θ was computed anew the change is large and a success says less: share < 1.
    """

    kind: str
    words: str
    error: float = math.nan
    share: float = 1.0


Explanations = Iterator[Explanation]
