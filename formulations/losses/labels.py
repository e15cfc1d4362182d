"""What labels a loss takes, checked: real numbers, −1/+1, ones, or classes 0 … k−1."""

from __future__ import annotations

import numpy as np

from .domains import Array


def _real(y: Array, name: str) -> Array:
    if not np.all(np.isfinite(y)):
        raise ValueError(f"y has NaN or infinite entries; {name} needs finite targets")
    return y


def _binary(y: Array, name: str) -> Array:
    found = sorted({float(v) for v in np.unique(y)})
    if not set(found) <= {-1.0, 1.0}:
        shown = "{" + ", ".join(f"{v:g}" for v in found[:5]) + "}"
        hint = ": pass 2*y − 1" if set(found) <= {0.0, 1.0} else ""
        raise ValueError(f"y has labels {shown}; {name} needs −1/+1{hint}")
    if len(found) < 2:
        raise ValueError(
            f"y has only the label {found[0]:+g}; {name} needs both classes "
            "(one class alone is the one_class loss)"
        )
    return np.asarray(y, float)


def _ones(y: Array, name: str) -> Array:
    if not np.all(y == 1):
        raise ValueError(f"{name} has no labels: pass y = numpy.ones(n)")
    return np.asarray(y, float)


def _classes(y: Array, name: str) -> Array:
    whole = np.all(np.isfinite(y)) and np.all(y == np.rint(y))
    if not whole or np.min(y) < 0:
        raise ValueError(
            f"y must hold classes 0, 1, …, k−1 for {name}; map labels with "
            "numpy.unique(y, return_inverse=True)[1]"
        )
    y = y.astype(np.int64)
    if len(np.unique(y)) != int(y.max()) + 1 or y.max() == 0:
        raise ValueError(
            f"y has {len(np.unique(y))} classes out of {int(y.max()) + 1} for {name}; "
            "number at least two classes 0, 1, …, k−1 without holes"
        )
    return y


LABELS = {"real": _real, "binary": _binary, "ones": _ones, "classes": _classes}
