"""Arrays that users pass: checked and copied to float64, or refused with a reason."""

from typing import Any

import numpy as np

Array = np.ndarray


def whole_number(given: Any, name: str, least: int) -> int:
    """given as an int, or a ValueError unless it is a whole number ≥ least."""
    if not isinstance(given, int | np.integer) or given < least:
        raise ValueError(f"{name} is {given!r}; give a whole number from {least} on")
    return int(given)


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
        except (TypeError, ValueError):
            raise ValueError(f"{problem}, got {type(given).__name__}") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{problem}, got values of type {array.dtype}")
    return np.array(array, dtype=float, order="C")
