"""Proximal minimization, each step by Newton's method on its dual.

Step (Suzuki and Tomioka 2009, table 1). Minimize the augmented Lagrangian φ_γ(ρ; β, b)
over ρ (augmented_lagrangian.py); β_m ← (z_m/s_m)(β_m + γ_mρ), b ← b + γ_b Σρ; raise γ.
solvers/spicy.py explains working sets and schedules. The oracle of VSKL
(simplex_oracle.py) calls it for silent groups.

Guarantee. With φ minimized exactly each step is a proximal step: the objective never
rises, and the error falls by a factor of order 1/γ_t.
"""

from typing import Any

import numpy as np

from ...certificates.certificate import Certificate
from ...certificates.pricing import prices, read_where
from ...problem import Problem
from ...util.checks import check_choice
from ..base import Array, Iterate, Steps
from ..start import first_coefficients
from .augmented_lagrangian import Gammas, Lagrangian, Point

MAX_NEWTON_STEPS = 50  # for one proximal step
TOLERATED_RISE = 0.1  # by how much a step may raise the objective, relative to the gap
SHOWN_EVERY = 10  # an unfinished proximal step is yielded after so many Newton steps
LONGER = 1.1  # kernels are priced at LONGER·ρ, so that they enter early
# After a start γ is larger by this factor: for twice differentiable losses, and others.
WARM = {True: 1000.0, False: 10.0}
LARGEST_GAMMA = 1e6  # in units of the solution; with a larger γ, β is lost in β + γρ
# γ is multiplied by `growth` where a residual exceeds this part of the best so far;
# elsewhere SUMMAND is added, in units of γ.
SCHEDULES = {"published": 0.5, "brisk": 0.1, "geometric": 0.0}
SUMMAND = 10.0
PUBLISHED = 10.0  # the first γ of kernels in the published code
# K_mρ is as large as C times the trace of K_m, and with it a step: γ of kernels is for
# traces of so much, and smaller for larger ones.
LARGEST_TRACE = 200.0


def proximal_minimization(
    problem: Problem,
    *,
    start: Any = None,
    schedule: str | None = None,
    growth: float = 10.0,
    gamma: float | Array | None = None,
    gamma_bias: float = 1.0,
    gamma_loss: float = 10.0,
    precision: float = 0.1,
) -> Steps:
    """Proximal minimization by Newton's method on the dual.

    schedule: "published", "brisk" or "geometric"; default: published without a start,
        brisk with one
    growth: the factor by which γ grows
    gamma, gamma_bias, gamma_loss: the first γ of kernels, bias and predictions; default
        for kernels: 10, and smaller in proportion for traces above 200. gamma=10 is the
        published one for any trace
    precision: the error of a step, relative to its length
    """
    schedule = schedule or ("published" if start is None else "brisk")
    fall = SCHEDULES[check_choice(schedule, "schedule", SCHEDULES)]
    if not growth >= 1:
        raise ValueError(f"growth = {growth!r}; the penalties grow by a factor ≥ 1")
    warm = 1.0 if start is None else WARM[problem.loss.twice_differentiable]
    B, rho, bias = first_coefficients(problem, start)
    unit = units(problem, published=gamma is not None)
    gamma = PUBLISHED if gamma is None else gamma
    first = first_gammas(unit, warm * gamma, warm * gamma_bias, warm * gamma_loss)
    certificate = yield Iterate(rho, coefficients=B)
    lagrangian = Lagrangian(problem, first, B, bias)
    rho = lagrangian.side.inside(certificate.alpha)
    if start is None:
        rho = certificate.shrink * rho
    point, steps = None, 0
    best: tuple[float, ...] = (np.inf, np.inf, np.inf)
    while True:
        before, close = certificate.primal, precision
        point = lagrangian.enter(promising(lagrangian, certificate), rho, point)
        while True:
            for count in range(MAX_NEWTON_STEPS):
                solved = count > 0 and lagrangian.unsolved(point) <= close**2
                if solved:
                    break
                point, steps = lagrangian.newton(point), steps + 1
                if count % SHOWN_EVERY == SHOWN_EVERY - 1:
                    certificate = yield shown_at(lagrangian, point, steps)
            certificate = yield shown_at(lagrangian, point, steps)
            late = latecomers(lagrangian, point, certificate)
            rises = certificate.primal - before > TOLERATED_RISE * certificate.gap
            if len(late):
                work = np.union1d(lagrangian.work, late)
                point = lagrangian.enter(work, point.rho, point)
            elif solved and rises:  # exact steps never do: be more precise
                close = 0.1 * close
            else:
                break
        rho = point.rho
        if solved:
            found = lagrangian.residuals(point)
            lagrangian.accept(point)
            grows = [fall == 0 or r > fall * low for r, low in zip(found, best)]
            now = raised(unit, lagrangian, growth, grows, certificate)
            best = tuple(map(min, best, found))
        else:  # the step is too long to be found: try a shorter one
            now = lagrangian.gammas.scaled(1 / growth)
        lagrangian.penalize(now)


