"""Problems of one's own for the main job: kernels and labels from a NumPy archive.

    numpy.savez("mine.npz", K=K, y=y)        K is (M, n, n), y is (n,)
    mklopt certify --data mine.npz

Labels −1/+1 are taken for two classes, 0 … k−1 for more, others for numbers; losses
that need other labels are left out. Each loss × formulation comes with C = 0.1, 1, 100.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from ..formulations import formulations, losses_by_name
from ..grams.stack import GramStack
from ..problem import Problem
from ..reference.contract_problems import Cell, cells
from ..util.archives import read_labelled

Array = np.ndarray
MAX_NUMBERS = 20_000_000  # in K: references are solved by interior points
CS = (0.1, 1.0, 100.0)


@dataclass(frozen=True)
class OwnCell(Cell):
    """A problem on kernels from a file."""

    path: Path = Path()
    content: str = ""  # hash of the file: other content is another problem

    @property
    def name(self) -> str:
        """The name of a contract problem, and the hash of the file."""
        return f"{super().name}-{self.content}"

    def problem(self) -> Problem:
        """The problem itself, read from the file."""
        grams, y = read_own(self.path, self.content)
        y = np.ones(len(y)) if self.loss.labels == "ones" else y
        bias = self.loss.bias_allowed
        return Problem(grams, y, self.loss, self.formulation, self.C, bias)


def problems_by_name(files: Iterable[str] = ()) -> dict[str, Cell]:
    """The contract problems, and those on kernels from these files."""
    own = [cell for file in files for cell in own_cells(Path(file))]
    return {cell.name: cell for cell in [*cells(), *own]}


def own_cells(path: Path) -> Iterator[Cell]:
    """Every formulation with every loss that takes such labels, at each C."""
    content = _hash(path)
    grams, y = read_own(path, content)
    for loss_class in losses_by_name().values():
        if loss_class.labels not in ("ones", label_kind(y)):
            continue
        for loss in loss_class.examples():
            for kind in formulations().values():
                for formulation in kind.examples(grams.M):
                    for C in CS:
                        part = (path.stem, formulation, loss, C)
                        yield OwnCell(*part, path=path, content=content)


@lru_cache(maxsize=4)
def read_own(path: Path, content: str) -> tuple[GramStack, Array]:
    """The kernels, proved positive semi-definite, and the labels; or one sentence.

    content: the hash that the file had when the job began
    """
    if _hash(path) != content:
        raise ValueError(f"{path} has changed since the job began")
    found = read_labelled(path, MAX_NUMBERS)
    if "K" not in found:
        raise ValueError(f"{path} has features X; kernels K (M, n, n) are needed here")
    try:
        grams = GramStack(found["K"])
        grams.verify_psd()
    except ValueError as error:
        raise ValueError(f"{path} cannot be used: {error}") from None
    return grams, found["y"]


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise ValueError(f"{path} cannot be used: {error.strerror}") from None


def label_kind(y: Array) -> str:
    """The labels that y holds: binary (−1/+1), classes (0 … k−1) or real."""
    values = np.unique(y).tolist()
    if values == [-1.0, 1.0]:
        return "binary"
    count = len(values)
    return "classes" if count > 1 and values == list(range(count)) else "real"
