"""Entries of kernels between any points and some training points, block by block.

    block(g, A, Z)     k_m(a_i, z_j) for the kernels m of a group, one after the other
    sweep(…)           Σ_j k_m(a_i, z_j) c_mj, entries never stored, on all cores

Kernels on the same features are a group: they share their distances or products. What
is normalized is k_m(x, z)/(ρ_m(x) ρ_m(z) τ_m). The roots ρ_m = √k_m(x, x) belong to
"spherical" and the traces τ_m to "unit_trace"; both are the float64 numbers that were
computed, and count as data.

Rounding. An entry k of the raw kernel, as computed here, differs from the true one, the
function of the float64 points x and z in exact arithmetic, by at most ε_m r(x) r(z)
with r = √k(x, x):

    Gaussian    distances (no cancellation), one product and the exponential, whose
                argument has the relative error γ_{d+4}; and t e^{−t} ≤ 1/e
    Power       p (d + 3) roundings of numbers ≤ (|x|ᵀ|z| + c)^p ≤ r(x) r(z)
    Function    0: what your function returns is the kernel

Sums over j have the error γ_chain Σ_j |k| |c_mj| (Higham 2002, chapter 3, any order).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..util.compiled import compiled, inlined
from ..util.rounding import TINY, U, gamma
from ..util.threads import spread
from .building import BY_SQUARES, evaluate
from .fitted import Blocks, FittedKernels, rows_of
from .functions import Function, Gaussian, Kernel, Power
from .pairwise import fill_pairs, pairs

Array = np.ndarray
ROWS, STRIP = 32, 256  # points at a time: 64 kB of distances
BAND = 1024  # points whose strips are summed before the next ones


class Group(NamedTuple):
    """Kernels on the same features: functions of the same numbers t."""

    numbers: tuple[int, ...]  # the kernels
    kernel: Kernel  # the first of them: its view and columns
    kind: str  # "distances", "products", or "function"
    degrees: Array  # of powers; 0: a Gaussian
    factors: Array  # −1/scale of Gaussians; the offset of powers

    @property
    def apart(self) -> bool:
        """Whether t is a squared distance."""
        return self.kind == "distances"

    def points(self, blocks: Blocks, rows: Any = slice(None)) -> Array:
        """The features of some points, contiguous."""
        found = blocks[self.kernel.view][rows]
        if isinstance(self.kernel.columns, tuple):
            found = found[:, self.kernel.columns]
        return np.ascontiguousarray(found)

    def base(self, A: Array, Z: Array) -> Array:
        """t of all rows of A with all rows of Z."""
        if self.kind == "function":
            return self.kernel.rule.base(A, Z)
        return pairs(A, np.ascontiguousarray(Z.T), self.apart)


class Entries:
    """The kernels of a fitted family as functions of points.

    `normalize` may have "unit_trace" and "spherical": others need whole matrices.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        blocks: Blocks,
        normalize: tuple[str, ...],
        learned: tuple[list[float], Array] | None = None,
    ):
        """learned: means and traces, where the blocks are not all training points."""
        if wrong := set(normalize) - BY_SQUARES:
            raise ValueError(
                f"normalize = {', '.join(sorted(wrong))} needs whole kernel matrices; "
                f"choose {' or '.join(sorted(BY_SQUARES))} here"
            )
        if any(getattr(kernel.rule, "given", False) for kernel in kernels):
            raise ValueError("kernels of given distances have no points; fit a family")
        self.kernels, self.blocks, self.normalize = list(kernels), blocks, normalize
        self.M, self.n = len(self.kernels), rows_of(blocks)
        self.spherical = "spherical" in normalize
        self.means = learned[0] if learned else [self._mean(k) for k in self.kernels]
        self.groups = self._groups()
        if learned:
            self.traces = learned[1]
        elif "unit_trace" in normalize:
            self.traces = np.array([self._trace(m) for m in range(self.M)])
        else:
            self.traces = np.ones(self.M)

    @classmethod
    def of(cls, fitted: FittedKernels) -> Entries:
        """The kernels of a fitted family on its training points."""
        kernels = [fitted.kernels[m] for m in range(fitted.M)]
        return cls(kernels, fitted.blocks, fitted.normalize)

    def part(self, index: Array, blocks: Blocks) -> Entries:
        """Some of the kernels, as they are here, with other points x_j."""
        learned = ([self.means[m] for m in index], self.traces[index])
        kernels = [self.kernels[m] for m in index]
        return Entries(kernels, blocks, self.normalize, learned)

    def who(self, m: int) -> str:
        """Number and name of a kernel, as messages begin."""
        return f"kernel {m}, {self.kernels[m].name},"

    def _mean(self, kernel: Kernel) -> float:
        X = self.blocks[kernel.view][:, kernel.columns]
        return kernel.rule.mean(X)

    def _groups(self) -> list[Group]:
        places: dict[tuple, list[int]] = {}
        for m, kernel in enumerate(self.kernels):
            places.setdefault(kernel.base, []).append(m)
        return [self._group(tuple(some)) for some in places.values()]

    def _group(self, numbers: tuple[int, ...]) -> Group:
        degrees, factors = np.zeros(len(numbers), int), np.zeros(len(numbers))
        for e, m in enumerate(numbers):
            rule = self.kernels[m].rule
            if isinstance(rule, Gaussian):
                factors[e] = -1.0 / self.scale(m)
            elif isinstance(rule, Power):
                degrees[e], factors[e] = rule.degree, rule.offset
        first = self.kernels[numbers[0]]
        own = isinstance(first.rule, Function)
        kind = "function" if own else str(first.rule.shared)
        return Group(numbers, first, kind, degrees, factors)

    def scale(self, m: int) -> float:
        """The scale of a Gaussian, 2σ²; 1 where all points coincide."""
        return float(self.kernels[m].rule.scale or self.means[m] or 1.0)

    # ---- squares, roots and traces ------------------------------------------------

    def squares(self, m: int, A: Array) -> Array:
        """k_m(a, a) of the raw kernel for every row of A (its features alone)."""
        rule = self.kernels[m].rule
        with np.errstate(over="ignore"):
            return rule(rule.diagonal(A), self.means[m])

    def roots(self, m: int, A: Array) -> Array | None:
        """ρ_m of every row of A; None where it is 1."""
        if not self.spherical or isinstance(self.kernels[m].rule, Gaussian):
            return None
        found = self.squares(m, A)
        if np.any(found <= 0):
            raise ValueError(
                f"{self.who(m)} is zero at a point, so it has no place on the "
                "sphere; drop the point, or choose unit_trace"
            )
        return np.asarray(np.sqrt(found))

    def _trace(self, m: int) -> float:
        if self.spherical or isinstance(self.kernels[m].rule, Gaussian):
            return float(self.n)
        found = float(np.sum(self.squares(m, self.points(m))))
        if not 0 < found < np.inf:
            raise ValueError(
                f"{self.who(m)} has the trace {found:g}; drop it, or rescale the data"
            )
        return found

    def points(self, m: int) -> Array:
        """The features of kernel m at all training points."""
        kernel = self.kernels[m]
        return self.blocks[kernel.view][:, kernel.columns]

    def root_squares(self, m: int, rows: Any = slice(None)) -> Array:
        """Upper bounds of √k_m(x, x) of the normalized kernel, at training points."""
        kernel = self.kernels[m]
        A = self.blocks[kernel.view][rows][:, kernel.columns]
        rule, d = kernel.rule, A.shape[1]
        if isinstance(rule, Gaussian):
            found = np.ones(len(A))
        else:
            terms = getattr(rule, "degree", 1) * (d + 3) + 4
            found = np.sqrt(np.maximum(self.squares(m, A), 0.0) * (1 + gamma(terms)))
        if (roots := self.roots(m, A)) is not None:
            found = found / roots
        return found / math.sqrt(self.traces[m]) * (1 + gamma(8)) + TINY

    # ---- entries ------------------------------------------------------------------

    def error(self, m: int) -> float:
        """ε_m: |computed − true| ≤ ε_m r(x) r(z) for entries of the raw kernel."""
        kernel = self.kernels[m]
        d = self.blocks[kernel.view][:1, kernel.columns].shape[1]
        if isinstance(kernel.rule, Gaussian):
            return gamma(d + 6) * math.exp(-1) * (1 + 1e-6) + 4 * U
        if isinstance(kernel.rule, Power):
            return gamma(kernel.rule.degree * (d + 3) + 4)
        return 0.0

    @property
    def own(self) -> bool:
        """Whether a kernel is a user's own function."""
        return any(group.kind == "function" for group in self.groups)

    def block(self, group: Group, A: Array, Z: Array) -> Iterator[Array]:
        """The raw kernels of a group between rows of A and rows of Z, in order."""
        t = group.base(A, Z)
        for m in group.numbers:
            yield self.kernels[m].rule(t, self.means[m])

    def combined(self, theta: Array, which: Array) -> Array:
        """Σ θ_m K_m between some training points, normalized, by this thread alone."""
        total = np.zeros((len(which), len(which)))
        for group in self.groups:
            A = group.points(self.blocks, which)
            for m, K in zip(group.numbers, self.block(group, A, A)):
                if theta[m] > 0:
                    roots = self.roots(m, A)
                    K = K if roots is None else K / np.outer(roots, roots)
                    total += (theta[m] / self.traces[m]) * K
        return total

    def sweep(self, group: Group, A: Array, Z: Array, C: Array) -> Array:
        """Σ_j k_m(a_i, z_j) C[e, k, j] for the kernels of a group: (r, kernels, k).

        Raw kernels: divide by roots and traces before and after. Z holds the points in
        columns, (d, c), contiguous; a function gets them in rows.
        """
        out = np.empty((len(A), len(group.numbers), C.shape[1]))
        if group.kind == "function":
            for e, K in enumerate(self.block(group, A, Z.T)):
                out[:, e] = K @ C[e].T
            return out
        how = (group.apart, group.degrees, group.factors, C)
        work = len(A) * Z.shape[1] * (len(Z) + 8 * len(group.numbers))
        spread(fill_sweep, A, Z, *how, out, count=len(A), work=work, unit=ROWS)
        return out


