"""When are two declarations the same? A key of a function and of what it refers to.

A declaration is a Python function. What it computes depends on its code and on what it
refers to: default arguments, closure variables, global names, and the functions that
it calls. `key_of` puts all of them into one hashable key:

    numbers, strings, ranges           by type and value
    tuples, lists, sets, dictionaries  by their items
    arrays                             by dtype, shape and content
    frozen dataclasses                 by class and fields
    functions, methods, partials       by code and what they refer to, recursively
    classes of the user                by identity and members
    what a library defines by name     by identity

Guarantee. Of functions that read nothing else (no files, clocks or random numbers),
those with equal keys compute the same: what is compiled from one holds for the other.
Objects of any other kind may change without notice. A function that refers to one has
no key; it is compiled again for every new Problem.

Arguments after the first ones are parameters. A declaration is called with new values
of them and gives another declaration; it never changes itself.

    @formulation
    def elastic(u, lam=0.3): ...          elastic, elastic(lam=1.0), elastic(lam=3.0)
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import importlib
import inspect
import pickle
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, ClassVar, Self

import numpy as np

from ...util.checks import plain, short
from ...util.parameters import check_names

PACKAGE = __name__.partition(".")[0]
PLAIN = (type(None), type(...), bool, int, float, complex, str, bytes, range)


def split(declared: Any) -> tuple[Any, list]:
    """A declaration is an expression, or (expression, [constraints])."""
    if isinstance(declared, tuple):
        expression, constraints = declared
        return expression, list(constraints)
    return declared, []


def declared_at(declare: Callable, x: Any) -> tuple[Any, list]:
    """What a function declares at x. Where it raises an error, there are no warnings.

    np.linalg.norm(u) warns of products in CVXPY: the error says what to do.
    """
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = split(declare(x))
    for each in said:
        place = each.filename, each.lineno
        warnings.warn_explicit(each.message, each.category, *place)
    return found


class NoKeyError(Exception):
    """A declaration refers to an object that may change without notice."""


def key_of(function: Any) -> Hashable | None:
    """A key that changes whenever the function may compute something else.

    None: there is no such key.
    """
    try:
        return _key(function, {})
    except (NoKeyError, ValueError):  # ValueError: a closure variable without a value
        return None


def _key(value: Any, met: dict[int, tuple[int, Any]]) -> Hashable:
    """The key of one object; objects met before are named by their number."""
    kind = type(value)
    if kind in PLAIN:
        return kind, repr(value)  # tells 1, 1.0 and True apart, 0.0 and −0.0, too
    is_array = kind is np.ndarray or isinstance(value, np.generic)
    if is_array and not value.dtype.hasobject:
        return kind, value.dtype.str, value.shape, value.tobytes()
    if kind is CodeType or _of_a_library(value):
        return value
    if id(value) in met:
        return "met before", met[id(value)][0]
    met[id(value)] = len(met), value  # kept: nobody else gets its id meanwhile
    if isinstance(value, set | frozenset):
        return kind, frozenset(_key(item, met) for item in value)
    first = value if isinstance(value, type) else kind
    return first, *(_key(part, met) for part in _parts(value))


def _parts(value: Any) -> Iterable[Any]:
    """What an object consists of and refers to."""
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        known, standard = value.__globals__, vars(builtins)
        names = _global_names(value.__code__)
        used = [known.get(name, standard.get(name)) for name in names]
        defaults = value.__defaults__, value.__kwdefaults__
        return value.__code__, *defaults, vars(value), cells, used
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, partial):
        return value.func, value.args, value.keywords
    if isinstance(value, tuple | list):
        return value
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, property):
        return (value.fget,)
    if isinstance(value, type):
        named = (one for one in vars(value).items() if one[0][:2] != "__")
        return *named, vars(value).get("__call__"), *value.__bases__
    made = getattr(type(value), "__dataclass_params__", None)
    if made is not None and made.frozen:
        fields = (getattr(value, one.name) for one in dataclasses.fields(value))
        return type(value), *fields
    raise NoKeyError(f"{value!r} may change without notice")


@lru_cache(maxsize=256)
def _global_names(code: CodeType) -> list[str]:
    """The global names that code reads, in functions and loops inside it, too."""
    found = []
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            found.append(step.argval)
        elif step.opname == "IMPORT_NAME" and not _is_library(step.argval):
            raise NoKeyError(f"{code.co_name} imports {step.argval}")
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return [*found, *(name for part in inner for name in _global_names(part))]


def _is_library(module: str) -> bool:
    """Installed, of the standard library, or of this package: it does not change."""
    top = module.partition(".")[0]
    if top == "__main__":  # in a worker process, a script of a library
        return False
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    installed = "site-packages" in file or "dist-packages" in file
    return installed or top == PACKAGE or top in sys.stdlib_module_names


def _of_a_library(value: Any) -> bool:
    """A module of a library, or what it defines by name; not what it makes later."""
    if isinstance(value, ModuleType):
        return _is_library(value.__name__)
    name = getattr(value, "__qualname__", "<locals>")
    if isinstance(value, MethodType) or "<locals>" in name:
        return False
    return _is_library(getattr(value, "__module__", None) or "")


def _is_numpy(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    return isinstance(value, np.ufunc) or module.partition(".")[0] == "numpy"


def numpy_calls(function: Any) -> list[str]:
    """The functions of NumPy that a function calls by name, such as "np.sum"."""
    while not isinstance(function, FunctionType):
        owner = getattr(function, "__self__", None)
        function = getattr(owner, "function", getattr(function, "__func__", None))
        if function is None:
            return []
    found, chain, value = [], "", None
    for step in dis.get_instructions(function.__code__):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            chain, value = step.argval, function.__globals__.get(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and chain:
            chain, value = f"{chain}.{step.argval}", getattr(value, step.argval, None)
            if callable(value) and _is_numpy(value):
                found.append(chain)
        else:
            chain = ""
    return list(dict.fromkeys(found))


class Declaration:
    """What formulations and losses made of one function have in common.

    Both are frozen dataclasses whose first field is that function, and whose last one
    are the parameters that were given, sorted by name.
    """

    function: Callable
    parameters: tuple[tuple[str, Any], ...]
    arguments: ClassVar[int] = 1  # of the function, before its parameters

    @property
    def name(self) -> str:
        """The name of the function."""
        return getattr(self.function, "__name__", "declared")

    @property
    def label(self) -> str:
        """The name, with the values of all parameters."""
        shown = (f"{name}={short(value)}" for name, value in self.get_params().items())
        return f"{self.name}({', '.join(shown)})" if self._signature else self.name

    @property
    def _signature(self) -> dict[str, inspect.Parameter]:
        """The parameters of the function; what a library defines has none."""
        if not isinstance(self.function, FunctionType) or _of_a_library(self.function):
            return {}
        every = list(inspect.signature(self.function).parameters.values())
        named = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return {
            one.name: one for one in every[self.arguments :] if one.kind not in named
        }

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name: what was given, or the default.

        Parameters
        ----------
        deep : bool
            Without effect.

        Returns
        -------
        dict
        """
        known, given = self._signature, dict(self.parameters)
        found = {name: given.get(name, one.default) for name, one in known.items()}
        found = {k: v for k, v in found.items() if v is not inspect.Parameter.empty}
        return {name: _unfrozen(value) for name, value in found.items()}

    def with_(self, **changes: Any) -> Self:
        """The same declaration with other parameters.

        Parameters
        ----------
        **changes
            Numbers, tuples, lists or arrays.

        Returns
        -------
        An object of the same class.
        """
        check_names(self, changes, self._signature)
        given = dict(self.parameters)
        given |= {name: frozen(value, name) for name, value in changes.items()}
        parameters = tuple(sorted(given.items()))
        return dataclasses.replace(self, parameters=parameters)  # type: ignore[type-var]

    def __call__(self, *unnamed: Any, **changes: Any) -> Self:
        """The same declaration with other parameters."""
        if unnamed:
            name = next(iter(self.get_params()), None)
            how = f"give it by name: {self.name}({name}=…)" if name else "it takes none"
            raise TypeError(f"{self.name} got the parameter {short(unnamed[0])}; {how}")
        return self.with_(**changes)

    def declared(self, *given: Any) -> Any:
        """What the function declares, with these parameters.

        Parameters
        ----------
        *given
            The arguments of the function that are no parameters: u, or f and y.

        Returns
        -------
        cvxpy.Expression or tuple
            As the function returns it.

        Raises
        ------
        ValueError
            Where a parameter without a default was not given.
        """
        known = self.get_params()
        for name in self._signature:
            if name not in known:
                raise ValueError(f"{self!r} needs {name}; write {self.name}({name}=…)")
        return self.function(*given, **{k: known[k] for k in dict(self.parameters)})

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

        Elsewhere (scripts, notebooks, functions inside functions) the function is
        pickled by value: other processes cannot import it.
        """
        module = self.function.__module__
        name = getattr(self.function, "__qualname__", "")
        there = getattr(sys.modules.get(module), name, None)
        if module != "__main__" and type(there) is type(self):
            changed = dataclasses.replace(there, parameters=self.parameters)  # type: ignore[type-var]
            if changed == self:
                return look_up, (module, name, self.parameters)
        parts = [getattr(self, one.name) for one in dataclasses.fields(self)]  # type: ignore[arg-type]
        if there is self.function or not isinstance(self.function, FunctionType):
            return type(self), tuple(parts)
        return rebuilt, (type(self), _by_value(self.function), *parts[1:])


def _by_value(function: FunctionType) -> tuple[str, str, bytes]:
    """Where a function was defined, and the function itself as bytes."""
    import cloudpickle

    return function.__module__, function.__qualname__, cloudpickle.dumps(function)


def rebuilt(kind: type, function: tuple[str, str, bytes], *parts: Any) -> Any:
    """A declaration from its parts; the function of this process, if it is there."""
    module, name, content = function
    made = pickle.loads(content)
    there = getattr(getattr(sys.modules.get(module), name, None), "function", None)
    same = there is not None and key_of(there) == key_of(made) is not None
    return kind(there if same else made, *parts)


def look_up(module: str, name: str, parameters: tuple = ()) -> Any:
    """What a module calls by this name, with these parameters."""
    found = getattr(importlib.import_module(module), name)
    if getattr(found, "parameters", ()) == parameters:
        return found
    return dataclasses.replace(found, parameters=parameters)


@dataclass(frozen=True)
class FrozenArray:
    """An array that is compared and hashed by its content."""

    dtype: str
    shape: tuple[int, ...]
    content: bytes

    @property
    def array(self) -> np.ndarray:
        """The array, read-only."""
        return np.frombuffer(self.content, self.dtype).reshape(self.shape)


def frozen(value: Any, name: str) -> Any:
    """A parameter as it is kept: plain numbers, tuples for lists, frozen arrays."""
    if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "biuf":
        return FrozenArray(value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, list | tuple):
        return tuple(frozen(one, name) for one in value)
    value = plain(value)
    try:
        hash(value)
    except TypeError:
        raise ValueError(
            f"{name} = {short(value)} may change later; give numbers, tuples or arrays"
        ) from None
    return value


def _unfrozen(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_unfrozen, value))
    return value.array if isinstance(value, FrozenArray) else value


@dataclass(frozen=True)
class Keyed:
    """A formulation or a loss that is compared by its key alone: for caches."""

    key: Hashable
    owner: Any = field(compare=False)