def shown_at(lagrangian: Lagrangian, point: Point, steps: int) -> Iterate:
    """The candidate of a step: ρ, and the coefficients after it."""
    info = {"svm_solves": steps}
    return Iterate(point.rho, coefficients=lagrangian.coefficients(point), info=info)


# ---- the working set -----------------------------------------------------------------


# ‖ρ‖_{K_m} comes from products that the certificate has computed, or is bounded.


def promising(lagrangian: Lagrangian, certificate: Certificate) -> Array:
    """The kernels in use, and those that LONGER·ρ would use."""
    formulation, gamma = lagrangian.problem.formulation, lagrangian.gammas.kernels
    used = np.any(lagrangian.B != 0, axis=(1, 2))

    def asked(v: Array) -> Array:
        longer = LONGER * certificate.shrink * v
        return used | (prices(formulation, longer, gamma) > 0)

    v = read_where(lagrangian.problem, certificate.alpha, used, asked)[0]
    return np.flatnonzero(asked(v))


def latecomers(lagrangian: Lagrangian, point: Point, certificate: Certificate) -> Array:
    """The kernels that LONGER·ρ would use, if ρ uses any outside the working set."""
    formulation, gamma = lagrangian.problem.formulation, lagrangian.gammas.kernels
    work, inside = lagrangian.work, point.s / gamma[lagrangian.work]
    longer = 1.0

    def asked(v: Array) -> Array:
        v = np.array(v)
        v[work] = inside
        return prices(formulation, longer * v, gamma) > 0

    used = np.isin(np.arange(len(gamma)), work)
    given = (lagrangian.problem, certificate.alpha, used, asked)
    late = np.setdiff1d(np.flatnonzero(asked(read_where(*given)[0])), work)
    if len(late) == 0:
        return late
    longer = LONGER
    return np.flatnonzero(asked(read_where(*given)[0]))


# ---- γ -------------------------------------------------------------------------------


def units(problem: Problem, published: bool = True) -> Gammas:
    """The natural size of each γ: a primal variable over its dual one.

    published: γ of kernels does not depend on the number of samples
    """
    spread = float(np.std(problem.y)) if problem.loss.labels == "real" else 1.0
    parts = (part for _, part in problem.grams.parts())
    largest = max(float(np.max(np.mean(part.diag(), axis=1))) for part in parts)
    # α is of size C, or smaller if the kernels are so large that this is enough.
    unit = max(1 / float(np.mean(problem.costs)), 1e-2 * largest)
    size = largest  # the published γ are for K_ii ≤ 1
    if not published:
        size *= max(1.0, problem.grams.n / LARGEST_TRACE)
    kernels = unit / max(1.0, size)
    return Gammas(np.full(problem.grams.M, kernels), unit, (spread or 1.0) * unit)


def first_gammas(unit: Gammas, kernels: Any, bias: float, loss: float) -> Gammas:
    """γ from numbers in these units."""
    for name, value in (("", kernels), ("_bias", bias), ("_loss", loss)):
        if not np.all(np.asarray(value) > 0):
            raise ValueError(f"gamma{name} = {value!r} must be positive")
    return Gammas(kernels * unit.kernels, bias * unit.bias, loss * unit.loss)


def raised(
    unit: Gammas,
    lagrangian: Lagrangian,
    growth: float,
    grows: list[bool],
    certificate: Certificate,
) -> Gammas:
    """The next γ, at most LARGEST_GAMMA times the largest weight or unit."""

    def up(gamma: Any, multiply: bool, unit: Any, top: float) -> Any:
        more = growth * gamma if multiply else gamma + SUMMAND * unit
        return np.maximum(gamma, np.minimum(more, LARGEST_GAMMA * top))

    theta = _largest_weight(lagrangian, certificate)
    tops = (theta or unit.bias, unit.bias, unit.loss)
    return Gammas(*map(up, lagrangian.gammas, grows, unit, tops))


def _largest_weight(lagrangian: Lagrangian, certificate: Certificate) -> float:
    """The largest θ_m = ‖w_m‖/‖ρ‖_{K_m}."""
    quad = lagrangian.problem.grams.quad(certificate.alpha)
    squares = np.sum(lagrangian.B * lagrangian.KB, axis=(1, 2))
    theta = np.sqrt(np.maximum(squares, 0.0) / np.maximum(quad, 1e-300))
    return float(np.max(theta))
