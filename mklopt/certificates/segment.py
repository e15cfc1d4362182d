"""Points between two certified points of one problem at C_0 < C_1, for C between them.

    dual      α = C·((1−r) α_0/C_0 + r α_1/C_1)     in C·dom V*, as both ends are in it
    primal    (w, b) = (1−s) (w_0, b_0) + s (w_1, b_1)

The best r and s are found by bisection on plain float64 values: the dual value is
concave in r, the primal value convex in s. Predictions, ‖α‖_{K_m} and ‖w_m‖ of all
these points follow from those of the ends and from one pass over the kernels for
⟨·, ·⟩ of both ends, so that a search reads no kernel. The point that is found is then
certified by itself: a bad search costs width, not truth.

Where n · M numbers are too many to store, w is θ ⊗ α with interpolated weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ..problem import Problem
from .certificate import Certificate, best_shrink, certify, primal_at

Array = np.ndarray
GOLDEN = 0.5 * (5**0.5 - 1)
SHRINKS = 14  # of the interval of a search: to 1e-3 of its length


class Segment:
    """The points between two certificates.

    Parameters
    ----------
    left, right : Certificate
        Of the same problem at C_0 < C_1, the largest of the costs.
    thetas : pair of array (M,)
        Kernel weights at both, for stacks that are too large for coefficients.
    """

    def __init__(
        self, left: Certificate, right: Certificate, thetas: tuple[Array, Array]
    ):
        self.ends = left, right
        self.thetas = thetas
        self.C = [float(np.max(end.problem.costs)) for end in self.ends]

    @cached_property
    def duals(self) -> tuple[Array, Array]:
        """α/C at both ends, exactly feasible there."""
        one, two = (
            end.enclosure.shrink * end.enclosure.alpha / C
            for end, C in zip(self.ends, self.C)
        )
        return one, two

    @cached_property
    def kernels(self) -> _Gram | _Features | None:
        """Norms and predictions along the segment, if they fit into memory."""
        grams = self.ends[0].problem.grams
        if all(end.features is not None for end in self.ends):
            return _Features(*self.ends, self.duals)
        known = all(end.features is None for end in self.ends)
        return _Gram(*self.ends, self.duals) if known and not grams.is_large else None

    def certify(self, problem: Problem) -> Certificate:
        """The certificate of the best point found for the C of a problem."""
        C = float(np.max(problem.costs))
        t = (C - self.C[0]) / (self.C[1] - self.C[0])
        plain = min(t * self.C[1] / C, 1.0)  # the r with α = (1−t) α_0 + t α_1
        if self.kernels is None:
            a = _between(plain, *self.duals)
            return certify(problem, C * a, _between(t, *self.thetas))
        r = largest(lambda r: self._dual(problem, C, r), plain)
        s = largest(lambda s: -self._primal(problem, s), t)
        w = self.kernels.point(s)
        return certify(problem, C * _between(r, *self.duals), **w)

    def _dual(self, problem: Problem, C: float, r: float) -> float:
        assert self.kernels is not None
        v = self.kernels.dual_norms(r)
        return best_shrink(problem, C * _between(r, *self.duals), C * v)[1]

    def _primal(self, problem: Problem, s: float) -> float:
        assert self.kernels is not None
        return primal_at(problem, self.kernels.predictions(s), self.kernels.norms(s))[0]


def largest(value: Callable[[float], float], guess: float) -> float:
    """Where a concave function on [0, 1] is largest, by golden sections; or `guess`."""
    low, high = 0.0, 1.0
    x, z = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    tried = {s: value(s) for s in (0.0, x, z, 1.0, guess)}
    for _ in range(SHRINKS):
        if tried[x] >= tried[z]:
            high, z = z, x
            x = high - GOLDEN * (high - low)
            tried.setdefault(x, value(x))
        else:
            low, x = x, z
            z = low + GOLDEN * (high - low)
            tried.setdefault(z, value(z))
    return max(tried, key=lambda s: tried[s])


def _between(s: float, one: Any, two: Any) -> Any:
    return (1 - s) * one + s * two


def _length(s: float, squares: tuple[Array, Array, Array]) -> Array:
    """‖(1−s)a + sb‖ from ‖a‖², ⟨a, b⟩ and ‖b‖²."""
    aa, ab, bb = squares
    found = (1 - s) ** 2 * aa + 2 * s * (1 - s) * ab + s**2 * bb
    return np.sqrt(np.maximum(found, 0.0))


class _Gram:
    """Inner products per kernel, for points with coefficients (M, n[, k])."""

    def __init__(self, left: Certificate, right: Certificate, duals: Any):
        self.ends, grams = (left, right), left.problem.grams
        shift = grams.shift.reshape(-1, *[1] * duals[0].ndim)
        one, two = duals
        K_two = grams.matvec(two) + shift * two
        K_one = grams.matvec(one) + shift * one
        self.v = _inner(one, K_one), _inner(one, K_two), _inner(two, K_two)
        one, two = left.expansion, right.expansion
        K_one, K_two = (grams.apply(B) + shift * B for B in (one, two))
        self.u = _inner(one, K_one), _inner(one, K_two), _inner(two, K_two)
        self.f = K_one.sum(axis=0), K_two.sum(axis=0)

    def dual_norms(self, r: float) -> Array:
        return _length(r, self.v)

    def norms(self, s: float) -> Array:
        return _length(s, self.u)

    def predictions(self, s: float) -> Array:
        return np.asarray(_between(s, *self.f))

    def point(self, s: float) -> dict[str, Any]:
        one, two = (end.expansion for end in self.ends)
        return {"coefficients": _between(s, one, two)}


def _inner(a: Array, Kb: Array) -> Array:
    """(M,): ⟨a, K_m b⟩."""
    return np.sum((a * Kb).reshape(len(Kb), -1), axis=1)


class _Features:
    """Fᵀα and w of both ends, for kernels given as factors."""

    def __init__(self, left: Certificate, right: Certificate, duals: Any):
        self.grams = left.problem.grams
        self.h = [self.grams.fold(a) for a in duals]
        ends: Any = left.features, right.features  # both are arrays
        self.w, self.f = ends, [self.grams.unfold(w) for w in ends]

    def dual_norms(self, r: float) -> Array:
        return np.asarray(self.grams.feature_norms(_between(r, *self.h)))

    def norms(self, s: float) -> Array:
        return np.asarray(self.grams.feature_norms(_between(s, *self.w)))

    def predictions(self, s: float) -> Array:
        return np.asarray(_between(s, *self.f))

    def point(self, s: float) -> dict[str, Any]:
        return {"features": _between(s, *self.w)}
