"""SPG-GMKL on sums of kernels: spectral projected gradient in the kernel weights.

Problem. Ω(u) = min over θ ≥ 0 of ½Σu²/θ + r(θ) with a convex and differentiable price
r: GroupLasso (r = ½Σθ) and Tikhonov (r = μ‖θ‖_p²). With J of machine.py the problem is
the minimum of W(θ) = J(θ) + r(θ) over θ ≥ 0, convex, with ∇W = ∇r − ½v². Jain's ℓ1 and
ℓp forms are these by the maps of equivalences.py; other families are in gmkl/.

Algorithm (Jain, Vishwanathan and Varma 2012, algorithm 1): spectral_descent.py, with
switches spectral (S), nonmonotone (N) and tune (P); `scaled` and steps of any length
are ours: the paper has scaled=False and longest=10. P: the tolerance of the machine is
a part of the certified gap. All off: pgd.py. stop="paper" ends at an absolute gap of
1e-3.

Guarantee. Every limit point is a minimum. A first-order method, made for a gap of 1e-4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..certificates.certificate import Certificate
from ..problem import Problem
from .base import Steps, solver
from .machines.factory import machine_for
from .start import first_weights
from .steps.spectral_descent import descend

Array = np.ndarray
PAPER_GAP = 1e-3  # the gap at which the paper stops
PRECISE = 1e-9  # the precision of machines without P, relative to W


@solver(
    "spg",
    needs={"priced"},
    losses={"quadratic"},
    accuracy=1e-4,
    reference="jain2012",
    guarantee="limit points are optimal",
)
def spg(
    problem: Problem,
    *,
    start: Any = None,
    spectral: bool = True,
    nonmonotone: bool = True,
    tune: bool = True,
    scaled: bool = True,
    remember: bool = False,
    longest: float | None = None,
    stop: str | None = None,
) -> Steps:
    """spectral, nonmonotone, tune: S, N and P; scaled: a metric of our own
    remember: without S, whether a search begins near where the last one ended
    longest: λ_max of the spectral step, 10 in the paper; None: it may grow
    stop: None, or "paper" for an absolute gap of 1e-3
    """
    if stop not in (None, "paper"):
        raise ValueError(f"stop = {stop!r}; choose 'paper' or None")
    if longest is not None and not 0 < longest < np.inf:
        raise ValueError(f"longest = {longest!r}; give a finite number > 0, or None")
    theta, alpha = first_weights(problem, start)
    priced = Priced(problem, alpha, tune)
    switches = {"spectral": spectral, "nonmonotone": nonmonotone, "scaled": scaled}
    limits: Any = {"remember": remember, "longest": longest}
    for _ in descend(priced, theta, **limits, **switches):
        certificate = yield priced.machine.iterate()
        if stop and certificate.gap <= PAPER_GAP:
            return
        priced.set_tolerance(certificate)


class Priced:
    """W(θ) = J(θ) + r(θ)."""

    def __init__(self, problem: Problem, alpha: Array | None, tune: bool):
        self.problem, self.tune = problem, tune
        self.machine = machine_for(problem, alpha, sharpness=1e-2)
        if not tune:
            self.machine.tol *= 1e3 * PRECISE

    @property
    def noise(self) -> float:
        """How far a value may be off."""
        return self.machine.tol

    @property
    def work(self) -> float:
        """Of the inner solver, so far."""
        return self.machine.work

    def value(self, theta: Array) -> float:
        """W(θ): one inner problem."""
        self.machine.solve(theta)
        price, self.slope = self.problem.formulation.price(theta)
        return self.machine.J + price

    def gradient(self) -> Array:
        """∇W where W was asked last."""
        return np.asarray(self.slope - 0.5 * self.machine.v**2)

    def project(self, theta: Array) -> Array:
        """The nearest θ ≥ 0."""
        return np.maximum(theta, 0.0)

    def sharpen(self) -> None:
        """Ten times the precision."""
        self.machine.tol *= 0.1

    def set_tolerance(self, certificate: Certificate) -> None:
        """P: the machine is as precise as the certified gap asks for."""
        if self.tune:
            self.machine.set_tolerance(certificate)
