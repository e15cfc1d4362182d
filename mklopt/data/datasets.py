"""Data sets: drawn from exact distributions, built into scikit-learn, or from files.

    train, test = data.load("pima").split(0.7, seed=1)
    train, test = train.standardized(), test.standardized(by=train)
    toy = data.load("kloft_toy", n=50, nu=0.92, seed=3)

twonorm      y = ±1 with probability ½, x ~ N(y a 1, I) in R^20 with a = 2/√20
             Bayes error Φ(−2) = 2.28 %
ringnorm     y = +1: x ~ N(0, 4 I), y = −1: x ~ N(a 1, I) in R^20 with a = 2/√20
             Bayes error 1.25 %; Breiman says 1.3 %, and a = 1/√20, which is also
             found in print, would give 1.50 %
waveform     x = u h_j + (1 − u) h_k + N(0, I) in R^21 with u uniform on (0, 1) and the
             triangles h_m(i) = max(6 − |i − c_m|, 0), i = 1 … 21, c = (7, 15, 11); the
             classes 0, 1, 2, equally likely, have (j, k) = (1, 2), (1, 3), (2, 3)
kloft_toy    balanced y = ±1, x ~ N(y ρ θ/‖θ‖, I) in R^d, θ binary with (1 − ν) d ones
             Bayes error Φ(−ρ), whatever ν
orabona_toy  three classes and four views, see the function

UCI sets are read from the folder MKLOPT_DATA (<name>.npz with X and y), or fetched
from OpenML and cached by scikit-learn. "liver" has the labels that the papers use,
although its donors meant that column as the split into training and test samples.

References: Breiman (1996), "Bias, variance, and arcing classifiers"; Breiman et al.
(1984), CART; Kloft et al. (2011), section 5.1; Orabona et al. (2012), section 5.2.
"""

import importlib.util
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..util.archives import read_arrays
from ..util.arrays import Array, finite_matrix, real_array
from ..util.checks import check_choice, check_whole, real_number, short, unknown
from ..util.extras import need
from .openml import Table, fetch

KINDS: dict[str, Callable[[Array], Array]] = {
    "binary": lambda y: np.abs(y) == 1,
    "classes": lambda y: (y == np.rint(y)) & (y >= 0),
    "real": np.isfinite,
}


