"""Kernel families, normalizations fitted on training data, alignment.

A family is a description; on data it becomes M kernels, computed one at a time:

    family = kernels.rakotomamonjy() + kernels.constant()
    fitted = family.fit(X, normalize="unit_trace")      # names, len, iteration
    grams, test = fitted.grams(), fitted.cross(X_test)  # a stack, and (M, n_test, n)

    gaussian(σ)     exp(−‖x − z‖² / 2σ²)       σ = "mean": 2σ² is the mean ‖x_i − x_j‖²
    polynomial(p)   (⟨x, z⟩ + c)^p             linear: p = 1, c = 0; constant: 1
    from_distances  exp(−d / mean d)           means are over training pairs i ≠ j

Normalizations, with the statistics of the n training points, in the order given:

    multiplicative  k / (1/n Σ_i k(x_i, x_i) − 1/n² Σ_ij k(x_i, x_j))    variance 1
    spherical       k(x, z) / √(k(x, x) k(z, z))                         unit diagonal
    unit_trace      k / Σ_i k(x_i, x_i)
    centre          ⟨ψ(x) − ψ̄, ψ(z) − ψ̄⟩ with ψ̄ = 1/n Σ_i ψ(x_i)         zero row sums

Kernels are normalized when they are computed: a stack costs one evaluation of each.

Alignment: A(K, L) = ⟨K, L⟩ / (‖K‖ ‖L‖) in the Frobenius product; centred, of HKH and
HLH with H = I − 11ᵀ/n. The target is L = yyᵀ.

References: Rakotomamonjy et al. (2008), SimpleMKL; Suzuki and Tomioka (2009), sections
5.1 and 5.2; Kloft et al. (2011), eqs. (25) and (26); Orabona et al. (2012), section
5.1; Cortes et al. (2012), centred alignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import real_array

if TYPE_CHECKING:
    from .grams import GramStack

Array = np.ndarray
Blocks = dict[str | int, Array]  # the views of X; a plain X is the one view ""
Sizes = Mapping[str | int, int]  # and their numbers of features
Steps = str | Sequence[str] | None
TINY = 1e-13  # what cancellation leaves of a number that should be zero, relatively
SLAB = 2**22  # how many numbers the alignments hold at a time (32 MB)


# ---- kernel functions of a base t, which neighbours on the same features share ------


@dataclass(frozen=True)
class _Gaussian:
    """exp(−t/scale) with t = ‖x − z‖²."""

    scale: float | None  # None: the mean of t over training pairs

    def base(self, A: Array, B: Array) -> Array:
        from sklearn.metrics import pairwise_distances

        # Sums of squared differences: nothing cancels, symmetric, zero diagonal.
        return np.asarray(pairwise_distances(A, B, metric="sqeuclidean"))

    def diagonal(self, A: Array) -> Array:
        return np.zeros(len(A))

    def __call__(self, t: Array, mean: float) -> Array:
        with np.errstate(over="ignore"):
            K = t / -(self.scale or mean or 1.0)  # mean 0: all points coincide, k = 1
        return np.exp(K, out=K)


class _Given(_Gaussian):
    """exp(−t/scale) with distances t that are given."""

    def base(self, A: Array, B: Array) -> Array:
        return A


@dataclass(frozen=True)
class _Power:
    """(t + offset)^degree with t = ⟨x, z⟩; the constant is that of no features."""

    degree: int
    offset: float

    def base(self, A: Array, B: Array) -> Array:
        return np.asarray(A @ B.T)

    def diagonal(self, A: Array) -> Array:
        return np.einsum("ij,ij->i", A, A)

    def __call__(self, t: Array, mean: float) -> Array:
        factor = t + self.offset
        K = factor.copy()
        for _ in range(self.degree - 1):
            K *= factor
        return K


@dataclass(frozen=True)
class _Kernel:
    name: str
    rule: _Gaussian | _Power
    columns: tuple[int, ...] | None = None  # None: all of them
    view: str | int = ""

    def of(self, blocks: Blocks) -> Array:
        X = blocks[self.view]
        return X if self.columns is None else X[:, self.columns]


# ---- families -----------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """A description of kernels, immutable; families add with +."""

    parts: tuple[_OnFeatures | _Constant | _Subsets | _View, ...]

    def __add__(self, other: Family) -> Family:
        if not isinstance(other, Family):
            return NotImplemented
        return Family(self.parts + other.parts)

    def expand(self, sizes: Sizes) -> list[_Kernel]:
        return [kernel for part in self.parts for kernel in part.expand(sizes)]

    def fit(self, X: Any, normalize: Steps = None) -> FittedKernels:
        """The kernels of this family on the rows of X, normalized on them.

        X: (n, d), or a list or dict of such arrays for kernels.views
        normalize: "multiplicative", "spherical", "unit_trace", "centre", a sequence of
            these, applied in order, or None
        """
        blocks = _blocks(X, "X")
        return FittedKernels(self.expand(_sizes(blocks)), blocks, normalize)


@dataclass(frozen=True)
class _OnFeatures:
    """Rules on all features at once, on each single one, or on both."""

    rules: tuple[tuple[str, _Gaussian | _Power], ...]
    on: str

    def expand(self, sizes: Sizes) -> list[_Kernel]:
        d = _one_view(sizes)
        places: list[tuple[str, tuple[int, ...] | None]] = []
        if self.on in ("all", "both"):
            places.append(("", None))
        if self.on in ("single", "both"):
            places += [(f" on x{j}", (j,)) for j in range(d)]
        rules = self.rules
        return [_Kernel(name + at, r, c) for at, c in places for name, r in rules]


@dataclass(frozen=True)
class _Constant:
    def expand(self, sizes: Sizes) -> list[_Kernel]:
        return [_Kernel("constant", _Power(1, 1.0), (), next(iter(sizes)))]


@dataclass(frozen=True)
class _Subsets:
    M: int
    seed: int

    def expand(self, sizes: Sizes) -> list[_Kernel]:
        d, kernels = _one_view(sizes), []
        rng = np.random.default_rng(self.seed)
        for m in range(self.M):
            size = int(rng.integers(1, d + 1))
            columns = np.sort(rng.permutation(d)[:size]).tolist()
            width = 5 * float(rng.chisquare(1)) + 0.1
            name = f"subset {m}: gaussian({width:.4g}) on {size} features"
            kernels.append(_Kernel(name, _Gaussian(2 * width**2), tuple(columns)))
        return kernels


@dataclass(frozen=True)
class _View:
    """A family on one view of X, or on some of the columns of a plain X."""

    family: Family
    name: str
    at: str | int | tuple[int, ...]

    def expand(self, sizes: Sizes) -> list[_Kernel]:
        some = isinstance(self.at, tuple)  # columns; otherwise a view as a whole
        view: Any = "" if some else self.at
        d = _one_view(sizes) if some else sizes.get(view, 0)
        group: Any = self.at if some else range(d)
        if not group or not 0 <= min(group) <= max(group) < d:
            raise ValueError(
                f"{self.name!r} at {self.at!r} is not in X, whose views have these "
                f"numbers of columns: {dict(sizes)}; columns are counted from 0"
            )
        kernels = []
        for k in self.family.expand({"": len(group)}):
            inside = range(len(group)) if k.columns is None else k.columns
            columns = tuple(group[j] for j in inside) if some else k.columns
            kernels.append(_Kernel(f"{self.name}: {k.name}", k.rule, columns, view))
        return kernels


def gaussians(widths: Any, on: str = "all") -> Family:
    """exp(−‖x − z‖²/2σ²) for every width σ; "mean": 2σ² is the mean ‖x_i − x_j‖².

    on: "all" features at once, each "single" one, or "both"
    """
    rules: list[tuple[str, _Gaussian]] = []
    for width in [widths] if np.ndim(widths) == 0 else widths:
        if isinstance(width, str) and width == "mean":
            rules.append(("gaussian(mean)", _Gaussian(None)))
            continue
        sigma = real_array(width, "a width", "a positive number or 'mean'")
        if sigma.ndim or not (sigma > 0 and 0 < 2 * sigma**2 < np.inf):
            raise ValueError(f"a width is {width}; give positive numbers or 'mean'")
        rules.append((f"gaussian({sigma:g})", _Gaussian(2 * float(sigma) ** 2)))
    return _on_features(rules, on)


def polynomials(degrees: Any, on: str = "all", offset: float = 1.0) -> Family:
    """(⟨x, z⟩ + offset)^degree for every degree; `on` as for gaussians."""
    if not 0 <= offset < np.inf:
        raise ValueError(f"offset = {offset}; give a number that is not negative")
    degrees = [degrees] if np.ndim(degrees) == 0 else degrees
    powers = [_Power(_count(p, "a degree", 1), float(offset)) for p in degrees]
    return _on_features([(f"polynomial({p.degree})", p) for p in powers], on)


def linear(on: str = "all") -> Family:
    """⟨x, z⟩; `on` as for gaussians."""
    return _on_features([("linear", _Power(1, 0.0))], on)


def constant() -> Family:
    """k = 1: a bias that is penalized like any other weight."""
    return Family((_Constant(),))


def rakotomamonjy(
    widths: Any = (0.5, 1, 2, 5, 7, 10, 12, 15, 17, 20), degrees: Any = (1, 2, 3)
) -> Family:
    """SimpleMKL's recipe, 13 kernels on all features and on each one: 13 (d + 1).

    Ten Gaussians and polynomials of degree 1 to 3. The papers give no widths: these are
    the ones of the authors' published scripts, where features are standardized on the
    training data and kernels normalized to unit trace.
    """
    return gaussians(widths, "both") + polynomials(degrees, "both")


def suzuki() -> Family:
    """SpicyMKL's recipe, 27 kernels on all features and on each one: 27 (d + 1).

    Gaussians of the 24 widths 0.1, 0.25, 0.5, 0.75, 1, 2, …, 20 and polynomials of
    degree 1 to 3 (section 5.1), there normalized to unit trace.
    """
    return rakotomamonjy((0.1, 0.25, 0.5, 0.75, *range(1, 21)))


def kloft(M: int = 50) -> Family:
    """Kloft's scaling experiments: Gaussians with 2σ² = 1.2^0, …, 1.2^(M−1)."""
    return gaussians([np.sqrt(1.2**m / 2) for m in range(_count(M, "M", 1))])


