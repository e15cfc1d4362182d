"""The kernels of library problems, with the same bits on every machine.

    Columns(k)        K_m = X_m X_mᵀ, X_m being k columns of X in turn
    Pivoted(names, r) K_m = L_m L_mᵀ, L_m a pivoted Cholesky factor with r columns of a
                      kernel of mklopt.kernels, rounded to multiples of 2^-12
    Exact(names)      the kernels of mklopt.kernels themselves, plus 2^-30 I
    Blocks(…)         random factors, which need no points

Factors are the data: K_m is exact and positive semi-definite by its form. Entries of
`Exact` depend on additions, products and our own exp alone (util/exponential.py); with
2^-30 on the diagonal they are positive semi-definite as they are, and a Cholesky
factorization proves it. `Pivoted` works entry by entry, in one order, without BLAS.
"""

from dataclasses import dataclass

import numpy as np

from ..grams.stack import GramStack
from ..kernels.text import family_of
from ..util.arrays import Array
from .draws import Draws, on_grid

FACTOR_GRID = 12
NUGGET = 2.0**-30  # far above what rounding does to the smallest eigenvalue


@dataclass(frozen=True)
class Columns:
    """Linear kernels on `width` columns of X each; the last ones may have fewer."""

    width: int = 1

    def __call__(self, X: Array) -> GramStack:
        """The stack."""
        ends = range(0, X.shape[1], self.width)
        return GramStack.from_factors([X[:, j : j + self.width] for j in ends])


@dataclass(frozen=True)
class Pivoted:
    """Factors of few columns of the kernels that texts name.

    twice: every kernel two times; zeros: so many kernels of zeros more
    sizes: kernel m is multiplied by 4^(m mod sizes), the factor by 2^(m mod sizes)
    """

    kernels: tuple[str, ...]
    rank: int
    twice: bool = False
    zeros: int = 0
    sizes: int = 1

    def __call__(self, X: Array) -> GramStack:
        """The stack."""
        stack = family_of(list(self.kernels), X.shape[1]).fit(X)
        found = [
            pivoted(K, self.rank) * 2.0 ** (m % self.sizes) for m, K in enumerate(stack)
        ]
        empty = [np.zeros((len(X), 1))] * self.zeros
        return GramStack.from_factors([*found, *(found if self.twice else []), *empty])


@dataclass(frozen=True)
class Exact:
    """The kernels that texts name, with 2^-30 added to the diagonal."""

    kernels: tuple[str, ...]
    normalize: str | None = None

    def __call__(self, X: Array) -> GramStack:
        """The stack."""
        fitted = family_of(list(self.kernels), X.shape[1]).fit(X, self.normalize)
        return GramStack(K + NUGGET * np.eye(len(X)) for K in fitted)


@dataclass(frozen=True)
class Blocks:
    """M random factors with `rank` columns; those of the same group are nearly equal.

    alike: kernels come in groups of so many, which differ by 2^-6 of their size
    """

    M: int
    rank: int = 1
    seed: int = 0
    alike: int = 1

    def factors(self, n: int) -> list[Array]:
        """The factors for n samples."""
        draws = Draws(self.seed)
        heads = [draws.normal(n, self.rank) for _ in range(-(-self.M // self.alike))]
        if self.alike == 1:
            return heads
        near = (2.0**-6 * draws.normal(n, self.rank) for _ in range(self.M))
        return [heads[m // self.alike] + on_grid(e, 16) for m, e in enumerate(near)]


Kernels = Columns | Pivoted | Exact


@dataclass(frozen=True)
class Drawn:
    """Random factors with targets: a source of points and kernels in one.

    The score is Σ over the first `few` kernels of L_m β_m, plus noise.
    target: "sign" (of the score, cut so that a share is +1), "score", or "classes"
    """

    n: int
    blocks: Blocks
    few: int = 2
    target: str = "sign"
    share: float = 0.5
    noise: float = 0.5

    def __call__(self) -> tuple[GramStack, Array]:
        """The stack and y."""
        parts, draws = self.blocks.factors(self.n), Draws(self.blocks.seed + 1)
        score = on_grid(self.noise) * draws.normal(self.n)
        for L in parts[: self.few]:
            score = score + L @ draws.normal(L.shape[1])
        return GramStack.from_factors(parts), self._targets(on_grid(score))

    def _targets(self, score: Array) -> Array:
        place = np.argsort(np.argsort(score, kind="stable"), kind="stable")
        if self.target == "classes":
            return place * 3 // self.n
        if self.target == "score":
            return score
        return np.where(place >= round((1 - self.share) * self.n), 1.0, -1.0)


def pivoted(K: Array, rank: int) -> Array:
    """L (n, r) with K ≈ L Lᵀ: at most r steps of Cholesky, the largest rest first."""
    rest = np.diag(K).copy()
    smallest = 2.0**-20 * float(np.max(rest))
    columns: list[Array] = []
    while len(columns) < rank:
        p = int(np.argmax(rest))
        if rest[p] <= smallest:
            break
        column = K[:, p]
        for L in columns:
            column = column - L * L[p]
        columns.append(column / np.sqrt(rest[p]))
        rest = np.maximum(rest - columns[-1] * columns[-1], 0.0)
        rest[p] = 0.0
    return on_grid(np.column_stack(columns), FACTOR_GRID)
