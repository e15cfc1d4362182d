"""WHAT is solved: one file per formulation, the losses, and what is derived from them.

Formulations are found by scanning this room: a new file with a `Formulation` class in
it is all it takes.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

if not __name__.startswith("mklopt."):
    raise ImportError(
        "import mklopt.formulations, not formulations: a bare import would make second "
        "copies of every class"
    )

from ..util.checks import snake_case
from . import losses as losses_room
from .base import Formulation
from .declared import Declared, Variational, formulation, stripped, variational
from .groupings import graph_edges, groups_by, tree_groups
from .losses.base import Loss
from .losses.declared import loss, stripped_loss

__all__ = [
    "Declared",
    "Formulation",
    "Loss",
    "Variational",
    "formulation",
    "formulations",
    "graph_edges",
    "groups_by",
    "loss",
    "losses_by_name",
    "stripped",
    "stripped_loss",
    "tree_groups",
    "variational",
]


def formulations() -> dict[str, type[Formulation]]:
    """Every formulation of this room, by class name.

    Returns
    -------
    dict
        From names such as "LpNorm" to classes.
    """
    _scan()
    return dict(sorted((c.__name__, c) for c in _listed(Formulation)))


def losses_by_name() -> dict[str, type[Loss]]:
    """Every loss of this room, by the name a Problem takes.

    Returns
    -------
    dict
        From names such as "hinge" to classes.
    """
    _scan()
    return dict(sorted((snake_case(c.__name__), c) for c in _listed(Loss)))


@cache
def _scan() -> None:
    """Import every file of both rooms, once."""
    for room in (importlib.import_module(__name__), losses_room):
        for info in pkgutil.iter_modules(room.__path__):
            importlib.import_module(f"{room.__name__}.{info.name}")


def _listed(root: Any) -> list[Any]:
    """The concrete classes below a root that these rooms offer to users."""
    found = [c for child in root.__subclasses__() for c in _listed(child)]
    ours = root.__module__.startswith(__name__)
    offered = root not in (Formulation, Loss) and root.listed
    concrete = "__dataclass_fields__" in vars(root)
    return [*found, root] if ours and offered and concrete else found


def __dir__() -> list[str]:
    return sorted({*__all__, *formulations()})


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and name in (found := formulations()):
        return found[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
