"""Data in place of the paper's: kernels, labels, and points to test on.

    paper                          here
    Oxford flowers, KTH-IDOL2      mfeat: ten digits, a Gaussian on each of six views
    Pendigits, four descriptions   pendigits: the pen's eight points, and images of
                                   4², 8² and 16² pixels drawn from them
    Caltech-101, 39 kernels        letter: 26 classes, 39 Gaussians on random subsets of
                                   features, of random widths
    MNIST                          5000 of its digits; four quadrants × three kernels
    what tests run on (tiny)       scikit-learn's 8 × 8 digits, by quadrants
                                   or by subsets of pixels

All kernels have k(x, x) ≤ 1, as the paper's bounds suppose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mklopt import GramStack, Problem, data, kernels
from mklopt.claims.items import Scale
from mklopt.formulations import BlockNorm
from mklopt.solvers.steps.epochs import Descent

from .settings import quadrants

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Task:
    """Kernels of n training points, and of test points with them."""

    name: str
    grams: GramStack
    y: Array
    cross: Array  # (F, n_test, n)
    truth: Array

    def problem(self, p: float, C: float, loss: str = "multiclass_hinge") -> Problem:
        return Problem(self.grams, self.y, loss, BlockNorm(p), C, bias=False)

    def error(self, coefficients: Array) -> float:
        """Test error in % of w given by its coefficients (F, n, M)."""
        f = sum(K @ B for K, B in zip(self.cross, coefficients))
        return self.missed(np.argmax(f, axis=1))

    def error_of(self, run: Descent) -> float:
        """Test error in % of the last w of a run, the kernels summed up first."""
        f = np.tensordot(run.omega, self.cross, axes=1) @ run.B
        return self.missed(np.argmax(f, axis=1))

    def missed(self, predicted: Array) -> float:
        return 100 * float(np.mean(predicted != self.truth))

    def subset(self, chosen: Sequence[int] | Array) -> Task:
        index = np.asarray(chosen)
        part = self.grams.subset(index)
        return Task(self.name, part, self.y, self.cross[index], self.truth)


def _task(
    name: str,
    family: kernels.Family,
    train: data.Dataset,
    test: data.Dataset,
    normalize: str | None = None,
) -> Task:
    """A family on training and test points, views where there are any."""
    old, new = train.views or train.X, test.views or test.X
    fitted = family.fit(old, normalize=normalize)
    grams = fitted.grams(storage="full")
    return Task(name, grams, train.y, fitted.cross(new), test.y)


def _parted(
    found: data.Dataset, n: int, tests: int, seed: int
) -> tuple[data.Dataset, data.Dataset]:
    """n samples to train on, and as many of the others to test on as there are."""
    train, rest = found.split(n, seed=seed)
    return train, rest.split(tests, seed=seed)[0] if tests < len(rest.y) else rest


def _split(
    found: data.Dataset, n: int, tests: int, seed: int
) -> tuple[data.Dataset, data.Dataset]:
    train, test = _parted(found, n, tests, seed)
    return train.standardized(), test.standardized(by=train)


@lru_cache(maxsize=8)
def toy(n: int, distance: float = 2.0, extra: int = 0, seed: int = 0) -> GramStack:
    """The kernels of section 5.2 with classes that overlap, and some of noise."""
    found = data.load("orabona_toy", n=n, distance=distance, seed=seed)
    noise = np.random.default_rng(seed).normal(size=(extra, n, 2))
    parts = {**found.views, **{f"noise {m}": X for m, X in enumerate(noise)}}
    family = kernels.views(kernels.gaussians("mean"), parts)
    return family.fit(parts).grams(storage="full")


def three(grams: GramStack, p: float, C: float) -> Problem:
    """Three classes of one size, in the order of the toy."""
    y = np.repeat([0, 1, 2], grams.n // 3)
    return Problem(grams, y, "multiclass_hinge", BlockNorm(p), C, bias=False)


@lru_cache(maxsize=8)
def views(scale: Scale, n: int, seed: int = 0) -> Task:
    """Six views of digits; at tiny the quadrants of smaller ones."""
    if scale.mode == "tiny":
        return digits(n, seed)
    train, test = _split(data.load("mfeat"), n, 1000, seed)
    family = kernels.views(kernels.gaussians("mean"), train.views)
    return _task("mfeat", family, train, test)


def digits(n: int, seed: int = 0) -> Task:
    """8 × 8 digits, a Gaussian on each quadrant."""
    train, test = _split(data.load("digits"), n, 400, seed)
    family = kernels.views(kernels.gaussians("mean"), quadrants(8))
    return _task("digits", family, train, test)


@lru_cache(maxsize=8)
def pen(scale: Scale, n: int, seed: int = 0) -> Task:
    """The way of a pen, and pictures of it."""
    if scale.mode == "tiny":
        return digits(n, seed)
    found = data.load("pendigits")
    order = np.random.default_rng(seed).permutation(len(found.y))[: n + 1000]
    way = found.X[order]
    drawn = {"dyn": way, **{f"sta{s}": pictures(way, s) for s in (4, 8, 16)}}
    some = data.Dataset("pendigits", way, found.y[order], drawn, "classes")
    train, test = _split(some, n, 1000, seed)
    family = kernels.views(kernels.gaussians("mean"), drawn)
    return _task("pendigits", family, train, test)


def pictures(way: Array, side: int, between: int = 20) -> Array:
    """Eight points (x, y) in [0, 100]² joined by lines: ink in side × side pixels."""
    x, y = way[:, 0::2], way[:, 1::2]
    part = np.arange(between)[:, None, None] / between

    def along(a: Array) -> Array:
        inner = (1 - part) * a[:, :-1] + part * a[:, 1:]
        return np.concatenate([inner.transpose(1, 2, 0).reshape(len(a), -1), a], axis=1)

    column, row = (np.minimum(along(a) * side // 100.01, side - 1) for a in (x, y))
    pixel = (side * row + column).astype(int)
    ink = np.zeros((len(way), side * side))
    np.put_along_axis(ink, pixel, 1.0, axis=1)
    return ink


def _balanced(
    found: data.Dataset, n: int, tests: int, seed: int
) -> tuple[data.Dataset, data.Dataset]:
    """As many training samples of each class, n in all or a few less, and the rest."""
    order = np.random.default_rng(seed).permutation(len(found.y))
    classes = np.unique(found.y)
    each = [order[found.y[order] == c][: n // len(classes)] for c in classes]
    chosen = np.sort(np.concatenate(each))
    rest = np.setdiff1d(order, chosen, assume_unique=True)[:tests]
    train, test = (
        data.Dataset(found.name, found.X[i], found.y[i], {}, "classes")
        for i in (chosen, np.sort(rest))
    )
    return train.standardized(), test.standardized(by=train)


@lru_cache(maxsize=2)
def many(scale: Scale, n: int, F: int = 39, seed: int = 0) -> Task:
    """Many classes and many kernels, good ones and bad ones."""
    name = "digits" if scale.mode == "tiny" else "letter"
    tests = 400 if scale.mode == "tiny" else 1000
    train, test = _balanced(data.load(name), n, tests, seed)
    return _task(name, kernels.subset_gaussians(F), train, test)


@lru_cache(maxsize=2)
def images(scale: Scale, n: int, seed: int = 0) -> Task:
    """Four quadrants of an image × (linear, cubic, Gaussian), unit diagonals.

    Grey values go from 0.1 to 1.1: a quadrant that is all 0 has no place on the sphere.
    """
    tiny = scale.mode == "tiny"
    found = data.load("digits" if tiny else "mnist5k")
    side, tests = (8, 400) if tiny else (28, 1000)
    train, test = _parted(found, n, tests, seed)
    top = float(np.max(found.X))
    scaled = [
        data.Dataset(d.name, 0.1 + d.X / top, d.y, {}, "classes") for d in (train, test)
    ]
    kinds = kernels.linear() + kernels.polynomials([3]) + kernels.gaussians("mean")
    family = kernels.views(kinds, quadrants(side))
    return _task(found.name, family, scaled[0], scaled[1], normalize="spherical")
