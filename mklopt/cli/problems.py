"""Problems as people ask for them on the command line.

    problem("sonar", kernels="gaussian(1),linear", formulation="lp:p=2", C=10)
    problem("twonorm:n=3000,seed=1")

The first word is a data set (standardized), with options if it is drawn at random, a
NumPy archive with y and either features X (n, d) or kernels K (M, n, n), or a stack of
kernels on disk (.npy) beside a file of labels. Labels −1/+1 are two classes, 0 … k−1
more, others numbers; without a loss they get the hinge, its multi-class form, or the
square.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import data
from ..campaign.problems import label_kind
from ..formulations.text import formulation_from
from ..grams.stack import GramStack
from ..kernels.fitted import FittedKernels
from ..kernels.text import family_of, usual_family
from ..problem import Problem
from ..util.archives import read_labelled, read_labels

Array = np.ndarray
USUAL_LOSS = {"binary": "hinge", "classes": "multiclass_hinge", "real": "squared"}
MAX_NUMBERS = 400_000_000  # in a file: 3.2 GB, which a solver still takes


@dataclass(frozen=True)
class NamedProblem:
    """A problem, and the names of its kernels."""

    problem: Problem
    names: Sequence[str]


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
    labels: str | None = None,
    cluster: str | None = None,
) -> NamedProblem:
    """The problem that these words mean; ValueError and LookupError say what is wrong.

    samples: take so many of them, drawn with the seed
    labels: a file with y, for a stack of kernels on disk
    cluster: the address of a Dask scheduler, whose workers get the kernels
    """
    found = _found(given, labels)
    some = _drawn(len(found["y"]), samples, seed)
    y = found["y"][some]
    if "X" in found:
        fitted = _kernels_of(found["X"][some], kernels, normalize)
        names: Sequence[str] = fitted.names
        grams = _on_workers(cluster, fitted) if cluster else fitted.stack()
    elif kernels is not None:
        raise ValueError("the file holds kernels K; leave out --kernels")
    else:
        grams = _given_kernels(found["K"], some)
        names = [f"kernel {m}" for m in range(grams.M)]
        grams = _on_workers(cluster, grams) if cluster else grams
    loss = USUAL_LOSS[label_kind(y)] if loss is None else loss
    if loss == "one_class":
        y, bias = np.ones(len(y)), False
    form = formulation_from(formulation)
    return NamedProblem(Problem(grams, y, loss, form, C, bias), names)


def _found(given: str, labels: str | None) -> dict[str, Any]:
    """y, and features X or kernels K."""
    on_disk = given.endswith(".npy")
    if on_disk != (labels is not None):
        missing = f"{given} holds kernels alone; name a file with y: --labels y.txt"
        needless = "--labels is for kernels in a .npy; other data have their own"
        raise ValueError(missing if on_disk else needless)
    if labels is None:
        own = given.endswith(".npz")
        return read_labelled(given, MAX_NUMBERS) if own else _data_set(given)
    y, stack = read_labels(labels), GramStack.open(given)
    if len(y) != stack.n:
        raise ValueError(f"{labels} has {len(y)} labels for {stack.n} samples")
    return {"y": y, "K": stack}


def _given_kernels(K: Any, some: Array) -> GramStack:
    if not isinstance(K, GramStack):
        return GramStack(K[:, some][:, :, some])
    return K if len(some) == K.n else K.samples(some)


def _data_set(given: str) -> dict[str, Array]:
    name, options = _options(given)
    found = data.load(name, **options).standardized()
    return {"X": found.X, "y": found.y}


def _options(given: str) -> tuple[str, dict[str, Any]]:
    """The name of a data set and its options, from words such as "twonorm:n=3000"."""
    name, _, rest = given.partition(":")
    pairs = [part.partition("=") for part in rest.split(",") if part.strip()]
    try:
        values = {key.strip(): ast.literal_eval(text) for key, _, text in pairs}
    except (ValueError, SyntaxError):
        raise ValueError(
            f"data {given!r} cannot be read; write the options of a data set as in "
            "twonorm:n=3000,seed=1"
        ) from None
    return name.strip(), values


def _drawn(n: int, samples: int | None, seed: int) -> Array:
    if samples is None:
        return np.arange(n)
    if not 2 <= samples <= n:
        raise ValueError(
            f"samples = {samples}, and the data have {n}; give a number from 2 to {n}, "
            "or draw more of a random set, as in twonorm:n=3000"
        )
    return np.sort(np.random.default_rng(seed).permutation(n)[:samples])


def _on_workers(address: str, given: FittedKernels | GramStack) -> GramStack:
    """The kernels on the workers of the cluster at this address."""
    try:
        from ..kernels.cluster.stack import ClusterStack
        from ..kernels.cluster.workers import connected
    except ImportError as error:
        raise ValueError(str(error)) from None
    return ClusterStack(connected(address), given)


def _kernels_of(X: Array, kernels: str | None, normalize: str | None) -> FittedKernels:
    if kernels is None:
        family = usual_family(X, np.ones(len(X)))
    else:
        listed = [k.strip() for k in re.split(r",(?![^()]*\))", kernels)]
        family = family_of(listed, X.shape[1])
    return family.fit(X, None if normalize in (None, "none") else normalize)
