"""Docstrings: every public definition has one, and the public API names parameters.

A definition is public when neither its name nor that of a class around it begins with
an underscore; what is defined inside functions is not. A method that overrides one of a
class of the package may leave the docstring to it.

Public API is what `mklopt.__all__` names: functions and classes, and the functions and
classes of the modules in it. Their docstrings have a section

    Parameters
    ----------
    tol : float
        …

with a line for every parameter. Fields of a dataclass may stand under Attributes.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import mklopt

ROOT = Path(__file__).resolve().parents[2]
TOPS = {
    "mklopt": "mklopt",
    "formulations": "mklopt.formulations",
    "reference": "mklopt.reference",
}
PROPERTIES = (property, functools.cached_property)


# ---- (a) one sentence for every public definition ------------------------------------


class Definition(NamedTuple):
    module: str  # its dotted name
    name: str  # with the class around it; "" for the module itself
    file: str
    line: int
    documented: bool


def definitions(module: str, path: Path) -> Iterator[Definition]:
    """Every public definition of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    file = str(path.relative_to(ROOT))
    yield Definition(module, "", file, 1, bool(ast.get_docstring(tree)))
    yield from _inside(tree, module, file, "")


def _inside(tree: Any, module: str, file: str, around: str) -> Iterator[Definition]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from _inside(node, module, file, around)
        if not isinstance(node, (*functions, ast.ClassDef)) or node.name[0] == "_":
            continue
        if isinstance(node, functions) and _goes_with_another(node):
            continue
        name = f"{around}.{node.name}".lstrip(".")
        yield Definition(module, name, file, node.lineno, bool(ast.get_docstring(node)))
        if isinstance(node, ast.ClassDef):
            yield from _inside(node, module, file, name)


