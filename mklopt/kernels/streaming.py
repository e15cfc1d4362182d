"""LazyStack: kernels computed from data on demand, never stored.

    grams = mklopt.LazyStack(X, kernels.gaussians([1, 3, 10]), cache="500MB")
    grams = fitted.lazy(cache="500MB")          # for kernels fitted on data already

It is a GramStack in every other way. There are three stores behind it:

    ByRows (by_rows.py)     the same kernels as Streams, where one n × n matrix would be
                            too large. The cache has rows of distances and products.
    Streams (streams.py)    Gaussians on features and powers of products, not normalized
                            or by unit_trace, spherical, or multiplicative at the end:
                            compiled sweeps over any number of kernels. The cache has
                            the kernels in use.
    Tiles (here)            all others: your own functions, given distances, the other
                            normalizations, and few kernels on very many features.

Tiles. Kernels on the same features are functions of the same numbers t, products ⟨x, z⟩
or distances ‖x − z‖²: these bases are what is cached, so that ten Gaussians on the same
features cost the memory of one.

    quad, against, combine, matvec, apply    sweeps over tiles of the upper triangle,
                                             TILE × TILE, shared among all cores
    rows                                     whole rows, computed on demand

Tiles and rows of the bases share one cache with a limit in bytes; the least recently
used ones are dropped first. Every sweep visits the tiles in the opposite order of the
one before. In the same order, the tiles that a sweep needs first would be those that
were just dropped.

Guarantee. Memory: the cache, a few tiles for each core, the data, and what is returned.
K is one well-defined symmetric matrix, for all operations in any order, so that a
certificate is valid for it as for a stored one. An entry of a family depends on its two
points alone (pairwise.py, exponential.py), and is the same number that fitted.grams()
stores; after multiplicative or centre up to the rounding of sums over the matrix, which
are made tile by tile here. Your own function may round differently in
different blocks: there every entry comes from the one call k(X_I, X_J), I ≤ J, on a
fixed grid of tiles, and rows cost whole tiles. Sums do not depend on the number of
cores.

Normalizations that need the whole matrix (multiplicative, centre) take one sweep when
the stack is made: of multiplicative a number for each kernel is kept, of centre the
means of n rows. full(), dense() and the solvers that use
them (interleaved, smo_mkl) need memory for all kernels; verify_psd() for one.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import pairwise
from operator import add
from threading import Lock
from typing import Any, Self

import numpy as np

from ..grams.stack import GramStack
from ..util.checks import byte_count, short
from ..util.threads import spread
from .by_rows import by_rows
from .family import Family, function
from .fitted import FittedKernels
from .functions import Kernel
from .normalizations import Block, Steps
from .pairwise import fill_pairs, pairs
from .sample_rows import SampleRows, sample_rows
from .streams import streams

Array = np.ndarray
TILE = 256  # rows and columns of a tile
PARTS = 8  # of a sweep, for any number of cores: so sums do not depend on that number
MAX_PARTIAL_BYTES = 2**28  # memory of partial results; a sweep has fewer parts above it


class LazyStack(GramStack):
    """M kernels on the rows of X, computed on demand: a GramStack without the memory.

    Parameters
    ----------
    X : array (n, d), or a list or dict of such arrays for kernels.views
        One row per training point.
    kernels : Family, callable, or a sequence of these
        A family of mklopt.kernels, or your own function k(A, B).
    normalize : str, sequence of str, or None
        The normalizations, as for Family.fit.
    cache : int or str
        The memory for kernels in use, or for their bases: a number of bytes, or text
        such as "500MB".

    Attributes
    ----------
    kernels : FittedKernels
        The kernels on the training points; `kernels.cross` computes new rows.

    Raises
    ------
    ValueError
        If data, kernels or cache are not valid, or k(x, x) < 0 at a training point.

    Examples
    --------
    >>> stack = LazyStack([[0.0], [2.0]], lambda A, B: A @ B.T, cache="1MB")
    >>> stack.combine(np.ones(1))
    array([[0., 0.],
           [0., 4.]])
    """

    kernels: FittedKernels

    def __init__(
        self, X: Any, kernels: Any, *, normalize: Steps = None, cache: Any = "500MB"
    ) -> None:
        self._fill(_family(kernels).fit(X, normalize), cache)

    @classmethod
    def of(cls, fitted: FittedKernels, cache: Any = "500MB") -> Self:
        """A stack of kernels that are fitted already.

        Parameters
        ----------
        fitted : FittedKernels
        cache : int or str
            The memory of the cache: a number of bytes, or text such as "500MB".

        Returns
        -------
        LazyStack
        """
        stack = cls.__new__(cls)
        stack._fill(fitted, cache)
        return stack

    def _fill(self, fitted: FittedKernels, cache: Any) -> None:
        self.kernels, limit = fitted, byte_count(cache, "cache")
        store: Any = by_rows(fitted, limit) or streams(fitted, limit)
        store = store or Tiles(fitted, Cache(limit))
        self._set(store, np.arange(fitted.M), np.zeros(fitted.M), "")

    @property
    def cache(self) -> Any:
        """The cache: of bases, with its counts of hits and misses; or of kernels."""
        return self._store.cache


def _family(given: Any) -> Family:
    if isinstance(given, Family):
        return given
    if callable(given):
        return function(given)
    if isinstance(given, Sequence) and len(given) > 0 and not isinstance(given, str):
        return reduce(add, map(_family, given))
    raise ValueError(
        f"kernels = {short(given)}; give a family such as kernels.gaussians([1, 3]), a "
        "function k(A, B), or a list of these"
    )


class Cache:
    """The most recently used arrays, at most `limit` bytes of them."""

    def __init__(self, limit: int):
        self.limit, self.used, self.hits, self.misses = limit, 0, 0, 0
        self._kept: OrderedDict[tuple, Array] = OrderedDict()
        self._lock = Lock()

    def __repr__(self) -> str:
        return (
            f"Cache({self.used / 1e6:.0f} of {self.limit / 1e6:.0f} MB, "
            f"{self.hits} hits, {self.misses} misses)"
        )

    def get(self, key: tuple) -> Array | None:
        """The array of this key, or None; counts a hit or a miss."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                self.misses += 1
            else:
                self.hits += 1
                self._kept.move_to_end(key)
            return found

    def put(self, key: tuple, array: Array) -> None:
        """Keep an array, and drop the least recently used ones above the limit."""
        if array.nbytes > self.limit:
            return
        with self._lock:
            before = self._kept.pop(key, None)
            self._kept[key] = array
            self.used += array.nbytes - (0 if before is None else before.nbytes)
            while self.used > self.limit:
                self.used -= self._kept.popitem(last=False)[1].nbytes

    def __reduce__(self) -> tuple:
        return Cache, (self.limit,)  # pickled without its content


