"""Rows of kernels at a few samples, computed from points with BLAS and never stored.

    between(which)            (M, b, b)  the kernels between b samples
    add(which, changes, F)    F[m, c] += Σ_i changes[c, i] K_m(x_i, ·) at all samples

They are for steps that go from sample to sample (solvers/steps/epochs.py). Kernels on
the same features are functions of the same products ⟨x, z⟩, which BLAS computes for a
tile of samples at a time: of powers, and of Gaussians through

    ‖x − z‖² = ‖x‖² + ‖z‖² − 2⟨x, z⟩.

Each tile goes to compiled loops, which evaluate a row of a kernel and add it to F where
its change is not 0. A kernel is normalized by numbers e_m(x): K_m = e_m(x) k e_m(z).

Rounding. Products by BLAS have another order than those of pairwise.py, and distances
cancel. Entries differ from those of the stack by a few units of the last place of
k(x, x) (‖x‖² for the exponent): enough for steps, not for certificates, which never
come from here.

Guarantee. Memory: F, e (M, n), what is returned, and for each thread b × TILE numbers.
Results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..util.compiled import compiled, inlined
from ..util.threads import spread, with_blas_alone
from .building import evaluate
from .fitted import FittedKernels

Array = np.ndarray
TILE = 512  # samples whose entries are computed together


class Features(NamedTuple):
    """Kernels on the same features."""

    X: Array  # (n, d) the view that has them
    columns: Any  # of the view
    kernels: Array  # their numbers
    apart: bool  # whether one of them is a Gaussian

    def points(self, which: Any) -> tuple[Array, Array]:
        """The features of some samples, and ‖x‖²."""
        A = self.X[which][:, self.columns]
        return A, np.einsum("ij,ij->i", A, A)


class SampleRows:
    """Some kernels of a fitted family at few samples; made by `sample_rows`."""

    def __init__(self, fitted: FittedKernels, index: Array):
        self.M, self.n = len(index), fitted.n
        degrees, self.numbers = fitted.rules(index)
        self.degrees = degrees.astype(np.int64)
        self.scale = _scales(fitted, index)
        self.sets = _feature_sets(fitted, index, self.degrees)

    @with_blas_alone
    def between(self, which: Array) -> Array:
        """(M, b, b): the kernels between these samples."""
        out, rules = np.empty((self.M, len(which), len(which))), self._rules
        scale = np.ascontiguousarray(self.scale[:, which])
        for features in self.sets:
            A, squares = features.points(which)
            given = (A @ A.T, squares, features.apart, features.kernels)
            spread(
                _fill, *given, *rules, scale, out, count=len(which), work=out.size * 8
            )
        return out

    @with_blas_alone
    def add(self, which: Array, changes: Array, F: Array) -> None:
        """F[m, c] += Σ_i changes[c, i] K_m(x_i, ·), for F of shape (M, k, n)."""
        changes, rules = np.ascontiguousarray(changes), self._rules
        near = np.ascontiguousarray(self.scale[:, which])
        known = [features.points(which) for features in self.sets]

        def tiles(first: int, last: int) -> None:
            for start in range(first * TILE, min(last * TILE, self.n), TILE):
                there = slice(start, start + TILE)
                for features, (A, squares) in zip(self.sets, known):
                    Z, far = features.points(there)
                    given = (A @ Z.T, squares, far, features.apart, features.kernels)
                    _add(*given, *rules, near, self.scale, start, changes, F)

        count, entries = -(-self.n // TILE), len(which) * self.n
        spread(tiles, count=count, work=entries * 8 * self.M)

    @property
    def _rules(self) -> tuple[Array, Array]:
        return self.degrees, self.numbers


def sample_rows(fitted: FittedKernels, index: Array) -> SampleRows | None:
    """The kernels with these numbers, if loops know their rules; None otherwise.

    Not for your own functions, given distances, or centred kernels.
    """
    known = bool(np.all(fitted.kernels.direct[index]))
    if not known or "centre" in fitted.normalize or len(index) == 0:
        return None
    fitted.learn(index)
    return SampleRows(fitted, index)


def _scales(fitted: FittedKernels, index: Array) -> Array:
    """(M, n): e_m(x), the product of what all normalizations divide by."""
    numbers, place, rows = fitted.divisors()
    out = np.ones((len(index), fitted.n))
    for divisors, where in zip(numbers[:, index], place[:, index]):
        own = where >= 0
        out[~own] /= np.sqrt(divisors[~own])[:, None]
        out[own] /= rows[where[own]] if np.any(own) else 1.0
    return out


def _feature_sets(
    fitted: FittedKernels, index: Array, degrees: Array
) -> list[Features]:
    """The kernels by view and columns, whether these are of products or distances."""
    table, found = fitted.kernels, dict[tuple, tuple[Any, list[Array]]]()
    bases, place = np.unique(table.base[index], return_inverse=True)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(len(bases) + 1))
    for b, base in enumerate(bases):
        view, columns = table.place(int(base))
        key = (view, columns if isinstance(columns, tuple) else "all")
        found.setdefault(key, (columns, []))[1].append(order[ends[b] : ends[b + 1]])
    sets = []
    for (view, _), (columns, parts) in found.items():
        some = np.concatenate(parts).astype(np.int64)
        some_columns = list(columns) if isinstance(columns, tuple) else columns
        apart = bool(np.any(degrees[some] == 0))
        sets.append(Features(fitted.blocks[view], some_columns, some, apart))
    return sets


# ---- compiled loops --------------------------------------------------------------


@inlined()
def _distances(products, near, far, t):
    """‖x − z‖² of one x with all z, from ⟨x, z⟩."""
    for j in range(len(t)):
        t[j] = max(near + far[j] - 2 * products[j], 0.0)


@inlined()
def _row(products, t, degree, number, near, far, k):
    """One row of a normalized kernel."""
    if degree == 0:
        evaluate(t, degree, number, k)
    else:
        evaluate(products, degree, number, k)
    for j in range(len(k)):
        k[j] *= near * far[j]


@compiled()
def _fill(P, squares, apart, kernels, degrees, numbers, scale, out, first, last):
    """Rows first:last of the kernels between some samples, P their products."""
    t = np.empty(len(P))
    for i in range(first, last):
        if apart:
            _distances(P[i], squares[i], squares, t)
        for m in kernels:
            near, far = scale[m, i], scale[m]
            _row(P[i], t, degrees[m], numbers[m], near, far, out[m, i])


@compiled()
def _add(
    P, near, far, apart, kernels, degrees, numbers, e, scale, start, changes, F
):  # fmt: skip
    """One tile of F, the samples from `start` on; e are the scales of the rows."""
    rows, width = P.shape
    t, k = np.empty(width), np.empty(width)
    for i in range(rows):
        if apart:
            _distances(P[i], near[i], far, t)
        for m in kernels:
            there = scale[m, start : start + width]
            _row(P[i], t, degrees[m], numbers[m], e[m, i], there, k)
            for c in range(len(changes)):
                change = changes[c, i]
                if change != 0:
                    image = F[m, c, start : start + width]
                    for j in range(width):
                        image[j] += change * k[j]
