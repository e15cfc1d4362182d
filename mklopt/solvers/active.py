"""A working set of kernels, grown by pricing, and Newton's method inside it.

Problem. Formulations that leave most kernels unused and have weights on simplices or
an orthant (ℓ1, VSKL, group lasso, elastic net); losses with a machine.

Algorithm. Repeat: solve the problem of the working set W (restricted.py) until its gap
is a small part of the whole gap; price all kernels, v_m = ‖α‖_{K_m}, by the product
that the certificate needs anyhow; W becomes the kernels in use and those that would
come into use if α were a little longer: with u = θv a kernel outside is asked for when

    prox_γΩ(u + γ (1 + margin) v)_m > 0,

since at an optimum u = prox_γΩ(u + γv) for every γ. Inside W: Newton's method in the
weights (hessian.py), on simplices (bca.py) or the orthant (orthant.py), with the
machine of the loss (svm.py, steep.py).

Guarantee. W changes until no kernel outside it is asked for; then the gap of W is the
whole gap. No kernel is ever dropped for good: all are priced before every certificate,
so that none is missed and nothing needs to be proved of those left out.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import numpy as np

from ..certificate import Certificate
from ..formulations.base import Groups
from ..problem import Problem
from ..restricted import restricted
from .base import Iterate, Steps, coefficients_of, given, judge, solver
from .bca import Oracle
from .hessian import newton
from .orthant import Orthant
from .steep import machine_for

Array = np.ndarray
FEW, PART = 30, 8  # kernels to begin with: so many, or one in so many
MARGIN = 0.05  # how much longer α is thought to be when kernels are asked for
SHARE, RIGHT = 0.1, 1e-3  # of the whole gap, inside; the second once W is complete
LONG = 0.5  # seconds after which an unfinished round is shown


@solver(
    "active",
    needs={"simplex or simplices or orthant"},
    losses={"machine", "steep"},
    accuracy=1e-6,
    guarantee="the problem of the working set is the whole problem at the end",
)
def active(problem: Problem, *, start: Any = None) -> Steps:
    theta, alpha = _first(problem, start)
    certificate = yield Iterate(alpha, theta)
    asked = asked_for(problem, theta, prices(problem, certificate))
    share = SHARE
    while True:
        W = np.union1d(np.flatnonzero(theta), asked)
        part = restricted(problem, W)
        inner = newton_inside(part, theta[W], alpha, certificate)
        goal = share * certificate.gap
        certificate = yield from inside(problem, W, part, inner, goal)
        alpha, theta = certificate.alpha, weights_of(certificate)
        asked = asked_for(problem, theta, prices(problem, certificate))
        share = RIGHT if np.all(np.isin(asked, W)) else SHARE


def _first(problem: Problem, start: Any) -> tuple[Array, Array]:
    if start is None:
        return np.zeros(problem.grams.M), coefficients_of(problem, None)[1]
    theta, alpha = given(problem, start)
    return theta, np.zeros(problem.shape) if alpha is None else alpha


# ---- the working set -----------------------------------------------------------------


def prices(problem: Problem, certificate: Certificate) -> Array:
    """v_m = ‖α‖_{K_m} of all kernels, which the certificate has computed."""
    return np.sqrt(np.maximum(problem.grams.quad(certificate.alpha), 0.0))


def asked_for(problem: Problem, theta: Array, v: Array) -> Array:
    """The kernels that a longer α would use."""
    if not np.any(theta):
        return opening(problem, v)
    gamma = float(np.mean(theta[theta > 0]))
    longer = theta * v + gamma * (1 + MARGIN) * v
    return np.flatnonzero(problem.formulation.prox(longer, gamma) > 0)


def opening(problem: Problem, v: Array) -> Array:
    """The first kernels that prox_γΩ(v) uses as γ falls."""
    few, prox = max(FEW, len(v) // PART), problem.formulation.prox
    low, high = 0.0, max(float(np.max(v)), 1e-300)
    for _ in range(40):
        gamma = 0.5 * (low + high)
        found = np.flatnonzero(prox(v, gamma) > 0)
        if few <= len(found) <= 1.2 * few:
            return found
        low, high = (low, gamma) if len(found) < few else (gamma, high)
    return found if len(found) else np.arange(len(v))


# ---- inside it -----------------------------------------------------------------------


def newton_inside(
    part: Problem, theta: Array, alpha: Array, certificate: Certificate
) -> Steps:
    """Newton's method in the weights of the working set, from θ and α on."""
    machine = machine_for(part, alpha, 1e-6 if part.loss.steep else 1e-5)
    machine.heed(certificate)
    if "orthant" in part.formulation.traits:
        return _on_orthant(Orthant(part, machine), theta)
    oracle = Oracle(part, *simplices(part), machine=machine)
    oracle.heed(certificate)
    sums = oracle.sums(theta)
    if np.all(sums > 0):
        oracle.theta = sums
    return newton(oracle, np.where(sums[oracle.owner] > 0, theta, 1.0))


def simplices(part: Problem) -> tuple[Groups, float]:
    """The groups of kernels, and q across them; a single simplex has one group."""
    M = part.grams.M
    if "simplices" in part.formulation.traits:
        return part.formulation.simplices(M)
    return (tuple(range(M)),), 1.0


def _on_orthant(orthant: Orthant, theta: Array) -> Steps:
    """With no weights to begin from, two analytic steps find their size first."""
    if not np.any(theta):
        theta = np.full(len(theta), 1.0 / len(theta))
        for _ in range(2):
            yield from orthant.solve(orthant.of_weights(theta))
            theta = orthant.problem.formulation.reweight(theta, orthant.machine.v)
    yield from newton(orthant, orthant.of_weights(theta))


def inside(
    problem: Problem, W: Array, part: Problem, inner: Steps, goal: float
) -> Generator[Iterate, Certificate, Certificate]:
    """The inner solver until its own gap is at most the goal; then the whole gap."""
    shown, sent = time.perf_counter(), None
    while True:
        iterate = inner.send(sent)  # type: ignore[arg-type]
        sent = judge(part, iterate)
        done = sent.gap <= goal
        if done or time.perf_counter() - shown > LONG:
            certificate = yield _enlarged(problem, W, sent, iterate.info)
            shown = time.perf_counter()
        if done:
            return certificate


def _enlarged(problem: Problem, W: Array, found: Certificate, info: dict) -> Iterate:
    """A point of the working set as one of the whole problem."""
    if found.weights is not None:
        theta = np.zeros(problem.grams.M)
        theta[W] = found.weights
        return Iterate(found.alpha, theta, info=info)
    B = np.zeros((problem.grams.M, *problem.shape))
    B[W] = found.expansion
    return Iterate(found.alpha, coefficients=B, info=info)


def weights_of(found: Certificate) -> Array:
    """θ of a point, or u/∂Ω(u) where it has coefficients instead."""
    if found.weights is not None:
        return found.weights
    theta = found.problem.formulation.weights(found.norms)
    return np.where(np.isfinite(theta), theta, 0.0)