# ---- bases: numbers t, such that kernels on the same features are functions of t -----


class Base:
    """The base of some kernels, t of all pairs of training points, by blocks."""

    def __init__(self, kernel: Kernel, X: Array):
        self.rule, self.name = kernel.rule, kernel.name
        self.given = getattr(kernel.rule, "given", False)  # distances, not points
        self.own = callable(kernel.rule.shared)  # a user's function
        self.X = np.ascontiguousarray(X[:, kernel.columns])
        self.Z = np.ascontiguousarray(self.X[:, :0] if self.given else self.X.T)
        self.diagonal = kernel.rule.diagonal(self.X)
        self.apart = kernel.rule.shared == "distances"

    def tile(self, I: slice, J: slice) -> Array:
        """t of the points I with the points J."""
        if self.given:
            return self.X[I, J].copy()
        if self.own:
            t = self.rule.base(self.X[I], self.X[J])
            return t if I != J else self._symmetric(t)
        out = np.empty((I.stop - I.start, J.stop - J.start))
        fill_pairs(self.X[I], self.Z, self.apart, J.start, out, 0, len(out))
        return out

    def rows(self, which: Array) -> Array:
        """Whole rows of t; not for a user's function, which may round by block."""
        return self.X[which] if self.given else pairs(self.X[which], self.Z, self.apart)

    def _symmetric(self, t: Array) -> Array:
        if np.max(np.abs(t - t.T)) > 1e-10 * np.max(np.abs(t)):
            raise ValueError(
                f"{self.name} is not symmetric: k(A, A) must equal its transpose"
            )
        return 0.5 * (t + t.T)


# ---- the store -----------------------------------------------------------------------

Visit = Callable[[int, slice, slice, Iterator[tuple[int, Array]]], None]


