"""WHAT is solved: one file per formulation, the losses, and what is derived from them.

Formulations are found by scanning this room: a new file with a `Formulation` class in
it is all it takes.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

if not __name__.startswith("mklopt."):
    raise ImportError(
        "import mklopt.formulations, not formulations: a bare import would make second "
        "copies of every class"
    )

from .base import (
    Declared,
    Formulation,
    Variational,
    formulation,
    stripped,
    variational,
)
from .losses import DeclaredLoss, Loss, loss, stripped_loss

__all__ = [
    "Declared",
    "Formulation",
    "Loss",
    "Variational",
    "formulation",
    "formulations",
    "loss",
    "losses_by_name",
    "stripped",
    "stripped_loss",
    "variational",
]


def _concrete(root: Any, module: str) -> list[Any]:
    found: list[Any] = []
    for child in root.__subclasses__():
        found += _concrete(child, module)
        if child.__module__.startswith(module) and "__dataclass_fields__" in vars(
            child
        ):
            found.append(child)
    return found


def formulations() -> dict[str, type[Formulation]]:
    """Every formulation of this room, by class name."""
    for info in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{info.name}")
    found = {
        c.__name__: c
        for c in _concrete(Formulation, __name__)
        if not issubclass(c, Declared)
    }
    return dict(sorted(found.items()))


def losses_by_name() -> dict[str, type[Loss]]:
    """Every loss of this room, by the name a Problem takes."""
    from .losses import _snake

    found = {_snake(c.__name__): c for c in _concrete(Loss, __name__)}
    return dict(sorted((k, v) for k, v in found.items() if v is not DeclaredLoss))


def __dir__() -> list[str]:
    return sorted({*__all__, *formulations()})


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and name in (found := formulations()):
        return found[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
