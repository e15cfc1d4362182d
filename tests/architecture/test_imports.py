"""Who may import whom: ranks of rooms, no private names, no hidden imports.

Every import is read from the source (ast), those under TYPE_CHECKING and inside
functions included.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

# A room imports rooms of earlier lines only; rooms on one line not each other.
RANKS = """
util
formulations.derive
formulations.norms
formulations.base
formulations.losses
formulations
grams data
kernels
kernels.cluster
problem
certificates
solvers.base solvers.start
solvers.machines
solvers.steps
solvers
run
reference
tasks gmkl structured
judge estimators library
judge.exam
plots campaign
claims
cli
__main__
"""
RANK = {
    room: rank for rank, line in enumerate(RANKS.split("\n")) for room in line.split()
}

# Imports inside functions: packages that are slow to load and not always needed, …
SLOW = {
    *(
        "clarabel",
        "cvxpy",
        "matplotlib",
        "highspy",
        "pandas",
        "rich",
        "sklearn",
        "sympy",
    ),
    *(
        "PEPit",
        "cloudpickle",
        "distributed",
        "joblib",
        "scipy",
    ),  # scipy.optimize: 0.15 s
}
# … and modules of our own, with the reason.
LATE = {
    "__main__": "what a command needs may not be installed",
    "cli": "a command loads what it needs when it runs",
    "judge.exam.pytest_plugin": "pytest loads it at every start",
    "kernels.fitted": "kernels.streaming is made of fitted kernels",
    "formulations.losses.base": "pointwise is compiled for stochastic solvers alone",
    "formulations.mixed_norm": "mixed_prox is compiled for these formulations alone",
}


class Import(NamedTuple):
    by: str  # the importing module, dotted, below mklopt
    of: str  # the imported module, or a package outside
    name: str  # what is taken from it; "" for the module itself
    late: bool  # inside a function
    line: int


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name below mklopt."""
    found = {}
    for top, prefix in (("mklopt", ()), ("formulations", ("formulations",)),
                        ("reference", ("reference",))):  # fmt: skip
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT / top).with_suffix("").parts
            if top == "mklopt" and parts[0] in ("formulations", "reference"):
                continue  # reached through the symlinks
            parts = prefix + (parts[:-1] if parts[-1] == "__init__" else parts)
            found[".".join(parts)] = path
    return found


MODULES = modules()
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}


def imports(by: str, source: str) -> Iterator[Import]:
    tree = ast.parse(source)
    late = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(by, _below(alias.name), "", id(node) in late, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            home = _home(by, node)
            for alias in node.names:
                whole = f"{home}.{alias.name}".lstrip(".")
                is_module = whole in MODULES
                of, name = (whole, "") if is_module else (home, alias.name)
                yield Import(by, of, name, id(node) in late, node.lineno)


def _below(name: str) -> str:
    return name.removeprefix("mklopt.") if name.startswith("mklopt.") else name


def _home(by: str, node: ast.ImportFrom) -> str:
    """The module that an import names, below mklopt."""
    if node.level == 0:
        return "" if node.module == "mklopt" else _below(node.module or "")
    parts = by.split(".") if by else []
    base = parts if by in PACKAGES else parts[:-1]
    base = base[: len(base) - (node.level - 1)]
    return ".".join([*base, *([node.module] if node.module else [])])


EVERY = [i for by, path in MODULES.items() for i in imports(by, path.read_text())]
INSIDE = [i for i in EVERY if i.of in MODULES and i.by]  # mklopt/__init__ is exempt


def room_of(module: str) -> str:
    """The longest name in RANKS that a module lies under."""
    parts = module.split(".")
    names = [".".join(parts[:k]) for k in range(len(parts), 0, -1)]
    return next(name for name in names if name in RANK)


def upward(found: Import) -> bool:
    by, of = room_of(found.by), room_of(found.of)
    return by != of and RANK[of] >= RANK[by]


def test_every_module_has_a_room():
    assert not [m for m in MODULES if m and room_of(m) not in RANK]


def test_rooms_import_only_rooms_before_them():
    wrong = [f"{i.by}:{i.line} imports {i.of}" for i in INSIDE if upward(i)]
    assert not wrong


@pytest.mark.parametrize(
    "by, line",
    [
        ("grams.stack", "from ..kernels.family import Family"),
        ("solvers.machines.svm", "from ..spicy import spicy"),
        ("reference.exact", "from ..tasks import race"),
        ("judge.rates", "from ..estimators import MKLClassifier"),
        ("formulations.base", "from .lp_norm import LpNorm"),
    ],
)
def test_a_forbidden_import_is_found(by, line):
    late = f"def f():\n    {line}\n"
    for source in (line, late):
        assert any(upward(found) for found in imports(by, source))


def test_no_private_name_crosses_modules():
    private = [
        f"{i.by}:{i.line} imports {i.name or i.of} of {i.of}"
        for i in INSIDE
        if i.name.startswith("_") and not i.name.startswith("__")
    ]
    assert not private


def test_no_module_reads_a_private_name_of_an_imported_one():
    wrong = []
    for by, path in MODULES.items():
        tree = ast.parse(path.read_text())
        known = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                home = _home(by, node)
                for alias in node.names:
                    if f"{home}.{alias.name}".lstrip(".") in MODULES:
                        known[alias.asname or alias.name] = alias.name
        wrong += [
            f"{by}:{node.lineno} {node.value.id}.{node.attr}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in known
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
        ]
    assert not wrong


def test_late_imports_are_those_listed():
    late = [i for i in EVERY if i.late and i.by]
    wrong = [
        f"{i.by}:{i.line} imports {i.of}"
        for i in late
        if i.of.split(".")[0] not in SLOW
        and i.of.split(".")[0] not in sys.stdlib_module_names
        and not (i.of in MODULES and {i.by, i.by.split(".")[0]} & set(LATE))
    ]
    assert not wrong
