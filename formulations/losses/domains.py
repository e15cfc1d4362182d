"""Where dual variables may live: the domain of V*, and how to return to it.

A dual value is believed only at a feasible α: each −α_i/C_i in the domain of
V*(·, y_i), and Σα_i = 0 when there is a bias. Every domain here contains 0 and is
convex, so that shrinking towards 0 afterwards, for the sake of Ω*, loses nothing.

    restore(alpha, C, bias)   a feasible point near alpha, in floats
    exact(alpha, C, bias)     the same on a dyadic grid, where Σα = 0 holds exactly

Guarantee of `exact`: the returned floats are integer multiples of one power of two,
their sum is 0 as integers, and they lie in the domain as real numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..norms import Array, increasing_root

EPS = 2.0**-52
LARGEST = 2**53  # integers up to here are floats, exactly
NEGLIGIBLE = 1e-100  # part of the largest flow between two classes


def grid_of(alpha: Array) -> float:
    """A power of two on which alpha is made of 52-bit integers: room for 53."""
    top = float(np.max(np.abs(alpha), initial=0.0))
    return 2.0 ** max(math.frexp(top)[1] - 52, -1074) if top > 0 else 1.0


def integer_sum(k: Array) -> int:
    """Σk without overflow: 53-bit integers in two halves."""
    return (int(np.sum(k >> 26)) << 26) + int(np.sum(k & ((1 << 26) - 1)))


@dataclass(frozen=True)
class Box:
    """low_i ≤ −α_i/C_i ≤ high_i, one interval per sample.

    Parameters
    ----------
    low, high : ndarray of shape (n,)
        The ends of the intervals, which may be infinite.
    """

    low: Array
    high: Array

    @property
    def radius(self) -> Array:
        """The largest |a| of each sample: the Lipschitz constant of V."""
        return np.maximum(-self.low, self.high)

    def ends(self, C: Array) -> tuple[Array, Array]:
        """The interval of α itself."""
        return -C * self.high, -C * self.low

    def restore(self, alpha: Array, C: Array, bias: bool) -> Array:
        """A feasible point near α: clipped, and then balanced if there is a bias."""
        low, high = self.ends(C)
        alpha = np.clip(alpha, low, high)
        if not bias or not np.any(alpha):
            return alpha
        plus, minus = np.sum(alpha[alpha > 0]), -np.sum(alpha[alpha < 0])
        if abs(plus - minus) <= len(alpha) * EPS * plus:  # as balanced as floats
            return alpha
        fixed = np.any(low > 0) or np.any(high < 0)  # 0 is not in it: no rescaling
        if fixed or min(plus, minus) < 0.5 * max(plus, minus):
            return _shift(alpha, low, high)
        # Rescaling the heavier side keeps signs and zeros; it always stays in the box.
        scale = min(plus, minus) / max(plus, minus)
        return np.where((alpha > 0) == (plus > minus), scale * alpha, alpha)

    def room(self, alpha: Array, step: Array, C: Array) -> float:
        """The largest t for which α + t·step lies in the domain."""
        low, high = self.ends(C)
        return min(_room(high - alpha, step), _room(alpha - low, -step))

    def exact(self, alpha: Array, C: Array, bias: bool) -> Array:
        """The same on a dyadic grid: feasible, and Σα = 0, as real numbers."""
        alpha = self.restore(alpha, C, bias)
        if not np.any(alpha):
            return alpha
        low, high = self.ends(C)
        grid, limit = grid_of(alpha), float(LARGEST)
        k = np.rint(alpha / grid).astype(np.int64)
        lowest = np.ceil(np.clip(_inward(low, +1) / grid, -limit, limit))
        highest = np.floor(np.clip(_inward(high, -1) / grid, -limit, limit))
        lowest, highest = lowest.astype(np.int64), highest.astype(np.int64)
        k = np.clip(k, lowest, highest)
        if bias:
            k = _cancel(k, lowest, highest)
        return k * grid


def _room(left: Array, step: Array) -> float:
    """The largest t with t·step ≤ left, left ≥ 0."""
    towards = step > 0
    return float(np.min(left[towards] / step[towards], initial=np.inf))


def _inward(end: Array, direction: int) -> Array:
    """C·bound was rounded, and so may bound be: two steps inside is in the domain."""
    inner = np.nextafter(np.nextafter(end, direction * np.inf), direction * np.inf)
    return np.where((end == 0) | ~np.isfinite(end), end, inner)


def _shift(alpha: Array, low: Array, high: Array) -> Array:
    """clip(α + s) with the s that makes the sum vanish: the sum is monotone in s."""
    reach = float(np.max(np.abs(alpha)))
    total = lambda s: np.sum(np.clip(alpha + s, low, high))  # noqa: E731
    s = increasing_root(total, np.asarray(-reach), np.asarray(reach))
    return np.clip(alpha + s, low, high)


def _cancel(k: Array, lowest: Array, highest: Array) -> Array:
    """Move the surplus of Σk onto interior coordinates: equal shares, then the rest.

    A surplus on one coordinate alone would change K_mα much more, and 0 stays 0.
    """
    k = k.copy()
    surplus = integer_sum(k)
    inner = (k != 0) & (np.minimum(k - lowest, highest - k) >= abs(surplus))
    if surplus and np.any(inner):
        k[inner] -= int(surplus / np.count_nonzero(inner))
        surplus = integer_sum(k)
    room = k - lowest if surplus > 0 else highest - k
    for i in np.argsort(-np.minimum(k - lowest, highest - k), kind="stable"):
        if surplus == 0:
            break
        move = int(np.sign(surplus)) * min(abs(surplus), int(room[i]))
        k[i] -= move
        surplus -= move
    if surplus:
        return np.zeros_like(k)  # no room anywhere: 0 is always feasible
    return k


@dataclass(frozen=True)
class Simplex:
    """e_{y_i} − α_i/C_i in the probability simplex: multi-class losses, k outputs.

    α_i = C_i (e_{y_i} − g_i): sample i moves mass from its own class to others. With
    F_jl the mass moved from class j to class l, Σα_i = 0 says that F is a circulation.

    Parameters
    ----------
    y : ndarray of shape (n,)
        The class of each sample.
    k : int
        The number of classes.
    """

    y: Array
    k: int

    @property
    def radius(self) -> Array:
        """The largest ‖a‖ of each sample: from one corner of the simplex to another."""
        return np.full(len(self.y), 2**0.5)

    def mass(self, alpha: Array, C: Array) -> Array:
        """C_i g_i, the part of C_i that sample i gives to each class."""
        own = np.zeros((len(self.y), self.k))
        own[np.arange(len(self.y)), self.y] = C
        return own - alpha

    def room(self, alpha: Array, step: Array, C: Array) -> float:
        """The largest t for which α + t·step lies in the domain."""
        return _room(self.mass(alpha, C), step)

    def restore(self, alpha: Array, C: Array, bias: bool) -> Array:
        """A feasible point near α: projected, and balanced if there is a bias."""
        C = np.broadcast_to(C, self.y.shape)
        mass, rows = self.mass(alpha, C), np.arange(len(self.y))
        off = np.abs(np.sum(alpha, axis=1)) > EPS * self.k * C
        off |= np.min(mass, axis=1) < -EPS * self.k * C
        mass[off] = project_simplex(mass[off], C[off])  # others are there to the bit
        mass[rows, self.y] = 0.0
        mass = np.maximum(mass, 0.0)
        if bias:
            flow = self._flow(mass)
            surplus = np.abs(np.sum(flow, axis=0) - np.sum(flow, axis=1))
            if np.any(surplus > len(rows) * EPS * np.sum(flow)):
                mass *= _circulation(flow)[self.y]
        given = np.sum(mass, axis=1)
        over = given > C  # by rounding
        mass[over] *= (C[over] / given[over] * (1 - self.k * EPS))[:, None]
        alpha = -mass
        alpha[rows, self.y] = np.sum(mass, axis=1)
        return alpha

    def _flow(self, moved: Array) -> Array:
        flow = np.zeros((self.k, self.k))
        np.add.at(flow, self.y, moved)
        return flow

    def exact(self, alpha: Array, C: Array, bias: bool) -> Array:
        """The same on a dyadic grid: feasible, and Σα = 0, as real numbers."""
        C = np.broadcast_to(np.asarray(C, float), self.y.shape)
        alpha = self.restore(alpha, C, bias)
        if not np.any(alpha):
            return alpha
        rows, grid = np.arange(len(self.y)), grid_of(alpha)
        mass = np.floor(np.maximum(-alpha, 0.0) / grid).astype(np.int64)
        whole = np.floor(np.minimum(C / grid, 2.0**60)).astype(np.int64)
        mass[rows, self.y] = 0
        mass[rows, self.y] = whole - np.sum(mass, axis=1)
        mass = np.where(np.min(mass, axis=1, keepdims=True) < 0, 0, mass)
        mass[rows, self.y] += whole - np.sum(mass, axis=1)
        own = np.zeros_like(mass)
        own[rows, self.y] = whole
        if bias and not self._balance(mass, own):
            return np.zeros_like(alpha)
        if np.max(np.abs(own - mass)) > LARGEST:
            return np.zeros_like(alpha)
        return (own - mass) * grid

    def _balance(self, mass: Array, own: Array) -> bool:
        """Cancel the integer surplus of each class on the sample with most room."""
        surplus = [integer_sum(own[:, j] - mass[:, j]) for j in range(self.k)]
        while any(surplus):
            low, high = int(np.argmin(surplus)), int(np.argmax(surplus))
            move = min(surplus[high], -surplus[low])
            i = int(np.argmax(mass[:, low]))
            move = min(move, int(mass[i, low]))
            if move <= 0:
                return False
            mass[i, high] += move  # class `high` gives less, class `low` receives less
            mass[i, low] -= move
            surplus[high] -= move
            surplus[low] += move
        return True


@dataclass(frozen=True)
class Projected:
    """Any domain, known only through cones: the nearest feasible point by a program.

    What comes back is feasible to the accuracy of the solver. So `exact` proves nothing
    here, and certificates of such losses say so.

    Parameters
    ----------
    membership : callable
        Takes α and C and gives the CVXPY constraints "−α_i/C_i in the domain".
    """

    membership: Callable[[Any, Array], list]

    def restore(self, alpha: Array, C: Array, bias: bool) -> Array:
        """The nearest feasible point, by a conic program."""
        import cvxpy as cp

        point = cp.Variable(alpha.shape)
        constraints = self.membership(point, C)
        if bias:
            constraints.append(cp.sum(point, axis=0) == 0)
        nearest = cp.Problem(cp.Minimize(cp.sum_squares(point - alpha)), constraints)
        nearest.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10)
        found = np.zeros_like(alpha) if point.value is None else np.array(point.value)
        return found * (1 - 1e-9)  # just inside: 0 belongs to the domain

    exact = restore


def project_simplex(rows: Array, total: Array) -> Array:
    """The nearest non-negative rows with the given sums (sort and threshold)."""
    k = rows.shape[1]
    ordered = -np.sort(-rows, axis=1)
    excess = np.cumsum(ordered, axis=1) - total[:, None]
    count = np.sum(ordered * np.arange(1, k + 1) > excess, axis=1)
    count = np.maximum(count, 1)
    shift = excess[np.arange(len(rows)), count - 1] / count
    return np.maximum(rows - shift[:, None], 0.0)


def _circulation(flow: Array) -> Array:
    """Factors ≤ 1 that make a flow between classes balanced, losing little of it.

    Osborne's balancing D F D⁻¹ equalizes what each class gives and receives; divided
    by its largest entry it only shrinks. For two classes this rescales the heavier one.
    The last rounding is left to the exact step.
    """
    k = len(flow)
    flow = np.where(flow > NEGLIGIBLE * np.max(flow, initial=0.0), flow, 0.0)
    scale = np.zeros(k)  # logarithms
    for _ in range(100):
        before = scale.copy()
        for j in range(k):
            weights = flow * np.exp(scale[:, None] - scale[None, :])
            gives, gets = np.sum(weights[j]), np.sum(weights[:, j])
            if gives == 0 or gets == 0:
                flow = flow.copy()
                flow[j] = flow[:, j] = 0.0  # a dead end carries no circulation
                continue
            scale[j] += 0.5 * np.log(gets / gives)
        rounding = 1e-15 * (1 + np.max(np.abs(scale)))
        if np.max(np.abs(scale - before)) < rounding:
            break
    factors = np.where(flow > 0, np.exp(scale[:, None] - scale[None, :]), 0.0)
    top = np.max(factors, initial=0.0)
    if not 0 < top < np.inf:
        return np.zeros_like(flow)  # no flow, or out of range: 0 is balanced
    return factors / top
