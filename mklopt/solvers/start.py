"""Where a solver begins: at a result, at (weights, dual), or at a point of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..certificates.certificate import Certificate
from ..problem import Problem

Array = np.ndarray


def first_dual(problem: Problem) -> Array:
    """α proportional to the labels, as long as it should be.

    At α = 0 the weights are undefined; along a ray with a quadratic Ω* the dual value
    s·L − s²Ω* is largest at s = L/(2Ω*).
    """
    alpha = problem.feasible(problem.costs * problem.y)
    dual = problem.loss.quadratic(problem.y, problem.costs)
    assert dual is not None
    gain = float(dual.linear @ alpha - dual.kink @ np.abs(alpha))
    v = np.sqrt(np.maximum(problem.grams.quad(alpha), 0.0))
    price = problem.formulation.conjugate(v) + 0.5 * float(dual.ridge @ alpha**2)
    return alpha * min(1.0, max(gain, 0.0) / max(2 * price, 1e-300))


def coefficients_of(problem: Problem, start: Any) -> tuple[Array, Array, Any]:
    """Coefficients (M, n[, k]), α and bias to begin with, for solvers of the primal.

    From a result, from (weights, dual), or w = 0 with the best bias and the α it asks.
    """
    if start is None:
        f, loss = np.zeros(problem.shape), problem.loss
        bias = loss.best_bias(f, problem.y, problem.costs) if problem.bias else 0.0
        alpha = -problem.spread_costs * loss.gradient(f + bias, problem.y)
        return np.zeros((problem.grams.M, *problem.shape)), alpha, bias
    theta, alpha = given(problem, start)
    bias = getattr(start, "bias", 0.0) if problem.bias else 0.0
    if alpha is None:
        raise ValueError("start: give the dual with the weights, (weights, dual)")
    certificate = getattr(start, "certificate", None)
    if certificate is not None:
        return certificate.expansion, alpha, bias
    return np.multiply.outer(theta, alpha), alpha, bias


def beginning(problem: Problem, start: Any) -> tuple[Array, Array | None]:
    """Weights and α to begin with: from a result, from (weights, dual), or uniform."""
    if start is None:
        theta = problem.formulation.weights(np.ones(problem.grams.M))
        return np.where(np.isfinite(theta), theta, 1.0), None
    theta, alpha = given(problem, start)
    if not np.any(theta):
        return beginning(problem, None)[0], alpha
    # A weight of 0 would stay 0 in every multiplicative step.
    return np.maximum(theta, 1e-4 * np.max(theta)), alpha


def given(problem: Problem, start: Any) -> tuple[Array, Array | None]:
    """Weights and α of a start, checked."""
    if isinstance(start, tuple) and len(start) == 2:
        theta, alpha = start
    elif hasattr(start, "weights") and hasattr(start, "dual"):
        theta, alpha = start.weights, start.dual
    else:
        raise ValueError(
            f"start = {start!r}; give a result of solve, or a pair (weights, dual)"
        )
    theta = np.array(theta, float)
    good = np.isfinite(theta) & (theta >= 0)
    if theta.shape != (problem.grams.M,) or not np.all(good):
        raise ValueError(
            f"start: weights of shape {theta.shape} were given; expected one number "
            f"≥ 0 for each of the {problem.grams.M} kernels"
        )
    if alpha is not None:
        alpha = np.array(alpha, float)
        if alpha.shape != problem.shape or not np.all(np.isfinite(alpha)):
            raise ValueError(
                f"start: the dual must be finite, of shape {problem.shape}"
            )
    return theta, alpha


class Start:
    """A certificate as something to start from."""

    def __init__(self, found: Certificate):
        self.certificate, self.dual, self.bias = found, found.alpha, found.bias
        theta = found.problem.formulation.weights(found.norms)
        self.weights = np.where(np.isfinite(theta), theta, 0.0)
