"""Kernels of families on random points: streamed, built, or with low-rank features.

For mklopt a recipe is a family on points. For the evaluator the same kernels are

    entries      the floats that a stack holds; `far_off` compares them with the kernels
                 as functions, computed here in mpmath
    functions    the kernels as functions of the points, which certify_exact bounds

The rate −1/scale of a Gaussian and the divisors of normalizations are rounded numbers
that count as data; `far_off` covers them, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

from tests.property.attack.exact import real

Array = np.ndarray
Rng = np.random.Generator
Matrix = list[list[Any]]
CLOSE = 1e-13  # of entries, in units of the root of the product of their diagonals
SMALLEST = mpf(2) ** -1000  # what is below may have underflowed
FLAT = -20_000  # exp of anything below is 0 here
STEPS: tuple[tuple[str, ...], ...] = (
    (), ("unit_trace",), ("spherical",), ("spherical", "unit_trace"),
    ("multiplicative",), ("centre",),
)  # fmt: skip
SQUARES = {"unit_trace", "spherical"}  # these need the diagonal alone


@dataclass
class Recipe:
    """Kernels on some columns of points, and how they are normalized."""

    X: Array
    rules: list[tuple[str, Any, float]]  # Gaussian, width, 0; or power, degree, offset
    columns: list[list[int]]
    normalize: tuple[str, ...]
    rank: int  # of low-rank features
    seed: int

    # -- for mklopt --

    def family(self) -> Any:
        """The kernels, one view of the points for each."""
        from mklopt import kernels

        def one(kind: str, first: Any, offset: float) -> Any:
            if kind == "gaussian":
                return kernels.gaussians(first)
            return kernels.polynomials(first, offset=offset)

        return kernels.views([one(*rule) for rule in self.rules], self.columns)

    def fitted(self) -> Any:
        """The kernels on the points."""
        return self.family().fit(self.X, self.normalize)

    def low_rank(self) -> Any:
        """Features of the kernels, from landmarks or drawn at random."""
        from mklopt import kernels

        if all(kind == "gaussian" for kind, *_ in self.rules) and self.seed % 3 == 0:
            made = kernels.random_features(self.family(), 2 * self.rank, seed=self.seed)
        else:
            made = kernels.nystroem(self.family(), self.rank, seed=self.seed)
        return made.fit(self.X, self.normalize)

    # -- for the evaluator --

    def products(self, m: int, apart: bool) -> Matrix:
        """⟨x, z⟩ or ‖x − z‖² on the columns of kernel m, in rationals."""
        rows = [[Fraction(float(x)) for x in row] for row in self.X[:, self.columns[m]]]
        if apart:
            return [[_sum((a - b) ** 2 for a, b in zip(p, q)) for q in rows]
                    for p in rows]  # fmt: skip
        return [[_sum(a * b for a, b in zip(p, q)) for q in rows] for p in rows]

    def raw(self, m: int, rate: Any = None) -> Matrix:
        """Kernel m before normalization in mpmath; with this rate, if it is given."""
        kind, first, offset = self.rules[m]
        t = self.products(m, kind == "gaussian")
        if kind == "power":
            shift = Fraction(offset)
            return [[real((x + shift) ** int(first)) for x in row] for row in t]
        if rate is None:
            rate = -1 / self._scale(t, first)
        return [[_exp(real(x) * rate) for x in row] for row in t]

    def _scale(self, t: Matrix, width: Any) -> Any:
        """2σ²; for "mean" the mean over pairs, and 1 where all points coincide."""
        if width != "mean":
            return 2 * mpf(width) ** 2
        pairs = len(t) * (len(t) - 1)
        total = _sum(x for row in t for x in row)
        return real(total / pairs) if total else mpf(1)

    def normalized(self, m: int) -> Matrix:
        """Kernel m after all steps in mpmath, for steps in SQUARES."""
        K, n = self.raw(m), len(self.X)
        for step in self.normalize:
            if step == "unit_trace":
                trace = mpmath.fsum(K[i][i] for i in range(n))
                K = [[x / trace for x in row] for row in K]
            else:
                roots = [mpmath.sqrt(K[i][i]) for i in range(n)]
                K = [[K[i][j] / (roots[i] * roots[j]) for j in range(n)]
                     for i in range(n)]  # fmt: skip
        return K

    def far_off(self, stored: list[Array]) -> str:
        """A sentence about an entry that is not that of the kernel, or "".

        Steps that subtract are not compared: what cancels has no error bound here.
        """
        for m, K in enumerate(stored) if set(self.normalize) <= SQUARES else ():
            true = self.normalized(m)
            root = [mpmath.sqrt(true[i][i]) for i in range(len(true))]
            for i, j in np.ndindex(K.shape):
                room = CLOSE * root[i] * root[j] + SMALLEST
                if abs(mpf(float(K[i, j])) - true[i][j]) > room:
                    told = f"{float(K[i, j])!r}, not {mpmath.nstr(true[i][j], 20)}"
                    return f"entry ({i}, {j}) of kernel {m} is {told}"
        return ""

    def functions(self, entries: Any) -> list[list[list[Fraction]]]:
        """The kernels as functions, with rates, roots and traces of `entries`.

        These three are floats that count as data (mklopt.kernels.entries).
        """
        return [self._function(m, entries) for m in range(len(self.rules))]

    def _function(self, m: int, entries: Any) -> list[list[Fraction]]:
        K, n = self.raw(m, mpf(-1.0 / entries.scale(m))), range(len(self.X))
        found = entries.roots(m, entries.points(m))
        roots = [mpf(1) if found is None else mpf(float(found[i])) for i in n]
        trace = mpf(float(entries.traces[m]))
        return [
            [_fraction(K[i][j] / (roots[i] * roots[j] * trace)) for j in n] for i in n
        ]


def _sum(terms: Any) -> Fraction:
    return sum(terms, Fraction(0))


def _exp(x: Any) -> Any:
    return mpmath.exp(x) if x > FLAT else mpf(0)


def _fraction(x: Any) -> Fraction:
    """The rational number that an mpf is."""
    sign, man, exponent, _ = x._mpf_
    whole = Fraction(-int(man) if sign else int(man))
    return whole * Fraction(2) ** exponent


def a_recipe(rng: Rng, M: int, n: int, extreme: str, low_rank: bool) -> Recipe:
    """Gaussians and powers on a few features; some points occur twice."""
    d = int(rng.integers(1, 5))
    X = np.round(rng.normal(size=(n, d)), int(rng.integers(0, 16)))
    if rng.random() < 0.2:
        X = X[rng.integers(0, max(1, n // 2), size=n)]
    power = int(rng.integers(-150, 150)) if "K" in extreme else 0
    steps = STEPS[:4] if low_rank else STEPS
    some = [_columns(rng, d) for _ in range(M)]
    rules = [_rule(rng, power) for _ in range(M)]
    normalize = steps[int(rng.integers(len(steps)))] if rng.random() < 0.6 else ()
    rank = int(rng.integers(1, n + 1))
    seed = int(rng.integers(1000))
    return Recipe(np.ldexp(X, power), rules, some, normalize, rank, seed)


def _columns(rng: Rng, d: int) -> list[int]:
    return sorted(rng.permutation(d)[: int(rng.integers(1, d + 1))].tolist())


def _rule(rng: Rng, power: int) -> tuple[str, Any, float]:
    if rng.random() < 0.3:
        return "power", int(rng.integers(1, 4)), float(rng.choice([0.0, 1.0, 0.3]))
    if rng.random() < 0.3:
        return "gaussian", "mean", 0.0
    return "gaussian", float(np.ldexp(10.0 ** rng.uniform(-1.5, 1.5), power)), 0.0