class Tiles:
    """Kernels by tiles of the upper triangle, with the operations of storage.py."""

    storage, remembered, dtype = "lazy", 2, np.dtype(float)
    direction = -1  # of the last sweep

    def __init__(self, fitted: FittedKernels, cache: Cache):
        self.n, self.cache, self.fitted = fitted.n, cache, fitted
        self.panels = _panels(self.n)
        count = range(len(self.panels))
        self.grid = [(i, j) for i in count for j in count[i:]]
        names = {kernel.base: kernel for kernel in fitted.kernels}
        places = {key: place for place, key in enumerate(names)}
        self.bases = [Base(k, fitted.blocks[k.view]) for k in names.values()]
        self.place = np.array([places[kernel.base] for kernel in fitted.kernels])
        self.steps: tuple[str, ...] = ()
        self._learn()

    @property
    def cost(self) -> float:
        """The cost of a sweep, in passes: 1 is M n² numbers."""
        sizes = [panel.stop - panel.start for panel in self.panels]
        return sum(sizes[i] * sizes[j] for i, j in self.grid) / self.n**2

    # ---- sweeps ------------------------------------------------------------------

    def _walk(self, visit: Callable[[int, int, int], None], parts: int = PARTS) -> None:
        """visit(part, i, j) for all tiles, on all cores, in alternating directions.

        Each part has a sum of its own, over its tiles in order: results depend neither
        on the number of cores nor on their speed, nor on earlier sweeps. Your own
        function is called from one thread only.
        """
        step = self.direction = -self.direction

        def walk(first: int, last: int) -> None:
            for part in range(parts)[::step][first:last]:
                for i, j in self.grid[part::parts]:
                    visit(part, i, j)

        if any(base.own for base in self.bases):
            walk(0, parts)
        else:
            spread(walk, count=parts, work=self.n**2)

    def _tile(self, place: int, i: int, j: int) -> Array:
        t = self.cache.get((place, i, j))
        if t is None:
            t = self.bases[place].tile(self.panels[i], self.panels[j])
            self.cache.put((place, i, j), t)
        return t

    def _sweep(self, index: Array, visit: Visit, parts: int = PARTS) -> None:
        """visit(part, I, J, tiles) with the tiles (k, K) of all kernels index[k]."""
        mine: dict[int, list[int]] = {}
        for k, m in enumerate(index):
            mine.setdefault(int(self.place[m]), []).append(k)

        def tiles(i: int, j: int) -> Iterator[tuple[int, Array]]:
            I, J = self.panels[i], self.panels[j]
            for place, some in mine.items():
                t = self._tile(place, i, j)
                for k in some:
                    yield k, self._kernel(int(index[k]), t, I, J)

        def each(part: int, i: int, j: int) -> None:
            visit(part, self.panels[i], self.panels[j], tiles(i, j))

        self._walk(each, parts)

    def _kernel(self, m: int, t: Array, rows: Any, columns: slice) -> Array:
        """A block of kernel m from its base, normalized; exact k(x, x) on diagonals."""
        base, fitted = self.bases[self.place[m]], self.fitted
        at = Block(rows, columns, fitted.who(m))
        how = (self.learned[m], self.steps, at)
        K, squares = fitted.kernels[m].of(t, base.diagonal[rows], *how)
        if not np.isfinite(K.sum()):
            raise ValueError(
                f"{fitted.who(m)} has NaN or infinite entries; rescale the data"
            )
        if isinstance(rows, slice) and rows == columns:
            np.fill_diagonal(K, squares)
        return K

    # ---- what is learned from the training points ----------------------------------

    def _learn(self) -> None:
        """Means, roots and traces, for kernels that have not been computed before."""
        fitted, everyone = self.fitted, range(self.fitted.M)
        self.learned = {m: fitted.learned.get(m) or self._mean(m) for m in everyone}
        self.squares = np.empty((fitted.M, self.n))
        for i in range(len(fitted.normalize) + 1):
            new = [m for m in everyone if i not in self.learned[m]]
            row_means = partial(self._row_means, new, {})
            for m in everyone:
                self.squares[m] = self._squares(m, i, row_means)
            self.steps = fitted.normalize[:i]
        fitted.learned.update(self.learned)
        if np.any(self.squares < 0):
            who = fitted.who(int(np.argmin(self.squares.min(axis=1))))
            raise ValueError(
                f"{who} has a negative k(x, x), so it is not positive semi-definite; "
                "check the function"
            )

    def _mean(self, m: int) -> dict:
        """The mean of t, where a width depends on it."""
        return {0: self.fitted.kernels[m].rule.mean(self.bases[self.place[m]].X)}

    def _squares(self, m: int, i: int, row_means: Callable[[int], Array]) -> Array:
        """k(x, x) after the first i steps; the last step is learned if it is new."""
        kernel, base = self.fitted.kernels[m], self.bases[self.place[m]]
        nothing = Block(slice(None), slice(0, 0), self.fitted.who(m))
        how = (self.learned[m], self.fitted.normalize[:i], nothing)
        ask = lambda K, i: row_means(m)  # noqa: E731
        return kernel.of(np.empty((self.n, 0)), base.diagonal, *how, ask)[1]

    def _row_means(self, new: list[int], known: dict[int, Array], m: int) -> Array:
        """Row means of kernel m after `self.steps`; one sweep for all new kernels."""
        if not known:
            ones = np.ones((1, self.n, 1))
            known.update(zip(new, self.matvec(np.array(new), ones)[:, :, 0] / self.n))
        return known[m]

    # ---- what a store does -----------------------------------------------------------

    def combine(self, index: Array, theta: Array) -> Array:
        """Σ θ_m K_m."""
        out = np.empty((self.n, self.n))

        def put(part: int, I: slice, J: slice, tiles: Any) -> None:
            total = np.zeros((I.stop - I.start, J.stop - J.start))
            for k, K in tiles:
                K *= theta[k]
                total += K
            out[I, J] = total
            out[J, I] = total.T

        self._sweep(index, put)
        return out

    def kernel(self, m: int) -> Array:
        """(n, n): one kernel."""
        return self.combine(np.array([m]), np.ones(1))

    def quad(self, index: Array, A: Array) -> Array:
        """(tr AᵀK_mA)_m for an (n, k) matrix A."""
        return self._totals(index, lambda K, I, J: np.vdot(A[I], K @ A[J]))

    def against(self, index: Array, S: Array) -> Array:
        """(⟨K_m, S⟩)_m for a symmetric S."""
        return self._totals(index, lambda K, I, J: np.sum(K * S[I, J]))

    def _totals(self, index: Array, product: Callable) -> Array:
        """Σ over all tiles, those of the upper triangle twice."""
        out = np.zeros((PARTS, len(index)))

        def add(part: int, I: slice, J: slice, tiles: Any) -> None:
            for k, K in tiles:
                out[part, k] += product(K, I, J) * (1 if I == J else 2)

        self._sweep(index, add)
        return np.asarray(out.sum(axis=0))

    def matvec(self, index: Array, A: Array) -> Array:
        """(K_m A_m)_m for A of shape (1 or M, n, k)."""
        shape = (len(index), *A.shape[1:])
        parts = min(PARTS, max(1, MAX_PARTIAL_BYTES // (8 * math.prod(shape))))
        out = np.zeros((parts, *shape))

        def add(part: int, I: slice, J: slice, tiles: Any) -> None:
            for k, K in tiles:
                a, mine = A[k if len(A) > 1 else 0], out[part, k]
                mine[I] += K @ a[J]
                if I != J:
                    mine[J] += K.T @ a[I]

        self._sweep(index, add, parts)
        return np.asarray(out.sum(axis=0))

    def rows(self, index: Array, which: Array) -> Array:
        """(M, r, n): the rows with these numbers."""
        out = np.empty((len(index), len(which), self.n))
        for place in set(self.place[index]):
            t = self._rows(int(place), which)
            for k in np.flatnonzero(self.place[index] == place):
                out[k] = self._kernel(int(index[k]), t, which, slice(0, self.n))
                out[k, np.arange(len(which)), which] = self.squares[index[k], which]
        return out

    def sample_rows(self, index: Array) -> SampleRows | None:
        """Rows at few samples by BLAS, rounded differently (sample_rows.py)."""
        return sample_rows(self.fitted, index)

    def _rows(self, place: int, which: Array) -> Array:
        """Rows of a base: from the cache, computed together, or cut from tiles."""
        base = self.bases[place]
        if base.own:
            return self._rows_of_tiles(place, which)
        kept: dict[int, Any] = {int(i): self.cache.get((place, int(i))) for i in which}
        new = [i for i, row in kept.items() if row is None]
        for i, row in zip(new, base.rows(np.array(new, int))):
            kept[i] = row.copy()
            self.cache.put((place, i), kept[i])
        return np.array([kept[int(i)] for i in which]).reshape(-1, self.n)

    def _rows_of_tiles(self, place: int, which: Array) -> Array:
        t = np.empty((len(which), self.n))
        for i, I in enumerate(self.panels):
            here = np.flatnonzero((I.start <= which) & (which < I.stop))
            for j, J in enumerate(self.panels if len(here) else []):
                tile = self._tile(place, min(i, j), max(i, j))
                t[here, J] = (tile if i <= j else tile.T)[which[here] - I.start]
        return t

    def diag(self, index: Array) -> Array:
        """(M, n): the diagonals k(x, x)."""
        return self.squares[index]

    def triangle(self, m: int) -> Array:
        """The upper triangle, row after row."""
        return np.concatenate([row[i:] for i, row in enumerate(self.kernel(m))])

    def chain(self, terms: int) -> int:
        """The largest number of additions that one product takes part in."""
        return min(terms, TILE + len(self.panels) + PARTS) + 2


def _panels(n: int) -> list[slice]:
    """The points 0, …, n − 1 in parts of at most TILE, of nearly equal size."""
    count = -(-n // TILE)
    ends = [n * k // count for k in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(ends)]
