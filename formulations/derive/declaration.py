"""When are two declarations the same? A key of a function and of what it refers to.

A declaration is a Python function. What it computes depends on its code and on what it
refers to: default arguments, closure variables, global names, and the functions that
it calls. `key_of` puts all of them into one hashable key:

    numbers, strings, ranges           by type and value
    tuples, lists, sets, dictionaries  by their items
    arrays                             by dtype, shape and content
    frozen dataclasses                 by class and fields
    functions, methods, partials       by code and what they refer to, recursively
    modules and classes of a library,  by identity
      and what it defines by name
    modules and classes of the user    by the names that are used, or by all members

Guarantee. Of functions that read nothing else (no files, clocks or random numbers),
those with equal keys compute the same: what is compiled from one holds for the other.
Objects of any other kind may change without notice. A function that refers to one has
no key; it is compiled again for every new Problem.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import importlib
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

PACKAGE = __name__.partition(".")[0]
PLAIN = (type(None), type(...), bool, int, float, complex, str, bytes, range)


class NoKeyError(Exception):
    """A declaration refers to an object that may change without notice."""


def key_of(function: Any) -> Hashable | None:
    """A key that changes whenever the function may compute something else.

    None: there is no such key.
    """
    try:
        return _Reader().key(function)
    except NoKeyError:
        return None


class Declaration:
    """What formulations and losses made of one function have in common.

    Both are frozen dataclasses whose first field is that function.
    """

    function: Callable

    @property
    def name(self) -> str:
        """The name of the function."""
        return getattr(self.function, "__name__", "declared")

    def key(self) -> Hashable:
        """What compiled programs are stored under: equal keys, equal declarations."""
        found = key_of(self)
        return vars(self).get("_without_key", self) if found is None else found

    def read_again(self) -> None:
        """Forget what was compiled from a function that has no key."""
        if key_of(self) is None:
            object.__setattr__(self, "_without_key", object())

    def __reduce__(self) -> tuple:
        """Pickled by name where it stands in the place of its function.

        Elsewhere, and in scripts, which other processes cannot import, by its parts.
        """
        module = self.function.__module__
        name = getattr(self.function, "__qualname__", "")
        there = getattr(sys.modules.get(module), name, None)
        if there is self and module != "__main__":
            return look_up, (module, name)
        parts = (getattr(self, one.name) for one in dataclasses.fields(self))  # type: ignore[arg-type]
        return type(self), tuple(parts)


def look_up(module: str, name: str) -> Any:
    """What a module calls by this name."""
    return getattr(importlib.import_module(module), name)


@dataclass(frozen=True)
class Keyed:
    """A formulation or a loss that is compared by its key alone: for caches."""

    key: Hashable
    owner: Any = field(compare=False)


class _Reader:
    """Reads the key of an object. What it has met before is named by its number."""

    def __init__(self) -> None:
        self.met: dict[Hashable, tuple[int, Any]] = {}

    def key(self, value: Any, names: tuple[str, ...] | None = None) -> Hashable:
        """names: the names that the code uses in which the value was found."""
        kind = type(value)
        if kind in PLAIN:
            return kind, repr(value)  # tells 1, 1.0 and True apart, 0.0 and −0.0, too
        if kind is np.ndarray or isinstance(value, np.generic):
            if value.dtype.hasobject:
                raise NoKeyError("an array of objects may change without notice")
            return kind, value.dtype.str, value.shape, value.tobytes()
        if _of_a_library(value):
            return value
        place = (id(value), names) if kind is ModuleType else id(value)
        if place in self.met:
            return "met before", self.met[place][0]
        self.met[place] = len(self.met), value  # kept: its id belongs to it meanwhile
        return kind, *self._parts(value, names)

    def _parts(self, value: Any, names: tuple[str, ...] | None) -> Iterator[Hashable]:
        """The keys of what a value is made of."""
        if isinstance(value, FunctionType):
            yield from self._function(value)
        elif isinstance(value, ModuleType) and names is not None:
            yield value
            for name in names:
                yield name, self.key(vars(value).get(name), names)
        elif isinstance(value, type):
            yield value
            for name, member in vars(value).items():
                if not name.startswith("__") or name == "__call__":
                    yield name, self.key(member)
            yield from map(self.key, value.__bases__)
        elif isinstance(value, set | frozenset):
            yield frozenset(map(self.key, value))
        else:
            yield from map(self.key, _content(value))

    def _function(self, function: FunctionType) -> Iterator[Hashable]:
        loaded, imported, used = _names(function.__code__)
        for module in imported:
            if not _is_library(module):
                raise NoKeyError(f"{function.__qualname__} imports {module}")
        yield function.__code__
        for value in (function.__defaults__, function.__kwdefaults__, vars(function)):
            yield self.key(value)
        for cell in function.__closure__ or ():
            try:
                yield self.key(cell.cell_contents, used)
            except ValueError:
                yield "empty"
        for name in loaded:
            found = function.__globals__.get(name, getattr(builtins, name, None))
            yield self.key(found, used)


def _content(value: Any) -> Iterable[Any]:
    """What a container, a method or a frozen dataclass consists of."""
    if isinstance(value, tuple | list):
        return value
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, partial):
        return value.func, value.args, value.keywords
    if isinstance(value, staticmethod | classmethod):
        return (value.__func__,)
    if isinstance(value, property):
        return (value.fget,)
    made = getattr(type(value), "__dataclass_params__", None)
    if made is None or not made.frozen:
        raise NoKeyError(f"{value!r} may change without notice")
    fields = (getattr(value, one.name) for one in dataclasses.fields(value))
    return type(value), *fields


@lru_cache(maxsize=256)
def _names(code: CodeType) -> tuple[tuple[str, ...], ...]:
    """The global names that code loads, the modules it imports, every name it uses."""
    loaded: dict[str, None] = {}
    imported: dict[str, None] = {}
    used = dict.fromkeys(code.co_names)
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            loaded[step.argval] = None
        elif step.opname == "IMPORT_NAME":
            imported[step.argval] = None
    for inner in code.co_consts:
        if isinstance(inner, CodeType):  # functions and comprehensions inside it
            for outer, more in zip((loaded, imported, used), _names(inner)):
                outer |= dict.fromkeys(more)
    return tuple(loaded), tuple(imported), tuple(used)


def _is_library(module: str) -> bool:
    """Installed, of the standard library, or of this package: it does not change."""
    top = module.partition(".")[0]
    known = top == PACKAGE or top in sys.stdlib_module_names
    return known or _is_installed(getattr(sys.modules.get(top), "__file__", None))


@cache
def _is_installed(file: str | None) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(file or "").parts)


def _of_a_library(value: Any) -> bool:
    """A module of a library, or what it defines by name; not what it makes later."""
    if isinstance(value, ModuleType):
        return _is_library(value.__name__)
    name = getattr(value, "__qualname__", "<locals>")
    if isinstance(value, MethodType) or "<locals>" in name:
        return False
    return _is_library(getattr(value, "__module__", None) or "")
