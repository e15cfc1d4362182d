"""Linear systems of Newton's methods with factors, without n × n matrices.

    (D + RᵀAR) x = r,      A = (Σθ_mL_mL_mᵀ + c 11ᵀ) ⊗ I_k + G N Gᵀ,      θ > 0

as in linear.py, where the L_m have few columns and G has the columns L_mu_m, |u_m| = 1.
With F the factors side by side, and U all u_m in their places, A is for one output

    A = VVᵀ,    V = (F √Θ (I + U (P^½ − I) Uᵀ), √c 1),    P = I + Θ^−½ N Θ^−½ ⪰ 0,

because UᵀU = I. By Woodbury's identity with Z = RV

    x = D⁻¹ (r − Z (I + ZᵀD⁻¹Z)⁻¹ ZᵀD⁻¹r):

one unknown per column. For k outputs conjugate gradients need products alone.

Rounding. The small system is symmetric and at least I, also if columns depend on each
other. What it leaves of r is up to ε |ZZᵀ|/D of it: where x is as large as r/D, this is
what a factorization of the large matrix leaves, too. Iterative refinement improves the
rest, but with an error of the small system of ε |ZZᵀ|/D it can also diverge: a step is
kept only if it makes the residual smaller.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ...grams.stack import GramStack
from .linear import Array, System

SMALL_RESIDUAL, MAX_REFINEMENTS = 1e-12, 3  # relative to the right side


class FactorSum:
    """K = Σθ_mL_mL_mᵀ + c 11ᵀ, by products with the factors."""

    def __init__(self, grams: GramStack, theta: Array, constant: float = 0.0):
        self.grams, self.panel, self.constant = grams, grams.panel(), constant
        self.theta, self.w = theta, theta[grams.owner]

    def __len__(self) -> int:
        return self.panel.n

    def diagonal(self) -> Array:
        """The diagonal of K."""
        return np.asarray(self.theta @ self.grams.diag() + self.constant)

    def __matmul__(self, x: Array) -> Array:
        columns = x.reshape(len(x), -1)
        self.grams.count_reads(2)
        found = self.panel.unfold(self.w[:, None] * self.panel.fold(columns))
        return (found + self.constant * np.sum(columns, axis=0)).reshape(x.shape)


class FeatureSystem:
    """A by its parts; the same methods as System.

    X: (active, n, k), L_mᵀX_m = u_m; G: (n k, active); N: (active, active)
    """

    def __init__(self, K: FactorSum, X: Array, G: Array, N: Array):
        self.K, self.G, self.N, self.k = K, G, N, X.shape[2]
        if self.k > 1:
            return
        grams, roots = K.grams, np.sqrt(K.theta)
        self.root = np.append(np.sqrt(K.w), np.sqrt(K.constant))
        self.U = np.zeros((len(self.root), len(X)))
        for m, x in enumerate(X):
            self.U[:-1][grams.owner == m, m] = _column(grams, m, x)
        values, Q = np.linalg.eigh(np.eye(len(N)) + N / np.outer(roots, roots))
        values = np.sqrt(np.maximum(values, 0.0))  # below 0 by rounding
        self.bend = (Q * values) @ Q.T - np.eye(len(N))
        grams.count_reads(1)

    @property
    def trace(self) -> float:
        """The trace of K."""
        return float(np.sum(self.K.diagonal()))

    def solve(self, right: Array, D: Array, R: Array | None = None) -> Array:
        """(D + RᵀAR)⁻¹ right, in the shape of right, (n,) or (n, k)."""
        if self.k > 1:
            by_products = System(self.K, self.G, self.N, self.k)
            return by_products.iterate(right, D, R).reshape(right.shape)
        R = np.ones(len(right)) if R is None else R
        factor = self._factorized(R**2 / D)
        x, left, enough = np.zeros_like(right), right, SMALL_RESIDUAL * _size(right)
        for _ in range(1 + MAX_REFINEMENTS):
            if (size := _size(left)) <= enough:
                break
            new = x + self._woodbury(left, D, R, factor)
            left = right - D * new - R * self._up(self._down(R * new))
            if not _size(left) < size:
                break
            x = new
        return x

    def _woodbury(self, right: Array, D: Array, R: Array, factor: Array) -> Array:
        down = self._down(R * right / D)
        inner = scipy.linalg.cho_solve((factor, True), down, check_finite=False)
        return _finite((right - R * self._up(inner)) / D)

    def _factorized(self, d: Array) -> Array:
        """The Cholesky factor of I + Vᵀ diag(d) V."""
        panel, root = self.K.panel, self.root
        self.K.grams.count_reads(1)
        inner = root[:, None] * panel.gram(np.arange(panel.n), d) * root
        inner = self._bent(self._bent(inner).T)
        inner[np.diag_indices_from(inner)] += 1
        return np.asarray(scipy.linalg.cholesky(_finite(inner), lower=True))

    def _bent(self, x: Array) -> Array:
        """(I + U (P^½ − I) Uᵀ) x."""
        return x + self.U @ (self.bend @ (self.U.T @ x))

    def _down(self, x: Array) -> Array:
        """Vᵀx."""
        self.K.grams.count_reads(1)
        folded = self.K.panel.fold(x[:, None])[:, 0]
        return self._bent(self.root * np.append(folded, np.sum(x)))

    def _up(self, c: Array) -> Array:
        """V c."""
        self.K.grams.count_reads(1)
        c = self.root * self._bent(c)
        return np.asarray(self.K.panel.unfold(c[:-1, None])[:, 0] + c[-1])


def _column(grams: GramStack, m: int, x: Array) -> Array:
    """L_mᵀx, for x of shape (n, 1)."""
    return grams.subset(np.array([m])).panel().fold(x)[:, 0]


def _size(x: Array) -> float:
    return float(np.max(np.abs(x)))


def _finite(x: Array) -> Array:
    if not np.all(np.isfinite(x)):
        raise FloatingPointError(
            "the Newton system of the augmented Lagrangian overflows"
        )
    return x


def system(
    grams: GramStack,
    kernels: Array,
    theta: Array,
    constant: float,
    X: Array,
    KX: Array,
    N: Array,
) -> System | FeatureSystem:
    """The system of some kernels with θ > 0, with G of the columns K_mX_m.

    X, KX: (kernels, n, k). Factors are used without the matrix.
    """
    G = KX.reshape(len(KX), KX.shape[1] * KX.shape[2]).T
    if not grams.in_feature_space:
        K = grams.combine(np.bincount(kernels, theta, grams.M))
        return System(K + constant, G, N, X.shape[2])
    if len(kernels) == 0:
        kernels, theta = np.zeros(1, int), np.zeros(1)
    return FeatureSystem(FactorSum(grams.subset(kernels), theta, constant), X, G, N)
