"""From a good reference to an exact one: Newton on the conditions of optimality.

Problem. An interior-point method leaves a gap of about 1e-10, and then decision
functions are known to its square root only. Near the solution the conditions

    inner   f = K_θ α + b,   f_i = prox of γ C_i V at f_i − γ α_i,   Σα = 0
    outer   θ = weights(u),  u_m = θ_m ‖α‖_{K_m},  over the kernels in use

are smooth pieces: a semismooth Newton method on the inner system (exact on each piece
for the hinge) inside a Newton method on log θ squares the error at each step.

Guarantee: none is needed. The polished point is only another candidate: it is
certified like any other, and kept where its interval is narrower.
Reference: Qi and Sun (1993) for semismooth Newton.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..certificates.certificate import certify
from ..problem import Problem
from .exact import Reference, solve

Array = np.ndarray
MAX_NEWTON_STEPS = 40  # of the inner system; a few are enough from a close start


def solve_sharply(problem: Problem, **options: Any) -> Reference:
    """A reference solution, polished: exact up to rounding where it is smooth.

    Parameters
    ----------
    problem : Problem
    **options
        Those of `reference.solve`.

    Returns
    -------
    Reference
    """
    return polish(problem, solve(problem, **options))


def polish(problem: Problem, reference: Reference) -> Reference:
    """The same reference, or one that is exact up to rounding.

    Parameters
    ----------
    problem : Problem
    reference : Reference
        A solution of this problem, good to about 1e-8.

    Returns
    -------
    Reference
        The polished point where its interval is narrower, else the one given: always
        for several outputs, and where all kernel weights are zero.
    """
    if len(problem.shape) > 1 or not np.any(reference.weights > 0):
        return reference
    best, enough = reference, 2 * reference.certificate.width  # both may be rounding
    # Kernels in use have more than this part of the largest weight: the first for
    # sparse formulations, the second for dense ones with small weights.
    for floor in (1e-5, 1e-12):
        used = reference.weights > floor * np.max(reference.weights)
        try:
            theta, alpha = _newton_on_weights(problem, reference, used)
            found = certify(problem, alpha, theta)
            narrower = found.width < enough
        except (np.linalg.LinAlgError, FloatingPointError, ValueError):
            continue
        if narrower:
            dual, enough = found.shrink * found.alpha, 0.1 * found.width
            best = replace(reference, certificate=found, weights=theta, dual=dual)
        if enough <= 1e-12:
            break
    return best


def _newton_on_weights(
    problem: Problem, reference: Reference, used: Array
) -> tuple[Array, Array]:
    grams = problem.grams.subset(used)
    start = reference.certificate.shrink * reference.certificate.alpha
    theta = np.zeros(len(used))

    def residual(log_theta: Array) -> Array:
        weights, norms = np.exp(log_theta), np.zeros(len(used))
        alpha = newton_svm(problem, grams.combine(weights), start)
        norms[used] = weights * grams.norms(alpha)
        with np.errstate(divide="ignore"):
            return np.log(problem.formulation.weights(norms)[used]) - log_theta

    theta[used] = np.exp(newton(residual, np.log(reference.weights[used])))
    alpha = newton_svm(problem, grams.combine(theta[used]), start)
    if not (np.all(np.isfinite(alpha)) and np.all(np.isfinite(theta))):
        raise FloatingPointError("Newton left the range of float64")
    return theta, alpha


def newton(residual: Callable[[Array], Array], x: Array, steps: int = 12) -> Array:
    """Newton with a difference Jacobian; a step that does not help ends it."""
    now = residual(x)
    for _ in range(steps):
        if not np.all(np.isfinite(now)):
            raise FloatingPointError("the residual left the range of float64")
        if np.max(np.abs(now)) < 1e-14:
            break
        h, axes = 1e-5, np.eye(len(x))
        columns = [(residual(x + h * e) - residual(x - h * e)) / (2 * h) for e in axes]
        step = np.linalg.lstsq(np.stack(columns, axis=1), -now, rcond=1e-12)[0]
        step *= min(1.0, 0.5 / max(np.max(np.abs(step)), 1e-300))
        new = residual(x + step)
        if not np.linalg.norm(new) < np.linalg.norm(now):
            break
        x, now = x + step, new
    return x


def newton_svm(problem: Problem, K: Array, alpha: Array) -> Array:
    """α of the SVM with kernel K from a close start: semismooth Newton, prox form."""
    loss, y, C = problem.loss, problem.y, problem.costs
    n = len(y)
    gamma = 1.0 / np.max(C)
    b = float(loss.best_bias(K @ alpha, y, C)) if problem.bias else 0.0

    def prox(x: Array) -> Array:
        return loss.prox(x, y, gamma * C)

    def mismatch(alpha: Array, b: float) -> Array:
        f = K @ alpha + b
        return f - prox(f - gamma * alpha)

    now = mismatch(alpha, b)
    for _ in range(MAX_NEWTON_STEPS):
        if np.max(np.abs(now)) < 1e-15:
            break
        x = K @ alpha + b - gamma * alpha
        h = 1e-7 * (1 + np.abs(x))
        slope = np.clip((prox(x + h) - prox(x - h)) / (2 * h), 0.0, 1.0)
        system = np.zeros((n + 1, n + 1))
        system[:n, :n] = (1 - slope)[:, None] * K + gamma * np.diag(slope)
        system[:n, n] = 1 - slope
        system[n, :n] = 1.0
        size = n + 1 if problem.bias else n
        right = np.append(-now, -np.sum(alpha))[:size]
        step = np.linalg.lstsq(system[:size, :size], right, rcond=1e-13)[0]
        trial = alpha + step[:n], b + (step[n] if problem.bias else 0.0)
        new = mismatch(*trial)
        if not np.linalg.norm(new) < np.linalg.norm(now):
            break
        alpha, b, now = *trial, new
    return alpha
