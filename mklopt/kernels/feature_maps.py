"""Feature maps φ of one kernel: what low_rank.py makes features with.

Landmarks    φ(x) = (k(x, l))_l W
Fourier      φ(x) = (cos ⟨ω_i, x⟩, sin ⟨ω_i, x⟩)_i/√(number of ω)
Monomials    all products of features in (⟨x, z⟩ + c)^p: exact
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from ..util.sines import waves
from .functions import Power
from .pairwise import fill_pairs

Array = np.ndarray


class Landmarks(NamedTuple):
    """φ(x) = (k(x, l))_l W."""

    which: Array  # rows of the training points
    W: Array  # (landmarks, rank)

    @property
    def rank(self) -> int:
        """The number of features."""
        return self.W.shape[1]


class Fourier(NamedTuple):
    """φ(x) = (cos ⟨ω_i, x⟩, sin ⟨ω_i, x⟩)_i/√(number of ω)."""

    omega: Array  # (d, number)

    @property
    def rank(self) -> int:
        """The number of features."""
        return 2 * self.omega.shape[1]

    def features(self, A: Array) -> Array:
        """(r, rank) features of the rows of A."""
        angles = np.empty((len(A), self.omega.shape[1]))
        fill_pairs(A, self.omega, False, 0, angles, 0, len(A))
        out = np.empty((len(A), self.rank))
        waves(angles, out, 1 / math.sqrt(self.omega.shape[1]))
        return out


class Monomials(NamedTuple):
    """φ(x) = (√(multinomial · offset^…) Π_j x_j^{e_j})_e: all of (⟨x, z⟩ + c)^p."""

    powers: tuple[tuple[int, ...], ...]  # the columns in each product, with repetition
    scales: Array

    @classmethod
    def of(cls, d: int, rule: Power) -> Monomials:
        """Those of a kernel on d features."""
        p, powers, scales = rule.degree, [], []
        for k in range(p + 1):  # degree k of x, p − k of the offset
            if rule.offset == 0 and k < p:
                continue
            for columns in itertools.combinations_with_replacement(range(d), k):
                ways = math.factorial(p) / math.factorial(p - k)
                for j in set(columns):
                    ways /= math.factorial(columns.count(j))
                powers.append(columns)
                scales.append(math.sqrt(ways * rule.offset ** (p - k)))
        return cls(tuple(powers), np.array(scales))

    @property
    def rank(self) -> int:
        """The number of features."""
        return len(self.powers)

    def features(self, A: Array) -> Array:
        """(r, rank) features of the rows of A."""
        out = np.empty((len(A), self.rank))
        for e, columns in enumerate(self.powers):
            out[:, e] = self.scales[e]
            for j in columns:
                out[:, e] *= A[:, j]
        return out


def monomial_count(d: int, rule: Power) -> int:
    """The number of monomials of (⟨x, z⟩ + c)^p on d features."""
    if rule.offset == 0:
        return math.comb(d + rule.degree - 1, rule.degree)
    return math.comb(d + rule.degree, rule.degree)


Map = Landmarks | Fourier | Monomials