def subset_gaussians(M: int, seed: int = 0) -> Family:
    """M Gaussians on random subsets of features, σ = 5χ² + 0.1 (Suzuki, section 5.2).

    The paper leaves open how subsets and χ² are drawn: here the size of a subset is
    uniform on 1, …, d, the subset uniform among those of its size, and χ² has one
    degree of freedom. The first kernels of a larger M are those of a smaller one.
    """
    return Family((_Subsets(_count(M, "M", 1), _count(seed, "seed", 0)),))


def views(families: Family | Iterable[Family], at: Any) -> Family:
    """Families on several views of the same samples, one for all or one per view.

    at: the views of an X that is a list or dict of arrays (that dict, its keys, or the
        positions in the list), or lists of columns of an X that is one array

    views(gaussians("mean"), data.views).fit(data.views)
    views([linear(), gaussians(1)], {"colour": range(10), "shape": [10, 12]}).fit(X)
    """
    places: list[tuple[str, Any]] = []
    for i, key in enumerate(at):
        given = at[key] if isinstance(at, Mapping) else key
        name = key if isinstance(key, str) else f"view {i}"
        columns = np.ndim(given) == 1
        places.append((name, tuple(int(j) for j in given) if columns else key))
    each = [families] * len(places) if isinstance(families, Family) else [*families]
    if not each or len(each) != len(places) or not isinstance(each[0], Family):
        raise ValueError(
            f"{len(each)} families were given for {len(places)} views; give one for "
            "all of them, or a list with one for each"
        )
    return Family(tuple(_View(f, *place) for f, place in zip(each, places)))