class Products:
    """(Σ_j K_m(x, x_j) c_mj)_m for training points x_j, at any points x.

    which: the training points x_j; coefficients: (c, k), or (M, c, k), one per kernel

    Guarantee. What `at` returns differs from the true sums by at most
    r_m(x) · spread[m, k], with r_m the bounds of Entries.root_squares.
    """

    def __init__(self, entries: Entries, which: Array, coefficients: Array):
        self.entries, self.which = entries, which
        self.coefficients = coefficients
        self.k = coefficients.shape[-1]
        blocks = entries.blocks
        self.parts = []
        for group in entries.groups:
            A = group.points(blocks, which)
            C = np.empty((len(group.numbers), self.k, len(which)))
            for e, m in enumerate(group.numbers):
                own = coefficients if coefficients.ndim == 2 else coefficients[m]
                roots = entries.roots(m, A)
                C[e] = own.T if roots is None else own.T / roots
            self.parts.append((group, np.ascontiguousarray(A.T), C))

    def at(self, rows: Any, blocks: Blocks | None = None) -> Array:
        """(M, r, k): the sums at some training points, or rows of other blocks."""
        entries = self.entries
        blocks, out = entries.blocks if blocks is None else blocks, None
        for group, Z, C in self.parts:
            A = group.points(blocks, rows)
            found = entries.sweep(group, A, Z, C)
            out = np.empty((entries.M, len(A), self.k)) if out is None else out
            for e, m in enumerate(group.numbers):
                roots = entries.roots(m, A)
                out[m] = found[:, e] if roots is None else found[:, e] / roots[:, None]
                out[m] /= entries.traces[m]
        assert out is not None
        return out

    @property
    def spread(self) -> Array:
        """(M, k): the error of a sum is at most r_m(x) times this."""
        entries, out = self.entries, np.empty((self.entries.M, self.k))
        for m in range(entries.M):
            own = self.coefficients
            own = np.abs(own if own.ndim == 2 else own[m])
            sums = entries.root_squares(m, self.which) @ own + TINY
            relative = entries.error(m) + gamma(chain(len(self.which)) + 8)
            out[m] = relative * sums * (1 + 1e-6) + TINY
        return out


