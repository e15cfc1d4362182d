"""Products with the kernels, summed up with bounds of their rounding errors.

    Products     from K_mA itself: one pass, the kernels in parts (grams/norms.py), so
                 that nothing of the size (M, n) is kept when M is large
    Combined     from Σθ_mK_m and ⟨α, K_mα⟩ that the stack remembers: no pass

Both have `above`, upper bounds of the norms ‖A‖_{K_m}, and `predictions`, f with a
bound of its error and upper bounds of u_m = ‖w_m‖. The kernels are K_m + δ_m I, with
|K_ij| ≤ r_i r_j, r_i = √(K_ii + δ) (Cauchy–Schwarz): no second pass.

Guarantee. Bounds hold in exact arithmetic. Error bounds are sums of non-negative
numbers, computed in float64; `ERROR_MARGIN` covers the rounding of these sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..grams.stack import GramStack
from ..util.rounding import TINY, U, gamma, length_above, length_below

Array = np.ndarray
ERROR_MARGIN = 1 + 1e-6  # for the rounding of the error bounds themselves
ENTRY = 16  # roundings that an entry of Σθ_mK_m has besides those of the sum


class Sums(NamedTuple):
    """Sums over kernels of what one part of them adds to f and its error."""

    f: Array  # Σθ_m K_mA
    magnitude: Array  # Σθ_m |K_mA|
    error: Array  # of K_mA, times θ_m
    shifted: Array | None = None  # Σθ_mδ_m A, and a bound of its error
    shifted_error: Array | None = None


class PointBounds(Protocol):
    """What is bounded at a point: see Products, Combined, FeatureBounds."""

    above: Array  # (M,) upper bounds of the norms of α

    def predictions(self, bias: Any) -> tuple[Array, Array, Array]:
        """f, a bound of its error, and upper bounds of u_m = ‖w_m‖."""


class Products:
    """K_m A, its error bound, and upper bounds of the norms ‖A‖_{K_m}.

    A is one set of coefficients for all kernels, or one per kernel (M, n[, k]). The
    error of (K_m A)_i is at most r_mi · spread_m + TINY.

    Parameters
    ----------
    grams : GramStack
    A : array (n,) or (n, k), or (M, n) or (M, n, k) with KA
    theta : array (M,) or None
        θ of w_m = θ_m Σ_i A_i ψ_m(x_i); None: 1.
    shift : array (M,)
        δ.
    KA : array (M, n) or (M, n, k), optional
        The products; otherwise they are computed, part by part.
    kernels : array of int, optional
        Only these kernels are in use. `rest` (M,) bounds the norms of all others.

    Attributes
    ----------
    plain : array
        The norms in plain float64, of the kernels in use.
    above : array (M,)
        Upper bounds of the norms.
    below : array
        Lower bounds of the norms, of the kernels in use.
    """

    def __init__(
        self,
        grams: GramStack,
        A: Array,
        theta: Array | None,
        shift: Array,
        *,
        KA: Array | None = None,
        kernels: Array | None = None,
        rest: Array | None = None,
    ):
        self.total, self.kernels = grams.M, kernels
        theta = np.ones(grams.M) if theta is None else theta
        if kernels is not None:  # all others have weight 0
            grams, shift, theta = grams.subset(kernels), shift[kernels], theta[kernels]
        self.grams, self.theta, self.shift = grams, theta, shift
        own = KA is not None and A.ndim == KA.ndim
        self.own, self.shape = own, A.shape[1:] if own else A.shape
        k = int(np.prod(self.shape[1:], dtype=int))
        plain, above, sums = np.empty(grams.M), np.empty(grams.M), None
        below = np.empty(grams.M)
        for part, stack in grams.parts(k):
            B = A[part] if own else A
            images = stack.matvec(B) if KA is None else KA[part]
            if not own:
                plain[part] = stack.norms(B, images)
            delta = shift if stack is grams else shift[part]
            one = _Part(stack, B, images, delta, own)
            above[part], below[part] = one.above, one.below
            sums = _added(sums, one.sums(theta[part], grams.M))
        assert sums is not None
        self.sums, self.plain, self._above = sums, plain, above
        self.above = self._among(rest, above)
        self.below = below

    @property
    def f(self) -> Array:
        """Σθ_m K_mA."""
        return self.sums.f.reshape(self.shape)

    def predictions(self, bias: Any) -> tuple[Array, Array, Array]:
        """f, a bound of its error, and upper bounds of u_m = ‖w_m‖."""
        M, sums, theta = self.grams.M, self.sums, self.theta
        f, magnitude = sums.f + bias, sums.magnitude + np.abs(bias)
        error = sums.error + gamma(M + 4) * magnitude * ERROR_MARGIN
        error += TINY * (float(np.sum(theta)) + 8)
        if sums.shifted is not None:
            f = f + sums.shifted
            error += sums.shifted_error
            error += 8 * U * np.abs(f)
        u = block_norms(theta, self._above)
        u = u if self.kernels is None else self._among(np.zeros(self.total), u)
        return f, error * ERROR_MARGIN + 4 * U * np.abs(f), u

    @property
    def norms_below(self) -> Array:
        """Lower bounds of u_m = ‖w_m‖, of the kernels in use."""
        return np.asarray(self.theta * self.below * (1 - 4 * U))

    def _among(self, rest: Array | None, own: Array) -> Array:
        """A number for every kernel: `rest` for those that were left out."""
        if self.kernels is None or rest is None:
            return own
        out = np.array(rest)
        out[self.kernels] = own
        return out


def block_norms(theta: Array, above: Array) -> Array:
    """Upper bounds of θ_m‖A‖ from those of ‖A‖."""
    u = theta * above * (1 + 4 * U)
    u += TINY * ((theta > 0) & (above > 0))
    return np.asarray(u)


def _added(sums: Sums | None, more: Sums) -> Sums:
    if sums is None:
        return more
    pairs: Any = zip(sums, more)
    return Sums(*(b if a is None else a if b is None else a + b for a, b in pairs))


class _Part:
    """The products of one part of the kernels, with all bounds."""

    def __init__(self, grams: GramStack, A: Array, KA: Array, shift: Array, own: bool):
        M, n = grams.M, grams.n
        self.grams, self.shift = grams, shift
        self.columns = A.reshape((M if own else 1, n, -1))
        self.KA = KA.reshape(M, n, -1)
        self.size, size = np.abs(self.KA), np.abs(self.columns)
        self.roots = grams.root_diag(shift)
        if len(size) == 1:
            sums = self.roots @ size[0]
        else:
            sums = np.einsum("mi,mik->mk", self.roots, size)
        sums += TINY
        terms = int(np.max(np.count_nonzero(size, axis=1)))  # zeros add no rounding
        chain = grams.chain(terms)
        self.spread = gamma(chain) * sums * ERROR_MARGIN + chain * TINY
        factored = grams.storage == "factors"
        norms, below = self._lengths() if factored else self._norms(size, sums)
        shift = shift * (np.sum(size**2, axis=(1, 2)) + TINY) * ERROR_MARGIN
        norms = np.hypot(norms, np.sqrt(shift)) * (1 + 8 * U) + TINY
        used = np.any(size, axis=(1, 2))  # nothing is lost where A = 0
        self.above = np.where(used, norms, 0.0)
        self.below = np.where(used, below, 0.0)  # without δ

    def _norms(self, size: Array, sums: Array) -> tuple[Array, Array]:
        """Bounds of √⟨A, K A⟩ from K A: its error, and that of the product."""
        M, terms = self.grams.M, self.grams.n * size.shape[2]
        KA, absolute = self.KA.reshape(M, -1), self.size.reshape(M, -1)
        error = np.sum(self.spread * sums, axis=1)
        if len(size) == 1:
            quad, second = KA @ self.columns.ravel(), absolute @ size.ravel()
        else:
            quad = np.sum(KA * self.columns.reshape(M, -1), axis=1)
            second = np.sum(absolute * size.reshape(M, -1), axis=1)
        error += gamma(terms + 2) * second
        error += TINY * (np.sum(size, axis=(1, 2)) + 4)
        above = np.sqrt(np.maximum(quad + error * ERROR_MARGIN, 0.0)) * (1 + 4 * U)
        below = np.sqrt(np.maximum(quad - error * ERROR_MARGIN, 0.0)) * (1 - 4 * U)
        return above, below

    def _lengths(self) -> tuple[Array, Array]:
        """Bounds of ‖LᵀA‖: nothing cancels, so they are tight where it is 0."""
        assert self.grams.factors is not None
        above, below = [], []
        for m, L in enumerate(self.grams.factors):
            A = self.columns[m if len(self.columns) > 1 else 0]
            error = gamma(len(L) + 2) * (np.abs(L).T @ np.abs(A)) * ERROR_MARGIN
            h, error = np.abs(L.T @ A), error + 2 * TINY
            above.append(length_above(h + error))
            below.append(length_below(np.maximum(h - error, 0.0)))
        return np.array(above) * (1 + 4 * U), np.array(below) * (1 - 4 * U)

    def sums(self, theta: Array, M: int) -> Sums:
        """What these kernels add to f and to its error; M is the number of all."""
        found = Sums(
            np.tensordot(theta, self.KA, axes=1),
            np.tensordot(theta, self.size, axes=1),
            self.roots.T @ (theta[:, None] * self.spread + TINY),
        )
        if not np.any(self.shift):
            return found
        weight = theta * self.shift
        full = np.broadcast_to(self.columns, self.KA.shape)
        shifted = np.tensordot(weight, full, axes=1)
        weight = gamma(M + 8) * weight + TINY
        error = np.tensordot(weight, np.abs(full), axes=1)
        return found._replace(shifted=shifted, shifted_error=error)


class Combined:
    """The same bounds from K = Σθ_mK_m and the norms that the stack remembers.

    The error of K_ij is at most γ_{M+16} Σθ_m|K_m,ij| ≤ γ_{M+16} √(D_iD_j) with
    D_i = Σθ_m(K_m,ii + δ_m), and D comes from the diagonal of K. So no kernel is read.

    Parameters
    ----------
    grams : GramStack
        The kernels in use were read at A, all others are bounded there, and combine(θ)
        is remembered; see `is_known`.
    A : array (n,) or (n, k)
    theta : array (M,)
    kernels : array of int
        Those in use, for `plain`.
    """

    def __init__(self, grams: GramStack, A: Array, theta: Array, kernels: Array):
        plain, self.above, _ = grams.norms_above(A)
        self.plain = plain[kernels]
        self.theta, self.M, self.shift = theta, grams.M, float(theta @ grams.shift)
        K, self.columns = grams.combine(theta), A.reshape(grams.n, -1)
        self.f = K @ A
        many = gamma(grams.M + ENTRY)
        more = 2 * self.shift * (1 + many) + TINY
        D = (np.maximum(np.diag(K), 0.0) + more) * (1 + 4 * many)
        root = np.sqrt(D) * (1 + 4 * U)
        sums = root @ np.abs(self.columns)
        self.error = (many + gamma(grams.n + 4)) * np.outer(root, sums)
        self.error += TINY * (np.sum(np.abs(self.columns), axis=0) + grams.n)

    @classmethod
    def is_known(cls, grams: GramStack, A: Array, theta: Array, kernels: Array) -> bool:
        """Whether the stack remembers all that is needed."""
        if not grams.bounds_norms or not grams.remembers_combine(theta):
            return False
        _, above, read = grams.norms_above(A)
        return bool(np.all(read[kernels]) and np.all(np.isfinite(above)))

    def predictions(self, bias: Any) -> tuple[Array, Array, Array]:
        """f, a bound of its error, and upper bounds of u_m = ‖w_m‖."""
        f = self.f.reshape(self.columns.shape) + bias
        error = self.error + 4 * U * np.abs(bias)
        if self.shift:
            f = f + self.shift * self.columns
            weight = gamma(self.M + 8) * self.shift + TINY
            error = error + weight * np.abs(self.columns)
        error = error * ERROR_MARGIN + 8 * U * np.abs(f)
        return f, error, block_norms(self.theta, self.above)
