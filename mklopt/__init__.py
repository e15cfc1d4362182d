"""mklopt: multiple kernel learning, declared once, solved fast, certified.

Names are loaded on first use (PEP 562), so that importing the package is quick.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "C_zero": "zero",
    "Certificate": "certificate",
    "GramStack": "grams",
    "KernelFamilyProblem": "gmkl",
    "LazyStack": "lazy",
    "MKLClassifier": "estimators",
    "MKLClassifierCV": "estimators",
    "MKLOneClass": "estimators",
    "MKLRegressor": "estimators",
    "Problem": "problem",
    "Result": "result",
    "StructuredProblem": "structured",
    "Trace": "trace",
    "certify": "certificate",
    "check_solver": "conformance",
    "check_formulation": "inspection",
    "formulation": "formulations",
    "inspect": "inspection",
    "loss": "formulations",
    "one_vs_rest": "multiclass",
    "path": "paths",
    "race": "races",
    "solve": "run",
    "solver": "solvers",
    "variational": "formulations",
}
_ROOMS = (
    "data",
    "families",
    "formulations",
    "gallery",
    "gmkl",
    "kernels",
    "plots",
    "rates",
    "reference",
    "regularizers",
    "solvers",
    "structured",
)

__all__ = ["__version__", *_HOME, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
