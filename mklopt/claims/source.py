"""What a rule does: its source with its helpers, as one hash.

The hash is over syntax trees without docstrings and annotations: of the function, of
all functions and classes of the same package that it names, directly or not, studies
included, and over the values of the constants that they name. What other packages do
is no part of the rule. The hash is the same for every version of Python.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from types import ModuleType
from typing import Any

import numpy as np

SKIPPED = {"ctx", "kind", "type_comment", "annotation", "returns", "decorator_list"}


class Source:
    """The functions, classes and constants that functions depend on, by name."""

    def __init__(self, *functions: Callable[..., Any]):
        self.package = _package(functions[0])
        self.texts: dict[str, str] = {}
        self.items: list[Any] = []  # studies and claims that are named
        for function in functions:
            self._read(function)

    @cached_property
    def digest(self) -> str:
        """A hash of all of it."""
        text = "\n".join(f"{name}: {self.texts[name]}" for name in sorted(self.texts))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _read(self, what: Any) -> None:
        what = inspect.unwrap(what) if callable(what) else what
        name = f"{_module(what)}.{what.__qualname__}"
        if name in self.texts:
            return
        tree = _tree(what)
        self.texts[name] = dump(tree)
        for inner, value in _named(tree, what):
            self._value(f"{_module(what)}.{inner}", value)

    def _value(self, name: str, value: Any) -> None:
        """A thing that is named: read where it is ours, noted where it is plain."""
        if hasattr(value, "run") and hasattr(value, "words"):  # an item of a paper
            if value not in self.items:
                self.items.append(value)
            value = [value.run, *filter(None, [getattr(value, "parts", None)])]
        if isinstance(value, partial):
            value = [value.func, value.args, value.keywords]
        if isinstance(value, ModuleType):
            return
        if inspect.isroutine(value) or inspect.isclass(value):
            if _package(value) == self.package:
                self._read(value)
        elif isinstance(value, dict):
            self.texts.setdefault(name, repr([str(k) for k in value]))
            for key, part in value.items():
                self._value(f"{name}[{key}]", part)
        elif isinstance(value, list | tuple):
            self.texts.setdefault(name, str(len(value)))
            for k, part in enumerate(value):
                self._value(f"{name}[{k}]", part)
        else:
            self.texts.setdefault(name, _plain(value))
            if _package(type(value)) == self.package:
                self._read(type(value))
                self._value(f"{name}.", vars(value))


def body(function: Callable[..., Any]) -> str:
    """What a function does, whatever its name."""
    (tree,) = _tree(function).body  # type: ignore[attr-defined]
    return dump(tree.body)


def dump(node: Any) -> str:
    """A syntax tree as text, without what changes nothing."""
    if isinstance(node, list):
        return "[" + ",".join(map(dump, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((f, getattr(node, f, None)) for f in node._fields if f not in SKIPPED)
    said = [f"{f}={dump(v)}" for f, v in fields if v is not None and v != []]
    return f"{type(node).__name__}({','.join(said)})"


def _tree(what: Any) -> ast.AST:
    try:
        text = textwrap.dedent(inspect.getsource(what))
    except (OSError, TypeError):
        raise ValueError(
            f"the source of {what.__qualname__} cannot be read: put it into a file of "
            "papers/<key>/"
        ) from None
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a lambda in the middle of an expression
        return ast.Constant(text)
    for node in ast.walk(tree):
        match getattr(node, "body", None):
            case [ast.Expr(ast.Constant(str())), *rest]:
                node.body = rest or [ast.Pass()]  # type: ignore[attr-defined]
    return tree


def _named(tree: ast.AST, what: Any) -> Iterator[tuple[str, Any]]:
    """What the names of a function mean, attributes of modules included."""
    known = dict(getattr(inspect.getmodule(what), "__dict__", {}))
    if inspect.isfunction(what):
        cells = zip(what.__code__.co_freevars, what.__closure__ or (), strict=True)
        known = what.__globals__ | {name: cell.cell_contents for name, cell in cells}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in known:
            yield node.id, known[node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = known.get(node.value.id)
            ours = isinstance(owner, ModuleType) and _package(owner) == _package(what)
            if ours and hasattr(owner, node.attr):
                yield f"{node.value.id}.{node.attr}", getattr(owner, node.attr)


def _plain(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return hashlib.sha256(value.tobytes()).hexdigest()
    if isinstance(value, set | frozenset):
        return repr(sorted(map(repr, value)))
    said = repr(value)
    return type(value).__qualname__ if " at 0x" in said else said


def _module(what: Any) -> str:
    return getattr(what, "__module__", None) or ""


def _package(what: Any) -> str:
    name = what.__name__ if isinstance(what, ModuleType) else _module(what)
    return name.split(".")[0]