class DataNotFound(LookupError):
    """A data set is not known, or neither MKLOPT_DATA nor OpenML has it."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples and labels, checked and read-only.

    Parameters
    ----------
    name : str
    X : array (n, d)
        One row of features per sample.
    y : array (n,)
        One label per sample.
    views : dict of arrays (n, d_v)
        Other feature matrices of the same samples, by name; empty for most sets.
    kind : {"binary", "classes", "real"}
        Labels −1/+1, labels 0 … k−1, or any numbers.
    source : str
        Where the data come from.

    Raises
    ------
    ValueError
        If labels are not of this kind, or a matrix is not finite with n rows.

    Examples
    --------
    >>> Dataset("mine", [[1.0, 2.0], [3.0, 4.0]], [1, -1], source="a file")
    Dataset(mine: 2 × 2, binary, a file)
    """

    name: str
    X: Array
    y: Array
    views: dict[str, Array] = field(default_factory=dict)
    kind: str = "binary"
    source: str = ""

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", KINDS)
        if not isinstance(self.name, str):
            raise ValueError(f"name = {short(self.name)}; give text")
        if not isinstance(self.views, Mapping):
            raise ValueError(f"views = {short(self.views)}; give a dict of matrices")
        y = real_array(self.y, f"y of {self.name}", "one number per sample")
        if y.ndim != 1 or not np.all(KINDS[self.kind](y)):
            raise ValueError(
                f"y of {self.name} has shape {y.shape} and values such as "
                f"{np.unique(y)[:3]}; expected {self.kind} labels, one per sample"
            )
        y = y.astype(int) if self.kind == "classes" else y
        y.flags.writeable = False
        X = _matrix(self.X, f"X of {self.name}", len(y))
        views = {
            v: _matrix(A, f"{v} of {self.name}", len(y)) for v, A in self.views.items()
        }
        for part, value in {"X": X, "y": y, "views": views}.items():
            object.__setattr__(self, part, value)

    def __repr__(self) -> str:
        n, d = self.X.shape
        return f"Dataset({self.name}: {n} × {d}, {self.kind}, {self.source})"

    def standardized(self, by: Self | None = None) -> Self:
        """The same samples with features of mean 0 and variance 1; constants become 0.

        Parameters
        ----------
        by : Dataset, optional
            The set, such as the training set, whose means and variances are used; this
            set by default.

        Returns
        -------
        Dataset

        Raises
        ------
        ValueError
            If `by` has other features.
        """
        by = self if by is None else by
        if not isinstance(by, Dataset):
            raise ValueError(f"by = {short(by)}; give a Dataset")
        if by.X.shape[1] != self.X.shape[1] or by.views.keys() != self.views.keys():
            raise ValueError(f"{by!r} has other features than {self!r}")

        def scaled(A: Array, B: Array) -> Array:
            varies = np.ptp(B, axis=0) > 0
            spread = np.where(varies, B.std(axis=0), 1.0)
            return np.where(varies, (A - B.mean(axis=0)) / spread, 0.0)

        views = {v: scaled(part, by.views[v]) for v, part in self.views.items()}
        return replace(self, X=scaled(self.X, by.X), views=views)

    def split(self, size: float | int, seed: int = 0) -> tuple[Self, Self]:
        """A random split into training and test samples.

        As in the papers, classes are not balanced.

        Parameters
        ----------
        size : float or int
            The fraction, or the number, of training samples.
        seed : int

        Returns
        -------
        train, test : Dataset

        Raises
        ------
        ValueError
            If one of the two would be empty.
        """
        n = len(self.y)
        whole = isinstance(size, int | np.integer)
        share = n + 1 if whole else real_number(size, "size", "a number of samples")
        k = int(size) if whole else round(min(max(share, 0.0), 1.0) * n)
        if not 0 < k < n:
            raise ValueError(
                f"size = {short(size)} of {n} samples leaves one side of the split "
                "empty; give a fraction between 0 and 1, or a number of samples"
            )
        order = _rng(seed).permutation(n)
        return self._rows(np.sort(order[:k])), self._rows(np.sort(order[k:]))

    def _rows(self, i: Array) -> Self:
        views = {v: part[i] for v, part in self.views.items()}
        return replace(self, X=self.X[i], y=self.y[i], views=views)


def _matrix(given: Any, who: str, n: int) -> Array:
    A = finite_matrix(given, who, n)
    A.flags.writeable = False
    return A


def names() -> list[str]:
    """The names of all data sets that `load` knows.

    Returns
    -------
    list of str
        In alphabetical order.
    """
    return sorted([*_GENERATORS, *_BUILT_IN, *_TABLES])


def one_line(name: str) -> str:
    """What a data set is and where it comes from."""
    if name in _GENERATORS:
        return "drawn from an exact distribution; takes n and seed"
    if name in _BUILT_IN:
        return f"{_BUILT_IN[name][1]} labels, comes with scikit-learn"
    table = _TABLES[name]
    rows, columns = table.shape
    return f"{rows} × {columns}, {table.kind} labels, MKLOPT_DATA or OpenML"


def load(name: str, **options: Any) -> Dataset:
    """The data set of this name.

    Parameters
    ----------
    name : str
        One of `names()`.
    **options
        Of a set that is drawn at random, such as n and seed. part="test": the test
        samples of a set with an official split, such as mnist and a9a.

    Returns
    -------
    Dataset

    Raises
    ------
    DataNotFound
        If the name is not known, or neither MKLOPT_DATA nor OpenML has the data.
    ValueError
        If the set does not have such an option, or its file is broken.

    Examples
    --------
    >>> load("twonorm", n=100, seed=3)
    Dataset(twonorm: 100 × 20, binary, Breiman (1996), seed 3)
    """
    if not isinstance(name, str):
        raise ValueError(f"name = {short(name)}; give the name of a data set as text")
    if name not in names():
        raise DataNotFound(unknown("data set", name, names(), "or a file .npz or .npy"))
    split = name in _TABLES and _TABLES[name].test  # it has an official split
    stored: Callable = partial(_stored, name) if split else lambda: _stored(name)
    make: Callable[..., Dataset] = _GENERATORS.get(name, stored)
    takes = list(inspect.signature(make).parameters)
    if not set(options) <= set(takes):
        wrong, may = sorted(set(options) - set(takes)), ", ".join(takes) or "nothing"
        raise ValueError(f"{name} has no option {', '.join(wrong)}; it takes {may}")
    return make(**options)


