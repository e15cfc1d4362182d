"""Losses with k outputs: the multi-class hinge and the multinomial logistic loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import log_softmax, softmax, xlogy

from .base import EDGE, INF, Loss, per_sample
from .class_terms import Margins, Softmax, least_bias
from .domains import Array, Simplex, project_simplex

LARGEST_PROGRAM = 10_000  # predictions of a linear program for the bias


def one_hot(y: Array, k: int) -> Array:
    """The rows e_y of the identity."""
    return np.eye(k)[y]


@dataclass(frozen=True)
class MulticlassHinge(Loss):
    """V = max_j (f_j + [j ≠ y]) − f_y;  V*(a) = a_y for a + e_y in the simplex.

    Reference: Crammer and Singer (2001).
    """

    labels: ClassVar[str] = "classes"
    exact: ClassVar[bool] = True
    compiled: ClassVar[tuple[str, ...]] = ("multiclass_hinge",)

    def expression(self, f: Any, y: Array) -> Any:
        """max_j (f_j + [j ≠ y]) − f_y as a CVXPY expression."""
        import cvxpy as cp

        Y = one_hot(y, f.shape[1])
        return cp.max(f + 1 - Y, axis=1) - cp.sum(cp.multiply(Y, f), axis=1)

    def value(self, f: Array, y: Array) -> Array:
        """max_j (f_j + [j ≠ y]) − f_y."""
        rows = np.arange(len(y))
        rivals = f + 1.0
        rivals[rows, y] = f[rows, y]
        return np.max(rivals, axis=1) - f[rows, y]

    def conjugate(self, a: Array, y: Array) -> Array:
        """a_y for a + e_y in the simplex."""
        return np.where(_in_simplex(a, y), a[np.arange(len(y)), y], INF)

    def margins(self, y: Array) -> Array:
        """[j ≠ y]."""
        return 1.0 - one_hot(y, int(y.max()) + 1)

    def class_terms(self, y: Array, C: Array) -> Margins:
        """Those of a loss with margins."""
        return Margins(y, C, self.margins(y))

    def gradient(self, f: Array, y: Array) -> Array:
        """e_j − e_y for a class j that attains the maximum."""
        Y = one_hot(y, f.shape[1])
        winner = np.argmax(f + 1 - Y, axis=1)
        return one_hot(winner, f.shape[1]) - Y

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        """By Moreau: the nearest point of the simplex to f/step plus margins."""
        Y, step = one_hot(y, f.shape[1]), per_sample(step, f)
        g = project_simplex((f + step * Y + 1 - Y) / step, np.ones(len(y)))
        return f + step * (Y - g)

    def domain(self, y: Array) -> Simplex:
        """a + e_y in the simplex."""
        return Simplex(y, int(y.max()) + 1)

    def best_bias(self, f: Array, y: Array, C: Array) -> Array:
        """A linear program: min Σ C ξ, ξ_i ≥ f_ij + [j ≠ y_i] + b_j − f_iy − b_y.

        With many samples by proximal steps (class_terms.py), to a gap of 1e-10.
        """
        if f.size > LARGEST_PROGRAM:
            return least_bias(self.class_terms(y, C), f)
        from scipy.optimize import linprog

        n, k = f.shape
        rows, Y = np.arange(n), one_hot(y, k)
        margin = (f + 1 - Y - f[rows, y][:, None]).ravel()
        shift = sp.csr_matrix(np.tile(np.eye(k), (n, 1)) - np.repeat(Y, k, axis=0))
        slack = sp.csr_matrix(sp.kron(sp.eye(n), -np.ones((k, 1))))
        found = linprog(
            np.concatenate([np.zeros(k), C]),
            A_ub=sp.hstack([shift, slack]).tocsr(),
            b_ub=-margin,
            bounds=[(0, 0)] + [(None, None)] * (k - 1) + [(0, None)] * n,
            method="highs",
        )
        return np.zeros(k) if found.x is None else np.asarray(found.x[:k])


@dataclass(frozen=True)
class Multinomial(Loss):
    """V = log Σ_j exp f_j − f_y;  V*(a) = Σ g log g for g = a + e_y in the simplex."""

    labels: ClassVar[str] = "classes"
    exact: ClassVar[bool] = True
    smoothness: ClassVar[float | None] = 0.5
    twice_differentiable: ClassVar[bool] = True
    compiled: ClassVar[tuple[str, ...]] = ("multinomial",)

    def expression(self, f: Any, y: Array) -> Any:
        """log Σ_j exp f_j − f_y as a CVXPY expression."""
        import cvxpy as cp

        Y = one_hot(y, f.shape[1])
        return cp.log_sum_exp(f, axis=1) - cp.sum(cp.multiply(Y, f), axis=1)

    def value(self, f: Array, y: Array) -> Array:
        """log Σ_j exp f_j − f_y, without overflow."""
        return -log_softmax(f, axis=1)[np.arange(len(y)), y]

    def conjugate(self, a: Array, y: Array) -> Array:
        """Σ g log g for g = a + e_y in the simplex."""
        g = np.clip(a + one_hot(y, a.shape[1]), 0.0, 1.0)
        return np.where(_in_simplex(a, y), np.sum(xlogy(g, g), axis=1), INF)

    def gradient(self, f: Array, y: Array) -> Array:
        """softmax(f) − e_y."""
        return softmax(f, axis=1) - one_hot(y, f.shape[1])

    def class_terms(self, y: Array, C: Array) -> Softmax:
        """Those of a softmax."""
        return Softmax(y, C, int(y.max()) + 1)

    def inverse(self, a: Array, y: Array) -> Array:
        """log(a + e_y), up to a constant per sample."""
        return np.log(a + one_hot(y, a.shape[1]))

    def root(self, a: Array, y: Array) -> Array:
        """diag(g) − g gᵀ = R Rᵀ with R = diag(√g) − g √gᵀ, as Σg = 1."""
        g = a + one_hot(y, a.shape[1])
        half = np.sqrt(g)
        diagonal = half[:, :, None] * np.eye(a.shape[1])
        return diagonal - g[:, :, None] * half[:, None, :]

    def domain(self, y: Array) -> Simplex:
        """a + e_y in the simplex."""
        return Simplex(y, int(y.max()) + 1)

    def best_bias(self, f: Array, y: Array, C: Array) -> Array:
        """Newton on the k − 1 free biases, in bounded steps that lower the loss."""
        k = f.shape[1]
        Y, b = one_hot(y, k), np.zeros(k)
        total = lambda b: float(C @ self.value(f + b, y))  # noqa: E731
        farthest = 1.0 + float(np.max(np.ptp(f, axis=1)))  # saturated: curvature is 0
        for _ in range(200):
            g = softmax(f + b, axis=1)
            slope = (C @ (g - Y))[1:]
            curve = np.diag(C @ g) - (g * C[:, None]).T @ g
            ridge = np.max(np.abs(slope)) / farthest + 1e-14 * np.trace(curve)
            if ridge == 0:
                break
            matrix = curve[1:, 1:] + ridge * 1e-3 * np.eye(k - 1)
            step = np.append(0.0, np.linalg.solve(matrix, slope))
            step *= min(1.0, farthest / np.max(np.abs(step), initial=1e-300))
            now = total(b)
            for _ in range(60):
                if total(b - step) < now:
                    break
                step = step / 2
            else:
                break
            b = b - step
        return b

    def prox(self, f: Array, y: Array, step: Array | float) -> Array:
        """Newton on z + step·softmax(z) = f + step·e_y, rows at once.

        The Jacobian I + step(diag g − g gᵀ) is at least I; halving keeps it downhill.
        """
        step = np.broadcast_to(per_sample(step, f), (len(f), 1))
        target = f + step * one_hot(y, f.shape[1])
        z = np.array(f, float)

        def merit(z: Array) -> Array:
            spread = np.sum((z - target) ** 2, axis=1) / 2
            peak = np.max(z, axis=1)
            total = peak + np.log(np.sum(np.exp(z - peak[:, None]), axis=1))
            return spread + step[:, 0] * total

        for _ in range(100):
            g = softmax(z, axis=1)
            residual = z + step * g - target
            inverse = 1 / (1 + step * g)
            left, gd = inverse * residual, inverse * g
            # Sherman and Morrison: the Jacobian is diagonal minus a rank-one term.
            above = np.sum(g * left, axis=1, keepdims=True)
            below = 1 - step * np.sum(g * gd, axis=1, keepdims=True)
            move = left + step * gd * above / below
            size, now = np.ones((len(z), 1)), merit(z)
            for _ in range(60):
                worse = merit(z - size * move) > now + 1e-15 * np.abs(now)
                if not np.any(worse):
                    break
                size[worse] /= 2
            z = z - size * move
            if np.max(np.abs(residual)) < 1e-15 * (1 + np.max(np.abs(target))):
                break
        return z


def _in_simplex(a: Array, y: Array) -> Array:
    g = a + one_hot(y, a.shape[1])
    whole = np.abs(np.sum(a, axis=1)) <= 1e-12
    return np.asarray(whole & (np.min(g, axis=1) >= -EDGE))
