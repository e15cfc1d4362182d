"""The Oxford flowers of section 5.1.1, with descriptors of our own.

    paper                          here
    7 distance matrices            7 descriptors: χ² distances of histograms, squared
                                   Euclidean ones of gist
    exp(−d/γ), γ the mean of d     the same, the mean over training pairs
    40 + 20 + 20 images a class    random splits of the 80
    Caltech-101, four PHOG levels  the three levels of the flowers' PHOG (section 5.5)

So shapes of curves can be compared with the paper's, numbers cannot.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mklopt import GramStack, data
from mklopt.claims.items import Scale

from . import stand_ins
from .stand_ins import Task

Array = NDArray[np.float64]
LEVELS = {"level 0": (0, 20), "level 1": (20, 100), "level 2": (100, 420)}


def chi_squared(X: Array) -> Array:
    """Σ (x − x')²/(x + x') of rows that are scaled to the sum 1."""
    X = X / np.maximum(X.sum(axis=1, keepdims=True), 1e-12)
    return np.array([_from(x, X) for x in X])


def _from(x: Array, X: Array) -> Array:
    return np.asarray(np.sum((X - x) ** 2 / np.maximum(X + x, 1e-12), axis=1))


def squared(X: Array) -> Array:
    """Squared Euclidean distances."""
    size = np.sum(X**2, axis=1)
    return np.asarray(np.maximum(size[:, None] + size - 2 * X @ X.T, 0.0))


@lru_cache(maxsize=1)
def distances() -> dict[str, Array]:
    """Of all images, one matrix for each descriptor."""
    views = data.load("flowers17").views
    return {v: squared(X) if v == "gist" else chi_squared(X) for v, X in views.items()}


@lru_cache(maxsize=1)
def levels() -> dict[str, Array]:
    """Of all images, one matrix for each level of the pyramid."""
    X = data.load("flowers17").views["phog"]
    return {name: chi_squared(X[:, a:b]) for name, (a, b) in LEVELS.items()}


def _task(name: str, D: dict[str, Array], each: int, tests: int, seed: int) -> Task:
    """So many images of each class to train on, and so many others to test on."""
    y = data.load("flowers17").y
    rng = np.random.default_rng(seed)
    order = np.array([rng.permutation(np.flatnonzero(y == c)) for c in np.unique(y)])
    train, test = order[:, :each].ravel(), order[:, each : each + tests].ravel()
    inner, outer, cross = np.ix_(train, train), np.ix_(test, train), []
    kernels = []
    for d in D.values():
        width = np.mean(d[inner])
        kernels.append(np.exp(-d[inner] / width))
        cross.append(np.exp(-d[outer] / width))
    grams = GramStack(np.array(kernels), storage="full")
    return Task(name, grams, y[train], np.array(cross), y[test])


def flowers(scale: Scale, each: int, tests: int, seed: int = 0) -> Task:
    """Seven kernels on flowers; at tiny the quadrants of small digits."""
    if scale.mode == "tiny":
        return stand_ins.digits(5 * each, seed)
    return _task("flowers17", distances(), each, tests, seed)


def pyramid(scale: Scale, each: int, tests: int, seed: int = 0) -> Task:
    """The three levels of PHOG on flowers; at tiny the quadrants of small digits."""
    if scale.mode == "tiny":
        return stand_ins.digits(5 * each, seed)
    return _task("flowers17, PHOG", levels(), each, tests, seed)
