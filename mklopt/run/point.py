"""Which point a run returns: kernel weights that reach the gap, or coefficients.

A result shows weights θ and α, and they are what is certified: the primal point is
w_m = θ_m Σ_i α_i ψ_m(x_i). Some solvers end at coefficients, or for factors at feature
weights, that are not of this form.
Three rules give weights near such a point, with u_m = ‖w_m‖ and v_m = ‖α‖_{K_m}:

    u/∂Ω(u)        u/v        ∂Ω*(v)/v     (where Ω* is smooth)

They agree at the optimum. The one with the smallest primal value is certified, and
returned if its gap is small enough. Otherwise the coefficients are returned. With many
samples feature weights are certified as they are: only they can be enclosed well.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate, certify, certify_again, primal_at
from ..certificates.feature_space import feature_point
from ..formulations.derive.epigraph import DerivationError
from ..util.arrays import NotFinite

Array = np.ndarray
# Not ZeroDivisionError: that is an error in a program.
NUMERICAL = (
    NotFinite, OverflowError, FloatingPointError, np.linalg.LinAlgError, DerivationError
)  # fmt: skip


def certified_again(found: Certificate, tol: float) -> Certificate:
    """The point of a certificate, certified without products that were remembered.

    If w = 0 is at least as good, it is w = 0. For coefficients: the weights near them,
    if their gap is at most tol, or not larger.
    """
    problem, alpha, zero = found.problem, found.alpha, np.zeros(found.problem.grams.M)
    nothing = primal_at(problem, np.zeros(problem.shape), zero)[0]
    if np.any(found.norms) and nothing <= found.primal:
        return certify(problem, alpha, zero)
    if found.weights is not None:
        again = certify_again(problem, alpha, found.weights)
        if again.relative_gap <= tol and not meets(again, tol):  # rounding: try harder
            again = certify_again(problem, alpha, found.weights, tight=True)
        return again
    points: Any = {"coefficients": found.coefficients, "features": found.features}
    if problem.grams.in_feature_space:
        return certify(problem, alpha, **points)
    near = certify(problem, alpha, weights_near(found))
    if meets(near, tol):
        return near
    again = certify(problem, alpha, **points)
    return near if near.relative_gap <= again.relative_gap else again


def meets(found: Certificate, tol: float) -> bool:
    """Whether the gap is at most tol, and is it still with all rounding counted.

    A millionth of tol is allowed for the rounding of the gap itself.
    """
    return max(found.relative_gap, found.width) <= tol * (1 + 1e-6) + 1e-15


def rounding_forbids(found: Certificate, tol: float) -> bool:
    """Whether the rounding errors alone are larger than tol."""
    return not found.width - found.relative_gap <= tol


def weights_near(found: Certificate) -> Array:
    """Weights near a point: of the three rules the one with the best primal value.

    It takes one pass.
    """
    problem, alpha, grams = found.problem, found.alpha, found.problem.grams
    if found.features is not None:
        return _weights_near_features(found)
    KA = grams.matvec(alpha)
    v = grams.norms(alpha, KA)

    def primal(theta: Array) -> float:
        f = np.tensordot(theta, KA, axes=1) + float(theta @ grams.shift) * alpha
        return primal_at(problem, f, theta * v)[0]

    return min(_rules(found, v), key=primal)


def _weights_near_features(found: Certificate) -> Array:
    """The same in feature space: one read of the factors per rule, and one more."""
    problem, grams = found.problem, found.problem.grams
    h = grams.fold(found.alpha)
    v = grams.feature_norms(h)

    def primal(theta: Array) -> float:
        w = feature_point(problem, h, theta, None)
        return primal_at(problem, grams.unfold(w), theta * v)[0]

    return min(_rules(found, v), key=primal)


def _rules(found: Certificate, v: Array) -> Iterator[Array]:
    formulation, u = found.problem.formulation, found.norms
    rules = [lambda: formulation.weights(u), lambda: u / v]
    if "smooth_dual" in formulation.traits:
        rules.append(lambda: formulation.dual_weights(v))
    yield np.zeros(len(v))
    for rule in rules:
        with np.errstate(all="ignore"), contextlib.suppress(*NUMERICAL):
            theta = rule()
            # An unused kernel may have no finite weight.
            yield np.where(np.isfinite(theta), theta, 0.0)
