"""Arrays that users pass: checked and copied to float64, or refused with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray


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
