"""How a loss enters the augmented Lagrangian: L(ρ), its point f(ρ), its curvature.

    Smooth   (section 3.2)  L(ρ) = Σ C V*(−ρ/C), twice differentiable inside its domain;
                           f(ρ) is where V' = −ρ/C, and −f' = (C V'')⁻¹
    Kinked  (section 3.3)  L(ρ) = Σ max over f of −ρf − C V(f) − (f − f_t)²/(2γ)

Kinked losses (hinge, ε-insensitive, Huber, quantile, a user's own) have a V* with
boundaries or kinks. There the predictions f become variables of the proximal step: the
maximum is at f = prox of γCV at f_t − γρ, −f' = γ prox', and the boundaries of V* turn
into penalties. For the hinge y f = 1 − ξ + ζ with the slacks ξ, ζ ≥ 0 of the paper's
eq. (11) and (12); prox does the same for every loss.

Both have ∂L/∂ρ = −f(ρ).
"""

from __future__ import annotations

import numpy as np

from ...problem import Problem
from ..machines.linear import System, per_sample

Array = np.ndarray
LONGEST_SHARE = 0.99  # of the way to the edge of the domain, a step goes at most
DAMPING = 0.1
TINY_GAMMA = 1e-6


class Smooth:
    """L(ρ) of a loss that is twice differentiable: the conjugate itself."""

    def __init__(self, problem: Problem):
        self.problem, self.gamma = problem, np.inf
        self.domain = problem.loss.domain(problem.y)
        self.C = problem.spread_costs

    def inside(self, rho: Array) -> Array:
        """A point near ρ, strictly inside the domain."""
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
        """V*' is infinite at the edge of the domain: steps end before it."""
        room = self.domain.room(rho, step, self.problem.costs)
        return min(1.0, LONGEST_SHARE * room)

    def residual_cost(self, rho: Array, residual: Array) -> float:
        """What predictions off by the residual cost: ½⟨residual, C V'' residual⟩."""
        R = self._root(rho)
        return 0.5 * float(np.sum(per_sample(R, residual, transposed=True) ** 2))

    def _root(self, rho: Array) -> Array:
        R = self.problem.loss.root(-rho / self.C, self.problem.y)
        return R * np.sqrt(self.problem.costs.reshape(-1, *[1] * (R.ndim - 1)))

    def newton(self, rho: Array, slope: Array, system: System) -> Array:
        """−((RRᵀ)⁻¹ + A)⁻¹ slope = −R (I + RᵀAR)⁻¹ Rᵀ slope, where RRᵀ = C V''."""
        R = self._root(rho)
        one = np.ones(len(R)) if R.ndim == 1 else np.eye(R.shape[1])
        D = one if R.ndim == 1 else np.broadcast_to(one, R.shape)
        inner = system.solve(per_sample(R, slope, transposed=True), D, R)
        return -per_sample(R, inner)

    def accept(self, rho: Array) -> None:
        """Nothing of the loss is a variable of the proximal step."""

    def moved(self, rho: Array) -> float:
        """Predictions are no variables of the step."""
        return 0.0


class Kinked:
    """L(ρ) of a loss with kinks: predictions are variables of the proximal step."""

    def __init__(self, problem: Problem, f: Array):
        self.problem, self.f, self.gamma = problem, f, 1.0
        self.C = problem.spread_costs

    def inside(self, rho: Array) -> Array:
        """The slopes f asks for, as near to ρ as can be: C may have changed."""
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
        """A step may always have its full length."""
        return 1.0

    def residual_cost(self, rho: Array, residual: Array) -> float:
        """What predictions off by the residual cost: ‖residual‖²/(2γ)."""
        return float(np.sum(residual**2)) / (2 * self.gamma)

    def newton(self, rho: Array, slope: Array, system: System) -> Array:
        """−(γ prox' + A)⁻¹ slope, damped in proportion to the slope.

        A sample on its kink has no curvature, but only over a length of C: a step of
        |slope|/damping ≤ 10 C is as far as the quadratic model can be meant.
        """
        D = self.gamma * self._slope(self.f - self.gamma * rho)
        damping = DAMPING * np.abs(slope) / self.C
        size = 1e-8 * float(np.trace(system.K)) / len(system.K)
        if D.ndim == 1:
            return -system.solve(slope, D + damping + size)
        eye = np.eye(D.shape[1])
        return -system.solve(slope, D + (damping + size)[:, :, None] * eye)

    def _slope(self, x: Array) -> Array:
        """∂prox, (n,) or (n, k, k), by differences: its pieces are smooth."""
        h = 1e-7 * (1 + np.abs(x))
        if x.ndim == 1:
            return np.clip((self._prox(x + h) - self._prox(x - h)) / (2 * h), 0.0, 1.0)
        k = x.shape[1]
        P = np.empty((len(x), k, k))
        for c in range(k):
            e = h * (np.arange(k) == c)
            P[:, :, c] = (self._prox(x + e) - self._prox(x - e)) / (2 * h[:, [c]])
        return 0.5 * (P + P.transpose(0, 2, 1))

    def accept(self, rho: Array) -> None:
        """Take the predictions of a step."""
        self.f = self.point(rho)

    def moved(self, rho: Array) -> float:
        """‖Δf‖²/(2γ)."""
        return float(np.sum((self.point(rho) - self.f) ** 2)) / (2 * self.gamma)


def smoothed(problem: Problem, f: Array) -> Smooth | Kinked:
    """The form of L that suits the loss."""
    return Smooth(problem) if problem.loss.twice_differentiable else Kinked(problem, f)
