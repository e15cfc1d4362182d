"""The augmented Lagrangian of the dual, over a working set of kernels.

One step of proximal minimization from coefficients β_m and a bias b is, by duality, the
minimum over ρ of

    φ(ρ) = L(ρ) + Ψ(s) + ‖b + γ_b Σρ_i‖²/(2γ_b),      s_m = ‖β_m + γ_m ρ‖_{K_m}

    Ψ(s) = Σ_m s_m²/(2γ_m) − min over z ≥ 0 of Ω(z) + Σ_m (z_m − s_m)²/(2γ_m)

with L from the loss (loss_terms.py). The minimizing z is the prox of Ω at s. The new
coefficients are (z_m/s_m)(β_m + γ_m ρ), and the new bias is b + γ_b Σρ. With g_m =
K_m(β_m + γ_m ρ)/s_m and J = ∂z/∂s,

    ∇φ  = −f(ρ) + Σ_m z_m g_m + b + γ_b Σρ
    ∇²φ = −f'(ρ) + Σ_m θ_m K_m + Σ_{m,l} g_m (J_ml γ_l − [m=l] θ_m) g_lᵀ + γ_b 11ᵀ,

θ_m = γ_m z_m/s_m. Only kernels with z_m > 0 enter. For the group lasso J is the
identity on them, and this is eq. (9) of the paper.

Along a direction Δ the norms are ‖x + tγΔ‖² = ⟨x, Kx⟩ + 2tγ⟨Δ, Kx⟩ + t²γ²⟨Δ, KΔ⟩: one
product K_mΔ for each kernel of the working set serves the whole line search.

Reference: Suzuki and Tomioka (2009), sections 3.1 to 3.4 and appendix A, for any Ω.
"""

from typing import Any, NamedTuple

import numpy as np

from ...problem import Problem
from ..machines.feature_system import system
from ..machines.machine import Array, carried
from .loss_terms import smoothed

ARMIJO = 0.1  # the part of the predicted decrease that a Newton step must reach
MAX_HALVINGS = 50  # of one Newton step


class Gammas(NamedTuple):
    """One number for each kind of variable: kernels (M,), bias, predictions."""

    kernels: Array
    bias: float
    loss: float

    def scaled(self, factor: float) -> "Gammas":
        """All of them times a factor."""
        return Gammas(factor * self.kernels, factor * self.bias, factor * self.loss)


class Point(NamedTuple):
    """φ at one ρ. Arrays have one entry per kernel of the working set."""

    rho: Array
    KR: Array  # K_m ρ
    square: Array  # ⟨x, K x⟩ of x = β + γρ
    s: Array
    z: Array
    scale: Array  # z/s
    gradient: Array
    value: float


