"""Checks of plain arguments that users pass: one sentence says what was expected."""

import difflib
import math
import numbers
import os
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

FLOAT_MAX = float(np.finfo(float).max)
NEAR = 0.65  # the least similarity of a name that was perhaps meant
MOST = 60  # characters of a value in a message
UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


def short(value: Any) -> str:
    """A value as a message shows it: on one line, and not long."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python does not print integers of thousands of digits
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= MOST else f"{text[: MOST - 1]}…"


def too_large(value: Any) -> bool:
    """Whether a number is finite and beyond float64, as 10**400 is."""
    with np.errstate(over="ignore"):  # float32 makes ∞ of what it is compared with
        return bool(FLOAT_MAX < abs(value) < math.inf)


def choices(name: Any, known: Iterable[str], more: str = "") -> str:
    """ "did you mean 'simple'? Choose one of …", with the names nearest to a wrong one.

    more: what else can be given, such as "or a file"
    """
    names = {one.lower(): one for one in known}
    text = name if isinstance(name, str) else ""
    near = difflib.get_close_matches(text.lower(), names, n=2, cutoff=NEAR)
    meant = " or ".join(repr(names[one]) for one in near)
    hint = f"did you mean {meant}? Choose" if near else "choose"
    return f"{hint} one of {', '.join(names.values())}" + (f", {more}" if more else "")


def unknown(what: str, name: Any, known: Iterable[str], more: str = "") -> str:
    """What is said of a name that is not known: all messages about names begin so."""
    return f"{what} {short(name)} is not known; {choices(name, known, more)}"


def snake_case(name: str) -> str:
    """EpsInsensitive becomes eps_insensitive."""
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


def check_choice(value: Any, name: str, known: Iterable[Any]) -> Any:
    """The value if it is one of these words, or of None, True and False."""
    known = list(known)
    plain = value is None or isinstance(value, str | bool)
    if plain and value in known:
        return value
    if all(isinstance(one, str) for one in known):
        raise ValueError(f"{name} = {short(value)}; {choices(value, known)}")
    *others, last = map(repr, known)
    raise ValueError(f"{name} = {short(value)}; choose {', '.join(others)} or {last}")


def check_flag(value: Any, name: str) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} = {short(value)}; pass True or False")


def check_function(value: Any, name: str) -> None:
    """Refuse what is neither a function nor None."""
    if value is not None and not callable(value):
        raise ValueError(f"{name} = {short(value)}; give a function, or None")


def check_list(value: Any, name: str, expected: str) -> list:
    """The items of a list, a tuple or another collection, but not of a text."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ValueError(f"{name} = {short(value)}; give {expected}")
    try:
        return list(value)
    except TypeError:  # sparse matrices and arrays of no dimension are not lists
        raise ValueError(f"{name} = {short(value)}; give {expected}") from None


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


def real_number(
    given: Any, name: str, expected: str = "a real number that float64 can hold"
) -> float:
    """One number as a float; infinite is one, NaN, bool, text and complex are not."""
    value = plain(given)
    numeric = isinstance(value, numbers.Real) and not isinstance(value, bool)
    try:
        found = float(value) if numeric else math.nan
    except OverflowError:
        found = math.inf
    if math.isnan(found) or (math.isinf(found) and found != given):
        raise ValueError(f"{name} = {short(given)}; give {expected}")
    return found


def check_limit(value: Any, name: str, least: float) -> None:
    """Refuse what is not a number of at least `least`; it may be infinite."""
    number = isinstance(value, int | float | np.integer | np.floating)
    wrong = not number or isinstance(value, bool) or not value >= least
    if wrong or too_large(value):
        raise ValueError(f"{name} = {short(value)}; give a number ≥ {least}")


def check_positive(value: Any, name: str, finite: bool = False) -> float:
    """A number above 0, which may be infinite unless it has to be finite."""
    number = isinstance(value, int | float | np.integer | np.floating)
    number = number and not isinstance(value, bool)
    if not number or not value > 0 or (finite and value == np.inf):
        kind = "finite positive" if finite else "positive"
        raise ValueError(f"{name} = {short(value)}; give a {kind} number")
    return float(value)


def check_whole(value: Any, name: str, least: int, most: int = 2**31) -> int:
    """A whole number of at least `least`."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise ValueError(f"{name} = {short(value)}; give a whole number ≥ {least}")
    return int(value)


def check_kernels(given: Any, name: str, M: int) -> np.ndarray:
    """Numbers of kernels, 0 … M − 1, as an array; ValueError for anything else."""
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given.tolist()
    if not isinstance(given, list | tuple | range):
        raise ValueError(
            f"{name} = {short(given)} must be a list of kernel numbers, e.g. [0, 2]"
        )
    each = [check_whole(m, f"a kernel of {name}", 0, M - 1) for m in given]
    return np.array(each, dtype=int)


def check_path(path: Any) -> None:
    """Refuse what does not name a file: a number would be taken for an open one."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise ValueError(f"path = {short(path)}; give the name of a file as text")


def byte_count(given: Any, name: str) -> int:
    """A number of bytes, from a number or from text such as "500MB" or "1.5 GB"."""
    text = given if isinstance(given, str) else short(given)
    found = re.fullmatch(r"\s*([0-9.]+)\s*([kMG]?)B?\s*", text)
    try:
        return int(float(found[1]) * UNITS[found[2]])  # type: ignore[index]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{name} = {short(given)}; give a number of bytes, or text such as '500MB'"
        ) from None
