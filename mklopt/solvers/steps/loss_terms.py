"""How a loss enters the augmented Lagrangian: L(ρ), f(ρ) = −∂L/∂ρ, and its curvature.

    Smooth  (section 3.2)  L(ρ) = Σ C V*(−ρ/C), twice differentiable inside its domain;
                           f(ρ) solves V'(f) = −ρ/C, and −f' = (C V'')⁻¹
    Kinked  (section 3.3)  L(ρ) = Σ max over f of −ρf − C V(f) − (f − f_t)²/(2γ)

For kinked losses (hinge, ε-insensitive, Huber, quantile, a user's own) V* has bounds or
kinks. Their predictions f become variables of the proximal step: the maximum is at
f = prox of γCV at f_t − γρ, −f' = γ prox', and the bounds of V* become penalties. For
the hinge y f = 1 − ξ + ζ with the slacks ξ, ζ ≥ 0 of the paper's eq. (11) and (12); the
prox does the same for every loss.

Reference: Suzuki and Tomioka (2009), sections 3.2 and 3.3.
"""

import numpy as np

from ...problem import Problem
from ..machines.feature_system import FeatureSystem
from ..machines.linear import Array, System, per_sample

LONGEST_SHARE = 0.99  # the part of the way to the edge of the domain that a step may go
DAMPING = 0.1  # of Newton's system, times |slope|/C: steps are at most 10 C long
TINY_GAMMA = 1e-6  # times γ: with it the prox hardly moves f
DIFFERENCE = 1e-7  # the step of differences of the prox, relative to 1 + |f|


class Smooth:
    """L(ρ) of a loss that is twice differentiable: the conjugate itself."""

    def __init__(self, problem: Problem):
        self.problem, self.gamma = problem, np.inf
        self.domain = problem.loss.domain(problem.y)
        self.C = problem.spread_costs

    def inside(self, rho: Array) -> Array:
        """A point near ρ and strictly inside the domain."""
        zero = np.zeros(self.problem.shape)
        centre = -self.C * self.problem.loss.gradient(zero, self.problem.y)
        return 0.99 * self.problem.feasible(rho) + 0.01 * centre

    def value(self, rho: Array) -> float:
        """L(ρ)."""
        return -self.problem.dual_loss(rho)

    def point(self, rho: Array) -> Array:
        """f(ρ)."""
        return self.problem.loss.inverse(-rho / self.C, self.problem.y)

    def longest(self, rho: Array, step: Array) -> float:
        """The longest step: V*' is infinite at the edge of the domain."""
        room = self.domain.room(rho, step, self.problem.costs)
        return min(1.0, LONGEST_SHARE * room)

    def residual_cost(self, rho: Array, residual: Array) -> float:
        """The cost of an error in the predictions: ½⟨residual, C V'' residual⟩."""
        R = self._root(rho)
        return 0.5 * float(np.sum(per_sample(R, residual, transposed=True) ** 2))

    def _root(self, rho: Array) -> Array:
        R = self.problem.loss.root(-rho / self.C, self.problem.y)
        return R * np.sqrt(self.problem.costs.reshape(-1, *[1] * (R.ndim - 1)))

    def newton(self, rho: Array, slope: Array, system: System | FeatureSystem) -> Array:
        """−((RRᵀ)⁻¹ + A)⁻¹ slope = −R (I + RᵀAR)⁻¹ Rᵀ slope, where RRᵀ = C V''."""
        R = self._root(rho)
        D = np.ones(len(R))
        if R.ndim == 3:
            D = np.broadcast_to(np.eye(R.shape[1]), R.shape)
        inner = system.solve(per_sample(R, slope, transposed=True), D, R)
        return -per_sample(R, inner)

    def accept(self, rho: Array) -> None:
        """Nothing to do: predictions are not variables of the proximal step."""

    def moved(self, rho: Array) -> float:
        """0: predictions are not variables of the proximal step."""
        return 0.0


class Kinked:
    """L(ρ) of a loss with kinks: predictions are variables of the proximal step."""

    def __init__(self, problem: Problem, f: Array):
        self.problem, self.f, self.gamma = problem, f, 1.0
        self.C = problem.spread_costs

    def inside(self, rho: Array) -> Array:
        """The point near ρ that is a (sub)gradient of the losses at f."""
        kept, self.gamma = self.gamma, TINY_GAMMA * self.gamma
        rho = rho + (self.point(rho) - self.f) / self.gamma
        self.gamma = kept
        return rho

    def _prox(self, x: Array) -> Array:
        problem = self.problem
        return problem.loss.prox(x, problem.y, self.gamma * problem.costs)

    def point(self, rho: Array) -> Array:
        """f(ρ): the prox of the loss."""
        return self._prox(self.f - self.gamma * rho)

    def value(self, rho: Array) -> float:
        """L(ρ)."""
        f, problem = self.point(rho), self.problem
        losses = float(problem.costs @ problem.loss.value(f, problem.y))
        away = float(np.sum((f - self.f) ** 2)) / (2 * self.gamma)
        return -float(np.sum(rho * f)) - losses - away

    def longest(self, rho: Array, step: Array) -> float:
        """The longest step: there is no limit."""
        return 1.0

    def residual_cost(self, rho: Array, residual: Array) -> float:
        """The cost of an error in the predictions: ‖residual‖²/(2γ)."""
        return float(np.sum(residual**2)) / (2 * self.gamma)

    def newton(self, rho: Array, slope: Array, system: System | FeatureSystem) -> Array:
        """−(γ prox' + A)⁻¹ slope, damped in proportion to the slope.

        A sample on its kink has no curvature, but only over a length of C. The damping
        limits its step to |slope|/damping ≤ 10 C.
        """
        D = self.gamma * self._slope(self.f - self.gamma * rho)
        damping = DAMPING * np.abs(slope) / self.C
        size = 1e-8 * system.trace / len(system.K)
        if D.ndim == 1:
            return -system.solve(slope, D + damping + size)
        eye = np.eye(D.shape[1])
        return -system.solve(slope, D + (damping + size)[:, :, None] * eye)

    def _slope(self, x: Array) -> Array:
        """∂prox, (n,) or (n, k, k), by differences: prox is piecewise smooth."""
        h = DIFFERENCE * (1 + np.abs(x))
        if x.ndim == 1:
            return np.clip((self._prox(x + h) - self._prox(x - h)) / (2 * h), 0.0, 1.0)
        k = x.shape[1]
        P = np.empty((len(x), k, k))
        for c in range(k):
            e = h * (np.arange(k) == c)
            P[:, :, c] = (self._prox(x + e) - self._prox(x - e)) / (2 * h[:, [c]])
        return 0.5 * (P + P.transpose(0, 2, 1))

    def accept(self, rho: Array) -> None:
        """Take the predictions after the step."""
        self.f = self.point(rho)

    def moved(self, rho: Array) -> float:
        """‖Δf‖²/(2γ)."""
        return float(np.sum((self.point(rho) - self.f) ** 2)) / (2 * self.gamma)


def smoothed(problem: Problem, f: Array) -> Smooth | Kinked:
    """The form of L for the loss of a problem."""
    return Smooth(problem) if problem.loss.twice_differentiable else Kinked(problem, f)
