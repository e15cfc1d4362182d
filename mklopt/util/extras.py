"""Packages that mklopt can do without: the one place that says which extra has them.

`pip install mklopt` solves and certifies. A function that needs more calls `need`
before it imports; who lacks the package is told what to install, in one sentence.
"""

import importlib
import importlib.util
import sys
from typing import Any

EXTRAS = {  # as in pyproject.toml; `all` has all of them
    "cli": ("click", "rich", "joblib", "sklearn"),
    "cluster": ("dask", "distributed"),
    "estimators": ("sklearn",),
    "frames": ("pandas",),
    "pepit": ("PEPit",),
    "plots": ("matplotlib",),
    "solvers": ("highspy",),
    "symbolic": ("sympy",),
}
DISTRIBUTIONS = {"sklearn": "scikit-learn"}  # where pip knows another name


class MissingExtra(ImportError):
    """A package is not installed; the message names the extra that has it."""


def available(module: str) -> bool:
    """Whether a package can be imported; it is not imported here."""
    if module in sys.modules:
        return sys.modules[module] is not None
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def if_there(module: str) -> Any:
    """A module that only some systems have; None where it cannot be imported."""
    return importlib.import_module(module) if available(module) else None


def missing(*modules: str) -> str:
    """What to say of the first package that is not installed; "" if all are."""
    absent = next((module for module in modules if not available(module)), None)
    if absent is None:
        return ""
    extra = min((len(have), e) for e, have in EXTRAS.items() if absent in have)[1]
    name = DISTRIBUTIONS.get(absent, absent)
    return f"this needs {name}; install it with: pip install 'mklopt[{extra}]'"


def need(*modules: str) -> None:
    """Refuse to go on without these packages.

    Raises
    ------
    MissingExtra
        If one of them is not installed.
    """
    if said := missing(*modules):
        raise MissingExtra(said, name=modules[0])
