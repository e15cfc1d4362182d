"""What decides a cached result: a hash of the code that can change it.

A result depends on the module that computed it and on all that this module imports,
directly or not (imports inside functions included, those for type checkers left out).
Rooms that are scanned for plug-ins count as a whole. Each file is hashed as its syntax
tree without docstrings: a comment voids nothing. Modules that only draw or print are
left out, so that a new colour does not void hours of runs.
"""

from __future__ import annotations

import ast
import hashlib
import pkgutil
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

PACKAGE = __name__.split(".")[0]
ONLY_SHOWN = {  # no number depends on them
    f"{PACKAGE}.{name}"
    for name in (
        *("plots", "run.progress", "util.latex", "util.moved", "util.style"),
        *("util.tables", "campaign.report", "campaign.screen", "claims.page"),
    )
}
SCANNED = {  # every file there may register something
    f"{PACKAGE}.{name}" for name in ("formulations", "formulations.losses", "solvers")
}
NUMERICAL = (
    *("clarabel", "cvxpy", "ecos", "highspy", "llvmlite", "numba", "numpy", "osqp"),
    *("pandas", "scikit-learn", "scipy", "scs", "sympy"),
)


@cache
def fingerprint(root: str = f"{PACKAGE}.campaign.job") -> str:
    """Of a module, all code it imports, and the versions of numerical packages."""
    h = hashlib.sha256(repr(sys.version_info[:2]).encode())
    for name in NUMERICAL:
        h.update(f"{name} {_version(name)}\n".encode())
    for module in closure(root):
        h.update(f"{module} {digest(_source(module))}\n".encode())
    return h.hexdigest()[:12]


def closure(root: str) -> list[str]:
    """The modules that can change what a module computes, itself included."""
    found, left = set(), [root]
    while left:
        module = left.pop()
        if module not in found and module not in ONLY_SHOWN:
            found.add(module)
            left += _imported(module, root.split(".")[0])
    return sorted(found)


def digest(source: str) -> str:
    """A hash of what a file does: its syntax tree without docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            del body[0]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_text(node: ast.stmt) -> bool:
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant and isinstance(node.value.value, str)  # type: ignore[attr-defined]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def _source(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None, module
    with open(spec.origin, encoding="utf-8") as file:
        return file.read()


def _imported(module: str, top: str) -> Iterator[str]:
    """Modules of this package, and of the one it serves, that a module imports."""
    if "." in module:
        yield module.rpartition(".")[0]  # a package runs before its modules
    if module in SCANNED:
        path = import_module(module).__path__
        yield from (f"{module}.{info.name}" for info in pkgutil.iter_modules(path))
    if module == PACKAGE:
        return  # it only says where names live, see _named
    is_package = getattr(find_spec(module), "submodule_search_locations", None)
    home = module if is_package else module.rpartition(".")[0]
    for node in _statements(ast.parse(_source(module))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            yield from (n for n in names if n.split(".")[0] in (PACKAGE, top))
            if PACKAGE in names:
                yield from import_module(PACKAGE).HOMES.values()
        else:
            yield from _named(node, home, top)


def _statements(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run: not those for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            yield from _statements(node)


def _named(node: ast.ImportFrom, home: str, top: str) -> Iterator[str]:
    """The modules that `from … import …` loads."""
    parts = home.split(".")[: len(home.split(".")) - (node.level - 1)]
    base = ".".join(parts) if node.level else ""
    module = ".".join(filter(None, (base, node.module)))
    if module.split(".")[0] not in (PACKAGE, top):
        return
    yield module
    homes = import_module(PACKAGE).HOMES
    for alias in node.names:
        if module == PACKAGE and alias.name in homes:
            yield homes[alias.name]
        elif find_spec(module).submodule_search_locations is not None:  # type: ignore
            name = f"{module}.{alias.name}"
            if find_spec(name) is not None:
                yield name
