"""Hypotheses that change the candidate: a sign, a factor, an order, another α or θ.

Each says with which change the candidate is certified (hypotheses.py).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ...certificates.certificate import primal_at
from .case import (
    Case,
    Explanation,
    Explanations,
    infeasibility,
)

Array = np.ndarray
RECOMPUTED = 0.6  # the share of an explanation for which α or θ was computed anew
SAME_NUMBER = 1e-3  # relative: numbers closer than this have the same name


def wrong_sign(case: Case) -> Explanations:
    """Optimal with the sign of the label, or with the other sign."""
    dual, y = case.given.dual, case.problem.y
    if dual is None:
        return
    if case.problem.loss.labels == "binary":
        kind = "label sign dropped"
        words = "α is given without the sign of the label: multiply it by y"
        yield Explanation(kind, words, case.after(dual=y * dual))
        words += "; so it solves the SVM at these weights, which are wrong too"
        error = case.of_svm(y * dual, case.weights)
        yield Explanation(kind, words, error, RECOMPUTED)
    words = "the sign of α is reversed: −α is certified"
    yield Explanation("sign reversed", words, case.after(dual=-dual))


def infeasible(case: Case) -> Explanations:
    """Right after repair: clipped and centred α is certified, the given one is not."""
    if case.given.dual is None:
        return
    off, words = infeasibility(case.problem, case.given.dual)
    if off**2 > case.tol:
        error = case.after(dual=case.problem.feasible(case.given.dual))
        words = f"dual infeasible: {words}; repaired, the gap is {error:.1e}"
        yield Explanation("dual infeasible", words, error)


def scaled_weights(case: Case) -> Explanations:
    """θ = cθ₀, given so at the end (α is right) or used so all along (C′ = cC).

    The SVM at cθ₀ with C is the one at θ₀ with cC, its α divided by c; and
    u = θ‖α‖_K is the same for both, so that c is θ over the weights that u asks for.
    """
    theta = case.weights
    if not np.any(theta) or case.given.weights is None:
        return
    asked = case.problem.formulation.weights(theta * case.v)
    good = (theta > 1e-6 * np.max(theta)) & np.isfinite(asked) & (asked > 0)
    ratios = [float(np.median(theta[good] / asked[good]))] if np.any(good) else []
    for c in (*ratios, _best_scale(case)):
        if not 1e-12 < c < 1e12 or abs(c - 1) < SAME_NUMBER:
            continue
        words = f"weights not normalized: they are {c:.4g} times the right ones"
        yield Explanation("not normalized", words, case.after(weights=theta / c))
        words += f", which acts like C′ = {c:.4g}·C"
        yield Explanation("not normalized", words, case.stretched(c))


def _best_scale(case: Case) -> float:
    """The c for which θ/c makes the best primal point."""

    if case.given.dual is None or not np.all(case.weights >= 0):
        return 1.0
    problem, alpha = case.problem, case.problem.feasible(case.dual)
    f, u = problem.grams.product(case.weights, alpha), case.weights * case.v

    def primal(log: float) -> float:
        scale = math.exp(-log)
        return min(primal_at(problem, scale * f, scale * u)[0], 1e300)

    found = minimize_scalar(primal, bounds=(-12.0, 12.0), method="bounded")
    return float(math.exp(found.x))


def transformed_weights(case: Case) -> Explanations:
    """θ², √θ, 1/θ or the block norms θ‖α‖_K in place of θ, up to a factor."""
    theta, v = case.weights, case.v
    if case.given.weights is None or not np.all(theta >= 0) or not np.any(theta):
        return
    ways = {
        "they are the squares of the weights": np.sqrt(theta),
        "they are the roots of the weights": theta**2,
        "they are one over the weights": 1 / theta,
        "they are the block norms ‖w_m‖ = θ_m‖α‖_{K_m}": theta / v,
        "they are the squared block norms ‖w_m‖²": np.sqrt(theta) / v,
        "they are θ_m‖α‖²_{K_m}": theta / v**2,
    }
    for words, other in ways.items():
        other = np.where(np.isfinite(other), other, 0.0)
        if _proportional(other, theta):
            continue
        error = case.after(weights=other)
        if error > case.explained:
            scale = _best_scale(replace(case, given=replace(case.given, weights=other)))
            error = min(error, case.after(weights=other / scale))
        words = f"something else than weights is returned: {words}"
        yield Explanation("weights transformed", words, error)


def _proportional(a: Array, b: Array) -> bool:
    return bool(np.allclose(a * np.sum(b), b * np.sum(a), rtol=SAME_NUMBER))


def scaled_dual(case: Case) -> Explanations:
    """cα for the usual factors c: α in units of C, per sample, or with a lost ½."""
    dual, C = case.given.dual, case.problem.spread_costs
    if dual is None or not np.any(dual):
        return
    n = case.problem.grams.n
    ways: dict[str, Any] = {
        "C": C, "1/C": 1 / C, "n": n, "1/n": 1 / n, "n·C": n * C,
        "1/(n·C)": 1 / (n * C), "2": 2.0, "1/2": 0.5,
    }  # fmt: skip
    for name, factor in ways.items():
        if np.allclose(factor, 1.0):
            continue
        words = f"α in other units: multiplied by {name} it is certified"
        yield Explanation("dual scaled", words, case.after(dual=factor * dual))


def wrong_bias(case: Case) -> Explanations:
    """Optimal with the best bias in place of b, or with −b."""
    b = case.given.bias
    if b is None or not case.problem.bias:
        return
    words = "the bias has the wrong sign: f has −b in place of b"
    yield Explanation("bias wrong", words, case.after(bias=-np.asarray(b)))
    given = np.array2string(np.asarray(b, float), precision=4)
    words = f"b = {given} is not the best bias for w; with that it is certified"
    yield Explanation("bias wrong", words, case.after(bias=None))


def permuted_weights(case: Case) -> Explanations:
    """The right weights in another order, found by their ranks, or moved on by one."""
    theta, M = case.weights, len(case.weights)
    if case.given.weights is None or M < 2:
        return
    by_rank = np.empty(M, int)
    right = np.argsort(case.best_weights, kind="stable")
    by_rank[right] = np.argsort(theta, kind="stable")
    orders = {"change places": by_rank, "moved on by -1": np.roll(np.arange(M), 1),
              "moved on by 1": np.roll(np.arange(M), -1)}  # fmt: skip
    for name, order in orders.items():
        moved = theta[order]
        far = np.abs(moved - theta) > SAME_NUMBER * np.max(np.abs(theta))
        if np.any(far):
            names = ", ".join(map(str, np.flatnonzero(far)))
            words = f"weights at the wrong kernels: {names} {name}"
            yield Explanation("weights permuted", words, case.after(weights=moved))


def stale(case: Case) -> Explanations:
    """α that solves the SVM at other weights: of an earlier iterate, or equal ones."""
    if case.given.dual is None:
        return
    M = len(case.weights)
    known = {
        f"the weights of {'the iterate' if back == 1 else f'{back} iterates'} before": x
        for back, x in enumerate(reversed(case.answer.earlier), 1)
    }
    known["weights that are all 1"] = np.ones(M)
    known["equal weights"] = case.problem.formulation.weights(np.ones(M))
    for name, theta in known.items():
        if np.allclose(theta, case.weights, rtol=SAME_NUMBER, atol=0.0):
            continue
        error = case.of_svm(case.dual, theta)
        if np.all(np.isfinite(theta)) and error <= case.explained:
            words = f"stale dual: it belongs to {name}"
            yield Explanation("stale dual", words, max(error, case.solved_again))
            return
    yield from _stale_for_unknown_weights(case)


def _stale_for_unknown_weights(case: Case) -> Explanations:
    """α that solves the SVM at some θ̂ ≥ 0, found from the margins: y f = 1 inside C."""
    problem, dual = case.problem, case.dual
    quadratic = problem.loss.quadratic(problem.y, problem.costs)
    if quadratic is None or np.any(quadratic.kink):
        return
    free = quadratic.free(dual, 1e-6 * float(np.max(problem.costs)))
    if len(free) < len(case.weights) + 1 or np.any(quadratic.ridge):
        return
    from scipy.optimize import nnls

    rows = problem.grams.matvec(dual)[:, free].T
    sides = [np.ones(len(free)), -np.ones(len(free))] if problem.bias else []
    theta = nnls(np.column_stack([rows, *sides]), problem.y[free])[0][: rows.shape[1]]
    error, inner = case.of_svm(dual, theta), case.of_svm(dual, case.weights)
    near = np.allclose(theta, case.weights, rtol=SAME_NUMBER, atol=0.0)
    if error <= case.explained < inner and not near:
        far = float(np.linalg.norm(theta - case.weights) / np.linalg.norm(theta))
        words = (
            f"stale dual: it solves the SVM at other weights, {far:.2g} of their "
            "length from those returned, such as those of an iterate before"
        )
        yield Explanation("stale dual", words, max(error, case.solved_again))


def halves(case: Case) -> Explanations:
    """What is left when α or θ is computed anew: says which one is wrong, not why."""
    if case.given.dual is None:
        return
    error, (off, words) = case.solved_again, infeasibility(case.problem, case.dual)
    if off**2 > case.tol:
        words = f"dual infeasible: {words}; solved again, the gap is {error:.1e}"
        yield Explanation("dual infeasible", words, error, RECOMPUTED)
    else:
        words = (
            "dual not optimal: solved again at the returned weights, the SVM brings "
            f"the gap from {case.error:.1e} to {error:.1e}; the cause is not known"
        )
        yield Explanation("dual not optimal", words, error, RECOMPUTED)
    error = case.with_own_weights(case.problem)
    words = (
        "weights not optimal: those that belong to the dual are certified to "
        f"{error:.1e}, those returned to {case.error:.1e}; the cause is not known"
    )
    yield Explanation("weights not optimal", words, error, RECOMPUTED)