# ---- exact distributions ------------------------------------------------------------


def _rng(seed: Any) -> np.random.Generator:
    return np.random.default_rng(check_whole(seed, "seed", 0, 2**64))


def _twonorm(n: int = 300, seed: int = 0) -> Dataset:
    rng = _rng(seed)
    y = rng.choice([-1.0, 1.0], check_whole(n, "n", 1))
    X = rng.standard_normal((n, 20)) + y[:, None] * 2 / np.sqrt(20)
    return Dataset("twonorm", X, y, source=f"Breiman (1996), seed {seed}")


def _ringnorm(n: int = 300, seed: int = 0) -> Dataset:
    rng = _rng(seed)
    y = rng.choice([-1.0, 1.0], check_whole(n, "n", 1))
    Z, wide = rng.standard_normal((n, 20)), y[:, None] > 0
    X = np.where(wide, 2 * Z, Z + 2 / np.sqrt(20))
    return Dataset("ringnorm", X, y, source=f"Breiman (1996), seed {seed}")


def _waveform(n: int = 300, seed: int = 0) -> Dataset:
    rng = _rng(seed)
    y = rng.integers(0, 3, check_whole(n, "n", 1))
    u = rng.random((n, 1))
    i, peaks = np.arange(1, 22), np.array([[7], [15], [11]])
    h = np.maximum(6 - np.abs(i - peaks), 0)
    j, k = np.array([[0, 1], [0, 2], [1, 2]])[y].T
    X = u * h[j] + (1 - u) * h[k] + rng.standard_normal((n, 21))
    return Dataset("waveform", X, y, kind="classes", source=f"CART, seed {seed}")


