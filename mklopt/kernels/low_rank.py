"""Kernels of low rank: features φ_m(x) with ⟨φ_m(x), φ_m(z)⟩ ≈ k_m(x, z).

    family = kernels.nystroem(kernels.gaussians([1, 3, 10]), rank=200)
    fitted = family.fit(X, normalize="unit_trace")
    grams = fitted.grams(dtype="float32")        # factors, (n, R) numbers in all
    f = result.decision(fitted.cross_features(X_test))

    nystroem           φ(x) = (k(x, l))_l W with landmarks l among the training points,
                       W = V D^{−½} from K_ll = V D Vᵀ; eigenvalues below CUTOFF times
                       the largest one are dropped
    random_features    φ(x) = (cos ⟨ω_i, x⟩, sin ⟨ω_i, x⟩)_i/√(number of ω); Gaussians:
                       ω ~ N(0, I)/σ, Laplacian kernels: coordinates of ω ~ Cauchy/σ
                       (Rahimi and Recht 2007)
    explicit           all monomials of a linear, polynomial or constant kernel: exact

The factors are the data: a certificate of a problem with them is a theorem about them.
What it says of the kernels they approximate is computed by mklopt.certify_exact. A
kernel with no more monomials than `rank` always has explicit features.

Nyström features have K̃ ⪯ K; `lost_trace` is 1 − tr K̃/tr K. Random features have the
right trace by construction, so that it says nothing about them.

Guarantee. Memory: the factors, the data, and a few blocks of BLOCK rows. Every block
is computed by one thread, so that results do not depend on the number of threads.
Kernels on the same features share landmarks and distances.

References: Williams and Seeger (2001); Rahimi and Recht (2007).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..grams.stack import GramStack
from ..util.checks import check_choice, check_whole, short
from ..util.threads import blas_alone, spread
from .entries import Entries, Group
from .family import Family
from .feature_maps import (
    Fourier,
    Landmarks,
    Map,
    Monomials,
    monomial_count,
)
from .fitted import Blocks, FittedKernels, chosen, new_blocks, pieces, rows_of
from .functions import CityBlock, Function, Gaussian, Power
from .normalizations import Steps
from .pairwise import fill_pairs

Array = np.ndarray
BLOCK = 1024  # rows that one thread computes at a time
CUTOFF = 1e-10  # eigenvalues of landmarks below this share of the largest are dropped
MOST_MONOMIALS = 2000  # of one kernel with explicit features
DENSE_BYTES = 8 * 10**9  # of a sparse X as a dense matrix
WAYS = ("nystroem", "random_features", "explicit")


@dataclass(frozen=True)
class LowRankFamily:
    """A family and how its kernels are approximated; made by the functions below.

    Parameters
    ----------
    family : Family
    way : {"nystroem", "random_features", "explicit"}
    rank : int
        The number of landmarks or features of each kernel, at most.
    landmarks : None or tuple of int
        Rows of X, the same for all kernels; None: drawn at random.
    seed : int
    """

    family: Family
    way: str
    rank: int
    landmarks: tuple[int, ...] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.family, Family):
            raise ValueError(
                f"family = {short(self.family)}; give a family such as "
                "kernels.gaussians([1, 3])"
            )
        check_choice(self.way, "way", WAYS)
        check_whole(self.rank, "rank", 1)
        check_whole(self.seed, "seed", 0)

    def fit(self, X: Any, normalize: Steps = None) -> LowRankKernels:
        """Features for the kernels of the family on training points.

        Parameters
        ----------
        X : array (n, d), or a list or dict of such arrays for `views`
            One row per training point; sparse matrices are taken, too, and made dense.
        normalize : str, sequence of str, or None
            "spherical" and "unit_trace", as for Family.fit: the trace is that of the
            exact kernel.

        Returns
        -------
        LowRankKernels

        Raises
        ------
        ValueError
            If X or a landmark is not valid, or a kernel has no such features.
        """
        return LowRankKernels(self, self.family.fit(dense(X), normalize))


def nystroem(
    family: Family, rank: int, *, landmarks: Any = None, seed: int = 0
) -> LowRankFamily:
    """Nyström features of every kernel of a family, from landmarks among the points.

    Parameters
    ----------
    family : Family
    rank : int
        The number of landmarks; a kernel has at most as many features.
    landmarks : sequence of int, optional
        Rows of X; `rank` of them drawn uniformly by default. All kernels share them.
    seed : int
        Of the drawing.

    Returns
    -------
    LowRankFamily

    Examples
    --------
    >>> from mklopt.kernels import gaussians
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> fitted = nystroem(gaussians([2, 4]), rank=50).fit(X)
    >>> fitted.grams().storage, bool(max(fitted.lost_trace) < 0.01)
    ('factors', True)
    """
    return LowRankFamily(family, "nystroem", rank, _rows(landmarks), seed)


def random_features(family: Family, count: int, *, seed: int = 0) -> LowRankFamily:
    """Random Fourier features of Gaussian and Laplacian kernels.

    Parameters
    ----------
    family : Family
        Of Gaussian and Laplacian kernels; linear, constant and small polynomial ones
        are explicit.
    count : int
        Features of each kernel, even: pairs of a cosine and a sine.
    seed : int
        Of the frequencies.

    Returns
    -------
    LowRankFamily

    Examples
    --------
    >>> from mklopt.kernels import gaussians
    >>> fitted = random_features(gaussians([1, 3]), count=100).fit(np.eye(5))
    >>> fitted.cross_features(np.ones((2, 5))).shape
    (2, 200)
    """
    if check_whole(count, "count", 2) % 2:
        raise ValueError(f"count = {count}; give an even number: cosines and sines")
    return LowRankFamily(family, "random_features", count, seed=seed)


def explicit(family: Family) -> LowRankFamily:
    """All monomials of linear, polynomial and constant kernels: no approximation.

    Parameters
    ----------
    family : Family
        Each kernel may have at most 2000 monomials. Zeros and ones that code
        categories (one-hot) are columns like any others: take kernels.linear().

    Returns
    -------
    LowRankFamily

    Examples
    --------
    >>> from mklopt.kernels import polynomials
    >>> fitted = explicit(polynomials(2)).fit([[1.0, 2.0], [3.0, 4.0]])
    >>> fitted.ranks.tolist(), fitted.grams().kernel(0).round(6).tolist()
    ([6], [[36.0, 144.0], [144.0, 676.0]])
    """
    return LowRankFamily(family, "explicit", MOST_MONOMIALS)


def _rows(given: Any) -> tuple[int, ...] | None:
    if given is None:
        return None
    found = np.asarray(given)
    if found.ndim != 1 or found.dtype.kind not in "iu" or len(found) == 0:
        raise ValueError(
            f"landmarks = {short(given)}; give numbers of rows of X, or None"
        )
    return tuple(found.tolist())


def dense(X: Any) -> Any:
    """X with sparse matrices, or the sparse views of a dict or list, made dense."""
    if isinstance(X, dict):
        return {view: dense(part) for view, part in X.items()}
    if isinstance(X, list | tuple) and any(hasattr(part, "toarray") for part in X):
        return [dense(part) for part in X]
    if not hasattr(X, "toarray"):
        return X
    if 8 * math.prod(X.shape) > DENSE_BYTES:
        raise ValueError(
            f"X is sparse with shape {X.shape}, too large to be dense; choose fewer "
            "columns, such as those with the most entries"
        )
    return X.toarray()


# ---- the fitted features -------------------------------------------------------------


class LowRankKernels:
    """Features of M kernels on n training points; made by LowRankFamily.fit.

    Parameters
    ----------
    way : LowRankFamily
    exact : FittedKernels
        The kernels that are approximated, on the training points.

    Attributes
    ----------
    names : list of str
        One name per kernel.
    M, n, R : int
        The numbers of kernels, of training points, and of features of all kernels.
    ranks : array of int (M,)
        The number of features of each kernel.
    """

    def __init__(self, way: LowRankFamily, exact: FittedKernels):
        self.way = way
        self._exact: FittedKernels | None = exact
        self.names, self.n = list(exact.names), exact.n
        self.entries = Entries.of(exact)
        with blas_alone():
            self.maps = self._maps()
        self._count()

    def _count(self) -> None:
        self.M = len(self.maps)
        self.ranks = np.array([one.rank for one in self.maps])
        self.ends = np.cumsum([0, *self.ranks])
        self.R = int(self.ends[-1])

    def __len__(self) -> int:
        return self.M

    def __repr__(self) -> str:
        ranks = f"{self.ranks.min()} to {self.ranks.max()}"
        return f"LowRankKernels({self.way.way}, M={self.M}, n={self.n}, ranks {ranks})"

    def __str__(self) -> str:
        lines = [f"{self!r}, R = {self.R}"]
        for m, name in enumerate(self.names):
            what = f"lost trace {100 * self.lost_trace[m]:.3g} %"
            if isinstance(self.maps[m], Fourier):
                what = "random features: the trace says nothing"
            lines.append(f"  {name}: {self.ranks[m]} features, {what}")
        return "\n".join(lines)

    @property
    def exact(self) -> FittedKernels:
        """The kernels that are approximated, on the training points."""
        if self._exact is None:
            raise ValueError("these features are for new points alone (compact)")
        return self._exact

    # ---- how features are made -----------------------------------------------------

    def _maps(self) -> list[Map]:
        maps: dict[int, Map] = {}
        for group in self.entries.groups:
            left = [m for m in group.numbers if not self._explicit(m, maps)]
            if left and self.way.way == "nystroem":
                self._nystroem(group, left, maps)
            elif left and self.way.way == "random_features":
                for m in left:
                    maps[m] = self._fourier(m)
            elif left:
                raise ValueError(
                    f"{self.entries.who(left[0])} has no explicit features, or more "
                    f"than {MOST_MONOMIALS}; take kernels.nystroem"
                )
        return [maps[m] for m in range(len(maps))]

    def _explicit(self, m: int, maps: dict[int, Map]) -> bool:
        """Give kernel m its monomials, if these are few enough."""
        rule, d = self.entries.kernels[m].rule, self.entries.points(m).shape[1]
        if not isinstance(rule, Power) or monomial_count(d, rule) > self.way.rank:
            return False
        maps[m] = Monomials.of(d, rule)
        return True

    def _fourier(self, m: int) -> Fourier:
        rule, d = self.entries.kernels[m].rule, self.entries.points(m).shape[1]
        rng = np.random.default_rng([self.way.seed, m])
        shape = (d, self.way.rank // 2)
        if isinstance(rule, Gaussian):
            sigma = math.sqrt(self.entries.scale(m) / 2)
            return Fourier(rng.standard_normal(shape) / sigma)
        if isinstance(rule, Function) and isinstance(rule.shared, CityBlock):
            return Fourier(rng.standard_cauchy(shape) / rule.shared.sigma)
        raise ValueError(
            f"{self.entries.who(m)} is not Gaussian or Laplacian, so it has no random "
            "features; take kernels.nystroem"
        )

    def _nystroem(self, group: Group, left: list[int], maps: dict[int, Map]) -> None:
        which = self.landmarks
        Z = group.points(self.entries.blocks, which)
        for m, K in zip(group.numbers, self.entries.block(group, Z, Z)):
            if m in left:
                maps[m] = Landmarks(which, self._whitening(m, K))

    def _whitening(self, m: int, K: Array) -> Array:
        """W with W Wᵀ the pseudo-inverse of K_ll, without its smallest eigenvalues."""
        if not np.all(np.isfinite(K)):
            raise ValueError(f"{self.entries.who(m)} is not finite; rescale the data")
        values, V = np.linalg.eigh(0.5 * (K + K.T))
        kept = values > CUTOFF * values[-1]
        if not np.any(kept):
            raise ValueError(f"{self.entries.who(m)} is zero at all landmarks; drop it")
        return np.ascontiguousarray(V[:, kept] / np.sqrt(values[kept]))

    @cached_property
    def landmarks(self) -> Array:
        """The rows of X that are landmarks, in increasing order."""
        if self.way.landmarks is None:
            rng = np.random.default_rng(self.way.seed)
            size = min(self.way.rank, self.n)
            return np.sort(rng.choice(self.n, size, replace=False))
        found = np.unique(np.array(self.way.landmarks))
        if found[0] < 0 or found[-1] >= self.n:
            raise ValueError(
                f"landmarks are rows {found[0]} to {found[-1]}; X has the rows 0 to "
                f"{self.n - 1}"
            )
        return found

    # ---- features ------------------------------------------------------------------

    def grams(self, dtype: Any = "float64") -> GramStack:
        """All features as a stack of factors, for a Problem.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            "float32" takes half the memory: the rounded factors are then the data.

        Returns
        -------
        GramStack
        """
        F, squares = self._filled(self.exact.blocks, dtype)
        self._kept_trace = squares.sum(axis=0)
        return GramStack.from_factors(F, ranks=self.ranks.tolist(), dtype=F.dtype)

    def cross_features(self, X_new: Any) -> Array:
        """The features of new points, for Result.decision.

        Parameters
        ----------
        X_new : array (n_new, d), or a list or dict of such arrays
            New points, with the views and columns of the training points.

        Returns
        -------
        array (n_new, R)
            Kernel after kernel, as wide as `ranks` says.

        Raises
        ------
        ValueError
            If X_new has other views or columns than the training points.
        """
        return self._filled(new_blocks(dense(X_new), self.entries.blocks), float)[0]

    def cross_blocks(self, X_new: Any, size: int = 65536) -> Iterator[Array]:
        """cross_features(X_new) in pieces of `size` points.

        Parameters
        ----------
        X_new : array (n_new, d), or a list or dict of such arrays
            New points, with the views and columns of the training points.
        size : int
            The number of new points in a piece.

        Yields
        ------
        array (r, R)
            Of the next r ≤ size points.
        """
        blocks = new_blocks(dense(X_new), self.entries.blocks)
        return map(self.cross_features, pieces(blocks, check_whole(size, "size", 1)))

    @property
    def lost_trace(self) -> Array:
        """(M,): 1 − tr K̃_m/tr K_m, the share of the trace that features do not have.

        0 for explicit features, but for rounding; it says nothing of random features.
        """
        kept = getattr(self, "_kept_trace", None)
        if kept is None:
            kept = self._kept_trace = self._filled(None, "float64")[1].sum(axis=0)
        return np.asarray(1.0 - kept / self._exact_trace)

    @cached_property
    def _exact_trace(self) -> Array:
        whole = np.empty(self.M)
        for m in range(self.M):
            A, entries = self.entries.points(m), self.entries
            squares, roots = entries.squares(m, A), entries.roots(m, A)
            squares = squares if roots is None else squares / roots**2
            whole[m] = np.sum(squares) / entries.traces[m]
        return whole

    def subset(self, active: Any) -> LowRankKernels:
        """Some of the kernels, with the same features.

        Parameters
        ----------
        active : array of int, or of bool (M,)
            The numbers of the kernels, or a mask.

        Returns
        -------
        LowRankKernels
        """
        index = chosen(active, self.M)
        exact = self.exact.subset(index)
        return self._part(index, self.entries.blocks, self.maps, exact)

    def compact(self, active: Any = slice(None)) -> LowRankKernels:
        """Some of the kernels for new points: of the training points only landmarks.

        Parameters
        ----------
        active : array of int, or of bool (M,)
            The numbers of the kernels, or a mask; all of them by default.

        Returns
        -------
        LowRankKernels
            With `cross_features` and `cross_blocks`; it has no grams.
        """
        near = any(isinstance(one, Landmarks) for one in self.maps)
        rows = self.landmarks if near else np.arange(1)
        blocks = {view: block[rows] for view, block in self.entries.blocks.items()}
        place = np.arange(len(rows))
        maps = [m._replace(which=place) if isinstance(m, Landmarks) else m
                for m in self.maps]  # fmt: skip
        index = np.atleast_1d(np.arange(self.M)[active])
        return self._part(index, blocks, maps, None)

    def _part(
        self, index: Array, blocks: Blocks, maps: list[Map], exact: Any
    ) -> LowRankKernels:
        found = LowRankKernels.__new__(LowRankKernels)
        found.way, found.n, found._exact = self.way, rows_of(blocks), exact
        found.entries = self.entries.part(index, blocks)
        found.names = [self.names[m] for m in index]
        found.maps = [maps[m] for m in index]
        if any(isinstance(one, Landmarks) for one in maps):
            found.landmarks = next(m.which for m in maps if isinstance(m, Landmarks))
        found._count()
        return found

    def _filled(self, blocks: Blocks | None, dtype: Any) -> tuple[Array, Array]:
        """(n, R) features, and (blocks of rows, M) sums of their squares.

        Without blocks: of the training points, and only the sums.
        """
        check_choice(np.dtype(dtype).name, "dtype", ("float64", "float32"))
        points = self.entries.blocks if blocks is None else blocks
        n = rows_of(points)
        F = np.empty((0 if blocks is None else n, self.R), np.dtype(dtype))
        squares = np.zeros((-(-n // BLOCK), self.M))

        def fill(first: int, last: int) -> None:
            for b in range(first, last):
                rows = slice(b * BLOCK, min((b + 1) * BLOCK, n))
                part = self._features(points, rows).astype(F.dtype, copy=False)
                if blocks is not None:
                    F[rows] = part
                for m in range(self.M):
                    own = part[:, self.ends[m] : self.ends[m + 1]]
                    squares[b, m] = np.sum(np.square(own, dtype=float))

        with blas_alone(), np.errstate(over="ignore", invalid="ignore"):
            if any(group.kind == "function" for group in self.entries.groups):
                fill(0, len(squares))  # your own function is called from one thread
            else:
                work = n * self.R * max(self.way.rank, 1)
                spread(fill, count=len(squares), work=work)
        if not np.all(np.isfinite(squares)):
            raise ValueError("features are too large for this dtype; rescale the data")
        return F, squares

    def _features(self, blocks: Blocks, rows: slice) -> Array:
        """(r, R) features of some points."""
        out = np.empty((len(range(rows.start, rows.stop)), self.R))
        for group in self.entries.groups:
            A = group.points(blocks, rows)
            t = self._base(group, A)
            for m in group.numbers:
                one, place = self.maps[m], slice(self.ends[m], self.ends[m + 1])
                if isinstance(one, Landmarks):
                    found = self.entries.kernels[m].rule(t, self.entries.means[m])
                    np.matmul(found, one.W, out=out[:, place])
                else:
                    out[:, place] = one.features(A)
                roots = self.entries.roots(m, A)
                if roots is not None:
                    out[:, place] /= roots[:, None]
                if self.entries.traces[m] != 1:
                    out[:, place] /= math.sqrt(self.entries.traces[m])
        return out

    def _base(self, group: Group, A: Array) -> Array:
        """t of some points with the landmarks, by this thread alone."""
        maps = [self.maps[m] for m in group.numbers]
        which = next((one.which for one in maps if isinstance(one, Landmarks)), None)
        if which is None:
            return A[:, :0]
        Z = group.points(self.entries.blocks, which)
        if group.kind == "function":
            return group.base(A, Z)
        t = np.empty((len(A), len(Z)))
        fill_pairs(A, np.ascontiguousarray(Z.T), group.apart, 0, t, 0, len(A))
        return t

    def expansion(self, m: int, w: Array) -> Array:
        """β with w_m = Σ_l β_l ψ_m(landmark l), for features from landmarks.

        Parameters
        ----------
        m : int
        w : array (ranks[m],) or (ranks[m], k)
            The coefficients of the features.

        Returns
        -------
        array (landmarks,) or (landmarks, k)
            For the normalized kernel m.
        """
        one = self.maps[m]
        if not isinstance(one, Landmarks):
            raise ValueError(f"{self.entries.who(m)} has no landmarks")
        beta = one.W @ w
        A = self.entries.points(m)[one.which]
        roots = self.entries.roots(m, A)
        if roots is not None:
            beta = (beta.T * roots).T
        return np.asarray(beta * math.sqrt(self.entries.traces[m]))