def chain(columns: int) -> int:
    """The k for which a sum of `sweep` over so many points has the error γ_k."""
    strips = -(-columns // STRIP)
    return min(columns, STRIP + min(strips, BAND) + -(-strips // BAND)) + 4


@inlined(fastmath={"reassoc", "nsz", "contract"})
def _dot(k, c):
    """A sum in an order that suits the processor: its error bound is for any order."""
    total = 0.0
    for j in range(len(k)):
        total += k[j] * c[j]
    return total


@compiled()
def fill_sweep(A, Z, apart, degrees, factors, C, out, first, last):
    """Rows first:last of out[i, e, c] = Σ_j k_e(a_i, z_j) C[e, c, j]."""
    n, M, width = Z.shape[1], len(degrees), C.shape[1]
    memory, part = np.empty((2, ROWS * STRIP)), np.empty((ROWS, M, width))
    for top in range(first, last, ROWS):
        rows = min(ROWS, last - top)
        out[top : top + rows] = 0.0
        for begin in range(0, n, STRIP * BAND):
            part[:] = 0.0
            for left in range(begin, min(begin + STRIP * BAND, n), STRIP):
                size = min(STRIP, n - left)
                t, k = memory[0, : rows * size], memory[1, : rows * size]
                T, K = t.reshape(rows, size), k.reshape(rows, size)
                fill_pairs(A[top : top + rows], Z, apart, left, T, 0, rows)
                for e in range(M):
                    evaluate(t, degrees[e], factors[e], k)
                    for c in range(width):
                        here = C[e, c, left : left + size]
                        for i in range(rows):
                            part[i, e, c] += _dot(K[i], here)
            for i in range(rows):
                for e in range(M):
                    for c in range(width):
                        out[top + i, e, c] += part[i, e, c]
