"""Proximal Newton steps in feature space: MKL on factors for about one SVM.

Problem. Kernels as factors, best with few columns (such as Nyström features of many
samples), losses with one output and an inner solver, formulations with a smooth dual,
weights on simplices (q < ∞ across them), or on an orthant.

Algorithm. Newton's method on the proximal steps of the dual, in the feature weights w
and the bias of all kernels at once (steps/proximal_newton.py). The model of a step has
as many numbers as there are columns, whatever the number of samples; kernels leave and
enter inside it. Every iterate has a gap that is a part of the last certified one.

Guarantee. Every Newton step makes the objective of its proximal step smaller. Memory:
the factors, a part of their rows, a few numbers per sample and R × R matrices.

Reference: Lee, Sun and Saunders (2014) for proximal Newton steps; Suzuki and Tomioka
(2009) for proximal minimization in MKL.
"""

import numpy as np

from ..certificates.certificate import Certificate
from ..certificates.feature_space import feature_point
from ..problem import Problem
from .base import Array, Iterate, Steps, solver
from .machines.dual_terms import terms_of
from .machines.feature_newton import Gram, Point
from .start import Start
from .steps.proximal_newton import ProximalNewton

FIRST_TOLERANCE = 1e-2  # relative to ΣC V(0), before the first certificate
TOLERANCE, ACCURATE = 0.03, 0.1  # of the gap; a larger relative gap counts as ACCURATE
ROUNDING = 1e-13  # relative to the primal value: no smaller gap is asked for
GOOD_PREDICTION = 2.0  # the size of predictions at the first weights
TINY_SHARE = 1e-12  # of first norms, relative to the largest


@solver(
    "proximal_newton",
    needs={"smooth_dual or simplex or finite_sums or orthant"},
    losses={"factors"},
    reference="suzuki2009",
    guarantee="the objective of every proximal step falls in every Newton step",
)
def proximal_newton(problem: Problem, *, start: object = None) -> Steps:
    """Proximal Newton steps in the feature weights of all kernels."""
    method, tol = prepared(problem), first_tolerance(problem)
    at = method.cold(tol) if start is None else given(problem, method, start)
    while True:
        info = {"svm_solves": method.steps}
        certificate = yield Iterate(at.alpha, features=at.x, info=info)
        before = method.products
        at = method.again(at, next_tolerance(certificate))
        problem.grams.count_reads(method.products - before)


def prepared(problem: Problem) -> ProximalNewton:
    """The method, with the first weights of its model."""
    grams, panel = problem.grams, problem.grams.panel()
    u = first_norms(problem)
    theta = problem.formulation.weights(np.maximum(u, TINY_SHARE * np.max(u)))
    return ProximalNewton(
        panel, np.ones(panel.R), terms_of(problem), problem.bias, Gram(panel),
        formulation=problem.formulation, owner=grams.owner,
        theta=theta, size=float(np.sum(u)),
    )  # fmt: skip


def first_tolerance(problem: Problem) -> float:
    """A part of the objective at w = 0."""
    zero = np.zeros(problem.shape)
    return FIRST_TOLERANCE * float(problem.costs @ problem.loss.value(zero, problem.y))


def given(problem: Problem, method: ProximalNewton, start: object) -> Point:
    """The point of a start: its feature weights, or θ_m L_mᵀα."""
    at, grams = Start.of(problem, start), problem.grams
    alpha = np.zeros(problem.shape) if at.dual is None else at.dual
    alpha = problem.feasible(alpha)
    h, known = grams.fold(alpha), at.certificate
    if known is not None and known.features is not None:
        x = known.features
    else:
        x = feature_point(problem, h, at.weights, None)
    sigma = method.terms.first_sigma
    found = Point(x, float(at.bias), alpha, sigma, grams.unfold(x), h)
    method.place(found)
    return found


def first_norms(problem: Problem) -> Array:
    """u of w ∝ Fᵀα with predictions of about GOOD_PREDICTION; α = −C V'(0)."""
    grams = problem.grams
    slope = problem.loss.gradient(np.zeros(problem.shape), problem.y)
    h = grams.fold(problem.feasible(-problem.costs * slope))
    size = float(np.mean(np.abs(grams.unfold(h))))
    v = np.maximum(grams.feature_norms(h), 1e-300)
    return np.asarray(GOOD_PREDICTION / max(size, 1e-300) * v)


def next_tolerance(certificate: Certificate) -> float:
    """A part of the certified gap, but not less than rounding allows."""
    gap, primal = max(certificate.gap, 0.0), abs(certificate.primal)
    return max(TOLERANCE * min(gap, ACCURATE * primal), ROUNDING * primal)
