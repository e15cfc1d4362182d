"""mklopt: multiple kernel learning, declared once, solved fast, certified.

Names are loaded on first use (PEP 562), so that importing the package is quick.
"""

import importlib
import os
from typing import Any

from .util import moved

__version__ = "0.1.0"

_HOME = {  # public names, and the module that each lives in
    "C_zero": "reference.c_zero",
    "Certificate": "certificates.certificate",
    "ClusterStack": "kernels.cluster.stack",
    "GramStack": "grams.stack",
    "KernelFamilyProblem": "gmkl.problem",
    "LazyStack": "kernels.streaming",
    "MKLClassifier": "estimators.classifier",
    "MKLClassifierCV": "estimators.cv",
    "MKLOneClass": "estimators.one_class",
    "MKLRegressor": "estimators.regressor",
    "Problem": "problem",
    "Result": "run.result",
    "StructuredProblem": "structured.problem",
    "Trace": "run.trace",
    "certify": "tasks.certify",
    "certify_exact": "tasks.certify_exact",
    "check_formulation": "judge.inspection",
    "check_solver": "judge.exam.exam",
    "diagnose": "judge.exam.one_point",
    "estimate": "tasks.estimate",
    "formulation": "formulations",
    "inspect": "judge.inspection",
    "loss": "formulations",
    "one_vs_rest": "tasks.one_vs_rest",
    "path": "tasks.path",
    "prove_used": "tasks.prove_used",
    "race": "tasks.race",
    "solve": "run.loop",
    "solver": "solvers",
    "threads": "util.threads",
    "variational": "formulations",
    "worst_case_table": "judge.worst_case_table",
}
_ROOMS = {  # public modules
    "data": "data",
    "families": "gmkl.families",
    "formulations": "formulations",
    "gallery": "formulations.gallery",
    "gmkl": "gmkl",
    "kernels": "kernels",
    "library": "library",
    "plots": "plots",
    "rates": "judge.rates",
    "reference": "reference",
    "regularizers": "gmkl.regularizers",
    "solvers": "solvers",
    "structured": "structured",
}

# Where git makes no symbolic links (Windows), two packages are beside this folder.
if not os.path.isdir(os.path.join(__path__[0], "formulations")):
    __path__.append(os.path.dirname(__path__[0]))

HOMES = {name: f"{__name__}.{home}" for name, home in (_HOME | _ROOMS).items()}
moved.install()

__all__ = ["__version__", *_HOME, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(HOMES[name]), name)
    if name in _ROOMS:
        return importlib.import_module(HOMES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