# ---- normalizations -----------------------------------------------------------------
# They work in place on K (r × n) and on squares, the k(x, x) of its r rows, and return
# what they learned; `learned` is None where the rows are the training points.


def _divided_by(size: Callable[[Array, Array], float], otherwise: str) -> Any:
    def normalize(K: Array, squares: Array, learned: Any, who: str) -> Any:
        if learned is None:
            learned = size(K, squares)
            if learned <= TINY * squares.mean():
                raise ValueError(f"{who} {otherwise}")
        K /= learned
        squares /= learned
        return learned

    return normalize


def _spherical(K: Array, squares: Array, learned: Any, who: str) -> Any:
    if np.any(squares <= 0):
        raise ValueError(
            f"{who} is zero at point {np.argmin(squares)}, so it has no place on "
            "the sphere; drop the point, or choose unit_trace"
        )
    roots = np.sqrt(squares)
    learned = roots if learned is None else learned
    K /= np.outer(roots, learned)
    squares[:] = 1.0
    return learned


def _centre(K: Array, squares: Array, learned: Any, who: str) -> Any:
    rows = K.mean(axis=1)
    training, learned = learned is None, rows if learned is None else learned
    mean = learned.mean()
    K -= rows[:, None] + learned
    K += mean
    rounding = TINY * (squares + abs(mean))
    squares += mean - 2 * rows
    squares[squares <= rounding] = 0.0
    if training and not np.any(squares):
        raise ValueError(
            f"{who} is the same at all points, so that centring leaves nothing of it; "
            "drop it, or the constant feature it is made of"
        )
    return learned


