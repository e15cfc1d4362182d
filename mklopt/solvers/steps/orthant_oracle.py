"""The objective in the weights for separable penalties: group lasso, elastic net.

    F(t) = J(θ) + c Σ_m t_m,    θ = t/(1 + κt),    t ≥ 0

whose minimum is that of C Σ V + Ω when Ω(u) = min over t of ½Σu²/θ + cΣt (J and its
derivatives in machine.py). θ is concave and J falls, so F is convex:

    ∂F/∂t_m = c − ½ v_m² θ',    ∂²F = θ' J'' θ' + diag(κ v² / (1 + κt)³)
"""

import numpy as np

from ...certificates.certificate import Certificate
from ...problem import Problem
from ..base import Array, Iterate, Steps
from ..machines.machine import Machine


class Orthant:
    """F at given t, with the same methods as the oracle of simplex_oracle.py."""

    owner = None  # no simplex

    def __init__(self, problem: Problem, machine: Machine):
        self.problem, self.machine = problem, machine
        self.c, self.kappa = problem.formulation.orthant

    def solve(self, t: Array) -> Steps:
        """Solve one inner problem; yields no iterates."""
        self.t = t
        self.machine.solve(self.weights)
        yield from ()

    def enter(self, t: Array) -> None:
        """Continue at t, where the inner problem is solved."""
        self.t = t

    @property
    def weights(self) -> Array:
        """θ(t)."""
        return self.t / (1 + self.kappa * self.t)

    def of_weights(self, theta: Array) -> Array:
        """The t with θ(t) = θ; θ ≥ 1/κ has none and gets a large t."""
        return theta / np.maximum(1 - self.kappa * theta, 1e-3)

    @property
    def value(self) -> float:
        """A lower bound of F(t)."""
        return self.machine.J + self.c * float(np.sum(self.t))

    @property
    def gap(self) -> float:
        """F(t) − value is at most this, in float64."""
        return self.machine.gap + 1e-14 * abs(self.value)

    @property
    @np.errstate(over="ignore")  # a t that is so large has no effect on θ
    def slope(self) -> Array:
        """∂F/∂t."""
        return self.c - 0.5 * self.machine.v**2 / (1 + self.kappa * self.t) ** 2

    @np.errstate(over="ignore")
    def hessian(self, which: Array) -> Array:
        """∂²F/∂t² for some kernels."""
        bend = 1 + self.kappa * self.t[which]
        B = self.machine.products_of(which) / bend**2
        self._columns = self.machine.sensitivity(B)
        H = self._columns.T @ B
        own = self.kappa * self.machine.v[which] ** 2 / bend**3
        return np.asarray(0.5 * (H + H.T) + np.diag(own))

    def extrapolate(self, which: Array, step: Array, share: Array) -> None:
        """Predict α after a step in t, of which `share` has an effect.

        `hessian` must be called before.
        """
        self.machine.extrapolate(-self._columns @ (share * step))

    def iterate(self) -> Iterate:
        """α and θ as a candidate."""
        return self.machine.iterate()

    def set_tolerance(self, certificate: Certificate) -> None:
        """Set the tolerance to a part of the certified gap."""
        self.machine.set_tolerance(certificate)
