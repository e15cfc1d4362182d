"""What decides a cached result: a hash of the code that can change it.

A result depends on the module that computed it and on everything that this module
imports, directly or not:

    imports       at the top of a file and inside functions; those that only a type
                  checker sees do not count
    public names  `mklopt.solve`, after `import mklopt`, counts as the module that
                  `solve` lives in, and `mklopt/__init__.py` itself does not count
    plug-ins      rooms that are scanned for new files count as a whole
    data          files that a module reads from the package count byte by byte
    versions      of Python and of the packages that compute

Each file is hashed as its syntax tree without docstrings: a comment voids nothing.
Modules that only draw or print are left out, so that a new colour does not void hours
of runs. Files are found by name and are not executed.
"""

from __future__ import annotations

import ast
import hashlib
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec, resolve_name
from pathlib import Path

from ..util.moved import MODULES

PACKAGE = __name__.split(".")[0]
# They draw, print, or say where names live: no number depends on them.
NO_NUMBER = """
plots run.progress util.latex util.moved util.style
campaign.fingerprint campaign.report campaign.screen claims.page
"""
LEFT_OUT = {PACKAGE, *(f"{PACKAGE}.{name}" for name in NO_NUMBER.split())}
RUNS = (f"{PACKAGE}.campaign.runs", f"{PACKAGE}.campaign.problems")
SCANNED = {  # every file there may register something
    f"{PACKAGE}.{name}" for name in ("formulations", "formulations.losses", "solvers")
}
READ = {  # folders beside a module, with files that it reads
    f"{PACKAGE}.reference.contract_problems": "stored"
}
NUMERICAL = """
clarabel cvxpy ecos highspy llvmlite numba numpy osqp pandas scikit-learn scipy scs
sympy
"""
FOR_TYPES = ("TYPE_CHECKING", "typing.TYPE_CHECKING")


@cache
def fingerprint(*roots: str) -> str:
    """Twelve digits for modules, all they import and read, and the versions.

    By default those that decide a row of the main job.
    """
    h = hashlib.sha256(repr(sys.version_info[:2]).encode())
    for name in NUMERICAL.split():
        h.update(f"{name} {_version(name)}\n".encode())
    for module, file in sorted(closure(*(roots or RUNS)).items()):
        h.update(f"{module} {digest(file.read_text('utf-8'))}\n".encode())
        if module in READ:
            for path in sorted((file.parent / READ[module]).iterdir()):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                h.update(f"{path.name} {content}\n".encode())
    return h.hexdigest()[:12]


def closure(*roots: str) -> dict[str, Path]:
    """The modules that can change what these compute, themselves included; files.

    Followed are imports of this package, and of the ones that the modules belong to.
    """
    ours = {PACKAGE, *(root.split(".")[0] for root in roots)}
    found: dict[str, Path] = {}
    left = list(roots)
    while left:
        module = left.pop()
        module = MODULES.get(module, module)  # it may be an old name
        if module in LEFT_OUT or module in found or module.split(".")[0] not in ours:
            continue
        file = _file(module)
        if file is None:
            continue
        found[module] = file
        parent = module.rpartition(".")[0]  # a package runs before its modules
        package = module if file.name == "__init__.py" else parent
        left += [parent, *_imported(package, file.read_text("utf-8"))]
        if module in SCANNED:
            scanned = pkgutil.iter_modules([str(file.parent)])
            left += [f"{module}.{info.name}" for info in scanned]
    return found


@cache
def digest(source: str) -> str:
    """A hash of what a file does: its syntax tree without docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match getattr(node, "body", None):
            case [ast.Expr(ast.Constant(str())), *_]:
                del node.body[0]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def _file(module: str) -> Path | None:
    """Where a module lies; None for what is no module, or a folder without code."""
    top, *parts = module.split(".")
    spec = find_spec(top)
    for folder in (spec and spec.submodule_search_locations) or []:
        path = Path(folder, *parts)
        for file in (path / "__init__.py", path.with_name(f"{path.name}.py")):
            if file.is_file():
                return file
    return None


@cache
def _imported(package: str, source: str) -> list[str]:
    """What a file of a package imports: modules, and names that may be modules."""
    tree = ast.parse(source)
    found = []
    for node in _imports(tree):
        for alias in node.names:
            if isinstance(node, ast.Import):
                found.append(alias.name)
                top, *inside = alias.name.split(".")
                if top == PACKAGE and not (inside and alias.asname):
                    found += map(_home, _used(tree, alias.asname or PACKAGE))
            else:
                base = resolve_name("." * node.level + (node.module or ""), package)
                public = base == PACKAGE
                name = _home(alias.name) if public else f"{base}.{alias.name}"
                found += [base, name]
    return found


def _imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run: not those for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test) in FOR_TYPES:
            yield from _imports(ast.Module(node.orelse, []))
        else:
            yield from _imports(node)


def _used(tree: ast.AST, bound: str) -> Iterable[str]:
    """The names that a file takes from the package, which it knows by a name."""
    nodes = list(ast.walk(tree))
    uses = [n for n in nodes if isinstance(n, ast.Name) and n.id == bound]
    owners = [(n.value, n.attr) for n in nodes if isinstance(n, ast.Attribute)]
    taken = [name for owner, name in owners if owner in uses]
    # Used in another way, such as getattr(package, name), it may be any name.
    return taken if len(taken) == len(uses) else sys.modules[PACKAGE].HOMES


def _home(name: str) -> str:
    """The module that a name of the package lives in, or that it is."""
    return sys.modules[PACKAGE].HOMES.get(name, f"{PACKAGE}.{name}")