_NORMALIZATIONS: dict[str, Callable[[Array, Array, Any, str], Any]] = {
    "multiplicative": _divided_by(
        lambda K, squares: squares.mean() - K.mean(),
        "is the same at all points, so its variance is 0 and cannot be made 1; drop "
        "constant features, or choose unit_trace",
    ),
    "spherical": _spherical,
    "unit_trace": _divided_by(
        lambda K, squares: squares.sum(),
        "is zero, so it cannot have unit trace; drop it",
    ),
    "centre": _centre,
}


# ---- kernels on data ----------------------------------------------------------------


class FittedKernels:
    """M kernels on n training points; iterating yields their (n, n) matrices."""

    def __init__(self, kernels: list[_Kernel], blocks: Blocks, normalize: Steps):
        steps = (normalize,) if isinstance(normalize, str) else tuple(normalize or ())
        if not set(steps) <= set(_NORMALIZATIONS):
            raise ValueError(
                f"normalize = {normalize!r} is not known; choose from "
                f"{', '.join(_NORMALIZATIONS)}, a sequence of these, or None"
            )
        self.names = [kernel.name for kernel in kernels]
        self.M, self.n = len(kernels), len(next(iter(blocks.values())))
        self.normalize = steps
        self._kernels, self._blocks = kernels, blocks
        self._learned: dict[int, list] = {}  # of each kernel that has been computed

    def __len__(self) -> int:
        return self.M

    def __repr__(self) -> str:
        how = "".join(f", {step}" for step in self.normalize)
        return f"FittedKernels(M={self.M}, n={self.n}{how})"

    def __iter__(self) -> Iterator[Array]:
        return self._matrices(self._blocks)

    def grams(self, **options: Any) -> GramStack:
        """GramStack(self, **options): what a Problem is made of."""
        from .grams import GramStack

        return GramStack(self, **options)

    def cross(self, X_new: Any) -> Array:
        """(M, n_new, n) kernels of new with training points, normalized as these."""
        blocks = _blocks(X_new, "X_new")
        given, known = _sizes(blocks), _sizes(self._blocks)
        if given != known:
            raise ValueError(
                f"X_new has columns {list(given.values())} in its views {list(given)}; "
                f"the training data have {list(known.values())} in {list(known)}"
            )
        if len(self._learned) < self.M:
            for _ in self:
                pass
        result = np.empty((self.M, len(blocks[next(iter(blocks))]), self.n))
        for m, K in enumerate(self._matrices(blocks)):
            result[m] = K
        return result

    def _matrices(self, blocks: Blocks) -> Iterator[Array]:
        """Training and new points go the same way; the former are what is learned."""
        last: Any = None
        training = blocks is self._blocks
        for m, kernel in enumerate(self._kernels):
            rule, key = kernel.rule, (type(kernel.rule), kernel.view, kernel.columns)
            if key != last:
                old = kernel.of(self._blocks)
                new = old if training else kernel.of(blocks)
                t, diagonal, last = rule.base(new, old), rule.diagonal(new), key
                mean = (t.sum() - diagonal.sum()) / max(t.size - len(t), 1)
            fresh = [mean, *[None] * len(self.normalize)]
            learned = fresh if training else self._learned[m]
            K, squares = rule(t, learned[0]), rule(diagonal, learned[0])
            for i, step in enumerate(self.normalize, 1):
                who = f"kernel {m}, {kernel.name},"
                learned[i] = _NORMALIZATIONS[step](K, squares, learned[i], who)
            if training:
                np.fill_diagonal(K, squares)
                self._learned[m] = learned
            yield K


