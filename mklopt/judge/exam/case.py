"""How bad a candidate is, and one failure with all that is known of it.

A candidate is as bad as max(relative gap, δ²): the gap after repair, and δ the relative
distance of α from the feasible set as it was given (a distance δ costs about δ²).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...certificates.certificate import certify
from ...formulations.derive.epigraph import DerivationError
from ...formulations.losses.domains import Box
from ...formulations.norms import INF
from ...problem import Problem
from ...reference import Reference, at_weights
from ...solvers.machines import svm
from .sandbox import Answer, Point

Array = np.ndarray
BETTER = 0.01  # of the badness: what a hypothesis must reach to explain a failure


def distance(problem: Problem, dual: Array) -> tuple[float, str]:
    """How far α is from feasible as it was given, relatively, and in which respect."""
    domain, size = problem.loss.domain(problem.y), float(np.sum(np.abs(dual)))
    if isinstance(domain, Box):
        low, high = domain.ends(problem.costs)
        out = np.maximum(np.maximum(low - dual, dual - high), 0.0) / problem.costs
        off, words = float(np.max(out)), _outside(problem, dual, out)
    else:
        moved = problem.loss.domain(problem.y).restore(dual, problem.costs, False)
        off = float(np.max(np.abs(moved - dual)) / np.max(problem.costs))
        words = f"α is outside the domain of the loss by {off:.2g}·C"
    if problem.bias and size > 0:
        total = np.atleast_1d(np.sum(dual, axis=0))
        astray = float(np.max(np.abs(total))) / size
        if astray > off:
            worst = total[np.argmax(np.abs(total))]
            off, words = (
                astray,
                (f"Σα = {worst:.3g} where a bias asks for 0 ({astray:.1g} of Σ|α|)"),
            )
    return off, words


def _outside(problem: Problem, dual: Array, out: Array) -> str:
    i, count = int(np.argmax(out)), int(np.sum(out > 1e-9))
    others = f", and {count - 1} more" if count > 1 else ""
    return (
        f"α is outside the box by {out[i]:.2g}·C (sample {i}: α = {dual[i]:.3g}, "
        f"C = {problem.costs[i]:.3g}{others})"
    )


def badness(problem: Problem, point: Point) -> float:
    """max(relative gap after repair, δ²); inf where nothing can be certified."""
    dual = machine(problem, point.weights) if point.dual is None else point.dual
    if dual is None:
        return math.inf
    primal = {"weights": point.weights, "coefficients": point.coefficients}
    if point.coefficients is not None:
        del primal["weights"]
    try:
        found = certify(problem, dual, **primal)  # type: ignore[arg-type]
    except (ValueError, ArithmeticError, DerivationError):
        return math.inf
    return max(found.relative_gap, distance(problem, dual)[0] ** 2)


def machine(problem: Problem, weights: Array | None) -> Array | None:
    """α of the SVM at these weights, as exact as it can be; None: none was found."""
    if weights is None or not np.all(np.isfinite(weights) & (weights >= 0)):
        return None
    if not np.any(weights):
        return np.zeros(problem.shape)
    try:
        if problem.loss.quadratic(problem.y, problem.costs) is None:
            return at_weights(problem, weights, solver="CLARABEL").dual
        K, zero = problem.grams.combine(weights), np.zeros(problem.shape)
        tol = 1e-13 * float(problem.costs @ problem.loss.value(zero, problem.y))
        return problem.feasible(svm.solve(problem, K, tol=tol).alpha)
    except (ValueError, ArithmeticError):
        return None


# ---- a failure ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """One failure: the problem, what was given for it, and what is true of it."""

    problem: Problem
    answer: Answer
    tol: float
    reference: Reference
    point: Point  # the one of the answer that is looked at

    @cached_property
    def badness(self) -> float:
        return badness(self.problem, self.point)

    @property
    def bar(self) -> float:
        """What a hypothesis must reach to explain this failure."""
        aim = max(10 * self.tol, BETTER * min(self.badness, 1.0))
        return min(aim, 0.03 * self.badness)

    @cached_property
    def dual(self) -> Array:
        if self.point.dual is not None:
            return self.point.dual
        found = machine(self.problem, self.point.weights)
        return np.zeros(self.problem.shape) if found is None else found

    @cached_property
    def v(self) -> Array:
        return np.sqrt(np.maximum(self.problem.grams.quad(self.dual), 0.0))

    @cached_property
    def weights(self) -> Array:
        """As given, or ‖w_m‖/‖α‖_{K_m} of the coefficients."""
        if self.point.weights is not None:
            return self.point.weights
        B = self.point.coefficients
        assert B is not None
        squares = B * self.problem.grams.apply(B)
        u = np.sqrt(np.maximum(squares.reshape(len(B), -1).sum(axis=1), 0.0))
        return np.divide(u, self.v, out=np.zeros_like(u), where=self.v > 1e-300)

    @cached_property
    def predictions(self) -> Array:
        if self.point.coefficients is not None:
            f = np.sum(self.problem.grams.apply(self.point.coefficients), axis=0)
        else:
            f = self.problem.grams.combine(self.weights) @ self.dual
        if self.problem.bias:
            f = f + self.problem.loss.best_bias(f, self.problem.y, self.problem.costs)
        return np.asarray(f)

    @cached_property
    def half_right(self) -> bool:
        """α is optimal with the weights it asks for, or θ with the α it asks for."""
        smooth = "smooth_dual" in self.problem.formulation.traits
        found = self.with_own_weights(self.problem) if smooth else INF
        return min(found, self.solved_again) <= self.bar

    @cached_property
    def solved_again(self) -> float:
        """With α from the machine at these weights."""
        again = machine(self.problem, self.weights)
        return (
            INF if again is None else badness(self.problem, Point(again, self.weights))
        )

    def with_own_weights(self, problem: Problem) -> float:
        theta = problem.formulation.dual_weights(self.v)
        own = np.where(np.isfinite(theta), theta, 0.0)
        return badness(problem, Point(self.dual, own))

    def under(self, **changes: Any) -> float:
        """How bad the candidate is for the problem with some parts exchanged.

        Also with the weights that the changed problem gives to α, unless α or θ is
        right as it is: a solver may mix up Ω in one place and not in another.
        """
        try:
            other = self.problem.with_(**changes)
        except ValueError:
            return math.inf
        found = badness(other, self.point)
        own = self.point.dual is not None and not self.half_right
        if own and "smooth_dual" in other.formulation.traits:
            return min(found, self.with_own_weights(other))
        return found

    def stretched(self, c: float) -> float:
        """How bad (cα, θ/c), the same w, is for cC: with Ω multiplied by 1/c."""
        other = self.problem.with_(C=c * np.asarray(self.problem.C))
        dual, theta = self.point.dual, self.point.weights
        return badness(
            other,
            replace(
                self.point,
                dual=None if dual is None else c * dual,
                weights=None if theta is None else theta / c,
            ),
        )

    def with_point(self, **changes: Any) -> float:
        return badness(self.problem, replace(self.point, **changes))
