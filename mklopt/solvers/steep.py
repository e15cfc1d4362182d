"""The machine of a loss that is twice differentiable: logistic, squared.

    min over β, b   Σ C_i V(f_i) + ½ βᵀKβ,    f = Kβ + b,    K = Σ θ_mK_m

Algorithm. Newton's method in β: with D = C V''(f), α = −C V'(f) and P = (D⁻¹ + K)⁻¹,

    Δβ = −(r − P K r) − P 1 Δb,    r = β − α,    Σ(β + Δβ) = 0

where P = R (I + RKR)⁻¹ R, R = √D, needs no D⁻¹: far from the margin V'' underflows. One
Cholesky factorization per step; Armijo's rule; the best b after each.

Guarantee. `gap` = primal − dual at α, which lies in the domain of V* and sums to 0 with
the best b. The squared loss takes one step.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ..problem import Problem
from .wrapper import Machine

Array = np.ndarray
HALVINGS = 30


def machine_for(problem: Problem, alpha: Array | None, sharpness: float = 1e-5):
    """The machine that the loss has; α need be no sharper than Newton makes it."""
    kind = Steep if problem.loss.steep else Machine
    return kind(problem, alpha, sharpness, curved=True)


class Steep(Machine):
    """The machine at given kernel weights; every coordinate of α is free."""

    beta: Array | None = None
    move: Array | None = None  # where β is likely to go next
    bias = 0.0
    K: Array = np.zeros((0, 0))
    _room: Array = np.zeros((0, 0))

    def solve(self, theta: Array, K: Array | None = None) -> Array:
        last, self.theta = self.K, theta
        self.K = self.problem.grams.combine(theta) if K is None else K
        if self.K is last and self.move is None and self.gap <= self.tol:
            return self._solved(self.slope, self.gap, 0.0)
        self._factor = None
        self._begin()
        for _ in range(self.steps):  # at least one: `respond` needs its factor anyhow
            before = self.gap
            self._step()
            rounding = self.gap >= before and self.gap <= 1e-12 * abs(self.primal)
            if self.gap <= self.tol or rounding:
                break
        return self._solved(self.slope, self.gap, 0.125)

    def _begin(self) -> None:
        """At the last β, with its predictions, or where it is foreseen to go."""
        zero = np.zeros(self.problem.grams.n)
        last = self.beta if self.beta is not None else self.alpha
        starts = [zero if last is None else last]
        if self.beta is not None:
            Kb = self.K @ self.beta
            keeps = float(self.Kb @ Kb) / max(float(Kb @ Kb), 1e-300)
            starts.append(keeps * self.beta)
        if self.move is not None:
            starts.append(starts[0] + self.move)
        tried = []
        for self.beta in starts:
            self._settle(self.K @ self.beta)
            tried.append(self.primal)
        best = int(np.argmin(tried))
        if best < len(starts) - 1:
            self.beta = starts[best]
            self._settle(self.K @ self.beta)
        self.move = None

    def _settle(self, Kb: Array) -> None:
        """f, its α and the gap at β, with the best bias."""
        problem, loss = self.problem, self.problem.loss
        self.Kb = Kb
        if problem.bias:
            self.bias = float(loss.offset(Kb, problem.y, problem.costs))
        self.f = Kb + self.bias
        self.slope = problem.feasible(-problem.costs * loss.gradient(self.f, problem.y))
        length = 0.5 * float(self.beta @ Kb)
        self.primal = float(problem.costs @ loss.value(self.f, problem.y)) + length
        below = problem.gain(self.slope) - 0.5 * float(self.slope @ self.K @ self.slope)
        self.gap = self.primal - below

    def _step(self) -> None:
        problem = self.problem
        assert self.beta is not None
        alpha = -problem.costs * problem.loss.gradient(self.f, problem.y)
        rest = self.beta - alpha
        self._refactor()
        force = np.column_stack([self.K @ rest, np.ones(len(rest))])
        push, ones = self._plain(force).T
        step, shift = push - rest, 0.0
        if problem.bias:
            shift = float(np.sum(self.beta + step) / max(np.sum(ones), 1e-300))
            step = step - shift * ones
        Ks = self.K @ step
        # ∇ of ½βᵀKβ + ΣCV along (step, shift)
        falls = float(rest @ Ks) - shift * float(np.sum(alpha))
        t, beta, Kb, value = 1.0, self.beta, self.Kb, self.primal
        for _ in range(HALVINGS):
            f = self.f + t * (Ks + shift)
            length = 0.5 * float((beta + t * step) @ (Kb + t * Ks))
            found = float(problem.costs @ problem.loss.value(f, problem.y)) + length
            if found <= value + 1e-4 * t * falls + 1e-14 * abs(value):
                break
            t *= 0.5
        self.beta = beta + t * step
        self._settle(Kb + t * Ks)

    # ---- (D⁻¹ + K)⁻¹ --------------------------------------------------------------

    def _refactor(self) -> None:
        problem = self.problem
        slope = problem.loss.gradient(self.f, problem.y)
        self.R = np.sqrt(problem.costs) * problem.loss.root(slope, problem.y)
        if self._room.shape != self.K.shape:  # fresh memory costs half a factorization
            self._room = np.empty(self.K.shape)
        A = np.multiply(self.R[:, None], self.K, out=self._room)
        A *= self.R
        A[np.diag_indices_from(A)] += 1.0
        options = {"lower": True, "overwrite_a": True, "check_finite": False}
        self._factor = scipy.linalg.cho_factor(A.T, **options)  # as LAPACK stores it

    def _plain(self, force: Array) -> Array:
        """P force, without the border."""
        assert self._factor is not None
        right = self.R[:, None] * force
        found = scipy.linalg.cho_solve(self._factor, right, check_finite=False)
        return self.R[:, None] * found

    def respond(self, force: Array) -> Array:
        if self._factor is None:
            self._refactor()
        found = self._plain(np.column_stack([force, np.ones(len(force))]))
        if self.problem.bias:
            ones = found[:, -1]
            found -= np.outer(ones, np.sum(found, axis=0) / np.sum(ones))
        return found[:, :-1]

    def foresee(self, move: Array) -> None:
        self.move = move