def from_distances(D: Any, normalize: Steps = None) -> FittedKernels:
    """exp(−D_m / mean D_m) from (M, n, n) distances, or a list or dict of matrices.

    `cross` takes the (M, n_new, n) distances of new to training points; the means stay
    those of the training pairs. Such a kernel is positive semi-definite when D_m is
    conditionally negative definite; GramStack.verify_psd tells.
    """
    blocks = _blocks(D, "D")
    for view, t in blocks.items():
        close = 1e-8 * np.max(np.abs(t))
        square = t.shape == (len(t), len(t)) and np.min(t) >= 0
        if not square or np.max(np.abs(t - t.T)) + np.max(np.diag(t)) > close:
            raise ValueError(
                f"D, view {view!r}, is no matrix of distances; expected (n, n), "
                "symmetric, not negative, with a zero diagonal"
            )
        blocks[view] = 0.5 * (t + t.T)
        np.fill_diagonal(blocks[view], 0.0)
    names = [f"exp(−d/mean) of {view if view != '' else 'D'}" for view in blocks]
    kernels = [_Kernel(s, _Given(None), None, view) for s, view in zip(names, blocks)]
    return FittedKernels(kernels, blocks, normalize)


# ---- alignment ----------------------------------------------------------------------


def alignment(grams: Any, centred: bool = True) -> Array:
    """(M, M) alignments of the kernels with each other, of centred ones by default.

    grams: a GramStack, or an (M, n, n) array of symmetric matrices
    """
    stack = _stack(grams)
    products = np.zeros((stack.M, stack.M))
    for _, rows in _slabs(stack, centred):
        flat = rows.reshape(stack.M, -1)
        products += flat @ flat.T
    norms = _norms(np.diag(products), stack.n)
    result = products / np.outer(norms, norms)
    np.fill_diagonal(result, 1.0)
    return result


def target_alignment(grams: Any, y: Any, centred: bool = True) -> Array:
    """(M,) alignments of the kernels with yyᵀ, of centred ones by default.

    y: one number per sample; for classes 0 … k−1 the (n, k) matrix numpy.eye(k)[y]
    """
    stack = _stack(grams)
    Y = real_array(y, "y", "numbers, one or one row per sample")
    if Y.ndim not in (1, 2) or len(Y) != stack.n:
        raise ValueError(
            f"y has shape {Y.shape} but the kernels are {stack.n} × {stack.n}; give "
            "one label, or one row, per sample"
        )
    Y = Y.reshape(stack.n, -1) / (np.max(np.abs(Y)) or 1.0)
    Y = Y - Y.mean(axis=0) if centred else Y
    size = float(np.linalg.norm(Y.T @ Y))
    if not size > TINY * stack.n:
        raise ValueError("y is the same for all samples; give labels that differ")
    dots, squares = np.zeros(stack.M), np.zeros(stack.M)
    for i, rows in _slabs(stack, centred):
        KY = rows.reshape(-1, stack.n) @ Y
        dots += KY.reshape(stack.M, -1) @ Y[i].ravel()
        squares += np.einsum("mij,mij->m", rows, rows)
    return np.asarray(dots / (_norms(squares, stack.n) * size))


