"""Lists of kernels from users: strings, functions, (columns, kernel) pairs, families.

    "linear"   "gaussian"   "gaussian(2.5)"   "polynomial(3)"   "laplacian(2)"
    "constant"
    "gaussian(2.5) on single"          one kernel for each feature; or "… on both"
    "rakotomamonjy"   "suzuki"   "kloft"                        a recipe of the papers
    "subset_gaussians(100000)"         so many Gaussians on random features
    k                                  a function k(A, B) of two matrices of points
    ([0, 3], "gaussian")               some of the columns, by number, name or slice
    mklopt.kernels.kloft(10)           a family
    "rbf(0.5)"                         exp(−γ‖x − z‖²)
    "rbf"                              γ = 1/(d · variance of all entries of X), the
                                       gamma="scale" of scikit-learn

or a dict with names of views: {"blood": ([0, 3], "gaussian"), "all": "linear"}.

"gaussian" alone has the width 2σ² = mean ‖x_i − x_j‖², "polynomial" the degree 2,
"laplacian" the width 1.

The usual family, if no kernels are given, depends on the scale of the data: six
Gaussians with σ from s/4 to 8s, s² being the total variance of the features, and
polynomials (⟨x, z⟩ + r²)^p of degree 1, 2, 3, r² being the mean of ‖x‖². Both are means
over samples with their weights, so that a weight of 2 is the same as a copy.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple

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


class Points(NamedTuple):
    """What kernels are on: d features with names, and samples if they are known."""

    d: int
    names: Sequence[str] | None = None
    X: Array | None = None
    weight: Array | None = None

    def on(self, columns: tuple[int, ...]) -> "Points":
        """These columns alone; inside a view they have numbers."""
        X = None if self.X is None else self.X[:, list(columns)]
        return Points(len(columns), None, X, self.weight)


def family_of(
    given: Any,
    d: int,
    names: Sequence[str] | None = None,
    X: Array | None = None,
    weight: Array | None = None,
) -> kernels.Family:
    """The family of a list or dict of kernels, on d features with these names."""
    return _family(given, Points(d, names, X, weight))


def _family(given: Any, points: Points) -> kernels.Family:
    if isinstance(given, Mapping) and given:
        return reduce(add, (_view(name, k, points) for name, k in given.items()))
    if isinstance(given, str | tuple | kernels.Family) or callable(given):
        given = [given]
    if not isinstance(given, list) or not given:
        raise ValueError(
            f"kernels = {short(given)}; give a list of kernels such as 'gaussian(2)', "
            "functions k(A, B), pairs (columns, kernel), or a family of mklopt.kernels"
        )
    return reduce(add, (_one(kernel, points) for kernel in given))


def _view(name: Any, given: Any, points: Points) -> kernels.Family:
    """The kernels of a view with a name, on its columns or on all."""
    pair = isinstance(given, tuple) and len(given) == 2
    where, inner = given if pair else (slice(None), given)
    columns = _columns(where, points.d, points.names)
    return kernels.views(_family(inner, points.on(columns)), {str(name): columns})


def columns_in_use(given: Any, d: int, names: Sequence[str] | None) -> set[int]:
    """The columns of X that kernels read; None is the usual family, on all."""
    parts = list(given.values()) if isinstance(given, Mapping) else given
    if not isinstance(parts, list):
        parts = [parts]
    pairs = [k for k in parts if isinstance(k, tuple) and len(k) == 2]
    if len(pairs) < len(parts):
        return set(range(d))
    return {place for where, _ in pairs for place in _columns(where, d, names)}


def usual_family(X: Array, weight: Array) -> kernels.Family:
    """Gaussians and polynomials at the scale of the data."""
    mean = np.average(X, axis=0, weights=weight)
    s2 = float(np.sum(np.average((X - mean) ** 2, axis=0, weights=weight))) or 1.0
    r2 = float(np.average(np.sum(X**2, axis=1), weights=weight)) or 1.0
    widths = np.sqrt(s2) * 2.0 ** np.arange(-2, 4)
    return kernels.gaussians(widths) + kernels.polynomials((1, 2, 3), offset=r2)


def _one(kernel: Any, points: Points) -> kernels.Family:
    if isinstance(kernel, kernels.Family):
        return kernel
    if isinstance(kernel, str):
        return _read(kernel, points)
    if callable(kernel):
        return kernels.function(kernel)
    if isinstance(kernel, tuple) and len(kernel) == 2:
        columns = _columns(kernel[0], points.d, points.names)
        some, names = ", ".join(map(str, columns)), points.names
        label = f"x[{some}]" if names is None else ", ".join(names[c] for c in columns)
        return kernels.views(_one(kernel[1], points.on(columns)), {label: columns})
    raise ValueError(
        f"a kernel is {short(kernel)}; give a string such as 'gaussian(2)', a function "
        "k(A, B), or a pair (columns, kernel)"
    )


def _read(text: str, points: Points) -> kernels.Family:
    found = FORM.fullmatch(text.strip())
    name, argument, on = found.groups() if found else ("", None, None)
    if name == "rbf":
        width = _width_of(text, argument or "scale", points)
        return kernels.gaussians(width, **({} if on is None else {"on": on}))
    if name not in FAMILIES:
        known = [*FAMILIES, "rbf"]
        raise ValueError(
            f"kernel {text!r} is not known; {choices(name or text, known)}, "
            "with a width or degree in brackets, such as 'gaussian(2.5) on single'"
        )
    make, arguments = FAMILIES[name]
    try:
        arguments = arguments if argument is None else (_number(argument),)
        return make(*arguments, **({} if on is None else {"on": on}))
    except (TypeError, ValueError) as error:
        raise ValueError(f"kernel {text!r} cannot be read: {error}") from None


def _width_of(text: str, argument: str, points: Points) -> float:
    """σ of exp(−γ‖x − z‖²): γ = 1/2σ²."""
    if argument.strip() == "scale" and points.X is None:
        raise ValueError(
            f"kernel {text!r} cannot be read without samples; give γ, as in 'rbf(0.5)'"
        )
    try:
        gamma = _scale(points) if argument.strip() == "scale" else float(argument)
    except ValueError:
        gamma = 0.0
    if not 0 < gamma < np.inf:
        said = f"kernel {text!r} cannot be read: γ is a positive number or 'scale'"
        raise ValueError(said)
    return float(np.sqrt(0.5 / gamma))


def _scale(points: Points) -> float:
    """1/(d · variance of all entries), with weights of samples; 1 if entries agree."""
    X = np.empty((0, 0)) if points.X is None else points.X
    mean = np.average(X.mean(axis=1), weights=points.weight)
    variance = np.average(((X - mean) ** 2).mean(axis=1), weights=points.weight)
    return 1.0 / (points.d * float(variance)) if variance > 0 else 1.0


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
