"""Kernel functions: rules of a base t that kernels on the same features share.

Gaussian    exp(t · (−1/scale))   t = ‖x − z‖², or distances as they are given
Power       (t + offset)^degree   t = ⟨x, z⟩
Function    k(A, B)               a user's own, which is its own base; CityBlock is one
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..util.arrays import Array, real_array
from ..util.exponential import exponentials
from ..util.parameters import Parameters
from ..util.rounding import TINY
from .normalizations import NORMALIZATIONS, Block
from .pairwise import distances, products

WHOLE = Block(slice(None))


@dataclass(frozen=True)
class Gaussian(Parameters):
    """exp(−t/scale) with t = ‖x − z‖², or with distances t as they are given.

    −1/scale is rounded once, and multiplied with: divisions take longer.
    """

    scale: float | None  # None: the mean of t over training pairs
    given: bool = False
    shared = "distances"  # rules with the same value have the same base

    def base(self, A: Array, B: Array) -> Array:
        """t of all rows of A with all rows of B."""
        return A if self.given else distances(A, B)

    def diagonal(self, A: Array) -> Array:
        """t of every row of A with itself: 0."""
        return np.zeros(len(A))

    def mean(self, A: Array) -> float:
        """The mean of t over pairs of rows of A, if it is the scale; 0 otherwise.

        Σ_ij ‖x_i − x_j‖² = 2n Σ_i ‖x_i − x̄‖², so that no distance is computed.
        """
        if self.scale is not None:
            return 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            if self.given:
                total = A.sum() / len(A)
            else:
                apart = A - A[0]  # exactly 0 where all points coincide
                total = 2 * np.sum((apart - apart.mean(axis=0)) ** 2)
        if not np.isfinite(total):
            raise ValueError(
                "the mean of all distances is too large for float64; rescale the data"
            )
        return float(total / max(len(A) - 1, 1))

    def rate(self, mean: float) -> float:
        """−1/scale; a mean of 0 says that all points coincide, and k = 1."""
        return -1.0 / max(self.scale or mean or 1.0, TINY)

    def __call__(self, t: Array, mean: float) -> Array:
        with np.errstate(over="ignore"):
            K = np.multiply(t, self.rate(mean), order="C")
        exponentials(K.reshape(-1))
        return K


@dataclass(frozen=True)
class Power(Parameters):
    """(t + offset)^degree with t = ⟨x, z⟩; on no features it is a constant kernel."""

    degree: int
    offset: float
    scale = 1.0
    shared = "products"

    def base(self, A: Array, B: Array) -> Array:
        """t of all rows of A with all rows of B."""
        return products(A, B)

    def diagonal(self, A: Array) -> Array:
        """t of every row of A with itself: ‖x‖², summed in the order of `products`."""
        total = np.zeros(len(A))
        with np.errstate(over="ignore"):
            for column in A.T:
                total += column * column
        return total

    def mean(self, A: Array) -> float:
        """No width depends on it."""
        return 0.0

    def __call__(self, t: Array, mean: float) -> Array:
        K = factor = t + self.offset
        for _ in range(self.degree - 1):
            K = K * factor
        return K


@dataclass(frozen=True)
class Function:
    """A user's own k(A, B): t is the kernel itself."""

    shared: Callable[[Array, Array], Any]
    name: str
    scale = 1.0

    def base(self, A: Array, B: Array) -> Array:
        """k(A, B), checked."""
        try:
            value = self.shared(A, B)
        except TypeError as error:
            raise ValueError(
                f"{self.name} is not a function k(A, B): {error}"
            ) from error
        found = real_array(value, self.name, "a matrix of numbers")
        if found.shape != (len(A), len(B)):
            raise ValueError(
                f"{self.name} of {len(A)} and {len(B)} points has shape {found.shape}; "
                f"expected ({len(A)}, {len(B)})"
            )
        return found

    def diagonal(self, A: Array) -> Array:
        """k(x, x) for every row of A, from small blocks."""
        parts = [A[i : i + 64] for i in range(0, len(A), 64)]
        return np.concatenate([np.diag(self.base(part, part)) for part in parts])

    def mean(self, A: Array) -> float:
        """No width depends on it."""
        return 0.0

    def __call__(self, t: Array, mean: float) -> Array:
        return t.copy()


@dataclass(frozen=True)
class CityBlock(Parameters):
    """k(A, B) of the Laplacian kernel exp(−‖x − z‖₁/σ)."""

    sigma: float

    def __call__(self, A: Array, B: Array) -> Array:
        from scipy.spatial.distance import cdist

        K = cdist(A, B, "cityblock")
        K *= -1.0 / self.sigma
        return np.asarray(np.exp(K, out=K))


class Kernel(NamedTuple):
    """A rule on some columns of one view of the data."""

    name: str
    rule: Gaussian | Power | Function
    columns: tuple[int, ...] | slice = slice(None)  # all of them
    view: str | int = ""

    @property
    def base(self) -> tuple:
        """Kernels with equal bases are functions of the same numbers t."""
        some = self.columns if isinstance(self.columns, tuple) else "all"
        return self.rule.shared, self.view, some

    def of(
        self,
        t: Array,
        diagonal: Array,
        learned: dict,
        steps: Iterable[str] = (),
        at: Block = WHOLE,
        means: Callable[[Array, int], Array] = lambda K, i: K.mean(axis=1),
    ) -> tuple[Array, Array]:
        """A block of the kernel, normalized, and k(x, x) of its rows, from the base t.

        `learned` has the mean of t at 0, and what normalization step i = 1, 2, … has
        learned at i. Missing entries are added: then the block must have all training
        points, and means(K, i) are the means of its rows before step i.
        """
        K, squares = self.rule(t, learned[0]), self.rule(diagonal, learned[0])
        for i, step in enumerate(steps, 1):
            learn, apply = NORMALIZATIONS[step]
            if i not in learned:
                learned[i] = learn(squares, partial(means, K, i), at.who)
            apply(K, squares, learned[i], at)
        return K, squares