def _stack(grams: Any) -> Any:
    if hasattr(grams, "rows"):
        return grams
    K = real_array(grams, "grams", "a GramStack or an (M, n, n) array")
    if K.ndim != 3 or K.shape[1] != K.shape[2] or 0 in K.shape:
        raise ValueError(f"grams has shape {K.shape}; expected (M, n, n)")
    return SimpleNamespace(M=len(K), n=K.shape[1], rows=lambda i: K[:, i])


def _slabs(stack: Any, centred: bool) -> Iterator[tuple[Array, Array]]:
    """Rows i of all kernels, (M, r, n), scaled to a largest entry of 1, and centred.

    Centring comes before the products: the expansion of ⟨HKH, HLH⟩ would cancel.
    """
    size = max(1, SLAB // (stack.M * stack.n))
    parts = np.split(np.arange(stack.n), range(size, stack.n, size))
    top, means = np.zeros(stack.M), np.empty((stack.M, stack.n))
    for i in parts:
        rows = stack.rows(i)
        top = np.maximum(top, np.abs(rows).max(axis=(1, 2)))
        means[:, i] = rows.mean(axis=2)
    top[top == 0] = 1.0
    means /= top[:, None]
    for i in parts:
        rows = stack.rows(i) / top[:, None, None]
        if centred:
            rows -= means[:, i, None] + means[:, None, :]
            rows += means.mean(axis=1)[:, None, None]
        yield i, rows


def _norms(squares: Array, n: int) -> Array:
    norms = np.sqrt(squares)
    if not np.all(norms > TINY * n):
        raise ValueError(
            f"kernel {np.argmin(norms > TINY * n)} is zero, or the same at all points "
            "and so zero when centred, and is aligned with nothing; drop it"
        )
    return norms


# ---- what is given ------------------------------------------------------------------


def _blocks(X: Any, name: str) -> Blocks:
    """X as checked float64 matrices; lists and dicts of arrays have several views."""
    views: dict[Any, Any] = dict(X) if isinstance(X, Mapping) else {"": X}
    listed = isinstance(X, list | tuple) and X
    if getattr(X, "ndim", 0) == 3 or (
        listed and all(getattr(part, "ndim", 0) == 2 for part in X)
    ):
        views = dict(enumerate(X))
    for view, given in views.items():
        who = name if view == "" else f"{name}, view {view!r},"
        block = real_array(given, who, "an (n, d) matrix of numbers")
        if block.ndim != 2 or 0 in block.shape:
            raise ValueError(f"{who} has shape {block.shape}; expected (n, d)")
        if not np.all(np.isfinite(block)):
            raise ValueError(f"{who} has NaN or infinite entries; fill in or drop them")
        views[view] = block
    if len({len(block) for block in views.values()}) != 1:
        rows = {view: len(block) for view, block in views.items()}
        raise ValueError(f"{name} has views with {rows} rows; give each sample in each")
    return views


def _sizes(blocks: Blocks) -> Sizes:
    return {view: block.shape[1] for view, block in blocks.items()}


def _one_view(sizes: Sizes) -> int:
    if "" not in sizes:
        raise ValueError(
            f"X has the views {list(sizes)} but the family is for one array; say with "
            "kernels.views which views it is meant for"
        )
    return sizes[""]


def _count(given: Any, name: str, least: int) -> int:
    if not isinstance(given, int | np.integer) or given < least:
        raise ValueError(f"{name} is {given!r}; give a whole number from {least} on")
    return int(given)


def _on_features(rules: Sequence[tuple[str, Any]], on: str) -> Family:
    if not rules or on not in ("all", "single", "both"):
        raise ValueError(
            f"{len(rules)} kernels were asked for on = {on!r}; give at least one, and "
            "on = 'all', 'single' or 'both'"
        )
    return Family((_OnFeatures(tuple(rules), on),))
