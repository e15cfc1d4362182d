"""Kernels on data: what a family becomes when it is fitted.

A table of kernels (table.py), the points, and what was learned on them (learned.py),
all in arrays: a kernel takes a few hundred bytes, for any number of points.

Kernels are normalized when they are computed: a stack costs one evaluation of each.
Means and scales are learned on the training points, and applied to new points as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..grams.stack import GramStack
from ..util.arrays import Array, finite_matrix
from ..util.checks import check_whole, short
from ..util.rounding import TINY
from .building import BY_SQUARES, build
from .functions import Gaussian, Kernel
from .learned import Learned
from .normalizations import Block, Steps, named
from .table import GAUSSIAN, KernelTable, Names, Sizes

if TYPE_CHECKING:
    from .streaming import LazyStack

MOST_PACKED = 4 * 10**9  # bytes of all kernels that are stored without being asked to
PIECE_NUMBERS = 2**25  # of one piece of `cross_blocks`: 256 MB
SUM_NUMBERS = 2**22  # of one piece of `cross_sums`: 32 MB
Blocks = dict[str | int, Array]  # the views of X; a plain X is the one view ""


class FittedKernels:
    """M kernels on n training points, made by Family.fit or from_distances.

    Iterating yields their (n, n) matrices, computed one at a time.

    Parameters
    ----------
    kernels : KernelTable, or list of Kernel
    blocks : dict of arrays (n, d)
        The training points by view; a plain X is the one view "".
    normalize : str, sequence of str, or None
        The normalizations, as for Family.fit.

    Attributes
    ----------
    names : sequence of str
        One name per kernel, made when it is asked for.
    kernels : KernelTable
        The kernels; kernels[m] is made when it is asked for.
    learned : Learned
        Means and scales of each kernel that has been computed, by step.
    M, n : int
        The numbers of kernels and of training points.

    Examples
    --------
    >>> from mklopt.kernels import gaussians
    >>> fitted = gaussians([1, 2, 3, 4]).fit([[0.0], [1.0]])
    >>> fitted[1:3].names
    ['gaussian(2)', 'gaussian(3)']
    """

    def __init__(self, kernels: Iterable[Kernel], blocks: Blocks, normalize: Steps):
        table = isinstance(kernels, KernelTable)
        self.kernels: KernelTable = (
            kernels if table else KernelTable.of(kernels, sizes_of(blocks))  # type: ignore[assignment]
        )
        self.M, self.n = len(self.kernels), rows_of(blocks)
        self.normalize, self.blocks = named(normalize), blocks
        self.learned = Learned(self.M, self.n, self.normalize)

    @property
    def names(self) -> Names:
        """One name per kernel, made when it is asked for."""
        return self.kernels.names

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state["kernels"], KernelTable):
            self.__dict__.update(state)
            return
        # Pickled by version 0.1: a list of kernels, and a dict of what they learned.
        parts = (state["kernels"], state["blocks"], state["normalize"])
        FittedKernels.__init__(self, *parts)
        self.learned.update(state["learned"])

    def __len__(self) -> int:
        return self.M

    def __repr__(self) -> str:
        how = "".join(f", {step}" for step in self.normalize)
        return f"FittedKernels(M={self.M}, n={self.n}{how})"

    def __iter__(self) -> Iterator[Array]:
        return self._matrices(self.blocks)

    def __getitem__(self, at: Any) -> Any:
        """One matrix, by its number; a subset, by a slice, numbers, or a mask."""
        if isinstance(at, int | np.integer) and not isinstance(at, bool):
            return next(iter(self.subset(np.array([range(self.M)[at]]))))
        return self.subset(np.arange(self.M)[at] if isinstance(at, slice) else at)

    def grams(self, **options: Any) -> GramStack:
        """All kernels as a GramStack, for a Problem.

        Parameters
        ----------
        **options
            storage and dtype of GramStack.

        Returns
        -------
        GramStack
        """
        if self.direct and set(options) <= {"storage", "dtype"}:
            return build(self, **options)
        return GramStack(iter(self), **options)

    def stack(self) -> GramStack:
        """All kernels for a Problem: grams() up to 4 GB, lazy() above.

        Returns
        -------
        GramStack

        Examples
        --------
        >>> from mklopt.kernels import subset_gaussians
        >>> subset_gaussians(3).fit([[0.0, 1.0], [1.0, 0.0]]).stack().storage
        'packed'
        """
        packed = 4 * self.M * self.n * (self.n + 1)
        return self.grams() if packed <= MOST_PACKED else self.lazy()

    @property
    def direct(self) -> bool:
        """Whether rules of ours make all kernels, normalized with k(x, x) alone."""
        return set(self.normalize) <= BY_SQUARES and bool(np.all(self.kernels.direct))

    def lazy(self, cache: Any = "500MB") -> LazyStack:
        """A stack that computes kernels on demand.

        Parameters
        ----------
        cache : int or str
            The memory of the cache: a number of bytes, or text such as "500MB".

        Returns
        -------
        LazyStack
        """
        from .streaming import LazyStack

        return LazyStack.of(self, cache)

    def subset(self, active: Array) -> FittedKernels:
        """Some of the kernels, normalized as they are here.

        Parameters
        ----------
        active : array of int, or of bool (M,)
            The numbers of the kernels, or a mask.

        Returns
        -------
        FittedKernels
        """
        index = chosen(active, self.M)
        self.learn(index)
        found = FittedKernels(self.kernels.take(index), self.blocks, self.normalize)
        found.learned = self.learned.take(index)
        return found

    def cross(self, X_new: Any) -> Array:
        """The kernels of new points with training points, normalized as these.

        Parameters
        ----------
        X_new : array (n_new, d), or a list or dict of such arrays
            New points, with the views and columns of the training points.

        Returns
        -------
        array (M, n_new, n)

        Raises
        ------
        ValueError
            If X_new has other views or columns than the training points.
        """
        blocks = self._new(X_new)
        shape = (rows_of(blocks), self.n)
        return np.fromiter(self._matrices(blocks), (float, shape), count=self.M)

    def cross_blocks(self, X_new: Any, size: int | None = None) -> Iterator[Array]:
        """cross(X_new) in pieces, where all of it would not fit in memory.

        Parameters
        ----------
        X_new : array (n_new, d), or a list or dict of such arrays
            New points, with the views and columns of the training points.
        size : int, optional
            The number of new points in a piece. By default 256, or so few that a piece
            has at most 256 MB.

        Yields
        ------
        array (M, r, n)
            Of the next r ≤ size points.

        Examples
        --------
        >>> from mklopt.kernels import linear
        >>> fitted = linear().fit([[1.0], [2.0]])
        >>> [K.shape for K in fitted.cross_blocks([[1.0], [2.0], [3.0]], size=2)]
        [(1, 2, 2), (1, 1, 2)]
        """
        blocks = self._new(X_new)
        if size is None:
            size = min(max(PIECE_NUMBERS // (self.M * self.n), 1), 256)
        return map(self.cross, pieces(blocks, check_whole(size, "size", 1)))

    def cross_sums(self, X_new: Any, weights: Array) -> Iterator[Array]:
        """Σ θ_m K_m of new points with training points; no kernel is stored.

        Parameters
        ----------
        X_new : array (n_new, d), or a list or dict of such arrays
            New points, with the views and columns of the training points.
        weights : array (M,)

        Yields
        ------
        array (r, n)
            Of the next r points.
        """
        from .streams import can_stream, cross_sum

        blocks, used = self._new(X_new), np.flatnonzero(weights)
        for some in pieces(blocks, max(SUM_NUMBERS // self.n, 1)):
            if can_stream(self):
                yield cross_sum(self, some, weights)
                continue
            terms = map(np.multiply, weights[used], self._matrices(some, used))
            yield sum(terms, np.zeros((rows_of(some), self.n)))

    def _new(self, X_new: Any) -> Blocks:
        blocks = new_blocks(X_new, self.blocks)
        self.learn()
        return blocks

    # ---- what is learned from the training points ------------------------------------

    def learn(self, index: Array | None = None) -> None:
        """Learn means and scales once: from squares, or by computing the kernels.

        Parameters
        ----------
        index : array of int, optional
            The kernels that have to learn; by default all.
        """
        wanted = ~self.learned.known
        if index is not None:
            wanted &= np.bincount(index, minlength=self.M) > 0
        new = np.flatnonzero(wanted)
        if self.direct:
            self._learn_from_squares(new)
        elif len(new):
            self._learn_from_matrices(new)

    def _learn_from_matrices(self, new: Array) -> None:
        from .streams import can_stream, learn_variances

        if can_stream(self):
            learn_variances(self, new)
            return
        for _ in self._matrices(self.blocks, new):
            pass

    def _learn_from_squares(self, new: Array) -> None:
        """Gaussians learn the same, from k(x, x) = 1; powers one after the other."""
        gaussian = self.kernels.kinds[new] == GAUSSIAN
        if np.any(gaussian):
            some = new[gaussian]
            means = self._means(some)
            first = Kernel("", Gaussian(1.0))
            learned = self._learned_by(first, np.zeros(self.n), self.who(int(some[0])))
            self.learned.set_all(some, learned, means)
        for m, kernel, diagonal in self._diagonals(new[~gaussian]):
            self.learned[m] = self._learned_by(kernel, diagonal, self.who(m))

    def _means(self, gaussians: Array) -> Array:
        """The means of t where they are widths; 0 elsewhere."""
        table, means = self.kernels, np.zeros(len(gaussians))
        wanted = np.flatnonzero(np.isnan(table.numbers[gaussians]))
        bases, place = np.unique(table.base[gaussians[wanted]], return_inverse=True)
        found = [Gaussian(None).mean(self._points(int(base))) for base in bases]
        means[wanted] = np.array(found)[place] if found else 0.0
        return means

    def _learned_by(self, kernel: Kernel, diagonal: Array, who: str) -> dict:
        learned: dict = {0: 0.0}
        self._of(kernel, diagonal, learned, who)
        return learned

    def _of(self, kernel: Kernel, diagonal: Array, learned: dict, who: str) -> Array:
        """k(x, x) of a kernel, normalized; new steps are learned."""
        at = Block(slice(None), slice(0, 0), who)
        with np.errstate(over="ignore"):  # infinite squares are refused later
            how = (diagonal, learned, self.normalize, at)
            return kernel.of(np.empty((self.n, 0)), *how)[1]

    def _diagonals(self, index: Array) -> Iterator[tuple[int, Kernel, Array]]:
        """Kernels, and t of each training point with itself."""
        last, diagonal = -1, np.empty(0)
        for m in index.tolist():
            kernel, base = self.kernels[m], int(self.kernels.base[m])
            if base != last:
                last, diagonal = base, kernel.rule.diagonal(self._points(base))
            yield m, kernel, diagonal

    def _points(self, base: int) -> Array:
        view, columns = self.kernels.place(base)
        return self.blocks[view][:, columns]

    # ---- for compiled loops ----------------------------------------------------------

    def squares(self, index: Array) -> Array:
        """k(x, x) of direct kernels at the training points, normalized.

        Parameters
        ----------
        index : array of int (r,)
            The numbers of the kernels.

        Returns
        -------
        array (r, n)
        """
        self.learn(index)
        out = np.tile(self._constants(index)[:, None], self.n)
        other = np.flatnonzero(self.kernels.kinds[index] != GAUSSIAN)
        for k, (m, kernel, t) in zip(other, self._diagonals(index[other])):
            out[k] = self._of(kernel, t, self.learned[m], self.who(m))
        return out

    def _constants(self, index: Array) -> Array:
        """k(x, x) of Gaussians, which is the same at all points."""
        found = np.ones(len(index))
        for step, learned in zip(self.normalize, self.learned.steps):
            if step == "spherical":
                found[:] = 1.0
            else:
                found /= learned[index]
        return found

    def traces(self, index: Array) -> Array:
        """Σ_i k(x_i, x_i) of direct kernels, normalized, in float64.

        Parameters
        ----------
        index : array of int (r,)
            The numbers of the kernels.

        Returns
        -------
        array (r,)
        """
        self.learn(index)
        out = self.n * self._constants(index)
        for k in np.flatnonzero(self.kernels.kinds[index] != GAUSSIAN):
            out[k] = self.squares(index[k : k + 1]).sum()
        return out

    def rules(self, index: Array | None = None) -> tuple[Array, Array]:
        """What compiled loops evaluate, for kernels that have learned.

        Parameters
        ----------
        index : array of int (r,), optional
            The numbers of the kernels; by default all.

        Returns
        -------
        two arrays (r,)
            The degrees of powers, 0 for Gaussians; offsets, and −1/scale.
        """
        every = slice(None) if index is None else index
        table, numbers = self.kernels, self.kernels.numbers[every].copy()
        gaussian = table.kinds[every] == GAUSSIAN
        means = self.learned.means[every]
        scales = np.where(np.isnan(numbers), means, numbers)[gaussian]
        scales[scales == 0] = 1.0  # all points coincide
        numbers[gaussian] = -1.0 / np.maximum(scales, TINY)
        return table.degrees[every], numbers

    def divisors(self) -> tuple[Array, Array, Array]:
        """What normalizations divide by, for every kernel (Learned.divisors).

        Returns
        -------
        numbers : array (steps, M)
        place : array of int32 (steps, M)
        rows : array (R, n)
        """
        return self.learned.divisors(self.normalize)

    @property
    def points(self) -> Array:
        """(d_total, n): all views of the training points, one column for each point."""
        return np.ascontiguousarray(np.hstack(list(self.blocks.values())).T)

    def who(self, m: int) -> str:
        """Number and name of a kernel, as messages begin.

        Parameters
        ----------
        m : int

        Returns
        -------
        str
        """
        return f"kernel {m}, {self.names[m]},"

    def _matrices(self, blocks: Blocks, index: Array | None = None) -> Iterator[Array]:
        """Matrices of these points with the training points, which are learned from."""
        training, last = blocks is self.blocks, -1
        index = np.arange(self.M) if index is None else index
        for m in index.tolist():
            kernel, base = self.kernels[m], int(self.kernels.base[m])
            if base != last:
                old = self._points(base)
                new = old if training else blocks[kernel.view][:, kernel.columns]
                rule, last = kernel.rule, base
                t, diagonal = rule.base(new, old), rule.diagonal(new)
            at = Block(slice(None) if training else None, who=self.who(m))
            learned = self.learned.get(m) or {0: kernel.rule.mean(old)}
            K, squares = kernel.of(t, diagonal, learned, self.normalize, at)
            if training:
                np.fill_diagonal(K, squares)
                self.learned[m] = learned
            yield K


def from_distances(D: Any, normalize: Steps = None) -> FittedKernels:
    """Kernels exp(−D_m / mean D_m) from distances of the training points.

    `cross` takes the (M, n_new, n) distances of new to training points; the means stay
    those of the training pairs. Such a kernel is positive semi-definite when D_m is
    conditionally negative definite; GramStack.verify_psd checks it.

    Parameters
    ----------
    D : array (M, n, n), or a list or dict of (n, n) arrays
        Distances: symmetric, not negative, with a zero diagonal.
    normalize : str, sequence of str, or None
        The normalizations, as for Family.fit.

    Returns
    -------
    FittedKernels

    Raises
    ------
    ValueError
        If D does not hold matrices of distances.
    """
    blocks, kernels = blocks_of(D, "D"), []
    for view, t in blocks.items():
        close = 1e-8 * np.max(np.abs(t))
        square = t.shape == (len(t), len(t)) and np.min(t) >= 0
        if not square or np.max(np.abs(t - t.T)) + np.max(np.diag(t)) > close:
            raise ValueError(
                f"D, view {view!r}, is not a matrix of distances; expected (n, n), "
                "symmetric, not negative, with a zero diagonal"
            )
        blocks[view] = 0.5 * (t + t.T)
        np.fill_diagonal(blocks[view], 0.0)
        name = f"exp(−d/mean) of {'D' if view == '' else view}"
        kernels.append(Kernel(name, Gaussian(None, given=True), view=view))
    return FittedKernels(kernels, blocks, normalize)


def blocks_of(X: Any, name: str) -> Blocks:
    """X as checked float64 matrices; lists and dicts of arrays have several views."""
    first = X[0] if isinstance(X, list | tuple) and X else None
    several = getattr(X, "ndim", 0) == 3 or getattr(first, "ndim", 0) == 2
    views: dict[Any, Any] = dict(enumerate(X)) if several else {"": X}
    views = dict(X) if isinstance(X, Mapping) else views
    for view, given in views.items():
        who = name if view == "" else f"{name}, view {view!r},"
        views[view] = finite_matrix(given, who)
    if len({len(block) for block in views.values()}) != 1:
        rows = {view: len(block) for view, block in views.items()}
        raise ValueError(f"{name} has views with {rows} rows; give each sample in each")
    return views


def new_blocks(X_new: Any, training: Blocks) -> Blocks:
    """New points as checked matrices, with the views and columns of the others."""
    blocks = blocks_of(X_new, "X_new")
    if (given := sizes_of(blocks)) != (known := sizes_of(training)):
        raise ValueError(
            f"X_new has columns {list(given.values())} in its views {list(given)}; "
            f"the training data have {list(known.values())} in {list(known)}"
        )
    return blocks


def pieces(blocks: Blocks, size: int) -> Iterator[Blocks]:
    """The points in pieces of `size`, all views of each."""
    for i in range(0, rows_of(blocks), size):
        yield {view: block[i : i + size] for view, block in blocks.items()}


def chosen(active: Any, M: int) -> Array:
    """The numbers of some of M kernels, from numbers or a mask."""
    try:
        return np.arange(M)[np.atleast_1d(active)]
    except (IndexError, TypeError, ValueError):
        raise ValueError(
            f"active = {short(active)}; give numbers of kernels, or a mask"
        ) from None


def sizes_of(blocks: Blocks) -> Sizes:
    """The number of features of each view."""
    return {view: block.shape[1] for view, block in blocks.items()}


def rows_of(blocks: Blocks) -> int:
    """The number of points, which is the same in all views."""
    return len(next(iter(blocks.values())))
