"""Names of version 0.1 that have moved: they work for one release, with a warning.

    from mklopt.families import Product      # now mklopt.gmkl.families

`install` adds a finder of modules after all others; it knows the module names of
version 0.1 only. `old_name` finds names inside objects that version 0.1 has pickled.
"""

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
    "mklopt.solvers.wrapper": "mklopt.solvers.machines.factory",
    "mklopt.specs": "mklopt.formulations.text",
    "mklopt.trace": "mklopt.run.trace",
}
RENAMED = {"mklopt.solvers.wrapper": {"Machine": "machine_for"}}
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

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module that has the names now; a copy of it where some are renamed."""
        old, now = spec.name, MODULES[spec.name]
        message = f"{old} is now {now}; the old name goes with the next release"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        found = importlib.import_module(now)
        if old not in RENAMED:
            spec.loader_state = found.__spec__  # the import system overwrites it
            return found
        copy = ModuleType(old)
        vars(copy).update({k: v for k, v in vars(found).items() if k[:2] != "__"})
        for name, new in RENAMED[old].items():
            setattr(copy, name, vars(found)[new])
        return copy

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: the module has been imported under its new name."""
        spec = module.__spec__
        if spec is not None and spec.loader_state is not None:
            module.__spec__ = spec.loader_state


def install() -> None:
    """Make imports of the old module names work; a second call changes nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


def old_name(module: str, name: str) -> Any:
    """The object that version 0.1 had under this name in a module, for unpickling."""
    home = NAMES[module].get(name)
    if home is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    found = vars(importlib.import_module(home))
    return found[name] if name in found else found[name.lstrip("_")]
