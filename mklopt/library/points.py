"""Where the points of a library problem come from: real data sets, and generators.

A source is called and returns X (n, d) and y, all of it on a dyadic grid. It prints as
its declaration. Real sets are standardized and then rounded to multiples of 2^-10, so
that sums over samples, whose order differs by machine, leave no trace. Generators:

    twonorm, ringnorm   Breiman's, on the grid: y = ±1, x ~ N(ya, I); N(0, 4I), N(a, I)
    sparse_signal       Kloft's toy: x ~ N(y ρ θ/‖θ‖, I), a fraction ν of θ is zero
    waveform            Breiman's three classes in 21 features
    three_views         Orabona's: each view tells one class from the two others
    polynomial          y = Σ_j β_j x_j + x_0x_1 + noise, few β_j are not zero
    counts              binary features, each present in few samples, like words
    outliers            a cloud and a few points far away, for one-class losses

References: Breiman (1996); Kloft et al. (2011); Orabona et al. (2012).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..data import load
from ..util.arrays import Array
from .draws import Draws, on_grid

Points = tuple[Array, Array]


@dataclass(frozen=True)
class Real:
    """Samples of a data set that `mklopt.data.load` knows, standardized on all of it.

    n: so many samples, drawn; None takes all, in the order of the set
    classes: only these, the first is −1 and the second +1; one class alone is all +1
    repeat: so many copies of each sample
    """

    name: str
    n: int | None = None
    seed: int = 0
    classes: tuple[int, ...] = ()
    repeat: int = 1

    def __call__(self) -> Points:
        """X and y."""
        whole = load(self.name)
        X, y = on_grid(whole.standardized().X), whole.y
        if whole.kind == "real":
            y = on_grid((y - y.mean()) / y.std())
        if self.classes:
            X, y = self._of_classes(X, y)
        if self.n is not None:
            some = np.sort(Draws(self.seed).order(len(y))[: self.n])
            X, y = X[some], y[some]
        return np.repeat(X, self.repeat, axis=0), np.repeat(y, self.repeat)

    def _of_classes(self, X: Array, y: Array) -> Points:
        kept = np.isin(y, self.classes)
        if len(self.classes) == 1:
            return X[kept], np.ones(int(kept.sum()))
        return X[kept], np.where(y[kept] == self.classes[-1], 1.0, -1.0)


@dataclass(frozen=True)
class Generated:
    """Points that a generator of this module draws.

    make: the name of the generator
    """

    make: str
    n: int
    seed: int = 0
    d: int = 20
    noise: float = 1.0
    few: int = 0  # samples of the rarer class, features that count, outliers

    def __call__(self) -> Points:
        """X and y."""
        return GENERATORS[self.make](self, Draws(self.seed))


def _labels(how: Generated, draws: Draws) -> Array:
    """±1, balanced, or with few of +1."""
    if not how.few:
        return draws.signs(how.n)
    return np.where(draws.order(how.n) < how.few, 1.0, -1.0)


def _twonorm(how: Generated, draws: Draws) -> Points:
    y, a = _labels(how, draws), on_grid(2 / np.sqrt(how.d))
    return draws.normal(how.n, how.d) + a * y[:, None], y


def _ringnorm(how: Generated, draws: Draws) -> Points:
    y, a = _labels(how, draws), on_grid(2 / np.sqrt(how.d))
    Z = draws.normal(how.n, how.d)
    return np.where(y[:, None] > 0, 2 * Z, Z + a), y


def _sparse_signal(how: Generated, draws: Draws) -> Points:
    y, rho = draws.signs(how.n), on_grid(1.75 / np.sqrt(how.few))
    X = draws.normal(how.n, how.d)
    X[:, : how.few] += rho * y[:, None]
    return X, y


def _waveform(how: Generated, draws: Draws) -> Points:
    y, u = draws.below(3, how.n), draws.below(1024, how.n, 1) / 1024.0
    i, peaks = np.arange(1, 22), np.array([[7], [15], [11]])
    h = np.maximum(6 - np.abs(i - peaks), 0)
    j, k = np.array([[0, 1], [0, 2], [1, 2]])[y].T
    return u * h[j] + (1 - u) * h[k] + draws.normal(how.n, 21), y


def _three_views(how: Generated, draws: Draws) -> Points:
    """Features 2m and 2m + 1 are view m; noise is the distance of the means."""
    y = draws.below(3, how.n)
    apart = [np.where(y == c, how.noise, 0.0) for c in (2, 0, 1)]
    means = [np.column_stack([mean, 0 * mean]) for mean in apart]
    means.append(np.array([[0, 0], [2, 0], [1, 2]])[y] * how.noise)
    return np.hstack(means) + draws.normal(how.n, 8), y


def _polynomial(how: Generated, draws: Draws) -> Points:
    X, beta = draws.normal(how.n, how.d), draws.normal(how.few)
    f = X[:, : how.few] @ beta + X[:, 0] * X[:, 1]
    return X, on_grid(f + on_grid(how.noise) * draws.normal(how.n))


def _counts(how: Generated, draws: Draws) -> Points:
    """A feature is present in 3 % of the samples, in 12 % where it tells y."""
    y = draws.signs(how.n)
    telling = (np.arange(how.d) < how.few)[None] & (y[:, None] > 0)
    limit = np.where(telling, 31, 8)
    return (draws.below(256, how.n, how.d) < limit).astype(float), y


def _outliers(how: Generated, draws: Draws) -> Points:
    far = draws.order(how.n) < how.few
    X = draws.normal(how.n, how.d)
    return np.where(far[:, None], 4 * X, X + 1), np.ones(how.n)


GENERATORS: dict[str, Callable[[Generated, Draws], Points]] = {
    "twonorm": _twonorm,
    "ringnorm": _ringnorm,
    "sparse_signal": _sparse_signal,
    "waveform": _waveform,
    "three_views": _three_views,
    "polynomial": _polynomial,
    "counts": _counts,
    "outliers": _outliers,
}
