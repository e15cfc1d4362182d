"""Normalizations of kernels: fitted on n training points, applied to new ones as well.

    multiplicative  k / (1/n Σ_i k(x_i, x_i) − 1/n² Σ_ij k(x_i, x_j))    variance 1
    spherical       k(x, z) / √(k(x, x) k(z, z))                         unit diagonal
    unit_trace      k / Σ_i k(x_i, x_i)
    centre          ⟨ψ(x) − ψ̄, ψ(z) − ψ̄⟩ with ψ̄ = 1/n Σ_i ψ(x_i)         zero row sums

A step is learned on the training points, from their squares k(x, x) and, if needed, the
means of the rows of the kernel matrix. It is then applied in place to blocks: K (r × c)
of r points with c training points, and the squares k(x, x) of the r points.

Reference: Kloft et al. (2011), eqs. (25) and (26).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..util.checks import check_list, choices, short

Array = np.ndarray
Steps = str | Sequence[str] | None
Means = Callable[[], Array]  # returns the means of the rows of the kernel matrix
TINY = 1e-13  # relative size below which a difference is rounding, so zero


class Block(NamedTuple):
    """Where a block lies among the training points."""

    rows: Any = None  # the training points of its rows; None: they are new points
    columns: Any = slice(None)  # the training points of its columns
    who: str = ""  # the kernel, for messages


class Step(NamedTuple):
    """A normalization: how it is learned, and how it is applied to a block."""

    learn: Callable[[Array, Means, str], Any]
    apply: Callable[[Array, Array, Any, Block], None]


def named(normalize: Steps) -> tuple[str, ...]:
    """The normalizations as a tuple of names, checked."""
    given = (normalize,) if isinstance(normalize, str) else normalize
    steps = () if given is None else tuple(check_list(given, "normalize", "names"))
    if not all(isinstance(step, str) and step in NORMALIZATIONS for step in steps):
        raise ValueError(
            f"normalize = {short(normalize)} is not known; "
            f"{choices(normalize, NORMALIZATIONS, 'a sequence of these, or None')}"
        )
    return steps


def _variance(squares: Array, means: Means, who: str) -> float:
    return variance(squares.mean(), means().mean(), who)


def variance(square: float, mean: float, who: str) -> float:
    """The variance in feature space, from the means of k(x, x) and of k(x, z)."""
    found = square - mean
    if found <= TINY * square:
        raise ValueError(
            f"{who} is the same at all points, so its variance is 0 and cannot be "
            "made 1; drop constant features, or choose unit_trace"
        )
    return float(found)


def _trace(squares: Array, means: Means, who: str) -> float:
    found = squares.sum()
    if found <= 0:
        raise ValueError(f"{who} is zero, so it cannot have unit trace; drop it")
    if not np.isfinite(found):
        raise ValueError(f"{who} has an infinite trace in float64; rescale the data")
    return float(found)


def _divide(K: Array, squares: Array, learned: float, at: Block) -> None:
    K /= learned
    squares /= learned


def _roots(squares: Array, means: Means | None, who: str) -> Array:
    if np.any(squares <= 0):
        raise ValueError(
            f"{who} is zero at point {np.argmin(squares)}, so it has no place on "
            "the sphere; drop the point, or choose unit_trace"
        )
    return np.asarray(np.sqrt(squares))


def _to_sphere(K: Array, squares: Array, learned: Array, at: Block) -> None:
    K /= np.outer(_roots(squares, None, at.who), learned[at.columns])
    squares[:] = 1.0


def _row_means(squares: Array, means: Means, who: str) -> Array:
    rows = means()
    if not np.any(_centred(squares, rows, rows.mean())):
        raise ValueError(
            f"{who} is the same at all points, so that centring leaves nothing of it; "
            "drop it, or the constant feature it is made of"
        )
    return rows


def _centred(squares: Array, rows: Array, mean: float) -> Array:
    moved = squares + (mean - 2 * rows)
    return np.where(moved <= TINY * (squares + abs(mean)), 0.0, moved)


def _move(K: Array, squares: Array, learned: Array, at: Block) -> None:
    rows = K.mean(axis=1) if at.rows is None else learned[at.rows]
    mean = learned.mean()
    K -= rows[:, None] + learned[at.columns]
    K += mean
    squares[:] = _centred(squares, rows, mean)


NORMALIZATIONS: dict[str, Step] = {
    "multiplicative": Step(_variance, _divide),
    "spherical": Step(_roots, _to_sphere),
    "unit_trace": Step(_trace, _divide),
    "centre": Step(_row_means, _move),
}
