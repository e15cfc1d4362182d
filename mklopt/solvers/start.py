"""Where a solver begins: at a point that was given, or at one of its own.

`Start` is the one form of a given point. Whatever a user passes as `start=` (a result,
a reference, a certificate, a pair (weights, dual)) becomes a Start, checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate
from ..problem import Problem

Array = np.ndarray
SMALLEST_SHARE = 1e-4  # of the largest weight: a weight of 0 would stay 0 for ever


@dataclass(frozen=True)
class Start:
    """Kernel weights θ and a dual point α to begin from.

    certificate: of the same point, where it is known; its primal point may have
        coefficients that no weights give
    """

    weights: Array
    dual: Array | None = None
    bias: Any = 0.0
    certificate: Certificate | None = None

    @classmethod
    def of(cls, problem: Problem, given: Any) -> Start:
        """A start from whatever was given, checked against the problem."""
        if isinstance(given, Certificate):
            theta = given.problem.formulation.weights(given.norms)
            theta = np.where(np.isfinite(theta), theta, 0.0)
            found = cls(theta, given.alpha, given.bias, given)
        elif isinstance(given, tuple) and len(given) == 2:
            found = cls(*given)
        elif hasattr(given, "weights") and hasattr(given, "dual"):
            known = {
                name: getattr(given, name, None) for name in ("bias", "certificate")
            }
            found = cls(given.weights, given.dual, **known)
        else:
            raise ValueError(
                f"start = {given!r}; give a result of solve, or a pair (weights, dual)"
            )
        return found._checked(problem)

    def _checked(self, problem: Problem) -> Start:
        theta, alpha = np.array(self.weights, float), self.dual
        good = np.isfinite(theta) & (theta >= 0)
        if theta.shape != (problem.grams.M,) or not np.all(good):
            raise ValueError(
                f"start: weights of shape {theta.shape} were given; expected one "
                f"number ≥ 0 for each of the {problem.grams.M} kernels"
            )
        if alpha is not None:
            alpha = np.array(alpha, float)
            if alpha.shape != problem.shape or not np.all(np.isfinite(alpha)):
                raise ValueError(
                    f"start: the dual must be finite, of shape {problem.shape}"
                )
        bias = self.bias if problem.bias and self.bias is not None else 0.0
        return Start(theta, alpha, bias, self.certificate)

    @property
    def point_weights(self) -> Array:
        """θ of the very point that was certified, where there is a certificate."""
        return (
            self.weights if self.certificate is None else weights_of(self.certificate)
        )


def weights_of(found: Certificate) -> Array:
    """θ of a certified point, or u/∂Ω(u) where it has coefficients instead."""
    if found.weights is not None:
        return found.weights
    theta = found.problem.formulation.weights(found.norms)
    return np.where(np.isfinite(theta), theta, 0.0)


def first_weights(problem: Problem, start: Any) -> tuple[Array, Array | None]:
    """Positive weights and α to begin with: those of a start, or uniform weights."""
    if start is None:
        theta = problem.formulation.weights(np.ones(problem.grams.M))
        return np.where(np.isfinite(theta), theta, 1.0), None
    at = Start.of(problem, start)
    if not np.any(at.weights):
        return first_weights(problem, None)[0], at.dual
    return np.maximum(at.weights, SMALLEST_SHARE * np.max(at.weights)), at.dual


def first_coefficients(problem: Problem, start: Any) -> tuple[Array, Array, Any]:
    """Coefficients (M, n[, k]), α and bias to begin with, for solvers of the primal.

    Those of a start; or w = 0 with the best bias for it, and α = −C V'(b).
    """
    if start is None:
        f, loss = np.zeros(problem.shape), problem.loss
        bias = loss.best_bias(f, problem.y, problem.costs) if problem.bias else 0.0
        alpha = -problem.spread_costs * loss.gradient(f + bias, problem.y)
        return np.zeros((problem.grams.M, *problem.shape)), alpha, bias
    at = Start.of(problem, start)
    if at.dual is None:
        raise ValueError("start: give the dual with the weights, (weights, dual)")
    if at.certificate is not None:
        return at.certificate.expansion, at.dual, at.bias
    return np.multiply.outer(at.weights, at.dual), at.dual, at.bias


def first_dual(problem: Problem) -> Array:
    """α proportional to the labels, as long as it should be.

    At α = 0 the weights are undefined; along a ray with a quadratic Ω* the dual value
    s·L − s²Ω* is largest at s = L/(2Ω*).
    """
    alpha = problem.feasible(problem.costs * problem.y)
    dual = problem.loss.quadratic(problem.y, problem.costs)
    assert dual is not None
    linear = float(dual.linear @ alpha - dual.kink @ np.abs(alpha))
    v = np.sqrt(np.maximum(problem.grams.quad(alpha), 0.0))
    square = problem.formulation.conjugate(v) + 0.5 * float(dual.ridge @ alpha**2)
    return alpha * min(1.0, max(linear, 0.0) / max(2 * square, 1e-300))
