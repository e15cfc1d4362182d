"""Where a solver begins: at a given point, or at a default one.

A user may pass a result, a reference, a certificate or a pair (weights, dual) as
`start=`. Each of them is checked and becomes a `Start`. Without one, solvers of the
weights begin with uniform weights, solvers of the primal with w = 0, and solvers of the
dual with a multiple of the labels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate
from ..problem import Array, Problem, quadratic_dual
from ..util.checks import short

SMALLEST_SHARE = 1e-4  # first weights, relative to the largest: 0 would stay 0 for ever


@dataclass(frozen=True)
class Start:
    """Kernel weights θ and a dual point α to begin from.

    certificate: that of the same point, if it is known. Its primal point may have
        coefficients that are not θ ⊗ α for any θ.
    """

    weights: Array
    dual: Array | None = None
    bias: Any = 0.0
    certificate: Certificate | None = None

    @classmethod
    def of(cls, problem: Problem, given: Any) -> "Start":
        """A start from whatever was given, checked against the problem."""
        if isinstance(given, Certificate):
            found = cls(_primal_weights(given), given.alpha, given.bias, given)
        elif isinstance(given, tuple) and len(given) == 2:
            found = cls(*given)
        elif hasattr(given, "weights") and hasattr(given, "dual"):
            more = (getattr(given, name, None) for name in ("bias", "certificate"))
            found = cls(given.weights, given.dual, *more)
        else:
            raise ValueError(
                f"start = {short(given)}; give a result of solve, or a pair (weights, "
                "dual)"
            )
        return found._checked(problem)

    def _checked(self, problem: Problem) -> "Start":
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


def _primal_weights(found: Certificate) -> Array:
    """θ = u/∂Ω(u), a function of the primal point; 0 where it is not finite."""
    theta = found.problem.formulation.weights(found.norms)
    return np.where(np.isfinite(theta), theta, 0.0)


def weights_of(found: Certificate) -> Array:
    """θ of a certified point, or u/∂Ω(u) if it has coefficients instead."""
    return _primal_weights(found) if found.weights is None else found.weights


def first_weights(problem: Problem, start: Any) -> tuple[Array, Array | None]:
    """Positive weights and α to begin with: those of the start, or uniform weights."""
    if start is None:
        theta = problem.formulation.weights(np.ones(problem.grams.M))
        return np.where(np.isfinite(theta), theta, 1.0), None
    at = Start.of(problem, start)
    if not np.any(at.weights):
        return first_weights(problem, None)[0], at.dual
    return np.maximum(at.weights, SMALLEST_SHARE * np.max(at.weights)), at.dual


def first_coefficients(problem: Problem, start: Any) -> tuple[Array, Array, Any]:
    """Coefficients (M, n[, k]), α and bias to begin with, for solvers of the primal.

    Those of the start; without one w = 0, the best bias for it, and α = −C V'(b).
    """
    if start is None:
        f, loss = np.zeros(problem.shape), problem.loss
        bias = loss.best_bias(f, problem.y, problem.costs) if problem.bias else 0.0
        alpha = -problem.spread_costs * loss.gradient(f + bias, problem.y)
        return np.zeros((problem.grams.M, *problem.shape)), alpha, bias
    at = Start.of(problem, start)
    if at.dual is None:
        raise ValueError("start: give the dual with the weights, (weights, dual)")
    found = at.certificate
    if found is not None and (found.features is None or found.weights is not None):
        return found.expansion, at.dual, at.bias
    return np.multiply.outer(at.weights, at.dual), at.dual, at.bias


def first_dual(problem: Problem) -> Array:
    """The best multiple sα of α = Cy, 0 < s ≤ 1.

    At α = 0 the weights are undefined. Where Ω* is quadratic along the ray, the dual
    value sL − s²Ω* is largest at s = L/(2Ω*).
    """
    alpha, dual = problem.feasible(problem.costs * problem.y), quadratic_dual(problem)
    linear = float(dual.linear @ alpha - dual.kink @ np.abs(alpha))
    v = problem.grams.norms(alpha)
    square = problem.formulation.conjugate(v) + 0.5 * float(dual.ridge @ alpha**2)
    return alpha * min(1.0, max(linear, 0.0) / max(2 * square, 1e-300))
