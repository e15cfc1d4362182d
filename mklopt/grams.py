"""GramStack: the only way to touch kernel matrices, and a counter of passes over them.

    quad(A)         (tr AᵀK_mA)_m          A is (n,) or (n, k)
    matvec(A)       (K_m A)_m              one pass: quadratic forms and predictions
    apply(B)        (K_m B_m)_m            one matrix of coefficients per kernel
    combine(theta)  Σ θ_m K_m
    rows(i)         (M, n) rows i          diag()  (M, n)       subset(active)

One pass = touching all M n² entries once.

What the numbers mean. GramStack(K): the float64 entries are the kernels, exactly.
GramStack.from_factors(L): the factors are the data and K_m := L_m L_mᵀ, positive
semi-definite by construction; `entry_error` bounds the rounding of the product,
|K̂ − K|_ij ≤ entry_error · √(K_ii K_jj), and is 0 when the product was exact.
`shift` is the δ of the kernels K_m + δ_m I that are certified; `proof` says why they
are positive semi-definite.

Reference for verify_psd: Rump (2006), "Verification of positive definiteness".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy.linalg

from .arrays import real_array

Array = np.ndarray
U = 2.0**-53  # unit round-off


def gamma(n: int) -> float:
    """γ_n = n u/(1 − n u): the error of an n-term inner product in any order."""
    return n * U / (1 - n * U)


class GramStack:
    """M symmetric kernel matrices of size n × n, validated and read-only."""

    def __init__(self, K: Array):
        if isinstance(K, GramStack):
            raise ValueError("this is a GramStack already; use it as it is")
        self.K = _validated(K)
        self.M, self.n = self.K.shape[:2]
        self.factors: Sequence[Array] | None = None
        self.entry_error = 0.0
        self.shift = np.zeros(self.M)
        self.proof = ""  # why the kernels are positive semi-definite; empty: assumed
        self.passes = 0.0

    @classmethod
    def from_factors(cls, factors: Sequence[Array]) -> GramStack:
        """Kernels K_m = L_m L_mᵀ from factors L_m (n × r_m): they are the data."""
        if factors is None or not hasattr(factors, "__iter__"):
            raise ValueError(
                "factors must be a list of (n, r) matrices, one per kernel"
            )
        factors = [real_array(L, "a factor", "an (n, r) matrix") for L in factors]
        if not factors or any(
            L.ndim != 2 or len(L) != len(factors[0]) for L in factors
        ):
            shapes = [L.shape for L in factors]
            raise ValueError(
                f"factors have shapes {shapes}; give one (n, r) matrix per kernel, "
                "all with the same n"
            )
        stack = cls(np.stack([L @ L.T for L in factors]))
        stack.factors = factors
        stack.proof = "factors"
        if not all(map(_product_is_exact, factors)):
            stack.entry_error = gamma(max(L.shape[1] for L in factors) + 2)
        return stack

    def __len__(self) -> int:
        return self.M

    def __repr__(self) -> str:
        return f"GramStack(M={self.M}, n={self.n})"

    # ---- the operations -----------------------------------------------------------

    def matvec(self, A: Array) -> Array:
        self.passes += 1
        flat = self.K.reshape(self.M * self.n, self.n) @ A
        return flat.reshape(self.M, *A.shape)

    def quad(self, A: Array) -> Array:
        return self.inner(A, None if self.factors is not None else self.matvec(A))

    def inner(self, A: Array, KA: Array | None) -> Array:
        """(⟨A, K_m A⟩)_m from what matvec returned; sharper from factors: ‖L_mᵀA‖²."""
        if self.factors is not None:
            return np.array([np.sum((L.T @ A) ** 2) for L in self.factors])
        assert KA is not None
        return KA.reshape(self.M, -1) @ A.ravel()

    def apply(self, B: Array) -> Array:
        self.passes += 1
        columns = B.reshape(self.M, self.n, -1)
        return np.matmul(self.K, columns).reshape(B.shape)

    def combine(self, theta: Array) -> Array:
        self.passes += 1
        flat = self.K.reshape(self.M, -1)
        return np.asarray(np.asarray(theta) @ flat).reshape(self.n, self.n)

    def rows(self, i: int | Array) -> Array:
        return self.K[:, i]

    def diag(self) -> Array:
        return self._diag

    @cached_property
    def _diag(self) -> Array:
        return _frozen(np.einsum("mii->mi", self.K).copy())

    def root_diag(self, shift: Array) -> Array:
        """Upper bounds of √(K_ii + δ): by Cauchy–Schwarz they bound |K_ij|, i ≠ j."""
        bound = np.maximum(self._diag, 0.0) + shift[:, None]
        return np.asarray(np.sqrt(bound) * (1 + gamma(4)))

    @cached_property
    def row_norms(self) -> Array:
        """Upper bounds of ‖K_i‖: with them |K| |A| ≤ ‖K_i‖ ‖A‖, whatever the signs."""
        top = np.max(np.abs(self.K), axis=2)  # scaled: no square leaves the range
        part = self.K / np.where(top > 0, top, 1.0)[:, :, None]
        norms = top * np.sqrt(np.einsum("mij,mij->mi", part, part))
        return _frozen(norms * (1 + gamma(self.n + 8)))

    def subset(self, active: Array) -> GramStack:
        """The stack of the kernels named by indices or a mask."""
        index = np.arange(self.M)[active]
        part = GramStack.__new__(GramStack)
        part.__dict__.update(
            K=_frozen(self.K[index]),
            M=len(index),
            n=self.n,
            factors=None if self.factors is None else [self.factors[m] for m in index],
            entry_error=self.entry_error,
            shift=self.shift[index],
            proof=self.proof,
            passes=0.0,
        )
        return part

    # ---- positive semi-definiteness -------------------------------------------------

    def verify_psd(self) -> Array:
        """Prove K_m + δ_m I ⪰ 0 and return δ, as small as the proof allows.

        A Cholesky factorization of K − cI that runs to completion in floating point
        proves K ⪰ 0 when c ≥ γ_{n+1} tr K / (1 − γ_{n+1}) (Rump; we take twice that, as
        room for the rounding of the shift). Where it breaks down, δ grows from 2c on.
        """
        if self.proof:
            return self.shift
        bound = gamma(self.n + 2) / (1 - 2 * gamma(self.n + 2))
        delta = np.zeros(self.M)
        for m in range(self.M):
            trace = float(np.sum(np.maximum(self._diag[m], 0.0)))
            if not np.isfinite(trace):
                raise ValueError(f"kernel {m} is too large for float64; rescale it")
            for attempt in range(60):
                delta[m] = 0.0 if attempt == 0 else 2.0**attempt * bound * trace
                # tr(K + δI) enters the bound, and so does rounding when δ − c is added.
                c = 2 * bound * (trace + self.n * delta[m]) + 1e-300
                if _cholesky_runs(self.K[m], delta[m] - c):
                    break
            if delta[m] > 1e-6 * trace or (trace == 0 and np.any(self.K[m])):
                raise ValueError(
                    f"kernel {m} is not positive semi-definite: it would take a shift "
                    f"of {delta[m]:.1e} on a trace of {trace:.1e}; check how it was "
                    "computed, or clip its negative eigenvalues"
                )
        self.shift, self.proof = _frozen(delta), "Cholesky"
        return self.shift


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _validated(K: Array) -> Array:
    single = getattr(K, "dtype", None) in (np.float32, np.float16)
    close = 1e-4 if single else 1e-10  # how far rounding may spoil symmetry
    K = real_array(K, "K", "an (M, n, n) array of numbers")
    if K.ndim != 3 or K.shape[1] != K.shape[2] or 0 in K.shape:
        raise ValueError(
            f"K has shape {K.shape}; expected (M, n, n), one square matrix per kernel "
            "(a single kernel is K[None])"
        )
    for m, kernel in enumerate(K):
        if not np.all(np.isfinite(kernel)):
            raise ValueError(
                f"kernel {m} has NaN or infinite entries; clean the data it comes from"
            )
        top = float(np.max(np.abs(kernel)))
        if float(np.max(np.abs(kernel - kernel.T))) > close * top:
            raise ValueError(
                f"kernel {m} is not symmetric; pass (K + K.transpose(0, 2, 1))/2 if "
                "the difference is only rounding"
            )
        if float(np.min(np.diag(kernel))) < -close * top:
            raise ValueError(
                f"kernel {m} has a negative diagonal entry, so it is not positive "
                "semi-definite; check how it was computed"
            )
        # From here on the matrix is exactly symmetric.
        kernel[:] = 0.5 * (kernel + kernel.T)
    return _frozen(K)


def _product_is_exact(L: Array) -> bool:
    """True when L Lᵀ has no rounding: entries on a dyadic grid, sums below 2^53."""
    top = float(np.max(np.abs(L), initial=0.0))
    if top == 0:
        return True
    for bits in range(26):
        grid = 2.0 ** (np.ceil(np.log2(top)) - bits)
        if np.all(np.rint(L / grid) * grid == L):
            return bool((top / grid) ** 2 * L.shape[1] < 2.0**53)
    return False


def _cholesky_runs(K: Array, shift: float) -> bool:
    shifted = np.array(K, order="F")
    shifted[np.diag_indices_from(shifted)] += shift
    _, info = scipy.linalg.lapack.dpotrf(shifted, lower=1, overwrite_a=1, clean=0)
    return bool(info == 0)
