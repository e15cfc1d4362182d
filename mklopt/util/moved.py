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
NAMES = {  # inside pickled estimators and formulations, by the module they are in now
    "mklopt.estimators.base": ("Bounds", "Decision"),
    "mklopt.formulations.declared": ("Declared", "Variational"),
    "mklopt.formulations.derive.declaration": ("_look_up",),
    "mklopt.kernels.family": ("_constant", "_on_features", "_subsets", "_view"),
    "mklopt.kernels.functions": ("_Function", "_Gaussian", "_Kernel", "_Power"),
}


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MODULES else None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module that has the names now in place of the empty one."""
        old, now = module.__name__, MODULES[module.__name__]
        message = f"{old} is now {now}; the old name goes with the next release"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        found = sys.modules[old] = importlib.import_module(now)
        for name, new in RENAMED.get(old, {}).items():
            setattr(found, name, getattr(found, new))


def install() -> None:
    """Make imports of the old module names work; a second call changes nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


def old_name(module: str, name: str) -> Any:
    """The object that version 0.1 had under this name in a module, for unpickling."""
    room = module.removesuffix(".base")
    for home, names in NAMES.items():
        if name in names and home.startswith(room):
            found = vars(importlib.import_module(home))
            return found[name] if name in found else found[name.lstrip("_")]
    raise AttributeError(f"module {module!r} has no attribute {name!r}")
