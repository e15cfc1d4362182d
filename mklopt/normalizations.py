"""Normalizations of kernels: fitted on n training points, applied to new ones as well.

    multiplicative  k / (1/n Σ_i k(x_i, x_i) − 1/n² Σ_ij k(x_i, x_j))    variance 1
    spherical       k(x, z) / √(k(x, x) k(z, z))                         unit diagonal
    unit_trace      k / Σ_i k(x_i, x_i)
    centre          ⟨ψ(x) − ψ̄, ψ(z) − ψ̄⟩ with ψ̄ = 1/n Σ_i ψ(x_i)         zero row sums

They work in place on K (r × n), the kernel of r points with the training points, and on
squares, its k(x, x) at the r points. They return what they learned from the training
points; `learned` is None where the r points are these.

Reference: Kloft et al. (2011), eqs. (25) and (26).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray
Steps = str | Sequence[str] | None
TINY = 1e-13  # what cancellation leaves of a number that should be zero, relatively


def named(normalize: Steps) -> tuple[str, ...]:
    """The normalizations asked for, in their order, all of them known."""
    steps = (normalize,) if isinstance(normalize, str) else tuple(normalize or ())
    if not set(steps) <= set(NORMALIZATIONS):
        raise ValueError(
            f"normalize = {normalize!r} is not known; choose from "
            f"{', '.join(NORMALIZATIONS)}, a sequence of these, or None"
        )
    return steps


def multiplicative(K: Array, squares: Array, learned: Any, who: str) -> Any:
    if learned is None:
        learned = squares.mean() - K.mean()
        if learned <= TINY * squares.mean():
            raise ValueError(
                f"{who} is the same at all points, so its variance is 0 and cannot be "
                "made 1; drop constant features, or choose unit_trace"
            )
    K /= learned
    squares /= learned
    return learned


def spherical(K: Array, squares: Array, learned: Any, who: str) -> Any:
    if np.any(squares <= 0):
        raise ValueError(
            f"{who} is zero at point {np.argmin(squares)}, so it has no place on "
            "the sphere; drop the point, or choose unit_trace"
        )
    roots = np.sqrt(squares)
    learned = roots if learned is None else learned
    K /= np.outer(roots, learned)
    squares[:] = 1.0
    return learned


def unit_trace(K: Array, squares: Array, learned: Any, who: str) -> Any:
    learned = squares.sum() if learned is None else learned
    if learned <= 0:
        raise ValueError(f"{who} is zero, so it cannot have unit trace; drop it")
    K /= learned
    squares /= learned
    return learned


def centre(K: Array, squares: Array, learned: Any, who: str) -> Any:
    rows = K.mean(axis=1)
    training, learned = learned is None, rows if learned is None else learned
    mean = learned.mean()
    K -= rows[:, None] + learned
    K += mean
    rounding = TINY * (squares + abs(mean))
    squares += mean - 2 * rows
    squares[squares <= rounding] = 0.0
    if training and not np.any(squares):
        raise ValueError(
            f"{who} is the same at all points, so that centring leaves nothing of it; "
            "drop it, or the constant feature it is made of"
        )
    return learned


NORMALIZATIONS: dict[str, Callable[[Array, Array, Any, str], Any]] = {
    step.__name__: step for step in (multiplicative, spherical, unit_trace, centre)
}