def _kloft_toy(
    n: int = 50, nu: float = 0.0, rho: float = 1.75, d: int = 50, seed: int = 0
) -> Dataset:
    """Kloft et al. (2011), section 5.1: a fraction nu of the d features is noise.

    The paper does not say which features carry the signal: here these are the first
    ones, which makes no difference because the noise is isotropic. It does not say
    which values of nu were used either: here (1 − ν) d must be a whole number from 1.
    """
    ones, odd = round((1 - nu) * d), check_whole(n, "n", 1) % 2
    if odd or not 1 <= ones <= d or abs((1 - nu) * d - ones) > 1e-6 * d:
        raise ValueError(
            f"n = {n}, nu = {nu}, d = {d}; a balanced sample has an even n, and "
            "(1 − nu) d must be a whole number of informative features, at least 1"
        )
    theta = (np.arange(d) < ones).astype(float)
    rng = _rng(seed)
    y = rng.permutation(np.repeat([-1.0, 1.0], n // 2))
    X = rng.standard_normal((n, d)) + y[:, None] * rho * theta / np.sqrt(ones)
    source = f"Kloft et al. (2011), nu {nu}, rho {rho}, seed {seed}"
    return Dataset("kloft_toy", X, y, source=source)


def _orabona_toy(n: int = 300, distance: float = 5.0, seed: int = 0) -> Dataset:
    """Orabona et al. (2012), section 5.2: three classes, n/3 samples each, four views.

    Views 1, 2, 3 tell only class 3, 1, 2 from the other two, which are the same there;
    view 4 separates all three. That is all the paper says. Here a view is in R² with
    noise N(0, I). Different means are `distance` apart in views 1 to 3, and are the
    corners of a triangle with sides 2 · distance in view 4: then the exact solutions,
    with gaussians("mean") and C = 6/n, select the kernels that the paper reports. As in
    its figure, samples are in the order of their classes (0, 1, 2 here).
    """
    if check_whole(n, "n", 1) % 3:
        raise ValueError(f"n = {n}; three classes of one size need a multiple of 3")
    rng = _rng(seed)
    y = np.repeat([0, 1, 2], n // 3)
    means = [np.outer(np.arange(3) == c, [1.0, 0.0]) for c in (2, 0, 1)]
    means.append(np.array([[0, 0], [2, 0], [1, np.sqrt(3)]]))
    views = {
        f"view {m}": distance * mean[y] + rng.standard_normal((n, 2))
        for m, mean in enumerate(means, start=1)
    }
    X = np.hstack(list(views.values()))
    source = f"Orabona et al. (2012), distance {distance}, seed {seed}"
    return Dataset("orabona_toy", X, y, views, "classes", source)


_GENERATORS: dict[str, Callable[..., Dataset]] = {
    make.__name__[1:]: make
    for make in (_twonorm, _ringnorm, _waveform, _kloft_toy, _orabona_toy)
}


# ---- stored sets --------------------------------------------------------------------

_BUILT_IN = {  # the loader of scikit-learn, and the kind of labels
    "wdbc": ("load_breast_cancer", "binary"),
    "wine": ("load_wine", "classes"),
    "iris": ("load_iris", "classes"),
    "digits": ("load_digits", "classes"),
    "diabetes": ("load_diabetes", "real"),
}
_FILES = {  # of those that are plain text, by loader
    "load_breast_cancer": "breast_cancer.csv",
    "load_wine": "wine_data.csv",
    "load_iris": "iris.csv",
}
_DIGITS = tuple("0123456789")
_MFEAT = {"fou": 14, "fac": 12, "kar": 16, "pix": 20, "zer": 22, "mor": 18}
_OTHERWISE = "only in another form"
_VIEWS = {  # sets of several views: samples, columns of each view, classes
    "100leaves": (1600, {"margin": 64, "shape": 64, "texture": 64}, 100),
    "3sources": (169, {"bbc": 3560, "guardian": 3631, "reuters": 3068}, 6),
    "msrc-v1": (210, {"centrist": 1302, "cmt": 48, "gist": 512, "hog": 100, "lbp": 256,
                      "sift": 210}, 7),
    "flowers17": (1360, {"colour": 360, "phog": 420, "lbp": 295, "gist": 512,
                         "dsift": 400, "csift": 400, "ksift": 400}, 17),
}  # fmt: skip
_IDA = {  # Rätsch's benchmark, all samples of each set
    "banana": (5300, 2),
    "breast-cancer": (277, 9),
    "flare-solar": (1066, 9),
    "german": (1000, 20),
    "ringnorm": (7400, 20),
    "splice": (3175, 60),
    "titanic": (2201, 3),
    "twonorm": (7400, 20),
}
_TABLES = {
    "liver": Table((345, 6), ("2", "1"), {"": 8}, target="selector"),
    "pima": Table((768, 8), ("tested_negative", "tested_positive"), {"": 37}),
    "ionosphere": Table((351, 34), ("b", "g"), {"": 59}),
    "sonar": Table((208, 60), ("Rock", "Mine"), {"": 40}),
    "breast-w": Table((683, 9), ("benign", "malignant"), {"": 15}),
    "pendigits": Table((10992, 16), _DIGITS, {"": 32}),
    "letter": Table((20000, 16), tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), {"": 6}),
    "splice": Table((3190, 287), ("EI", "IE", "N"), {"": 46}),
    "mfeat": Table((2000, 649), tuple(map(str, range(1, 11))), _MFEAT),
    "wpbc": Table((194, 33), ("N", "R"), not_there="only with the time as target"),
    "german": Table((1000, 24), ("1", "2"), not_there="only with 20 attributes"),
    "a1a": Table((1605, 123), ("-1", "1"), not_there="only as the larger adult set"),
    "mnist5k": Table((5000, 784), _DIGITS, not_there="only as all of MNIST"),
    # In the order and with the values of their sources; OpenML has other versions.
    "covtype": Table((581012, 54), _DIGITS[:7], not_there=_OTHERWISE),
    "mnist": Table((60000, 784), _DIGITS, not_there=_OTHERWISE, test=10000),
    "a8a": Table((22696, 123), ("-1", "1"), not_there=_OTHERWISE),
    "a9a": Table((32561, 123), ("-1", "1"), not_there=_OTHERWISE, test=16281),
    "w7a": Table((24692, 300), ("-1", "1"), not_there=_OTHERWISE, test=25057),
    "w8a": Table((49749, 300), ("-1", "1"), not_there=_OTHERWISE),
    "poker": Table((25010, 10), _DIGITS, not_there=_OTHERWISE),
    "leukemia": Table((38, 7129), ("-1", "1"), not_there=_OTHERWISE, test=34),
    "australian": Table((690, 14), ("-1", "1"), not_there=_OTHERWISE),
    "heart": Table((270, 13), ("-1", "1"), not_there=_OTHERWISE),
    "pendigits-split": Table((7494, 16), _DIGITS, not_there=_OTHERWISE, test=3498),
    **{
        name: Table(
            (n, sum(views.values())),
            tuple(map(str, range(k))),
            dict.fromkeys(views, 0),
            not_there=_OTHERWISE,
        )
        for name, (n, views, k) in _VIEWS.items()
    },
    **{
        f"ida-{name}": Table(shape, ("-1", "1"), not_there=_OTHERWISE)
        for name, shape in _IDA.items()
    },
}


def _stored(name: str, part: str = "train") -> Dataset:
    check_choice(part, "part", ("train", "test"))
    if name in _BUILT_IN:
        return _built_in(name)
    folder, file, table = os.environ.get("MKLOPT_DATA"), f"{name}.npz", _TABLES[name]
    if folder and (path := Path(folder) / file).is_file():
        return _assembled(name, *_from_file(path, table, part), source=file)
    where = (
        f"MKLOPT_DATA = {folder} has no {file}" if folder else "MKLOPT_DATA is not set"
    )
    numbers, why = list(table.ids.values()), f"has it {table.not_there}"
    try:
        if not table.not_there:
            return _assembled(name, *fetch(table), source=f"OpenML {numbers}")
    except (OSError, ValueError) as error:
        why = f"did not give {numbers} ({error}): go online"
    raise DataNotFound(
        f"{name} was not found: {where}, and OpenML {why}; put {file} into a folder "
        f"and set MKLOPT_DATA to it: the arrays X {table.shape} and y"
    )


def _assembled(name: str, parts: dict[str, Array], y: Array, source: str) -> Dataset:
    views = {view: part for view, part in parts.items() if view}
    X = np.hstack(list(parts.values()))
    return Dataset(name, X, y, views, _TABLES[name].kind, source)


def _built_in(name: str) -> Dataset:
    loader, kind = _BUILT_IN[name]
    X, y = _from_scikit_learn(loader)
    y = 1.0 - 2.0 * y if kind == "binary" else y  # malignant is 0 there and +1 here
    return Dataset(name, X, y, kind=kind, source=f"scikit-learn, {loader}")


def _from_scikit_learn(loader: str) -> tuple[Array, Array]:
    """X and y; from its file if it can be found: importing the package takes 1 s."""
    need("sklearn")
    package = importlib.util.find_spec("sklearn")
    home = Path(package.origin).parent if package and package.origin else Path()
    path = home / "datasets" / "data" / _FILES.get(loader, "")
    if path.is_file():
        table = np.loadtxt(path, delimiter=",", skiprows=1)
        return table[:, :-1].copy(), table[:, -1].astype(int)
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, loader)(return_X_y=True)
    return X, y


def _from_file(path: Path, table: Table, part: str) -> tuple[dict[str, Array], Array]:
    end = "_test" if part == "test" else ""
    wanted = [f"{view or 'X'}{end}" for view in (*table.ids, "y")]
    rows, columns = table.shape[0] + table.test, table.shape[1]
    try:
        # Twice the size of the table, and 1 MB for headers and a few more arrays.
        arrays = read_arrays(path, 16 * rows * (columns + 1) + 2**20)
        if not set(wanted) <= set(arrays):
            raise ValueError(f"it has the arrays {', '.join(arrays) or 'none'}")
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} is not a NumPy archive of plain numbers {', '.join(wanted)} "
            f"({error}); write it again with numpy.savez"
        ) from error
    return dict(zip(table.ids, map(arrays.__getitem__, wanted))), arrays[wanted[-1]]
