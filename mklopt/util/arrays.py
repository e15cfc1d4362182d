"""Arrays that users pass: checked and copied to float64, or refused with a reason."""

from typing import Any

import numpy as np

Array = np.ndarray


class NotFinite(ValueError, ArithmeticError):
    """NaN or an infinite number where a finite one is needed."""


def finite_matrix(given: Any, name: str, rows: int | None = None) -> Array:
    """A new (n, d) matrix of finite float64 numbers, with so many rows if they count.

    The ValueError says what is wrong with `name`.
    """
    found = real_array(given, name, "an (n, d) matrix of numbers")
    if found.ndim != 2 or not found.size or rows not in (None, len(found)):
        per = "" if rows is None else f", one row for each of the {rows} labels y"
        raise ValueError(f"{name} has shape {found.shape}; expected (n, d){per}")
    if not np.all(np.isfinite(found)):
        raise ValueError(f"{name} has missing or infinite values; fill in or drop them")
    return found


def labels_array(given: Any) -> Array:
    """Labels as a new array of any type; what is no list of labels is refused."""
    if hasattr(given, "toarray") or isinstance(given, np.ma.MaskedArray):
        return real_array(given, "y", "one label per sample")
    try:
        return np.array(given)
    except (TypeError, ValueError):
        raise ValueError("y must be one label per sample, got ragged rows") from None


def real_array(given: Any, name: str, expected: str) -> Array:
    """A new float64 array; strings, complex numbers and ragged lists are refused.

    The ValueError says that `name` must be `expected`, and what was given instead.
    """
    problem = f"{name} must be {expected}"
    if hasattr(given, "toarray"):
        raise ValueError(f"{problem}, got a sparse matrix; pass its .toarray()")
    if isinstance(given, np.ma.MaskedArray):
        raise ValueError(f"{problem}, got a masked array; fill or drop masked entries")
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):
        raise ValueError(f"{problem}, got ragged or mixed rows") from None
    if array.dtype.kind == "O":
        try:
            array = array.astype(float)
        except OverflowError:
            raise ValueError(f"{problem}, got a number that is too large") from None
        except (TypeError, ValueError):
            raise ValueError(f"{problem}, got {type(given).__name__}") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{problem}, got values of type {array.dtype}")
    return np.array(array, dtype=float, order="C")
