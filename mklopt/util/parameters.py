"""Parameters of frozen dataclasses: plain numbers, converted once, when they are made.

A parameter may be given as a NumPy scalar of any precision, an array without
dimensions, a Fraction or a Decimal. What is kept is a Python number, so that formulas
are evaluated in float64, and equal parameters have equal names in files and hashes.
"""

import re
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from numbers import Real
from typing import Any

import numpy as np

from .arrays import Array, real_array

SCALAR = re.compile(r"(?:<class ')?(float|int)(?:'>)?( \| None)?")
VECTOR = re.compile(r"(?:[a-z.]*Sequence|tuple|list)\[.*float.*")
MAX_SHOWN = 60  # characters of a value that an error message repeats


def real_number(given: Any, name: str) -> float:
    """One number as a float; infinite is one, NaN, bool, text and complex are not."""
    value = plain(given)
    numeric = isinstance(value, Real) and not isinstance(value, bool)
    try:
        found = float(value) if numeric else np.nan
    except OverflowError:
        found = np.inf
    if np.isnan(found) or (np.isinf(found) and found != given):
        raise ValueError(
            f"{name} = {shown(given)} is not a real number that float64 can hold"
        )
    return found


def real_numbers(given: Any, name: str, expected: str) -> Array:
    """Numbers of any shape as float64, each of them checked."""
    if not isinstance(given, np.ndarray) or given.dtype.kind not in "fiu":
        each = np.asarray(given, dtype=object)
        flat = [real_number(one, name) for one in each.flat]
        given = np.array(flat, float).reshape(each.shape)
    with np.errstate(over="ignore"):  # longer floats than ours become infinite
        found = real_array(given, name, expected)
    if np.any(np.isnan(found)):
        raise ValueError(f"{name} = {shown(given)} has entries that are not numbers")
    return found


def plain(value: Any) -> Any:
    """A Python number for one of NumPy, of `fractions` or of `decimal`; in tuples, too.

    Anything else is returned as it is.
    """
    if type(value) is tuple:
        return tuple(map(plain, value))
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.longdouble | Fraction | Decimal):
        try:
            return float(value)
        except (OverflowError, ValueError):  # a signaling NaN is a ValueError
            return np.nan
    return value.item() if isinstance(value, np.generic) else value


def nested(array: Array) -> Any:
    """An array as tuples of tuples of floats."""
    return tuple(map(nested, array)) if array.ndim else float(array)


def shown(value: Any) -> str:
    """A value as error messages repeat it: not too long."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of more than 4300 digits
        text = "an integer of thousands of digits"
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


class Parameters:
    """A base of frozen dataclasses: numbers among the fields become Python numbers.

    Fields declared as float, int, or sequences of float are checked. All others only
    lose the types of NumPy. A __post_init__ of a subclass finds them converted.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Let a __post_init__ of the class run after the conversion."""
        super().__init_subclass__(**options)
        own = vars(cls).get("__post_init__")
        if own is None:
            return

        @wraps(own)
        def after(self: Any) -> None:
            _convert(self)
            own(self)

        cls.__post_init__ = after  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        _convert(self)


def _convert(owner: Any) -> None:
    for field in fields(owner):
        given = getattr(owner, field.name)
        name = f"{type(owner).__name__}: {field.name}"
        object.__setattr__(owner, field.name, _converted(given, str(field.type), name))


def _converted(given: Any, declared: str, name: str) -> Any:
    scalar = SCALAR.fullmatch(declared)
    if scalar is None and VECTOR.match(declared):
        return nested(real_numbers(given, name, "numbers"))
    if scalar is None or (given is None and scalar[2]):
        return plain(given)
    value = real_number(given, name)
    if scalar[1] == "int" and not value.is_integer():
        raise ValueError(f"{name} = {shown(given)} is not a whole number")
    return int(given) if scalar[1] == "int" else value
