"""Lists of kernels from users: strings, functions, (columns, kernel) pairs, families.

    "linear"   "gaussian"   "gaussian(2.5)"   "polynomial(3)"   "laplacian(2)"
    "constant"
    "gaussian(2.5) on single"          one kernel for each feature; or "… on both"
    "rakotomamonjy"   "suzuki"   "kloft"                        a recipe of the papers
    "subset_gaussians(100000)"         so many Gaussians on random features
    k                                  a function k(A, B) of two matrices of points
    ([0, 3], "gaussian")               some of the columns, by number, name or slice
    mklopt.kernels.kloft(10)           a family

"gaussian" alone has the width 2σ² = mean ‖x_i − x_j‖², "polynomial" the degree 2,
"laplacian" the width 1.

The usual family, if no kernels are given, depends on the scale of the data: six
Gaussians with σ from s/4 to 8s, s² being the total variance of the features, and
polynomials (⟨x, z⟩ + r²)^p of degree 1, 2, 3, r² being the mean of ‖x‖². Both are means
over samples with their weights, so that a weight of 2 is the same as a copy.
"""

import re
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from .. import kernels
from ..util.checks import choices, short

Array = np.ndarray
FORM = re.compile(r"(\w+)(?:\(([^()]*)\))?(?: on (all|single|both))?")
FAMILIES: dict[str, tuple[Callable[..., kernels.Family], tuple]] = {  # and defaults
    "gaussian": (kernels.gaussians, ("mean",)),
    "polynomial": (kernels.polynomials, (2,)),
    "laplacian": (kernels.laplacians, (1.0,)),
    "linear": (kernels.linear, ()),
    "constant": (kernels.constant, ()),
    "rakotomamonjy": (kernels.rakotomamonjy, ()),
    "suzuki": (kernels.suzuki, ()),
    "kloft": (kernels.kloft, ()),
    "subset_gaussians": (kernels.subset_gaussians, (1000,)),
}


def family_of(given: Any, d: int, names: Sequence[str] | None = None) -> kernels.Family:
    """The family of a list of kernels, on d features with these names."""
    if isinstance(given, str | tuple | kernels.Family) or callable(given):
        given = [given]
    if not isinstance(given, list) or not given:
        raise ValueError(
            f"kernels = {short(given)}; give a list of kernels such as 'gaussian(2)', "
            "functions k(A, B), pairs (columns, kernel), or a family of mklopt.kernels"
        )
    return reduce(add, (_one(kernel, d, names) for kernel in given))


def usual_family(X: Array, weight: Array) -> kernels.Family:
    """Gaussians and polynomials at the scale of the data."""
    mean = np.average(X, axis=0, weights=weight)
    s2 = float(np.sum(np.average((X - mean) ** 2, axis=0, weights=weight))) or 1.0
    r2 = float(np.average(np.sum(X**2, axis=1), weights=weight)) or 1.0
    widths = np.sqrt(s2) * 2.0 ** np.arange(-2, 4)
    return kernels.gaussians(widths) + kernels.polynomials((1, 2, 3), offset=r2)


def _one(kernel: Any, d: int, names: Sequence[str] | None) -> kernels.Family:
    if isinstance(kernel, kernels.Family):
        return kernel
    if isinstance(kernel, str):
        return _read(kernel)
    if callable(kernel):
        return kernels.function(kernel)
    if isinstance(kernel, tuple) and len(kernel) == 2:
        columns = _columns(kernel[0], d, names)
        label = ", ".join(map(str, columns))
        return kernels.views(_one(kernel[1], d, names), {f"x[{label}]": columns})
    raise ValueError(
        f"a kernel is {short(kernel)}; give a string such as 'gaussian(2)', a function "
        "k(A, B), or a pair (columns, kernel)"
    )


def _read(text: str) -> kernels.Family:
    found = FORM.fullmatch(text.strip())
    name, argument, on = found.groups() if found else ("", None, None)
    if name not in FAMILIES:
        raise ValueError(
            f"kernel {text!r} is not known; {choices(name or text, FAMILIES)}, "
            "with a width or degree in brackets, such as 'gaussian(2.5) on single'"
        )
    make, arguments = FAMILIES[name]
    try:
        arguments = arguments if argument is None else (_number(argument),)
        return make(*arguments, **({} if on is None else {"on": on}))
    except (TypeError, ValueError) as error:
        raise ValueError(f"kernel {text!r} cannot be read: {error}") from None


def _number(text: str) -> Any:
    text = text.strip()
    if text == "mean":
        return text
    return int(text) if text.isdigit() else float(text)


def _columns(given: Any, d: int, names: Sequence[str] | None) -> tuple[int, ...]:
    """Columns by number, name, slice or mask, as numbers from 0 on."""
    if isinstance(given, slice):
        return tuple(range(d)[given])
    wanted = [given] if np.ndim(given) == 0 else list(given)
    if len(wanted) == d and all(isinstance(c, bool | np.bool_) for c in wanted):
        return tuple(np.flatnonzero(wanted).tolist())
    return tuple(_place(column, d, names) for column in wanted)


def _place(column: Any, d: int, names: Sequence[str] | None) -> int:
    known = [] if names is None else list(names)
    if isinstance(column, str) and column in known:
        return known.index(column)
    whole = isinstance(column, int | np.integer) and not isinstance(column, bool)
    if whole and -d <= column < d:
        return int(column) % d
    named = f" or one of {', '.join(known[:8])}" if known else ""
    raise ValueError(
        f"a kernel is on column {column!r}; X has the columns 0 to {d - 1}{named}"
    )