def _goes_with_another(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is the setter of a property, or one of several signatures."""
    endings = (".setter", ".deleter", "overload")
    return any(ast.unparse(mark).endswith(endings) for mark in node.decorator_list)


def every_definition() -> list[Definition]:
    found: list[Definition] = []
    for top, dotted in TOPS.items():
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT / top).with_suffix("").parts
            if top == "mklopt" and parts[0] in TOPS:
                continue  # reached through the symlinks
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found += definitions(".".join([dotted, *parts]), path)
    return found


def undocumented(every: list[Definition]) -> list[str]:
    known = {(d.module, d.name) for d in every if d.documented}
    return [
        f"{d.file}:{d.line} {d.name or 'the module'}"
        for d in every
        if not d.documented and not _inherits(d, known)
    ]


def _inherits(missing: Definition, known: set[tuple[str, str]]) -> bool:
    """Whether a class above documents the method of this name."""
    around, _, name = missing.name.rpartition(".")
    if not around:
        return False
    home: Any = importlib.import_module(missing.module)
    above = functools.reduce(getattr, around.split("."), home).__mro__[1:]
    return any((c.__module__, f"{c.__qualname__}.{name}") in known for c in above)


def test_every_public_definition_has_a_docstring():
    missing = undocumented(every_definition())
    assert not missing, f"{len(missing)} without a docstring:\n" + "\n".join(missing)


def test_a_missing_docstring_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / "rooms.py"
    path.write_text(
        '"""A module."""\nclass Room:\n    def door(self): ...\n'
        "    def _lock(self): ...\nclass _Hidden:\n    def door(self): ...\n"
        'def open():\n    """Opens."""\n    def inner(): ...\n'
    )
    found = list(definitions("rooms", path))
    assert [d.name for d in found] == ["", "Room", "Room.door", "open"]
    assert [d.documented for d in found] == [True, False, False, True]


def test_a_method_may_inherit_its_docstring():
    here = ("mklopt.formulations.group_lasso", "GroupLasso.penalty")
    missing = Definition(*here, "formulations/group_lasso.py", 1, False)
    above = ("mklopt.formulations.base", "Formulation.penalty")
    assert _inherits(missing, {above}) and not _inherits(missing, set())


# ---- (b) the public API names every parameter ----------------------------------------


def direct() -> dict[str, Any]:
    """The functions and classes of `mklopt.__all__`."""
    named = {f"mklopt.{name}": getattr(mklopt, name) for name in mklopt.__all__}
    return {name: x for name, x in named.items() if _documentable(x)}


def within_modules() -> dict[str, Any]:
    """The functions and classes of the modules in `mklopt.__all__`."""
    found = {}
    for room in [getattr(mklopt, name) for name in mklopt.__all__]:
        for name in _names(room) if isinstance(room, ModuleType) else ():
            if _documentable(getattr(room, name)):
                found[f"{room.__name__}.{name}"] = getattr(room, name)
    return found


def _names(room: ModuleType) -> list[str]:
    """What a public module offers: what it lists, or what is defined in it."""
    if "__dir__" in vars(room) or hasattr(room, "__all__"):
        listed = dir(room) if "__dir__" in vars(room) else room.__all__
    else:
        own = vars(room).items()
        listed = [n for n, x in own if getattr(x, "__module__", "") == room.__name__]
    return [name for name in listed if not name.startswith("_")]


def _documentable(thing: Any) -> bool:
    ours = str(getattr(thing, "__module__", "")).startswith("mklopt")
    return ours and (inspect.isclass(thing) or inspect.isroutine(thing))


def gaps(named: dict[str, Any]) -> list[str]:
    """What is missing, one line for each docstring: its name and the parameters."""
    found: dict[str, str] = {}
    for name, thing in named.items():
        for place, part, texts in _parts(name, thing):
            missing = _unnamed(part, texts)
            if not any(texts):
                found[place] = "no docstring"
            elif missing:
                found[place] = f"Parameters without {', '.join(missing)}"
    return [f"{place}: {what}" for place, what in found.items()]


def _parts(name: str, thing: Any) -> Iterator[tuple[str, Any, list[str]]]:
    """A function; or a class, its public methods and properties; with docstrings."""
    if not inspect.isclass(thing):
        yield name, thing, [inspect.getdoc(thing) or ""]
        return
    ours = [c for c in thing.__mro__ if c.__module__.startswith("mklopt")]
    yield name, thing, _texts([x for c in ours for x in (c, vars(c).get("__init__"))])
    for member in dir(thing):
        homes = [c for c in ours if member in vars(c)]
        if member[0] == "_" or not homes:
            continue
        part = inspect.getattr_static(thing, member)
        part = getattr(part, "__func__", part)  # of a class method or a static one
        if isinstance(part, PROPERTIES) or inspect.isfunction(part):
            place = f"{homes[0].__module__}.{homes[0].__qualname__}.{member}"
            yield place, part, _texts([vars(c)[member] for c in homes])


def _texts(things: list[Any]) -> list[str]:
    return [inspect.cleandoc(getattr(x, "__doc__", "") or "") for x in things]


def _unnamed(thing: Any, texts: list[str]) -> list[str]:
    """The parameters that no Parameters section names."""
    made_elsewhere = inspect.isclass(thing) and not _made_here(thing)
    if isinstance(thing, PROPERTIES) or made_elsewhere:
        return []
    taken = [p for p in inspect.signature(thing).parameters if p not in ("self", "cls")]
    told = {name for text in texts for name in named_parameters(text)}
    return [p for p in taken if not p.startswith("_") and p not in told]


def _made_here(thing: type) -> bool:
    """Whether the package says how an object of the class is made."""
    if getattr(thing, "_is_protocol", False):
        return False
    home = next(c for c in thing.__mro__ if {"__init__", "__new__"} & set(vars(c)))
    return home.__module__.startswith("mklopt")


def named_parameters(doc: str) -> set[str]:
    """The names under Parameters, Other Parameters and Attributes."""
    heads = r"(?:Parameters|Other Parameters|Attributes)\n-+\n"
    body = r"((?:(?!\S[^\n]*\n-{3,}\n)[^\n]*(?:\n|\Z))*)"
    told: set[str] = set()
    for section in re.findall(rf"^{heads}{body}", doc, re.MULTILINE):
        for line in re.findall(r"^(\S[^:\n]*)", section, re.MULTILINE):
            told |= {name.strip().lstrip("*") for name in line.split(",")}
    return told


@pytest.mark.parametrize("which", [direct, within_modules], ids=lambda f: f.__name__)
def test_public_docstrings_name_every_parameter(which):
    missing = gaps(which())
    assert not missing, f"{len(missing)} docstrings lack:\n" + "\n".join(missing)


def test_parameters_are_read_from_numpydoc_sections():
    doc = inspect.cleandoc(
        """A sum.

        Parameters
        ----------
        a, b : float
            Two numbers; c: no parameter.
        *rest : float
        mode

        Returns
        -------
        total : float
        """
    )
    assert named_parameters(doc) == {"a", "b", "rest", "mode"}


def test_a_parameter_that_is_not_named_is_found():
    def good(x, *, tol=1.0):
        """Good.

        Parameters
        ----------
        x : float
        tol : float
        """

    def bad(x, tol):
        """Bad: x and tol are named in prose only."""

    class Base:
        def step(self, x):
            """Step.

            Parameters
            ----------
            x : float
            """

    class Other(Base):
        def step(self, x):
            """Step, otherwise."""

    for made in (good, bad, Base, Other):
        made.__module__ = "mklopt.made"
    assert gaps({"good": good, "Base": Base, "Other": Other}) == [
        "Base: no docstring",
        "Other: no docstring",
    ]
    assert gaps({"bad": bad}) == ["bad: Parameters without x, tol"]
