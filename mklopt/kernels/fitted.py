"""Kernels on data: what a family becomes when it is fitted.

Kernels are normalized when they are computed: a stack costs one evaluation of each.
Means and scales are learned on the training points, and applied to new points as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..grams.stack import GramStack
from ..util.arrays import Array, finite_matrix
from ..util.checks import check_whole, short
from .building import BY_SQUARES, build, is_direct
from .functions import Gaussian, Kernel
from .normalizations import Block, Steps, named

if TYPE_CHECKING:
    from .streaming import LazyStack

Blocks = dict[str | int, Array]  # the views of X; a plain X is the one view ""
Sizes = Mapping[str | int, int]  # and their numbers of features


class FittedKernels:
    """M kernels on n training points, made by Family.fit or from_distances.

    Iterating yields their (n, n) matrices, computed one at a time.

    Parameters
    ----------
    kernels : list of Kernel
    blocks : dict of arrays (n, d)
        The training points by view; a plain X is the one view "".
    normalize : str, sequence of str, or None
        The normalizations, as for Family.fit.

    Attributes
    ----------
    names : list of str
        One name per kernel.
    M, n : int
        The numbers of kernels and of training points.
    """

    def __init__(self, kernels: list[Kernel], blocks: Blocks, normalize: Steps):
        self.names = [kernel.name for kernel in kernels]
        self.M, self.n = len(kernels), rows_of(blocks)
        self.normalize = named(normalize)
        self.kernels, self.blocks = kernels, blocks
        # Means and scales of each kernel that has been computed, by step.
        self.learned: dict[int, dict] = {}

    def __len__(self) -> int:
        return self.M

    def __repr__(self) -> str:
        how = "".join(f", {step}" for step in self.normalize)
        return f"FittedKernels(M={self.M}, n={self.n}{how})"

    def __iter__(self) -> Iterator[Array]:
        return self._matrices(self.blocks)

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
        if self._direct and set(options) <= {"storage", "dtype"}:
            return build(self, self._squares(), **options)
        return GramStack(self, **options)

    @property
    def _direct(self) -> bool:
        """Whether squares k(x, x) are all that normalizations learn from."""
        return set(self.normalize) <= BY_SQUARES and all(map(is_direct, self.kernels))

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
        try:
            index = np.arange(self.M)[np.atleast_1d(active)]
        except (IndexError, TypeError, ValueError):
            raise ValueError(
                f"active = {short(active)}; give numbers of kernels, or a mask"
            ) from None
        self._learn()
        part = [self.kernels[m] for m in index]
        found = FittedKernels(part, self.blocks, self.normalize)
        found.learned = {i: self.learned[m] for i, m in enumerate(index.tolist())}
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

    def cross_blocks(self, X_new: Any, size: int = 256) -> Iterator[Array]:
        """cross(X_new) in pieces, where all of it would not fit in memory.

        Parameters
        ----------
        X_new : array (n_new, d), or a list or dict of such arrays
            New points, with the views and columns of the training points.
        size : int
            The number of new points in a piece.

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
        size = check_whole(size, "size", 1)
        for i in range(0, rows_of(blocks), size):
            yield self.cross({v: block[i : i + size] for v, block in blocks.items()})

    def _new(self, X_new: Any) -> Blocks:
        blocks = blocks_of(X_new, "X_new")
        if (given := sizes_of(blocks)) != (known := sizes_of(self.blocks)):
            raise ValueError(
                f"X_new has columns {list(given.values())} in its views {list(given)}; "
                f"the training data have {list(known.values())} in {list(known)}"
            )
        self._learn()
        return blocks

    def _learn(self) -> None:
        """Learn means and scales once: from squares, or by computing every kernel."""
        if len(self.learned) < self.M:
            if self._direct:
                self._squares()
            else:
                for _ in self:
                    pass

    def _squares(self) -> Array:
        """(M, n): k(x, x) of direct kernels, normalized; new steps are learned."""
        out = np.empty((self.M, self.n))
        for m, kernel in enumerate(self.kernels):
            X = self.blocks[kernel.view][:, kernel.columns]
            learned = self.learned.get(m) or {0: kernel.rule.mean(X)}
            at = Block(slice(None), slice(0, 0), self.who(m))
            how = (kernel.rule.diagonal(X), learned, self.normalize, at)
            with np.errstate(over="ignore"):  # infinite squares are refused later
                _, out[m] = kernel.of(np.empty((self.n, 0)), *how)
            self.learned[m] = learned
        return out

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

    def _matrices(self, blocks: Blocks) -> Iterator[Array]:
        """Matrices of these points with the training points, which are learned from."""
        training, last = blocks is self.blocks, None
        for m, kernel in enumerate(self.kernels):
            if kernel.base != last:
                old = self.blocks[kernel.view][:, kernel.columns]
                new = old if training else blocks[kernel.view][:, kernel.columns]
                rule, last = kernel.rule, kernel.base
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


def sizes_of(blocks: Blocks) -> Sizes:
    """The number of features of each view."""
    return {view: block.shape[1] for view, block in blocks.items()}


def rows_of(blocks: Blocks) -> int:
    """The number of points, which is the same in all views."""
    return len(next(iter(blocks.values())))