class Lagrangian:
    """φ at the current β, b, γ. Kernels outside the working set count as unused."""

    def __init__(self, problem: Problem, gammas: Gammas, B: Array, bias: Any):
        grams, self.problem = problem.grams, problem
        self.k = int(np.prod(problem.shape[1:], dtype=int))
        self.B = np.array(B, float).reshape(grams.M, grams.n, self.k)
        self.KB = np.array(grams.apply(self.B))
        self.bias = np.broadcast_to(np.asarray(bias, float), (self.k,))
        f = np.sum(self.KB, axis=0) + self.bias
        self.side = smoothed(problem, f.reshape(problem.shape))
        self.work = np.array([], int)
        self.penalize(gammas)

    def penalize(self, gammas: Gammas) -> None:
        """Use other γ."""
        self.gammas = gammas
        self.side.gamma = gammas.loss

    # ---- φ ------------------------------------------------------------------------

    def enter(self, work: Array, rho: Array, last: Point | None = None) -> Point:
        """Use another working set; only kernels that are new cost a product."""
        part, x = self.problem.grams.subset(work), self._column(rho)
        if last is None:
            KR = part.matvec(x)
        else:
            KR = carried(part, x, work, self.work, last.KR)
        self.work = work
        return self.at(rho, KR)

    def at(self, rho: Array, KR: Array) -> Point:
        """φ, its gradient and its parts at ρ, from K_mρ."""
        x, Kx = self._moved_to(rho, KR)
        square = np.maximum(np.sum(x * Kx, axis=(1, 2)), 0.0)
        s = np.sqrt(square)
        z = self.prox(s)
        scale = np.where(z > 0, z / np.maximum(s, 1e-300), 0.0)
        predicted = np.tensordot(scale, Kx, axes=1) + self._bias_at(rho)
        gradient = predicted.reshape(rho.shape) - self.side.point(rho)
        return Point(rho, KR, square, s, z, scale, gradient, self._value(rho, s, z))

    def _column(self, rho: Array) -> Array:
        return rho.reshape(self.problem.grams.n, self.k)

    def _moved_to(self, rho: Array, KR: Array) -> tuple[Array, Array]:
        """x = β + γρ and Kx on the working set."""
        W, gamma = self.work, self.gammas.kernels[self.work][:, None, None]
        return self.B[W] + gamma * self._column(rho), self.KB[W] + gamma * KR

    def _bias_at(self, rho: Array) -> Array:
        if not self.problem.bias:
            return np.zeros(self.k)
        return self.bias + self.gammas.bias * np.sum(self._column(rho), axis=0)

    def _whole(self, part: Array) -> Array:
        """(M,): numbers of the working set, and 0 for all other kernels."""
        out = np.zeros(self.problem.grams.M)
        out[self.work] = part
        return out

    def prox(self, s: Array) -> Array:
        """prox of Ω at s, on the working set."""
        whole = self.problem.formulation.prox(self._whole(s), self.gammas.kernels)
        return whole[self.work]

    def _value(self, rho: Array, s: Array, z: Array) -> float:
        gamma = self.gammas.kernels[self.work]
        total = self.side.value(rho) + float(np.sum((s - 0.5 * z) * z / gamma))
        total -= self.problem.formulation.value(self._whole(z))
        if self.problem.bias:
            total += float(np.sum(self._bias_at(rho) ** 2)) / (2 * self.gammas.bias)
        return total

    # ---- Newton -------------------------------------------------------------------

    def newton(self, point: Point) -> Point:
        """One step of Newton's method with Armijo's rule."""
        return self._search(point, self.direction(point))

    def direction(self, point: Point) -> Array:
        """Newton's direction at a point, from the active kernels alone."""
        active = np.flatnonzero(point.z > 0)
        W = self.work[active]
        gamma = self.gammas.kernels[W]
        theta = gamma * point.scale[active]
        constant = self.gammas.bias if self.problem.bias else 0.0
        x, Kx = self._moved_to(point.rho, point.KR)
        X, G = (part[active] / point.s[active, None, None] for part in (x, Kx))
        whole, steps = self._whole(point.s), self.gammas.kernels
        J = self.problem.formulation.prox_slope(whole, steps)
        N = 0.5 * (J * gamma + (J * gamma).T) - np.diag(theta)
        hessian = system(self.problem.grams, W, theta, constant, X, G, N)
        return self.side.newton(point.rho, point.gradient, hessian)

    def _search(self, point: Point, delta: Array) -> Point:
        gamma = self.gammas.kernels[self.work]
        KD = self.problem.grams.subset(self.work).matvec(self._column(delta))
        _, Kx = self._moved_to(point.rho, point.KR)
        cross = gamma * np.sum(self._column(delta) * Kx, axis=(1, 2))
        bend = gamma**2 * np.sum(self._column(delta) * KD, axis=(1, 2))
        falls = float(np.sum(point.gradient * delta))
        rounding = 1e-14 * abs(point.value)
        t = self.side.longest(point.rho, delta)
        for _ in range(MAX_HALVINGS):
            rho = point.rho + t * delta
            s = np.sqrt(np.maximum(point.square + 2 * t * cross + t * t * bend, 0.0))
            allowed = point.value + ARMIJO * t * falls + rounding
            if self._value(rho, s, self.prox(s)) <= allowed or -t * falls < rounding:
                break
            t *= 0.5
        return self.at(point.rho + t * delta, point.KR + t * KD)

    # ---- the proximal step --------------------------------------------------------

    def _stepped(self, point: Point) -> tuple[Array, Array]:
        """(z/s)(β + γρ) and its products with K, on the working set."""
        x, Kx = self._moved_to(point.rho, point.KR)
        scale = point.scale[:, None, None]
        return scale * x, scale * Kx

    def coefficients(self, point: Point) -> Array:
        """(M, n[, k]): the coefficients after the step."""
        out = np.zeros_like(self.B)
        out[self.work] = self._stepped(point)[0]
        return out.reshape(self.problem.grams.M, *self.problem.shape)

    def _lengths(self, point: Point) -> Array:
        """‖Δβ_m‖² of the step, on the working set."""
        B, KB = self._stepped(point)
        square = (B - self.B[self.work]) * (KB - self.KB[self.work])
        return np.maximum(np.sum(square, axis=(1, 2)), 0.0)

    def residuals(self, point: Point) -> tuple[float, float, float]:
        """By how much ρ violates the dual constraints: the step, divided by γ."""
        gamma = self.gammas.kernels[self.work]
        kernels = float(np.sqrt(np.sum(self._lengths(point) / gamma**2)))
        bias = float(np.linalg.norm(np.sum(self._column(point.rho), axis=0)))
        loss = np.sqrt(2 * self.side.moved(point.rho) / self.gammas.loss)
        return kernels, bias if self.problem.bias else 0.0, float(loss)

    def unsolved(self, point: Point) -> float:
        """The distance of φ from its minimum, relative to the length of the step."""
        moved = float(np.sum(self._lengths(point) / self.gammas.kernels[self.work])) / 2
        if self.problem.bias:
            shift = np.sum(self._column(point.rho), axis=0)
            moved += 0.5 * self.gammas.bias * float(np.sum(shift**2))
        moved += self.side.moved(point.rho)
        return self.side.residual_cost(point.rho, point.gradient) / max(moved, 1e-300)

    def accept(self, point: Point) -> None:
        """Make the proximal step."""
        self.bias = self._bias_at(point.rho)
        self.B[self.work], self.KB[self.work] = self._stepped(point)
        self.side.accept(point.rho)
