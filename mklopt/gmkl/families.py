"""Kernel families K(d): sums, products and polynomials of given matrices.

    Sum(K)          K(d) = Σ d_m K_m
    Product(D)      K(d) = Π exp(−d_m D_m) = exp(−Σ d_m D_m), D_m distance matrices
    Polynomial(K)   K(d) = (offset + Σ d_m K_m)^degree, entry by entry

A family is whatever has M, n and

    combine(d)        K(d), (n, n), positive semi-definite for d in the set
    gradient(d, α)    ∂(αᵀK(d)α)/∂d, (M,)

These have also derivative(d, S) = ∂⟨S, K(d)⟩/∂d for a symmetric S, of which gradient is
the case ααᵀ, and cross(d, test) for new points. Both cost one pass over the matrices,
which lie in packed triangles (grams/stack.py); no loop runs over them.

Products are positive semi-definite for every d ≥ 0 when the D_m are squared Euclidean
distances (of negative type): this is not checked. Polynomials of positive
semi-definite K_m are, with offset ≥ 0 and d ≥ 0.

Reference: Varma and Babu (2009); Jain, Vishwanathan and Varma (2012).
"""

from typing import Any

import numpy as np

from ..grams.stack import GramStack
from ..util.arrays import Array, real_array
from ..util.checks import check_list, short, too_large


class KernelFamily:
    """K(d) made of S(d) = Σ d_m A_m, entry by entry: K = f(S), ∂K/∂d_m = f'(S) A_m.

    A subclass states `entries` and `slope`.

    Parameters
    ----------
    matrices : GramStack, or array of shape (M, n, n)
        A_m, one per parameter.
    """

    def __init__(self, matrices: Any):
        if not isinstance(matrices, GramStack):
            matrices = GramStack.of_symmetric(matrices)  # distances are no kernels
        self.stack, self.M, self.n = matrices, matrices.M, matrices.n

    def entries(self, S: Array) -> Array:
        """f(S).

        Parameters
        ----------
        S : array of shape (n, n)
            Σ d_m A_m.

        Returns
        -------
        array of shape (n, n)
        """
        raise TypeError(f"{type(self).__name__} states no function of the sum")

    def slope(self, S: Array) -> Array:
        """f'(S).

        Parameters
        ----------
        S : array of shape (n, n)
            Σ d_m A_m.

        Returns
        -------
        array of shape (n, n)
        """
        raise TypeError(f"{type(self).__name__} states no derivative")

    def combine(self, d: Array) -> Array:
        """K(d), (n, n).

        Parameters
        ----------
        d : array of shape (M,)

        Returns
        -------
        array of shape (n, n)
        """
        return self.entries(self.stack.combine(d))

    def derivative(self, d: Array, S: Array) -> Array:
        """∂⟨S, K(d)⟩/∂d for a symmetric S, (M,).

        Parameters
        ----------
        d : array of shape (M,)
        S : array of shape (n, n)

        Returns
        -------
        array of shape (M,)
        """
        return self.stack.against(self.slope(self.stack.combine(d)) * S)

    def gradient(self, d: Array, alpha: Array) -> Array:
        """∂(αᵀK(d)α)/∂d, (M,).

        Parameters
        ----------
        d : array of shape (M,)
        alpha : array of shape (n,)

        Returns
        -------
        array of shape (M,)
        """
        return self.derivative(d, np.outer(alpha, alpha))

    def cross(self, d: Array, test: Any) -> Array:
        """K(d) between new points (rows) and training points, from (M, n_test, n).

        Parameters
        ----------
        d : array of shape (M,)
        test : array of shape (M, n_test, n)
            A_m between new points and training points.

        Returns
        -------
        array of shape (n_test, n)
        """
        given = real_array(test, "test", "an (M, n_test, n) array of numbers")
        if given.ndim != 3 or given.shape[0] != self.M or given.shape[2] != self.n:
            raise ValueError(
                f"test has shape {given.shape}; expected ({self.M}, n_test, {self.n}): "
                "one matrix per parameter, test points in rows"
            )
        return self.entries(np.tensordot(d, given, axes=1))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(M={self.M}, n={self.n})"


