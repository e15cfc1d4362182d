"""Names of version 0.1 that have moved: they work for one release, with a warning.

    from mklopt.families import Product      # now mklopt.gmkl.families

`install` puts a finder behind all others: it answers for module names of version 0.1
only. `old_name` finds names inside objects that version 0.1 has pickled.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MODULES = {  # documented in version 0.1, or written into files by it
    "mklopt.asked": "mklopt.cli.problems",
    "mklopt.certificate": "mklopt.certificates.certificate",
    "mklopt.checker": "mklopt.certificates.checker",
    "mklopt.families": "mklopt.gmkl.families",
    "mklopt.figures": "mklopt.util.style",
    "mklopt.gallery": "mklopt.formulations.gallery",
    "mklopt.lazy": "mklopt.kernels.streaming",
    "mklopt.papers": "mklopt.claims.items",
    "mklopt.rates": "mklopt.judge.rates",
    "mklopt.regularizers": "mklopt.gmkl.regularizers",
    "mklopt.result": "mklopt.run.result",
    "mklopt.solvers.wrapper": "mklopt.solvers.machines.machine",
    "mklopt.specs": "mklopt.formulations.text",
    "mklopt.trace": "mklopt.run.trace",
}
NAMES = {  # inside pickled estimators and formulations
    "mklopt.estimators": {
        "Bounds": "mklopt.estimators.base",
        "Decision": "mklopt.estimators.base",
    },
    "mklopt.formulations.base": {
        "Declared": "mklopt.formulations.declared",
        "Variational": "mklopt.formulations.declared",
        "_look_up": "mklopt.formulations.derive.declaration",
    },
    "mklopt.kernels": {
        "_Function": "mklopt.kernels.functions",
        "_Gaussian": "mklopt.kernels.functions",
        "_Kernel": "mklopt.kernels.functions",
        "_Power": "mklopt.kernels.functions",
        "_constant": "mklopt.kernels.family",
        "_on_features": "mklopt.kernels.family",
        "_subsets": "mklopt.kernels.family",
        "_view": "mklopt.kernels.family",
    },
}


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MODULES else None

    def exec_module(self, module: ModuleType) -> None:
        now = MODULES[module.__name__]
        said = (
            f"{module.__name__} is now {now}; the old name goes with the next release"
        )
        warnings.warn(said, DeprecationWarning, stacklevel=2)
        vars(module).update(
            {
                k: v
                for k, v in vars(importlib.import_module(now)).items()
                if k[:2] != "__"
            }
        )


def install() -> None:
    """Answer for the old module names, once."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


def old_name(module: str, name: str) -> Any:
    """A name that version 0.1 had in a module, for unpickling."""
    home = NAMES[module].get(name)
    if home is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    found = vars(importlib.import_module(home))
    return found[name] if name in found else found[name.lstrip("_")]
