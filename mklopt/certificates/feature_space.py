"""Bounds of rounding errors in feature space: for factors, without n × n matrices.

With factors K_m = L_m L_mᵀ the primal point is its feature weights w_m, stacked over
the kernels: f = Σ_m L_m w_m + b, and u_m = ‖w_m‖. A point that is given by kernel
weights θ and α is w_m = θ_m L_mᵀα *as computed*: the numbers w are the point, whatever
their rounding errors, so that only R products enter an error of f:

    |f − computed| ≤ γ_R |F||w|,     |L_mᵀα − computed| ≤ γ_k |L_m|ᵀ|α|

F has the factors side by side; k = 1024 + n/1024, because sums over samples are made in
fixed blocks (grams/factor_loops.py). With γ_n and f = Σθ_mL_m(L_mᵀα) the bounds would
be useless for half a million samples.

Guarantee. `above`, `below` and the errors of `predictions` are bounds in exact
arithmetic.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..problem import Problem
from ..util.rounding import TINY, U, gamma, length_above, length_below

Array = np.ndarray
MARGIN = 1 + 1e-6  # for the rounding of the error bounds themselves


class Folded(NamedTuple):
    """What a certificate has computed: Fᵀα for an exactly feasible α, and F w."""

    h: Array
    f: Array


def feature_point(
    problem: Problem, h: Array, weights: Array | None, coefficients: Array | None
) -> Array:
    """The feature weights w of a point that is given in another way; h = Fᵀα.

    w_m = θ_m L_mᵀα for kernel weights, w_m = L_mᵀB_m for coefficients.
    """
    grams = problem.grams
    if weights is not None:
        theta = weights[grams.owner]
        return theta.reshape(-1, *[1] * (h.ndim - 1)) * h
    assert coefficients is not None
    parts = [grams.subset(np.array([m])).fold(B) for m, B in enumerate(coefficients)]
    return np.concatenate(parts)


class FeatureBounds:
    """Upper bounds of ‖L_mᵀα‖ and of errors of f, for feature weights w."""

    def __init__(
        self, problem: Problem, alpha: Array, w: Array, known: Folded | None = None
    ):
        grams, self.shape = problem.grams, problem.shape
        self.grams, self.panel = grams, grams.panel()
        self.w = w.reshape(len(w), -1)
        columns = alpha.reshape(grams.n, -1)
        if known is None:
            h, self.f = self.panel.fold(columns), self.panel.unfold(self.w)
            grams.count_reads(2)
        else:
            h, self.f = (part.reshape(len(part), -1) for part in known)
        sizes = self.panel.fold(columns, sizes=True)
        k = self.panel.fold_chain
        error = gamma(k + 2) * sizes * MARGIN + k * TINY
        used = np.any(sizes, axis=1)
        if not np.all(used):  # is it 0, or did all products underflow?
            used = np.any(self.panel.fold(1.0 * (columns != 0), sizes=True), axis=1)
        self.above = self._lengths(np.abs(h) + error, used)
        self.below = self._least(np.maximum(np.abs(h) - error, 0.0))
        grams.count_reads(2)

    def _lengths(self, above: Array, where: Array) -> Array:
        """Upper bounds of the norm of each kernel's part; 0 where all of it is 0."""
        owner, found = self.grams.owner, np.zeros(self.grams.M)
        ends = np.cumsum([0, *np.bincount(owner, minlength=self.grams.M)])
        for m in np.unique(owner[where]):
            found[m] = length_above(above[ends[m] : ends[m + 1]]) * (1 + 4 * U)
        return found

    def _least(self, below: Array) -> Array:
        """Lower bounds of the norm of each kernel's part."""
        ends = np.cumsum([0, *np.bincount(self.grams.owner, minlength=self.grams.M)])
        parts = (below[a:b] for a, b in pairwise(ends))
        return np.array([length_below(part) for part in parts]) * (1 - 4 * U)

    @property
    def norms_below(self) -> Array:
        """Lower bounds of u_m = ‖w_m‖."""
        return self._least(np.abs(self.w))

    def predictions(self, bias: Any) -> tuple[Array, Array, Array]:
        """f, a bound of its error, and upper bounds of u_m = ‖w_m‖."""
        f = self.f + bias
        magnitude = self.panel.unfold(self.w, sizes=True) + np.abs(bias)
        k = self.panel.unfold_chain
        error = gamma(k + 4) * magnitude * MARGIN + 4 * U * np.abs(f) + k * TINY
        u = self._lengths(np.abs(self.w), np.any(self.w != 0, axis=1))
        return f, error, u
