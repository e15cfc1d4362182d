"""A working set of kernels, grown by pricing, and Newton's method inside it.

Problem. Formulations that leave most kernels unused and have weights on simplices or
an orthant (ℓ1, VSKL and CKL that sum inside groups, group lasso, elastic net); losses
with an inner solver (machines/).

Algorithm. Repeat: solve the problem of the working set W until its gap is a small part
of the whole gap; price all kernels (working_set.py), by the product that the
certificate needs anyhow; W becomes the kernels in use and those that would come into
use if α were a little longer; of new ones no more than are in use. The first W comes
from the inner problem with all weights equal: the kernels with the largest v =
‖α‖_{K_m}, group by group where there are groups. Inside W: Newton's method in the
weights (weight_newton.py), on simplices (simplex_oracle.py) or the orthant
(orthant_oracle.py).

Guarantee. W changes until no kernel outside it is asked for; then the gap of W is the
whole gap. No kernel is ever dropped for good: all are priced before every certificate,
so that none is missed and nothing needs to be proved of those left out.

Reference: Chapelle and Rakotomamonjy (2008) for Newton's method in the weights.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate
from ..formulations.base import Groups
from ..problem import Problem
from .base import Iterate, Steps, certify_iterate, solver
from .machines.factory import machine_for
from .machines.machine import Machine
from .start import Start, weights_of
from .steps.orthant_oracle import Orthant
from .steps.simplex_oracle import Oracle
from .steps.weight_newton import newton
from .steps.working_set import at_most, prices, restricted

Array = np.ndarray
# The first working set: a quarter of the kernels, but not fewer and not more than this.
FIRST_SHARE, FEWEST, LARGEST_FIRST = 4, 30, 100
# On an orthant the size of the first weights is unknown. Predictions should come out
# near this number (the loss is small there); up to so many solves look for the size,
# until it changes by less than the factor.
GOOD_PREDICTION, SIZE_SOLVES, SIZE_FACTOR = 4.0, 6, 3.0
# First weights are proportional to v to this power: large v are nearly alone.
FIRST_POWER = 4
MARGIN = 0.05  # α is priced as if it were so much longer: kernels enter early
# The gap inside W, as a share of the whole: while W changes, and once it is complete.
SHARE, FINAL_SHARE = 0.1, 1e-3
SHARPNESS = 1e-5  # of the inner solver, relative to the gap …
SMOOTH_SHARPNESS = 1e-4  # … of Newton's method, which ends well below it


def promised(problem: Problem) -> float:
    """At q = ∞ groups fall silent, and ‖α‖_K of theirs has half of the digits only."""
    if "sums" not in problem.formulation.traits:
        return 1e-6
    return 1e-6 if problem.formulation.simplices(problem.grams.M)[1] < np.inf else 1e-5


@solver(
    "active",
    needs={"simplex or sums or orthant"},
    losses={"quadratic", "twice_differentiable"},
    accuracy=promised,
    reference="chapelle2008",
    guarantee="the problem of the working set is the whole problem at the end",
)
def active(problem: Problem, *, start: Any = None) -> Steps:
    """Working sets and Newton's method; see the top of this file."""
    certificate, theta, share = None, np.zeros(problem.grams.M), SHARE
    smooth = problem.loss.twice_differentiable
    sharpness = SMOOTH_SHARPNESS if smooth else SHARPNESS
    machine = machine_for(problem, None, sharpness, second_order=True)
    if start is not None:
        at = Start.of(problem, start)
        theta = at.point_weights
        alpha = np.zeros(problem.shape) if at.dual is None else at.dual
        certificate = yield Iterate(alpha, theta)
        machine.alpha = certificate.alpha
        asked = asked_for(problem, theta, certificate)
    if not np.any(theta):
        theta = opening(problem, machine)
        asked = np.flatnonzero(theta)
        if machine.work > 1:
            certificate = yield Iterate(machine.point, theta)
    while True:
        W = np.union1d(np.flatnonzero(theta), asked)
        part = restricted(problem, W)
        machine.enter(part, W)
        inner = newton_inside(machine, theta[W], certificate)
        goal = None if certificate is None else share * certificate.gap
        certificate = yield from inside(problem, W, machine, inner, goal)
        theta = weights_of(certificate)
        asked = asked_for(problem, theta, certificate)
        share = FINAL_SHARE if np.all(np.isin(asked, W)) else SHARE


# ---- the working set -----------------------------------------------------------------