class Sum(KernelFamily):
    """Σ d_m K_m; with a convex r(d) also an ordinary Problem (solvers/spg.py).

    Parameters
    ----------
    matrices : GramStack, or array of shape (M, n, n)
        The kernels K_m.
    """

    def entries(self, S: Array) -> Array:
        """f(S)."""
        return S

    def slope(self, S: Array) -> Array:
        """f'(S)."""
        return np.ones_like(S)

    def gradient(self, d: Array, alpha: Array) -> Array:
        """αᵀK_mα, (M,): without the matrix ααᵀ."""
        return self.stack.quad(alpha)


class Product(KernelFamily):
    """Π exp(−d_m D_m): one distance matrix per parameter, e.g. per feature.

    Parameters
    ----------
    distances : array of shape (M, n, n), or iterable of (n, n) arrays
        Squared Euclidean distances D_m.
    """

    def __init__(self, distances: Any):
        super().__init__(_distances(distances))

    @classmethod
    def from_features(cls, X: Any) -> "Product":
        """One squared distance per feature: a Gaussian with a width for each.

        Parameters
        ----------
        X : array of shape (n, M)

        Returns
        -------
        Product
        """
        X = real_array(X, "X", "an (n, d) matrix of features")
        if X.ndim != 2:
            raise ValueError(f"X has shape {X.shape}; expected (n, d)")
        return cls((x[:, None] - x[None, :]) ** 2 for x in X.T)

    def entries(self, S: Array) -> Array:
        """f(S)."""
        return np.exp(-S)

    def slope(self, S: Array) -> Array:
        """f'(S)."""
        return -np.exp(-S)


class Polynomial(KernelFamily):
    """(offset + Σ d_m K_m)^degree, entry by entry.

    Parameters
    ----------
    kernels : GramStack, or array of shape (M, n, n)
        The kernels K_m.
    degree : int, default=2
    offset : float, default=1.0
        At least 0.
    """

    def __init__(self, kernels: Any, degree: int = 2, offset: float = 1.0):
        super().__init__(kernels)
        if not isinstance(degree, int | np.integer) or degree < 1:
            raise ValueError(f"degree = {short(degree)}; give a whole number ≥ 1")
        number = isinstance(offset, int | float | np.integer | np.floating)
        if not number or not 0 <= offset < np.inf or too_large(offset):
            raise ValueError(
                f"offset = {short(offset)}; a kernel needs a finite number, offset ≥ 0"
            )
        self.degree, self.offset = int(degree), float(offset)

    def entries(self, S: Array) -> Array:
        """f(S)."""
        return np.asarray((self.offset + S) ** self.degree)

    def slope(self, S: Array) -> Array:
        """f'(S)."""
        return np.asarray(self.degree * (self.offset + S) ** (self.degree - 1))


def _distances(given: Any) -> list[Array]:
    """Distance matrices, checked one after the other."""
    if isinstance(given, np.ndarray) and given.ndim != 3:
        raise ValueError(
            f"distances have shape {given.shape}; expected (M, n, n), one matrix per "
            "parameter (a single one is D[None])"
        )
    expected = "an (M, n, n) array, or a list of (n, n) matrices, one per parameter"
    each = check_list(given, "distances", expected)
    found = [_distance(m, D) for m, D in enumerate(each)]
    if not found:
        raise ValueError("there are no distance matrices; give at least one")
    return found


def _distance(m: int, given: Any) -> Array:
    D = real_array(given, f"distance matrix {m}", "an (n, n) matrix of numbers")
    own = float(np.max(np.diag(D), initial=0.0)) if D.ndim == 2 else 0.0
    if not np.all(np.isfinite(D)):
        wrong = "NaN or infinite entries; clean the data it comes from"
    elif np.min(D, initial=0.0) < 0:
        least = np.min(D)
        wrong = f"a negative entry, {least:.3g}; give squared distances, which are ≥ 0"
    elif own > 1e-8 * np.max(D, initial=0.0):  # more than rounding
        wrong = (
            f"{own:.3g} on its diagonal; the distance of a point from itself is 0 (is "
            "it a kernel matrix?)"
        )
    else:
        return D
    raise ValueError(f"distance matrix {m} has {wrong}")
