"""What K_mα of exact kernels says: norms, predictions, and better weights.

Guarantee. `Images` knows |value − (K_mα)_i| ≤ r_mi · spread_m, with r_mi ≥ √K_m,ii, for
the α that it was made for; `move` and `at` keep it true for other α.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..certificates.certificate import primal_at
from ..kernels.entries import Entries, Products
from ..problem import Problem
from ..util.rounding import TINY, U, gamma

Array = np.ndarray
MARGIN = 1 + 1e-6  # for the rounding of the error bounds themselves
FEW_KERNELS = 20  # weights are corrected one by one up to so many kernels
LARGE = 100_000  # samples: beyond, fewer rounds of corrections
GOLDEN = 0.6180339887498949
STEPS = 14  # of a search along a line


class Images:
    """(K_mα)_m with bounds of their errors.

    values: (M, n, k); spread: (M, k)
    """

    def __init__(self, entries: Entries, values: Array, spread: Array):
        self.entries, self.values, self.spread = entries, values, spread
        self.roots = np.stack([entries.root_squares(m) for m in range(entries.M)])

    def move(self, which: Array, change: Array, alpha: Array) -> None:
        """α_which grew by `change`, and is `alpha` now, but for one rounding each.

        The bound of the products has room for that, and `sums` for the sum of values.
        """
        products = Products(self.entries, which, change.reshape(len(which), -1))
        self.values += products.at(slice(None))
        sums = self.roots @ np.abs(alpha.reshape(len(alpha), -1))
        self.spread = (self.spread + products.spread + 2 * U * sums) * MARGIN

    def drift(self, before: Array, after: Array) -> None:
        """The values are meant for α = after now, which is nearly α = before."""
        apart = np.abs(after - before).reshape(len(after), -1)
        self.spread = (self.spread + self.roots @ apart + TINY) * MARGIN

    def norms_above(self, alpha: Array) -> Array:
        """(M,): upper bounds of ‖α‖ in the exact kernels."""
        columns, M = alpha.reshape(len(alpha), -1), len(self.values)
        quad = self.values.reshape(M, -1) @ columns.ravel()
        size = np.abs(self.values).reshape(M, -1) @ np.abs(columns).ravel()
        sums = self.roots @ np.abs(columns) + TINY
        error = np.sum(self.spread * sums, axis=1) + gamma(columns.size + 4) * size
        error = (error + TINY) * MARGIN
        return np.sqrt(np.maximum(quad + error, 0.0)) * (1 + 4 * U) + TINY

    def predictions(self, theta: Array, bias: Any) -> tuple[Array, Array]:
        """(n, k): Σθ_m K_mα + bias, and a bound of its error."""
        f = np.tensordot(theta, self.values, axes=1) + bias
        size = np.tensordot(theta, np.abs(self.values), axes=1) + np.abs(bias)
        error = self.roots.T @ (theta[:, None] * self.spread)
        error += gamma(len(theta) + 4) * size + TINY * (float(np.sum(theta)) + 8)
        return f, error * MARGIN


def corrected_weights(
    problem: Problem, images: Array, v: Array, theta: Array
) -> tuple[Array, Any]:
    """Weights near θ with a smaller primal value at w_m = θ_m Σα_iψ_m(x_i); the bias.

    The value is convex in θ: one line search for a common factor, then for single
    kernels if these are few.
    """

    def value(weights: Array) -> tuple[float, Any]:
        f = np.tensordot(weights, images, axes=1).reshape(problem.shape)
        return primal_at(problem, f, weights * v)

    M, best = len(theta), np.array(theta, float)
    everyone = np.arange(M)
    rounds = 1 if problem.grams.n > LARGE else 2
    for _ in range(rounds):
        best = _along(value, best, everyone)
        for m in everyone if 1 < M <= FEW_KERNELS else ():
            best = _along(value, best, everyone[m : m + 1])
    return best, value(best)[1]


def _along(value: Callable, theta: Array, which: Array) -> Array:
    """θ with the entries `which` times the best factor from 1/4 to 4."""
    if not np.any(theta[which] > 0):
        return theta

    def at(t: float) -> float:
        scaled = theta.copy()
        scaled[which] *= 2.0**t
        return float(value(scaled)[0])

    low, high = -2.0, 2.0
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    here, there = at(a), at(b)
    for _ in range(STEPS):
        if here <= there:
            high, b, there = b, a, here
            a = high - GOLDEN * (high - low)
            here = at(a)
        else:
            low, a, here = a, b, there
            b = low + GOLDEN * (high - low)
            there = at(b)
    t = a if here <= there else b
    if min(here, there) >= at(0.0):
        return theta
    scaled = theta.copy()
    scaled[which] *= 2.0**t
    return scaled