def asked_for(problem: Problem, theta: Array, certificate: Certificate) -> Array:
    """The kernels that a longer α would use, new ones at most as many as are used."""
    v = np.sqrt(np.maximum(problem.grams.quad(certificate.alpha), 0.0))
    used = theta > 0
    gamma = float(np.mean(theta[used])) if np.any(used) else 1.0
    found = prices(problem.formulation, (1 + MARGIN) * v, gamma, u=theta * v)
    most = max(FEWEST, int(np.count_nonzero(used)))
    new = at_most(np.where(used, 0.0, found), most)
    return np.flatnonzero((new > 0) | (used & (found > 0)))


def nearest(problem: Problem, v: Array) -> Array:
    """The first kernels that prox_γΩ(v) uses as γ falls."""
    few = min(max(FEWEST, len(v) // FIRST_SHARE), LARGEST_FIRST)
    prox = problem.formulation.prox
    low, high = 0.0, max(float(np.max(v)), 1e-300)
    for _ in range(40):
        gamma = 0.5 * (low + high)
        found = np.flatnonzero(prox(v, gamma) > 0)
        if few <= len(found) <= 1.2 * few:
            return found
        low, high = (low, gamma) if len(found) < few else (gamma, high)
    return found if len(found) else np.arange(len(v))


def opening(problem: Problem, machine: Machine) -> Array:
    """θ to begin with: the machine of all kernels alike says which come first."""
    M = problem.grams.M
    K = problem.grams.combine(np.ones(M))
    size = first_size(problem, K) if "orthant" in problem.formulation.traits else 1 / M
    for _ in range(SIZE_SOLVES):
        alpha = machine.solve(np.full(M, size), K=size * K)
        if "orthant" not in problem.formulation.traits:
            break
        times = resized(problem, float(alpha @ machine.K @ alpha), size * M)
        size *= times
        if 1 / SIZE_FACTOR < times < SIZE_FACTOR or machine.work > 1:
            break
    v = np.sqrt(np.maximum(problem.grams.quad(machine.point), 0.0))
    theta, first = np.zeros(M), nearest(problem, v)
    share = v[first] ** FIRST_POWER
    share = share if np.any(share) else np.ones(len(first))  # nothing tells them apart
    theta[first] = size * M * share / np.sum(share)
    return theta


def first_size(problem: Problem, K: Array) -> float:
    """θ of all kernels alike at which predictions are of the order of GOOD_PREDICTION.

    With α along a = −C V'(0), as long as an average kernel allows: ‖α‖_K² = M.
    """
    slope = problem.loss.gradient(np.zeros(problem.shape), problem.y)
    a = problem.feasible(-problem.costs * slope)
    Ka = K @ a
    length = np.sqrt(max(float(a @ Ka), 1e-300) / problem.grams.M)
    return GOOD_PREDICTION * float(length) / max(float(np.mean(np.abs(Ka))), 1e-300)


def resized(problem: Problem, length: float, total: float) -> float:
    """By how much J + cΣt asks for other weights, if J falls with their inverse."""
    price = problem.formulation.orthant[0] * total
    return float(np.sqrt(max(0.5 * length / price, 1e-12)))


# ---- inside it -----------------------------------------------------------------------


def newton_inside(
    machine: Machine, theta: Array, certificate: Certificate | None
) -> Steps:
    """Newton's method in the weights of the working set, from θ on."""
    part = machine.problem
    if "orthant" in part.formulation.traits:
        oracle: Any = Orthant(part, machine)
        x = oracle.of_weights(theta)
    else:
        oracle = Oracle(part, *simplices(part), machine=machine)
        x = _on_simplices(oracle, theta)
    if certificate is not None:
        oracle.set_tolerance(certificate)
    return newton(oracle, x)


def _on_simplices(oracle: Oracle, theta: Array) -> Array:
    """θ_k = λ_kθ_j: θ across groups goes to the oracle, λ is left."""
    sums = oracle.sums(theta)
    if np.all(sums > 0):
        oracle.theta = sums
    return np.where(sums[oracle.owner] > 0, theta, 1.0)


def simplices(part: Problem) -> tuple[Groups, float]:
    """The groups of kernels, and q across them; a single simplex has one group."""
    M = part.grams.M
    if "sums" in part.formulation.traits:
        return part.formulation.simplices(M)
    return (tuple(range(M)),), 1.0


def inside(
    problem: Problem, W: Array, machine: Machine, inner: Steps, goal: float | None
) -> Generator[Iterate, Certificate, Certificate]:
    """The inner solver until its own gap is at most the goal; then the whole gap.

    Where there is no goal yet, it is a share of the first gap.
    """
    sent, shown = None, machine.work
    while True:
        iterate = inner.send(sent)  # type: ignore[arg-type]
        sent = certify_iterate(machine.problem, iterate)
        goal = SHARE * sent.gap if goal is None else goal
        done = sent.gap <= goal
        if done or machine.work >= shown + 1:
            certificate = yield _enlarged(problem, W, sent, iterate.info)
            shown = machine.work
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
