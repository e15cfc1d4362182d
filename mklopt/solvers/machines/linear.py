"""Linear systems of Newton's methods: jittered Cholesky, borders, conjugate gradients.

    bordered    min ½dᵀSd − rᵀd  with  borderᵀd = sums
    System      (D + RᵀAR) x = r,      A = K ⊗ I_k + G N Gᵀ
    conjugate_gradients    S X = B, by products alone

K is an n × n kernel combination, G has one column per active kernel, D is a number per
unknown or a k × k block per sample. R (None, a number or a k × k block per sample) is a
change of variables that keeps the system well conditioned. Up to DENSE unknowns A is
formed and factorized. Above, conjugate gradients with a diagonal preconditioner need
only products with K and G.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, cg

Array = np.ndarray
JITTERS = (1e-14, 1e-12, 1e-10, 1e-8, 1e-6)  # relative to the mean diagonal entry
DENSE = 1500  # unknowns; at 1000 both ways take as long, at 2000 iterating takes half
ACCURATE, MAX_ITERATIONS = 1e-6, 500  # the relative residual of conjugate gradients


def bordered(
    system: Array, right: Array, border: Array | None, sums: Array | None = None
) -> Array | None:
    """The minimizers of ½dᵀSd − rᵀd with borderᵀd = sums (or 0), one per column.

    None if rounding has made S so indefinite that no jitter helps.
    """
    return Bordered(system, border).solve(right, sums)


class Bordered:
    """S with a border, factorized once for any number of right sides."""

    def __init__(self, system: Array, border: Array | None):
        if border is not None:  # adds a constant: borderᵀd is given
            size = float(np.trace(system)) / len(system)
            alike = border.shape[1] == 1 and np.all(border == 1)
            system = system + size * (1.0 if alike else border @ border.T)
        self.border, self.factor = border, jittered_cholesky(system)

    def solve(self, right: Array, sums: Array | None = None) -> Array | None:
        """As `bordered`."""
        border = self.border
        if self.factor is None:
            return None
        known = right if border is None else np.column_stack([right, border])
        found = scipy.linalg.cho_solve(self.factor, known, check_finite=False)
        if not np.all(np.isfinite(found)):
            return None
        if border is None:
            return np.asarray(found)
        step, across = found[:, : right.shape[1]], found[:, right.shape[1] :]
        surplus = border.T @ step - (0.0 if sums is None else sums[:, None])
        excess = np.linalg.lstsq(border.T @ across, surplus)[0]
        return np.asarray(step - across @ excess)


def jittered_cholesky(A: Array, jitters: tuple[float, ...] = JITTERS) -> Any:
    """A Cholesky factor of a matrix that rounding may have made indefinite.

    The first jitter that makes it definite is added to the diagonal; None if none does.
    """
    size = float(np.mean(np.abs(np.diag(A)))) + 1e-300
    for jitter in jitters:
        shifted = A.copy()
        shifted[np.diag_indices_from(shifted)] += jitter * size
        try:
            # LAPACK has columns where NumPy has rows: nothing is copied.
            return scipy.linalg.cho_factor(shifted.T, lower=True, overwrite_a=True)
        except ValueError:  # LinAlgError is one; so is what SciPy says of NaN
            continue
    return None


def conjugate_gradients(
    product: Callable[[Array], Array], right: Array, accurate: float, most: int
) -> Array:
    """S⁻¹ right for all columns at once, by at most so many products S X.

    It is p(S) right with one polynomial p for all columns, so that rightᵀ p(S) right is
    symmetric. It ends where the residual is small relative to the right side.
    """
    shape = right.shape
    operator = LinearOperator(
        (right.size,) * 2, lambda x: product(x.reshape(shape)).ravel(), dtype=float
    )
    found = cg(operator, right.ravel(), rtol=accurate, maxiter=most)[0]
    return np.asarray(found.reshape(shape))


def per_sample(R: Array | None, x: Array, transposed: bool = False) -> Array:
    """R x (or Rᵀ x), sample by sample."""
    if R is None:
        return x
    if R.ndim == 1:
        return R * x
    return np.einsum("iba,ib->ia" if transposed else "iab,ib->ia", R, x)


class System(NamedTuple):
    """A = K ⊗ I_k + G N Gᵀ by its parts."""

    K: Any  # (n, n), or anything with products and diagonal()
    G: Array  # (n k, active)
    N: Array  # (active, active)
    k: int

    @property
    def trace(self) -> float:
        """The trace of K."""
        return float(np.sum(self.K.diagonal()))

    def solve(self, right: Array, D: Array, R: Array | None = None) -> Array:
        """(D + RᵀAR)⁻¹ right, in the shape of right, (n,) or (n, k)."""
        how = self._dense if right.size <= DENSE else self.iterate
        return how(right, D, R).reshape(right.shape)

    def _columns(self, R: Array | None) -> Array:
        """RᵀG."""
        if R is None or R.ndim == 1:
            return self.G if R is None else R[:, None] * self.G
        parts = self.G.reshape(len(R), self.k, -1)
        return np.einsum("iba,ibm->iam", R, parts).reshape(self.G.shape)

    def _dense(self, right: Array, D: Array, R: Array | None) -> Array:
        n, k, G = len(self.K), self.k, self._columns(R)
        if k == 1:
            A = self.K.copy() if R is None else R[:, None] * self.K * R
            A[np.diag_indices_from(A)] += D
        else:
            blocks = np.eye(k)[None, :, None, :]
            if R is not None:
                blocks = np.einsum("ica,jcb->iajb", R, R)
            A = blocks * self.K[:, None, :, None]
            A[np.arange(n), :, np.arange(n), :] += D
            A = A.reshape(n * k, n * k)
        A += G @ (self.N @ G.T)
        return _factorized(A, right.ravel())

    def iterate(self, right: Array, D: Array, R: Array | None) -> Array:
        """The same by conjugate gradients, as a vector."""
        G = self._columns(R)

        def product(x: Array) -> Array:
            x = x.reshape(right.shape)
            y = self.K @ per_sample(R, x)
            y = per_sample(R, y, transposed=True) + per_sample(D, x)
            return y.ravel() + G @ (self.N @ (G.T @ x.ravel()))

        diagonal = np.einsum("im,ml,il->i", G, self.N, G).reshape(right.shape)
        own = D if D.ndim == 1 else np.diagonal(D, axis1=1, axis2=2)
        size = 1.0 if R is None else R**2 if R.ndim == 1 else np.sum(R**2, axis=1)
        spread = self.K.diagonal().reshape(-1, *[1] * (right.ndim - 1))
        inverse = 1 / np.maximum((diagonal + own + spread * size).ravel(), 1e-300)
        square, limits = (
            (right.size,) * 2,
            {"rtol": ACCURATE, "maxiter": MAX_ITERATIONS},
        )
        operator = LinearOperator(square, matvec=product, dtype=float)
        jacobi = LinearOperator(square, matvec=lambda x: inverse * x, dtype=float)
        return np.asarray(cg(operator, right.ravel(), M=jacobi, **limits)[0])


def _factorized(A: Array, right: Array) -> Array:
    """A⁻¹ right for an A that is positive definite up to rounding."""
    if not (np.all(np.isfinite(A)) and np.all(np.isfinite(right))):
        raise FloatingPointError(
            "the Newton system of the augmented Lagrangian overflows"
        )
    factor = jittered_cholesky(A, (0.0, *JITTERS))
    if factor is not None:
        return np.asarray(scipy.linalg.cho_solve(factor, right))
    values, V = np.linalg.eigh(A)  # negative eigenvalues are replaced by small ones
    values = np.maximum(values, 1e-8 * np.max(np.abs(values)) + 1e-300)
    return np.asarray(V @ ((V.T @ right) / values))
