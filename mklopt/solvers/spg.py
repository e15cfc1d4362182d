"""SPG-GMKL on sums of kernels: spectral projected gradient in the kernel weights.

Problem. Ω(u) = min over θ ≥ 0 of ½Σu²/θ + r(θ) with a convex and differentiable price
r: GroupLasso (r = ½Σθ) and Tikhonov (r = μ‖θ‖_p²). With J of machine.py the problem is
the minimum of W(θ) = J(θ) + r(θ) over θ ≥ 0, convex, with ∇W = ∇r − ½v². Jain's ℓ1 and
ℓp forms are these by the maps of equivalences.py; other families are in gmkl/.

Algorithm (Jain, Vishwanathan and Varma 2012, algorithm 1): spectral_descent.py, with
switches spectral (S), nonmonotone (N) and tune (P). With P the tolerance of the SVM
solver is a part of the certified gap. The paper has scaled=False and longest=10;
`scaled` and steps of any length are ours. With everything off it is pgd.py. With
stop="paper" it ends at an absolute gap of 1e-3.

Guarantee. Every limit point is a minimum. A first-order method, made for a gap of 1e-4.
"""

from typing import Any

import numpy as np

from ..certificates.certificate import Certificate
from ..problem import Problem
from ..util.checks import check_choice, check_positive
from .base import Array, Steps, solver
from .machines.factory import machine_for
from .start import first_weights
from .steps.spectral_descent import descend

PAPER_GAP = 1e-3  # the gap at which the paper stops
# The tolerance with P, relative to the gap; with 1e-2 runs may stall. In feature space
# the SVM solver stops as soon as it is reached, and errors of v are its square root.
SHARPNESS, FEATURE_SHARPNESS = 1e-3, 1e-6
PRECISE = 1e-9  # the tolerance of the SVM solver without P, relative to ΣC V(0)


@solver(
    "spg",
    needs={"priced"},
    accuracy=1e-4,
    reference="jain2012",
    guarantee="limit points are optimal",
)
def spg(
    problem: Problem,
    *,
    start: object = None,
    spectral: bool = True,
    nonmonotone: bool = True,
    tune: bool = True,
    scaled: bool = True,
    remember: bool = False,
    longest: float | None = None,
    stop: str | None = None,
) -> Steps:
    """Spectral projected gradient steps.

    spectral, nonmonotone, tune: S, N and P; scaled: the metric of spectral_descent.py
    remember: without S, each search begins with a step like the last accepted one
    longest: λ_max of the spectral step, 10 in the paper; None: no limit
    stop: None, or "paper" for an absolute gap of 1e-3
    """
    check_choice(stop, "stop", ("paper", None))
    if longest is not None:
        check_positive(longest, "longest", finite=True)
    theta, alpha = first_weights(problem, start)
    priced = Priced(problem, alpha, tune)
    switches: Any = {"spectral": spectral, "nonmonotone": nonmonotone, "scaled": scaled}
    switches |= {"remember": remember, "longest": longest}
    for _ in descend(priced, theta, **switches):
        certificate = yield priced.machine.iterate()
        if stop and certificate.gap <= PAPER_GAP:
            return
        priced.set_tolerance(certificate)


class Priced:
    """W(θ) = J(θ) + r(θ)."""

    def __init__(self, problem: Problem, alpha: Array | None, tune: bool):
        self.problem, self.tune = problem, tune
        far = problem.grams.in_feature_space
        sharpness = FEATURE_SHARPNESS if far else SHARPNESS
        self.machine = machine_for(problem, alpha, sharpness=sharpness)
        if not tune:
            self.machine.tol *= 1e3 * PRECISE

    @property
    def noise(self) -> float:
        """The tolerance of the SVM solver: the error of a value is at most this."""
        return self.machine.tol

    @property
    def work(self) -> float:
        """The work of the inner solver so far."""
        return self.machine.work

    def value(self, theta: Array) -> float:
        """W(θ): one inner problem."""
        self.machine.solve(theta)
        price, self.slope = self.problem.formulation.price(theta)
        return self.machine.J + price

    def gradient(self) -> Array:
        """∇W at the last θ for which W was computed."""
        return np.asarray(self.slope - 0.5 * self.machine.v**2)

    def project(self, theta: Array) -> Array:
        """The nearest θ ≥ 0."""
        return np.maximum(theta, 0.0)

    def sharpen(self) -> None:
        """Make the SVM solver ten times as precise."""
        self.machine.tol *= 0.1

    def set_tolerance(self, certificate: Certificate) -> None:
        """P: the tolerance of the SVM solver is a part of the certified gap."""
        if self.tune:
            self.machine.set_tolerance(certificate)
