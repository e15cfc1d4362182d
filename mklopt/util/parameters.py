"""Parameters of frozen dataclasses: plain numbers, converted once, when they are made.

A parameter may be given as a NumPy scalar of any precision, an array without
dimensions, a Fraction or a Decimal. What is kept is a Python number, so that formulas
are evaluated in float64, and equal parameters have equal names in files and hashes.
"""

import re
from collections.abc import Iterable
from dataclasses import fields, replace
from functools import wraps
from typing import Any, Self

import numpy as np

from .arrays import Array, real_array
from .checks import plain, real_number, short

SCALAR = re.compile(r"(?:<class ')?(float|int)(?:'>)?( \| None)?")
VECTOR = re.compile(r"(?:[a-z.]*Sequence|tuple|list)\[.*float.*")


def real_numbers(given: Any, name: str, expected: str) -> Array:
    """Numbers of any shape as float64, each of them checked."""
    if not isinstance(given, np.ndarray) or given.dtype.kind not in "fiu":
        each = np.asarray(given, dtype=object)
        flat = [real_number(one, name) for one in each.flat]
        given = np.array(flat, float).reshape(each.shape)
    with np.errstate(over="ignore"):  # longer floats than ours become infinite
        found = real_array(given, name, expected)
    if np.any(np.isnan(found)):
        raise ValueError(f"{name} = {short(given)} has entries that are not numbers")
    return found


def nested(array: Array) -> Any:
    """An array as tuples of tuples of floats."""
    return tuple(map(nested, array)) if array.ndim else float(array)


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

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as scikit-learn asks for them.

        Parameters
        ----------
        deep : bool
            Without effect.

        Returns
        -------
        dict
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def with_(self, **changes: Any) -> Self:
        """The same with other parameters; what it is called on does not change.

        Parameters
        ----------
        **changes
            Some of the parameters.

        Returns
        -------
        An object of the same class.
        """
        check_names(self, changes, self.get_params())
        return replace(self, **changes)  # type: ignore[type-var]

    def __sklearn_clone__(self) -> Self:
        """It never changes: a copy is not needed."""
        return self


def check_names(owner: Any, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse parameters that there are not."""
    for name in given:
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise ValueError(f"{owner!r} has no parameter {name}; {has}")


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
        raise ValueError(f"{name} = {short(given)} is not a whole number")
    return int(given) if scalar[1] == "int" else value
