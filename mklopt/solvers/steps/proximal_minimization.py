"""Proximal minimization, each step by Newton's method on its dual.

Step (Suzuki and Tomioka 2009, table 1). Minimize the augmented Lagrangian φ_γ(ρ; β, b)
over ρ (augmented_lagrangian.py); β_m ← (z_m/s_m)(β_m + γ_mρ), b ← b + γ_b Σρ; raise γ.
solvers/spicy.py states the algorithm; the oracle of VSKL (simplex_oracle.py) calls it
for groups that are silent.

Guarantee. With φ minimized exactly each step is a proximal step: the objective never
rises, and the error falls by a factor of order 1/γ_t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...certificates.certificate import Certificate
from ...problem import Problem
from ..base import Iterate, Steps
from ..start import first_coefficients
from .augmented_lagrangian import Gammas, Lagrangian, Point
from .working_set import prices

Array = np.ndarray
MAX_NEWTON_STEPS = 50  # for one proximal step
TOLERATED_RISE = 0.1  # of the gap: by how much a step may raise the objective
SHOWN_EVERY = 10  # Newton steps: an unfinished proximal step is shown
LONGER = 1.1  # ρ is priced as if it were so much longer: kernels enter early
WARM = {True: 1000.0, False: 10.0}  # γ from a start: twice differentiable losses or not
LARGEST_GAMMA = 1e6  # in units of the solution: beyond it β + γρ forgets β


@dataclass(frozen=True)
class Schedule:
    """γ grows by a factor where a residual exceeds `fall` × the best, else by `add`."""

    growth: float = 10.0
    add: float = 10.0
    fall: float = 0.5


SCHEDULES = {
    "published": Schedule(),
    "brisk": Schedule(fall=0.1),
    "geometric": Schedule(fall=0.0),
}


def proximal_minimization(
    problem: Problem,
    start: Any = None,
    schedule: str | None = None,
    growth: float | None = None,
    gammas: tuple[float, float, float] = (10.0, 1.0, 10.0),
    precision: float = 0.1,
) -> Steps:
    """The steps from a start; gammas: of kernels, bias and predictions, in units."""
    rule = _rule(schedule or ("published" if start is None else "brisk"), growth)
    units = Units(problem)
    warm = 1.0 if start is None else WARM[problem.loss.twice_differentiable]
    B, rho, bias = first_coefficients(problem, start)
    first = units.gammas(*(warm * gamma for gamma in gammas))
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
            elif solved and rises:  # no proximal step does: this one is too rough
                close = 0.1 * close
            else:
                break
        rho = point.rho
        if solved:
            found = lagrangian.residuals(point)
            lagrangian.accept(point)
            now = units.raised(rule, lagrangian, found, best, certificate)
            best = tuple(map(min, best, found))
        else:  # too long a step to be found: a shorter one
            now = lagrangian.gammas.scaled(1 / rule.growth)
        lagrangian.penalize(now)


def _rule(schedule: str, growth: float | None) -> Schedule:
    if schedule not in SCHEDULES:
        known = ", ".join(SCHEDULES)
        raise ValueError(f"schedule = {schedule!r}; choose one of {known}")
    rule = SCHEDULES[schedule]
    if growth is None:
        return rule
    if not growth >= 1:
        raise ValueError(f"growth = {growth!r}; the penalties grow by a factor ≥ 1")
    return Schedule(growth, rule.add, rule.fall)


def shown_at(lagrangian: Lagrangian, point: Point, steps: int) -> Iterate:
    """The step as it stands: ρ, and where it leads."""
    info = {"svm_solves": steps}
    return Iterate(point.rho, coefficients=lagrangian.coefficients(point), info=info)


def norms(lagrangian: Lagrangian, certificate: Certificate) -> Array:
    """‖ρ‖_{K_m} for all kernels, from what the certificate has computed."""
    quad = lagrangian.problem.grams.quad(certificate.alpha)
    return np.sqrt(np.maximum(quad, 0.0))


def promising(lagrangian: Lagrangian, certificate: Certificate) -> Array:
    """The kernels in use, and those that a longer ρ would use."""
    v = LONGER * certificate.shrink * norms(lagrangian, certificate)
    formulation, gamma = lagrangian.problem.formulation, lagrangian.gammas.kernels
    return np.flatnonzero(lagrangian.used | (prices(formulation, v, gamma) > 0))


def latecomers(lagrangian: Lagrangian, point: Point, certificate: Certificate) -> Array:
    """Kernels outside the working set that the step should have used, and near ones."""
    v, work = norms(lagrangian, certificate), lagrangian.work
    formulation, gamma = lagrangian.problem.formulation, lagrangian.gammas.kernels
    v[work] = point.s / gamma[work]
    late = np.setdiff1d(np.flatnonzero(prices(formulation, v, gamma) > 0), work)
    if len(late) == 0:
        return late
    return np.flatnonzero(prices(formulation, LONGER * v, gamma) > 0)


class Units:
    """The natural size of each γ: a primal variable over its dual one."""

    def __init__(self, problem: Problem):
        self.problem = problem
        real = problem.loss.labels == "real"
        spread = float(np.std(problem.y)) if real else 1.0
        largest = float(np.max(np.mean(problem.grams.diag(), axis=1)))
        # α is of size C, or less where kernels are so large that less will do.
        self.unit = max(1 / float(np.mean(problem.costs)), 1e-2 * largest)
        self.loss = (spread or 1.0) * self.unit
        self.kernels = self.unit / max(1.0, largest)  # published for K_ii of at most 1

    def gammas(self, kernels: float, bias: float, loss: float) -> Gammas:
        """γ from numbers in these units."""
        for name, value in (("", kernels), ("_bias", bias), ("_loss", loss)):
            if not np.all(np.asarray(value) > 0):
                raise ValueError(f"gamma{name} = {value!r} must be positive")
        everyone = np.ones(self.problem.grams.M) * kernels * self.kernels
        return Gammas(everyone, bias * self.unit, loss * self.loss)

    def raised(
        self,
        rule: Schedule,
        lagrangian: Lagrangian,
        found: tuple[float, ...],
        best: tuple[float, ...],
        certificate: Certificate,
    ) -> Gammas:
        """The next γ, and never so large that nothing of β is left in β + γρ."""
        now, theta = lagrangian.gammas, self._largest_weight(lagrangian, certificate)
        ask = [rule.fall == 0 or r > rule.fall * low for r, low in zip(found, best)]

        def up(gamma: Any, grows: bool, unit: float, top: float) -> Any:
            more = rule.growth * gamma if grows else gamma + rule.add * unit
            return np.maximum(gamma, np.minimum(more, LARGEST_GAMMA * top))

        return Gammas(
            up(now.kernels, ask[0], self.kernels, theta),
            float(up(now.bias, ask[1], self.unit, self.unit)),
            float(up(now.loss, ask[2], self.loss, self.loss)),
        )

    def _largest_weight(
        self, lagrangian: Lagrangian, certificate: Certificate
    ) -> float:
        quad = self.problem.grams.quad(certificate.alpha)
        squares = np.sum(lagrangian.B * lagrangian.KB, axis=(1, 2))
        theta = np.sqrt(np.maximum(squares, 0.0) / np.maximum(quad, 1e-300))
        return float(np.max(theta)) or self.unit
