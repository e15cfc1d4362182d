"""Problems as people ask for them on the command line.

    problem("sonar", kernels="gaussian(1),linear", formulation="lp:p=2", C=10)

The first word is a data set (standardized), or a NumPy archive with y and either
features X (n, d) or kernels K (M, n, n). Labels −1/+1 are two classes, 0 … k−1 more,
others numbers; without a loss they get the hinge, its multi-class form, or the square.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import data
from ..campaign.problems import kind_of
from ..formulations.text import formulation_from
from ..grams.stack import GramStack
from ..kernels.text import family_of, usual_family
from ..problem import Problem
from ..util.archives import read_arrays
from ..util.arrays import real_array

Array = np.ndarray
USUAL = {"binary": "hinge", "classes": "multiclass_hinge", "real": "squared"}
MOST = 400_000_000  # numbers in a file


@dataclass(frozen=True)
class Asked:
    """A problem, and the names of its kernels."""

    problem: Problem
    names: list[str]


def problem(
    given: str,
    kernels: str | None = None,
    formulation: str = "lp",
    loss: str | None = None,
    C: float = 1.0,
    normalize: str | None = "spherical",
    bias: bool = True,
    samples: int | None = None,
    seed: int = 0,
) -> Asked:
    """The problem that these words mean; ValueError and LookupError say what is wrong.

    samples: take so many of them, drawn with the seed
    """
    X, K, y = _file(Path(given)) if given.endswith(".npz") else _set(given)
    some = _some(len(y), samples, seed)
    X, K, y = X if X is None else X[some], K, y[some]
    grams, names = _kernels(X, K, some, kernels, normalize)
    loss = USUAL[kind_of(y)] if loss is None else loss
    if loss == "one_class":
        y, bias = np.ones(len(y)), False
    form = formulation_from(formulation)
    return Asked(Problem(grams, y, loss, form, C, bias), names)


def _set(name: str) -> tuple[Array | None, Array | None, Array]:
    try:
        found = data.load(name).standardized()
    except data.DataNotFound as error:
        hint = "`mklopt list` names all, and a file of your own ends in .npz"
        said = str(error.args[0]).replace("see data.names()", hint)
        raise data.DataNotFound(said) from None
    return found.X, None, found.y


def _file(path: Path) -> tuple[Array | None, Array | None, Array]:
    try:
        arrays = read_arrays(path, most=8 * MOST)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise ValueError(f"{path} cannot be read ({said})") from None
    if "y" not in arrays or not {"X", "K"} & set(arrays):
        raise ValueError(
            f"{path} has the arrays {', '.join(arrays) or 'none'}; write labels y (n,) "
            "and features X (n, d) or kernels K (M, n, n) with numpy.savez"
        )
    y = real_array(arrays["y"], "y", "one number per sample")
    X, K, n = arrays.get("X"), arrays.get("K"), y.size
    if X is not None and not (X.ndim == 2 and len(X) == n):
        raise ValueError(f"{path}: X is {X.shape} for {n} labels y; it must be (n, d)")
    if X is None and K is not None and (K.ndim != 3 or K.shape[1:] != (n, n)):
        raise ValueError(
            f"{path}: K is {K.shape} for {n} labels y; it must be (M, n, n)"
        )
    return X, K, y


def _some(n: int, samples: int | None, seed: int) -> Array:
    if samples is None or samples >= n:
        return np.arange(n)
    if samples < 2:
        raise ValueError(f"samples = {samples}; take two at least")
    return np.sort(np.random.default_rng(seed).permutation(n)[:samples])


def _kernels(
    X: Array | None, K: Array | None, some: Array, kernels: Any, normalize: Any
) -> tuple[GramStack, list[str]]:
    if X is None:
        if kernels is not None:
            raise ValueError("the file holds kernels K; leave out --kernels")
        stack = GramStack(np.asarray(K)[:, some][:, :, some])
        return stack, [f"kernel {m}" for m in range(stack.M)]
    X = real_array(X, "X", "an (n, d) matrix of numbers")
    if not np.all(np.isfinite(X)):
        raise ValueError("X has missing or infinite values; drop those samples")
    if kernels is None:
        family = usual_family(X, np.ones(len(X)))
    else:
        listed = [k.strip() for k in re.split(r",(?![^()]*\))", kernels)]
        family = family_of(listed, X.shape[1])
    fitted = family.fit(X, None if normalize in (None, "none") else normalize)
    return fitted.grams(), fitted.names
