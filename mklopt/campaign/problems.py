"""Problems of one's own for the main job: kernels and labels from a NumPy archive.

    numpy.savez("mine.npz", K=K, y=y)        K is (M, n, n), y is (n,)
    mklopt certify --data mine.npz

Labels −1/+1 are taken for two classes, 0 … k−1 for more, others for numbers; losses
that need other labels are left out. Each loss × formulation comes with C = 0.1, 1, 100.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from ..formulations import formulations, losses_by_name
from ..grams.stack import GramStack
from ..problem import Problem
from ..reference.contract_problems import Cell
from ..util.archives import read_arrays
from ..util.arrays import real_array

Array = np.ndarray
MOST = 20_000_000  # numbers in K: references are solved by interior points
CS = (0.1, 1.0, 100.0)


@dataclass(frozen=True)
class OwnCell(Cell):
    """A problem on kernels from a file."""

    path: Path = Path()
    content: str = ""  # hash of the file: other content is another problem

    @property
    def name(self) -> str:
        return f"{super().name}-{self.content}"

    def problem(self) -> Problem:
        grams, y = read_own(self.path, self.content)
        y = np.ones(len(y)) if self.loss.labels == "ones" else y
        bias = self.loss.bias_allowed
        return Problem(grams, y, self.loss, self.formulation, self.C, bias)


def content_of(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise ValueError(f"{path} cannot be certified ({error.strerror})") from None


@lru_cache(maxsize=4)
def read_own(path: Path, content: str) -> tuple[GramStack, Array]:
    """The kernels, proved positive semi-definite, and the labels; or one sentence."""
    try:
        if content_of(path) != content:
            raise ValueError("it has changed since the job began")
        arrays = read_arrays(path, most=8 * MOST + (1 << 20))
        K = real_array(arrays["K"], "K", "an (M, n, n) array of numbers")
        y = real_array(arrays["y"], "y", "one number per sample")
        if K.ndim != 3 or K.shape[1] != K.shape[2] or y.shape != K.shape[1:2]:
            raise ValueError(f"K has shape {K.shape} and y has shape {y.shape}")
        if len(y) < 2 or not np.all(np.isfinite(y)):
            raise ValueError("y needs two labels at least, all of them finite")
        grams = GramStack(K)
        grams.verify_psd()
    except (OSError, KeyError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be certified ({error}); write kernels K (M, n, n) and "
            "labels y (n,) with numpy.savez"
        ) from None
    return grams, y


def own_cells(path: Path) -> Iterator[Cell]:
    """Every formulation with every loss that takes such labels, at each C."""
    content = content_of(path)
    grams, y = read_own(path, content)
    for loss_class in losses_by_name().values():
        if loss_class.labels not in ("ones", kind_of(y)):
            continue
        for loss in loss_class.examples():
            for kind in formulations().values():
                for formulation in kind.examples(grams.M):
                    for C in CS:
                        part = (path.stem, formulation, loss, C)
                        yield OwnCell(*part, path=path, content=content)


def kind_of(y: Array) -> str:
    """The labels that y holds: binary, classes or real."""
    if set(np.unique(y)) == {-1.0, 1.0}:
        return "binary"
    k = int(np.max(y)) + 1 if abs(np.max(y)) < len(y) else 0
    return "classes" if set(np.unique(y)) == set(range(k)) and k > 1 else "real"
