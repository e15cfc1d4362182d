"""Names and first lines of what the package offers, read from its source.

Nothing is imported: to import every solver and formulation takes a second, and
`mklopt list` only prints their docstrings. What is found is what their registries hold,
`mklopt.solvers.solvers()`, `mklopt.formulations.formulations()` and so on.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGE = __name__.split(".")[0]


@dataclass(frozen=True)
class SolverSource:
    """What the decorator of a solver says."""

    about: str
    reference: str


@dataclass(frozen=True)
class ClassSource:
    """What a class statement says, as far as lists need it."""

    bases: tuple[str, ...]
    first_line: str
    is_dataclass: bool
    listed: bool | None  # None: as its base class


def solvers() -> dict[str, SolverSource]:
    """Every solver by name: what `solver(…)` says, or the first line of its module."""
    found = {}
    for tree in _trees("solvers"):
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and _last_name(call.func) == "solver":
                said = {word.arg: _constant(word.value) for word in call.keywords}
                about = said.get("about") or _first_line(tree)
                source = SolverSource(about, said.get("reference") or "")
                found[_constant(call.args[0])] = source
    return dict(sorted(found.items()))


def formulations() -> dict[str, str]:
    """Every formulation that is offered by name, and the first line about it."""
    return _offered("Formulation", "formulations")


def losses() -> dict[str, str]:
    """Every loss, by the name of its class, and the first line about it."""
    return _offered("Loss", "formulations/losses")


def children(root: str, module: str) -> dict[str, str]:
    """The classes of a module whose base class is `root`, in order."""
    found = _classes([_tree(_place(f"{module}.py"))])
    return {n: one.first_line for n, one in found.items() if root in one.bases}


def _offered(root: str, folder: str) -> dict[str, str]:
    """Dataclasses below a root class, except those with `listed = False`."""
    known = _classes(_trees(folder))
    return {
        name: one.first_line
        for name, one in sorted(known.items())
        if name != root and one.is_dataclass and _listed(name, root, known)
    }


def _listed(name: str, root: str, known: dict[str, ClassSource]) -> bool:
    """Whether a class is below the root and none between them hides it."""
    if name == root:
        return True
    one = known.get(name)
    if one is None or one.listed is False:
        return False
    return any(_listed(base, root, known) for base in one.bases)


def _classes(trees: Iterable[ast.Module]) -> dict[str, ClassSource]:
    nodes = (node for tree in trees for node in tree.body)
    return {n.name: _class(n) for n in nodes if isinstance(n, ast.ClassDef)}


def _class(node: ast.ClassDef) -> ClassSource:
    decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    marked = [
        _constant(line.value)
        for line in node.body
        if isinstance(line, ast.AnnAssign) and _last_name(line.target) == "listed"
    ]
    return ClassSource(
        tuple(_last_name(base) for base in node.bases),
        _first_line(node),
        "dataclass" in map(_last_name, decorators),
        marked[0] if marked else None,
    )


def _trees(folder: str) -> Iterator[ast.Module]:
    """The syntax trees of all files in a folder of the package."""
    for path in sorted(_place(folder).glob("*.py")):
        yield _tree(path)


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _place(inside: str) -> Path:
    """Where a folder or file of the package lies."""
    homes = (Path(home, inside) for home in sys.modules[PACKAGE].__path__)
    return next(home for home in homes if home.exists())


def _first_line(node: ast.Module | ast.ClassDef) -> str:
    return (ast.get_docstring(node) or "").split("\n")[0]


def _last_name(node: ast.expr) -> str:
    """The name of a.b.name or name; "" for anything else."""
    return str(getattr(node, "attr", "") or getattr(node, "id", ""))


def _constant(node: ast.expr | None) -> Any:
    """A constant; None for an expression."""
    return node.value if isinstance(node, ast.Constant) else None
