"""Streams: kernels from points, computed in compiled sweeps and never stored.

The store behind a LazyStack of Gaussians on features and of powers of products. Its
operations are those of grams/storage.py, for any number of kernels: what is kept is a
few numbers per kernel, and the triangles of the kernels in use (grams/kernel_cache.py).

    few kernels, which fit in the memory for kernels in use     from their triangles
    many kernels                                                a sweep (sweeps.py)

Guarantee. Entries are those that fitted.grams() stores, to the last bit. Sums do not
depend on the number of threads. Peak memory: what is kept, what is returned, and at
most PARTIAL_BYTES of partial sums.

Rounding. The divisor of a normalized Gaussian is divided out of whole sums: against the
stored entries k/c this is one rounding for the entry and one for the sum.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..grams import loops
from ..grams.kernel_cache import Kept
from ..grams.storage import Triangles
from ..util.lanes import DOT_CHAIN, WIDTH
from ..util.rounding import TINY, U, gamma
from ..util.sweeps import report
from ..util.threads import spread
from . import sweeps
from .building import BY_SQUARES
from .normalizations import Block, variance
from .psd_theorem import psd_shift
from .sample_rows import SampleRows, sample_rows
from .sweeps import BLOCK, Area, Direct

if TYPE_CHECKING:
    from .fitted import Blocks, FittedKernels

Array = np.ndarray
UNITS = 16  # a sweep has at least so many, for any number of kernels and cores
PART_TILES = 2048  # of one sum, if partial sums do not take too much memory
PARTIAL_BYTES = 2**27
CACHED_BYTES, FEW_KERNELS = 2**19, 64  # of the products of a block; kernels, at least
BATCH_ENTRIES = 2**30  # of a sweep between two reports: about a second
WIDE, FEW_BASES = 64, 1000  # features per kernel; bases that have a cache
DIVISORS = BY_SQUARES | {"multiplicative"}  # the last step of a normalization
MANY = 10**6  # kernels: parts of sums that are as for so many
CONTENT_NUMBERS = 10**9  # in all triangles: more are not computed for a digest


def can_stream(fitted: FittedKernels) -> bool:
    """Whether kernels are computed here: from points, by rules that loops know.

    Where a base has so many features that computing it takes longer than its kernels,
    bases are worth a cache (streaming.Tiles), if there are not too many of them.
    """
    table, steps = fitted.kernels, fitted.normalize
    divided = set(steps[:-1]) <= BY_SQUARES and set(steps[-1:]) <= DIVISORS
    wide = len(table.columns) > WIDE * fitted.M and len(table.bases) <= FEW_BASES
    return divided and not wide and bool(np.all(table.direct))


def learn_variances(fitted: FittedKernels, index: Array) -> None:
    """Learn the last step, a division by the variance, in one sweep over all kernels.

    What a kernel learns does not depend on the others.
    """
    before = type(fitted)(
        fitted.kernels.take(index), fitted.blocks, fitted.normalize[:-1]
    )
    store, squares = Streams(Direct.of(before), 0), before.traces(np.arange(before.M))
    squares, means = squares / before.n, store.totals() / before.n**2
    with np.errstate(invalid="ignore"):  # infinite entries are refused later
        worst = int(np.argmin((squares - means) / squares))
        variance(squares[worst], means[worst], fitted.who(int(index[worst])))
        fitted.learned.put(index, before.learned, squares - means)


def streams(fitted: FittedKernels, limit: int) -> Streams | None:
    """The store of these kernels, with `limit` bytes of kernels in use; None: not here.

    Raises
    ------
    ValueError
        If a kernel has entries that are not finite: squares k(x, x) bound them all.
    """
    if not can_stream(fitted):
        return None
    return checked(Streams(Direct.of(fitted), limit, fitted), fitted)


def checked(store: Streams, fitted: FittedKernels) -> Streams:
    """The store, if the entries of all its kernels are finite."""
    powers = np.flatnonzero(store.kernels.degrees > 0)
    wrong = powers[~np.isfinite(store.largest(powers))]
    if len(wrong):
        raise ValueError(
            f"{fitted.who(int(wrong[0]))} has NaN or infinite entries; rescale the data"
        )
    return store


class Streams:
    """M kernels that are computed in every sweep, with the operations of storage.py."""

    storage, remembered, dtype, sized = "lazy", 2, np.dtype(float), True

    def __init__(
        self, kernels: Direct, limit: int, fitted: FittedKernels | None = None
    ):
        self.fitted = fitted
        self.kernels, self.n = kernels, kernels.X.shape[1]
        keys = np.empty(len(kernels.apart), np.uint64)
        sweeps.sort_keys(kernels.columns, kernels.ends, kernels.apart, keys)
        self.rank = np.empty(len(keys), np.int64)
        self.rank[np.argsort(keys, kind="stable")] = np.arange(len(keys))
        self.cache = Kept(self.n, float, limit, self._fetch)
        self.squares: Array | None = None  # (M,) Σ K_ij², once they are measured
        self._last: tuple[Array, Direct, Array] | None = None

    def __getstate__(self) -> dict:
        return {**vars(self), "_last": None}

    @property
    def cost(self) -> float:
        """The cost of a sweep, in passes: 1 is M n² numbers."""
        return (self.n + 1) / (2 * self.n)

    # ---- plans -------------------------------------------------------------------

    def _plan(self, index: Array) -> tuple[Direct, Array]:
        """The kernels of a sweep, sorted, and their places in `index`."""
        if self._last is not None and np.array_equal(self._last[0], index):
            return self._last[1:]
        order = np.argsort(self.rank[self.kernels.base[index]], kind="stable")
        plan = self.kernels.sorted_part(index[order])
        self._last = (index.copy(), plan, order)
        return plan, order

    def _bounds(
        self, area: Area, kernels: int, numbers: int = 1, block: int = BLOCK
    ) -> Array:
        """Parts of the tiles; each has `numbers` partial results for every kernel."""
        tiles = -(-int(area.starts[-1]) // WIDTH)
        parts = max(-(-tiles // PART_TILES), -(-UNITS // -(-kernels // block)))
        most = max(PARTIAL_BYTES // (8 * kernels * max(numbers, 1)), 1)
        parts = min(parts, most, tiles)
        return tiles * np.arange(parts + 1) // parts

    def _sweep(
        self,
        loop: Callable,
        plan: Direct,
        bounds: Array,
        *arguments: Any,
        block: int = BLOCK,
    ) -> None:
        """loop(plan, *arguments, first, last) for all units, in batches."""
        parts, kernels = len(bounds) - 1, len(plan.base)
        units = -(-kernels // block) * parts
        entries = max(int(bounds[-1]) * WIDTH * kernels, 1)
        step = max(BATCH_ENTRIES * units // entries, UNITS)
        for start in range(0, units, step):
            end = min(start + step, units)

            def work(first: int, last: int, start: int = start) -> None:
                loop(plan, *arguments, start + first, start + last)

            spread(work, count=end - start, work=entries)
            report(kernels * end // units, kernels)

    # ---- what a store does ---------------------------------------------------------

    def quad(self, index: Array, A: Array) -> Array:
        """(tr AᵀK_mA)_m for an (n, k) matrix A."""
        found = self.cache.ask("quad", index, A) if self._may_keep(index) else None
        return self._dots(index, A, np.empty((0, 0))) if found is None else found

    def _may_keep(self, index: Array) -> bool:
        """Whether kernels of a quad are kept: pricing reads thousands, each only once.

        Kernels in use are combined and multiplied, too, and kept because of that.
        """
        everyone = len(self.kernels.base)
        return everyone <= self.cache.capacity or self.cache.holds(index)

    def against(self, index: Array, S: Array) -> Array:
        """(⟨K_m, S⟩)_m for a symmetric S."""
        found = self.cache.ask("against", index, S)
        return self._dots(index, np.empty((0, 0)), S) if found is None else found

    def totals(self) -> Array:
        """(M,): Σ_ij K_ij; the bits of each do not depend on the other kernels."""
        everyone = np.arange(len(self.kernels.base))
        bounds = self._bounds(triangle(self.n), MANY)
        return self._dots(everyone, np.ones((self.n, 1)), np.empty((0, 0)), bounds)

    def _dots(
        self, index: Array, A: Array, S: Array, bounds: Array | None = None
    ) -> Array:
        """One sweep. The first one over all kernels measures their squares, too.

        Not one over some kernels: sums would depend on which, in the last bit.
        """
        (plan, order), area = self._plan(index), triangle(self.n)
        bounds = self._bounds(area, len(index), 2) if bounds is None else bounds
        shape = (len(bounds) - 1, len(index))
        everyone = np.arange(len(self.kernels.base))
        measured = self.squares is None and np.array_equal(index, everyone)
        out, squares = np.empty(shape), np.empty(shape if measured else (shape[0], 0))
        given = (np.ascontiguousarray(A), np.ascontiguousarray(S), measured)
        self._sweep(sweeps.dots, plan, bounds, area, bounds, *given, out, squares)
        if measured:
            self.squares = _placed(order, _divided(plan, squares.sum(axis=0), 2))
        return _placed(order, _divided(plan, out.sum(axis=0)))

    def combine(self, index: Array, theta: Array) -> Array:
        """Σ θ_m K_m."""
        found = self.cache.ask("combine", index, theta)
        return self._combined(index, theta) if found is None else found

    def _combined(self, index: Array, theta: Array) -> Array:
        return _square(self.sums(index, theta, triangle(self.n)), self.n)

    def sums(self, index: Array, theta: Array, area: Area) -> Array:
        """Σ θ_m K_m at the pairs of an area, one after the other."""
        plan, order = self._plan(index)
        size, kernels = int(area.starts[-1]), len(index)
        weights = _divided(plan, theta[order].astype(float))
        tiles, parts = -(-size // WIDTH), max(UNITS, -(-size // WIDTH // PART_TILES))
        bounds = tiles * np.arange(parts + 1) // parts
        flat, step = np.zeros(size), max(BATCH_ENTRIES // (size * BLOCK), 1)
        for first in range(0, -(-kernels // BLOCK), step):
            last = min(first + step, -(-kernels // BLOCK))
            given = (plan, area, bounds, weights, np.array([first, last]), flat)
            count, work = len(bounds) - 1, kernels * size
            spread(sweeps.combine, *given, count=count, work=work)
            report(min(last * BLOCK, kernels), kernels)
        return flat

    def matvec(self, index: Array, A: Array) -> Array:
        """(K_m A_m)_m for A of shape (1 or M, n, k)."""
        found = self.cache.ask("matvec", index, A)
        return self._products(index, A) if found is None else found

    def _products(self, index: Array, A: Array) -> Array:
        (plan, order), area = self._plan(index), triangle(self.n)
        columns = np.ascontiguousarray(A.transpose(0, 2, 1), dtype=float)
        size = 8 * (self.n + 2 * WIDTH) * A.shape[2]
        block = min(max(CACHED_BYTES // size, FEW_KERNELS), BLOCK)
        bounds = self._bounds(area, len(index), self.n * A.shape[2], block)
        out = np.empty((len(bounds) - 1, len(index), A.shape[2], self.n))
        given = (area, bounds, columns, order, block, out)
        self._sweep(sweeps.matvec, plan, bounds, *given, block=block)
        total = out[0] if len(out) == 1 else out.sum(axis=0)
        for factor in _outside(plan, order):
            total /= factor[:, None, None]
        return np.ascontiguousarray(total.transpose(0, 2, 1))

    def _fetch(self, index: Array, P: Array) -> None:
        """Packed triangles of some kernels, to the rows of P."""
        self._entries(self._plan(index), triangle(self.n), P)

    def _entries(self, plan: tuple[Direct, Array], area: Area, out: Array) -> None:
        bounds = self._bounds(area, len(out))
        self._sweep(sweeps.fill, plan[0], bounds, area, bounds, plan[1], out)

    def rows(self, index: Array, which: Array) -> Array:
        """(M, r, n): the rows with these numbers."""
        found = self.cache.ask("rows", index, which)
        if found is not None:
            return found
        out, starts = np.empty((len(index), len(which) * self.n)), np.arange(len(which))
        starts = np.append(starts, len(which)) * self.n
        area = Area(np.asarray(which, np.int64), np.zeros(len(which), np.int64), starts)
        if len(which):
            self._entries(self._plan(index), area, out)
        return out.reshape(len(index), len(which), self.n)

    def sample_rows(self, index: Array) -> SampleRows | None:
        """Rows at few samples by BLAS, rounded differently (sample_rows.py)."""
        return None if self.fitted is None else sample_rows(self.fitted, index)

    def samples(self, index: Array, which: Array) -> Triangles:
        """The kernels between some of the samples, in order, packed."""
        plan, order = self._plan(index)
        X = np.ascontiguousarray(plan.X[:, which])
        roots = np.ascontiguousarray(plan.roots[:, which])
        found = Triangles(len(which), len(index), "packed", float)
        part = (plan._replace(X=X, roots=roots), order)
        self._entries(part, triangle(len(which)), found.P)
        return found

    def diag(self, index: Array) -> Array:
        """(M, n): the diagonals k(x, x)."""
        plan, order = self._plan(index)
        out = np.empty((len(index), self.n))
        given = (plan, order, out)
        spread(sweeps.diagonals, *given, count=len(index), work=out.size)
        return out

    def kernel(self, m: int) -> Array:
        """(n, n): one kernel."""
        return _square(self.triangle(m), self.n)

    def triangle(self, m: int) -> Array:
        """The upper triangle, row after row."""
        P = np.empty((1, self.n * (self.n + 1) // 2))
        self._fetch(np.array([m]), P)
        return P[0]

    def content(self, index: Array) -> Iterable[Array]:
        """The arrays that define the kernels, for a digest.

        The triangles, as of stored kernels; for more than CONTENT_NUMBERS numbers the
        points and the table of kernels instead, which need no computation.
        """
        if len(index) * self.n * (self.n + 1) // 2 <= CONTENT_NUMBERS:
            return (self.triangle(m) for m in index)
        given = self.kernels
        each = (given.base, given.degrees, given.numbers, given.divisors, given.place)
        shared = (given.X, given.columns, given.ends, given.apart, given.roots)
        return iter([*(array[index] for array in each), *shared])

    @cached_property
    def theorem(self) -> Array | None:
        """δ for which K_m + δ_m I ⪰ 0 is a theorem; ∞ where it is not."""
        if self.fitted is None:
            return None
        return psd_shift(self.fitted, np.arange(self.fitted.M))

    def identity(self) -> bytes:
        """A hash of what defines all kernels: the points and the table."""
        h = hashlib.sha256()
        for array in filter(lambda part: part is not None, self.kernels):
            h.update(f"{array.dtype} {array.shape}".encode())
            h.update(np.ascontiguousarray(array).data)
        return h.digest()

    # ---- rounding and sizes ----------------------------------------------------------

    @property
    def _roundings(self) -> int:
        """Of entries and sums, when divisors are divided out."""
        return 2 * self.kernels.divisors.shape[1]

    def chain(self, terms: int) -> int:
        """The largest number of roundings of one product: sums are in any order."""
        return terms + 2 + self._roundings

    def quad_chain(self, columns: int) -> int:
        """The k for which the error of `quad` is at most γ_k Σ|K_ij||A_i||A_j|.

        It is also enough for ⟨A, K A⟩ from `matvec`, and for kernels in use.
        """
        area, M = triangle(self.n), len(self.kernels.base)
        bounds = self._bounds(area, M, 2)
        tiles = int(max(np.diff(bounds).max(), PART_TILES)) + len(bounds) + UNITS
        swept = tiles + DOT_CHAIN + columns + 4 + self._roundings
        kept = loops.CHUNK + -(-int(area.starts[-1]) // loops.CHUNK) + columns + 4
        return max(swept, kept, self.chain(self.n) + self.n * columns + 4)

    @property
    def root_sizes(self) -> Array:
        """Upper bounds of √λ_max(K_m): λ_max is at most the Frobenius norm.

        The first quad over all kernels measures it. Asked for earlier, it takes a sweep
        of its own: so the bounds do not depend on what was asked before.
        """
        if self.squares is None:
            some = np.arange(len(self.kernels.base))
            self._dots(some, np.zeros((self.n, 1)), np.empty((0, 0)))
        assert self.squares is not None
        with np.errstate(over="ignore", invalid="ignore"):
            above = self.squares * (1 + gamma(self.n**2 + 2 * self._roundings + 16))
            above = np.where(np.isnan(above), np.inf, above + TINY)
            return np.asarray(np.sqrt(np.sqrt(above)) * (1 + 8 * U) + TINY)

    def largest(self, index: Array) -> Array:
        """(M,): the largest number of each diagonal."""
        out, step = np.empty(len(index)), max(PARTIAL_BYTES // (8 * self.n), 1)
        for first in range(0, len(index), step):
            some = slice(first, first + step)
            out[some] = np.max(self.diag(index[some]), axis=1)
        return out


def cross_sum(fitted: FittedKernels, new: Blocks, theta: Array) -> Array:
    """(n_new, n): Σ θ_m K_m of new points with the training points, in one sweep.

    New and training points are the points of one stack, which is not swept as a whole.
    """
    given, used = Direct.of(fitted), np.flatnonzero(theta)
    t = len(next(iter(new.values())))
    X = np.hstack([np.hstack(list(new.values())).T, given.X])
    roots = np.hstack([_new_roots(fitted, new, given), given.roots])
    both = Streams(given._replace(X=X, roots=roots), 0)
    if len(used) == 0 or t == 0:
        return np.zeros((t, fitted.n))
    starts = np.arange(t + 1) * fitted.n
    area = Area(np.arange(t), np.full(t, t), starts)
    return both.sums(used, theta[used], area).reshape(t, fitted.n)


def _new_roots(fitted: FittedKernels, new: Blocks, given: Direct) -> Array:
    """(R, n_new): √k(x, x) of new points, for kernels that have a row of roots."""
    out = np.empty((len(given.roots), len(next(iter(new.values())))))
    for m, s in zip(*np.nonzero(given.place >= 0)):
        kernel = fitted.kernels[int(m)]
        diagonal = kernel.rule.diagonal(new[kernel.view][:, kernel.columns])
        how = (fitted.learned[int(m)], fitted.normalize[:s], Block(who=fitted.who(m)))
        squares = kernel.of(np.empty((len(diagonal), 0)), diagonal, *how)[1]
        if np.any(squares <= 0):
            raise ValueError(
                f"{fitted.who(m)} is zero at new point {np.argmin(squares)}, so it has "
                "no place on the sphere; drop the point, or choose unit_trace"
            )
        out[given.place[m, s]] = np.sqrt(squares)
    return out


def triangle(n: int) -> Area:
    """All pairs i ≤ j of n points."""
    rows = np.arange(n + 1)
    return Area(rows[:-1], rows[:-1], rows * n - rows * (rows - 1) // 2)


def _outside(plan: Direct, order: Array | None = None) -> list[Array]:
    """Divisors that are not in the entries of a sweep, step by step."""
    factors = np.where(plan.inside[:, None], 1.0, plan.divisors).T
    return [f if order is None else _placed(order, f) for f in factors]


def _divided(plan: Direct, total: Array, power: int = 1) -> Array:
    for factor in _outside(plan):
        for _ in range(power):
            total = total / factor
    return total


def _placed(order: Array, values: Array) -> Array:
    """Values of sorted kernels in the order that was asked for."""
    out = np.empty(len(order))
    out[order] = values
    return out


def _square(flat: Array, n: int) -> Array:
    out = np.empty((n, n))
    loops.unpack(flat, out, 0, n)
    return out
