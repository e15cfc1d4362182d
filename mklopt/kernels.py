"""Kernel families, and the kernels they become on data.

A family is a description; on data it becomes M kernels, computed one at a time:

    family = kernels.rakotomamonjy() + kernels.constant()
    fitted = family.fit(X, normalize="unit_trace")      # names, len, iteration
    grams, test = fitted.grams(), fitted.cross(X_test)  # a stack, and (M, n_test, n)
    grams = fitted.lazy(cache="500MB")                  # computed when they are needed

    gaussian(σ)     exp(−‖x − z‖² / 2σ²)       σ = "mean": 2σ² is the mean ‖x_i − x_j‖²
    polynomial(p)   (⟨x, z⟩ + c)^p             linear: p = 1, c = 0; constant: 1
    from_distances  exp(−d / mean d)           means are over training pairs i ≠ j
    function(k)     k(A, B) → the block of kernel values of rows of A with rows of B

Kernels are normalized when they are computed: a stack costs one evaluation of each.
Except for functions of your own, an entry depends on its two points alone, to the last
bit: whole matrices and blocks agree (pairwise.py).

References: Rakotomamonjy et al. (2008), SimpleMKL; Suzuki and Tomioka (2009), sections
5.1 and 5.2; Kloft et al. (2011); Orabona et al. (2012), section 5.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .alignment import alignment as alignment
from .alignment import target_alignment as target_alignment
from .arrays import real_array
from .grams import GramStack
from .normalizations import NORMALIZATIONS, Block, Steps, named

if TYPE_CHECKING:
    from .lazy import LazyStack

Array = np.ndarray
Blocks = dict[str | int, Array]  # the views of X; a plain X is the one view ""
Sizes = Mapping[str | int, int]  # and their numbers of features
WHOLE = Block(slice(None))


# ---- kernel functions of a base t, which neighbours on the same features share ------


@dataclass(frozen=True)
class _Gaussian:
    """exp(−t/scale) with t = ‖x − z‖², or with distances t as they are given."""

    scale: float | None  # None: the mean of t over training pairs
    given: bool = False
    shared = "distances"  # rules that share this share their base

    def base(self, A: Array, B: Array) -> Array:
        from .pairwise import distances

        return A if self.given else distances(A, B)  # nothing cancels

    def diagonal(self, A: Array) -> Array:
        return np.zeros(len(A))

    def __call__(self, t: Array, mean: float) -> Array:
        with np.errstate(over="ignore"):
            K = t / -(self.scale or mean or 1.0)  # mean 0: all points coincide, k = 1
        return np.exp(K, out=K)


@dataclass(frozen=True)
class _Power:
    """(t + offset)^degree with t = ⟨x, z⟩; the constant is that of no features."""

    degree: int
    offset: float
    scale = 1.0
    shared = "products"

    def base(self, A: Array, B: Array) -> Array:
        from .pairwise import products

        return products(A, B)

    def diagonal(self, A: Array) -> Array:
        return np.einsum("ij,ij->i", A, A)

    def __call__(self, t: Array, mean: float) -> Array:
        K = factor = t + self.offset
        for _ in range(self.degree - 1):
            K = K * factor
        return K


@dataclass(frozen=True)
class _Function:
    """A user's own k(A, B), which is its own base."""

    shared: Callable[[Array, Array], Any]
    name: str
    scale = 1.0

    def base(self, A: Array, B: Array) -> Array:
        found = real_array(self.shared(A, B), self.name, "a matrix of numbers")
        if found.shape != (len(A), len(B)):
            raise ValueError(
                f"{self.name} of {len(A)} and {len(B)} points has shape {found.shape}; "
                f"expected ({len(A)}, {len(B)})"
            )
        return found

    def diagonal(self, A: Array) -> Array:
        parts = [A[i : i + 64] for i in range(0, len(A), 64)]
        return np.concatenate([np.diag(self.base(part, part)) for part in parts])

    def __call__(self, t: Array, mean: float) -> Array:
        return t.copy()


class _Kernel(NamedTuple):
    name: str
    rule: _Gaussian | _Power | _Function
    columns: tuple[int, ...] | slice = slice(None)  # all of them
    view: str | int = ""

    @property
    def base(self) -> tuple:
        """Kernels with equal bases are functions of the same numbers t."""
        some = self.columns if isinstance(self.columns, tuple) else "all"
        return self.rule.shared, self.view, some

    def of(
        self,
        t: Array,
        diagonal: Array,
        learned: dict,
        steps: Iterable[str] = (),
        at: Block = WHOLE,
        means: Callable[[Array, int], Array] = lambda K, i: K.mean(axis=1),
    ) -> tuple[Array, Array]:
        """A block of the kernel, normalized, and its squares k(x, x), from the base.

        What is not in `learned` is learned here, on a block of all training points;
        means(K, i) are the means of their rows before step i.
        """
        K, squares = self.rule(t, learned[0]), self.rule(diagonal, learned[0])
        for i, step in enumerate(steps, 1):
            learn, apply = NORMALIZATIONS[step]
            if i not in learned:
                learned[i] = learn(squares, partial(means, K, i), at.who)
            apply(K, squares, learned[i], at)
        return K, squares


# ---- families -----------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """A description of kernels, immutable; families add with +."""

    parts: tuple[tuple[Any, ...], ...]  # a function of sizes, and its other arguments

    def __repr__(self) -> str:
        return f"Family{tuple((make.__name__[1:], *how) for make, *how in self.parts)}"

    def __add__(self, other: Family) -> Family:
        if not isinstance(other, Family):
            return NotImplemented
        return Family(self.parts + other.parts)

    def expand(self, sizes: Sizes) -> list[_Kernel]:
        return [kernel for make, *how in self.parts for kernel in make(sizes, *how)]

    def fit(self, X: Any, normalize: Steps = None) -> FittedKernels:
        """The kernels of this family on the rows of X, normalized on them.

        X: (n, d), or a list or dict of such arrays for kernels.views
        normalize: "multiplicative", "spherical", "unit_trace", "centre", a sequence of
            these, applied in order, or None
        """
        blocks = _blocks(X, "X")
        return FittedKernels(self.expand(_sizes(blocks)), blocks, normalize)


def gaussians(widths: Any, on: str = "all") -> Family:
    """exp(−‖x − z‖²/2σ²) for every width σ; "mean": 2σ² is the mean ‖x_i − x_j‖².

    on: "all" features at once, each "single" one, or "both"
    """
    rules = []
    for width in [widths] if np.ndim(widths) == 0 else widths:
        if str(width) == "mean":
            rules.append(("gaussian(mean)", _Gaussian(None)))
            continue
        sigma = real_array(width, "a width", "a positive number or 'mean'")
        if sigma.ndim or not (sigma > 0 and 0 < 2 * sigma**2 < np.inf):
            raise ValueError(f"a width is {width}; give positive numbers or 'mean'")
        rules.append((f"gaussian({sigma:g})", _Gaussian(2 * float(sigma) ** 2)))
    return _family(rules, on)


def polynomials(degrees: Any, on: str = "all", offset: float = 1.0) -> Family:
    """(⟨x, z⟩ + offset)^degree for every degree; `on` as for gaussians."""
    if not 0 <= offset < np.inf:
        raise ValueError(f"offset = {offset}; give a number that is not negative")
    degrees = [degrees] if np.ndim(degrees) == 0 else degrees
    powers = [_Power(_count(p, "a degree", 1), float(offset)) for p in degrees]
    return _family([(f"polynomial({p.degree})", p) for p in powers], on)


def linear(on: str = "all") -> Family:
    """⟨x, z⟩; `on` as for gaussians."""
    return _family([("linear", _Power(1, 0.0))], on)


def _family(rules: list, on: str) -> Family:
    if not rules or on not in ("all", "single", "both"):
        raise ValueError(
            f"{len(rules)} kernels were asked for on = {on!r}; give at least one, and "
            "on = 'all', 'single' or 'both'"
        )
    return Family(((_on_features, tuple(rules), on),))


def _on_features(sizes: Sizes, rules: tuple, on: str) -> Iterator[_Kernel]:
    both: list[tuple[str, Any]] = [("", slice(None))]
    both += [(f" on x{j}", (j,)) for j in range(_one_view(sizes))]
    for at, columns in {"all": both[:1], "single": both[1:], "both": both}[on]:
        for name, rule in rules:
            yield _Kernel(name + at, rule, columns)


def constant() -> Family:
    """k = 1: a bias that is penalized like any other weight."""
    return Family(((_constant,),))


def _constant(sizes: Sizes) -> Iterator[_Kernel]:
    yield _Kernel("constant", _Power(1, 1.0), (), next(iter(sizes)))


def function(k: Callable[[Array, Array], Any], name: str = "") -> Family:
    """A kernel of your own: k(A, B) gives the values of rows of A with rows of B.

    It must be symmetric, k(A, B) = k(B, A)ᵀ, and positive semi-definite.
    """
    if not callable(k):
        raise ValueError(f"k = {k!r}; give a function of two matrices of points")
    name = name or getattr(k, "__name__", type(k).__name__)
    return _family([(name, _Function(k, name))], "all")


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
    return Family(((_subsets, _count(M, "M", 1), _count(seed, "seed", 0)),))


def _subsets(sizes: Sizes, M: int, seed: int) -> Iterator[_Kernel]:
    d, rng = _one_view(sizes), np.random.default_rng(seed)
    for m in range(M):
        size = int(rng.integers(1, d + 1))
        columns = np.sort(rng.permutation(d)[:size]).tolist()
        width = 5 * float(rng.chisquare(1)) + 0.1
        name = f"subset {m}: gaussian({width:.4g}) on {size} features"
        yield _Kernel(name, _Gaussian(2 * width**2), tuple(columns))


def views(families: Family | Iterable[Family], at: Any) -> Family:
    """Families on several views of the same samples, one for all or one per view.

    at: the views of an X that is a list or dict of arrays (that dict, its keys, or the
        positions in the list), or lists of columns of an X that is one array

    views(gaussians("mean"), data.views).fit(data.views)
    views([linear(), gaussians(1)], {"colour": range(10), "shape": [10, 12]}).fit(X)
    """
    places = []
    for i, key in enumerate(at):
        given = at[key] if isinstance(at, Mapping) else key
        name = key if isinstance(key, str) else f"view {i}"
        places.append((name, tuple(map(int, given)) if np.ndim(given) == 1 else key))
    each = [families] * len(places) if isinstance(families, Family) else [*families]
    if not each or len(each) != len(places) or not isinstance(each[0], Family):
        raise ValueError(
            f"{len(each)} families for {len(places)} views; give one, or one for each"
        )
    return Family(tuple((_view, f, *place) for f, place in zip(each, places)))


def _view(sizes: Sizes, family: Family, name: str, at: Any) -> Iterator[_Kernel]:
    """A family on one view of X, or on some of the columns of a plain X."""
    some = isinstance(at, tuple)  # columns; otherwise a view as a whole
    d = _one_view(sizes) if some else sizes.get(at, 0)
    group = at if some else range(d)
    if not group or not 0 <= min(group) <= max(group) < d:
        raise ValueError(
            f"{name!r} at {at!r} is not in X, whose views have these numbers of "
            f"columns: {dict(sizes)}; columns are counted from 0"
        )
    for k in family.expand({"": len(group)}):
        inside = range(len(group)) if isinstance(k.columns, slice) else k.columns
        columns = tuple(group[j] for j in inside) if some else k.columns
        yield _Kernel(f"{name}: {k.name}", k.rule, columns, "" if some else at)


# ---- kernels on data ----------------------------------------------------------------


class FittedKernels:
    """M kernels on n training points; iterating yields their (n, n) matrices."""

    def __init__(self, kernels: list[_Kernel], blocks: Blocks, normalize: Steps):
        self.names = [kernel.name for kernel in kernels]
        self.M, self.n = len(kernels), len(next(iter(blocks.values())))
        self.normalize = named(normalize)
        self.kernels, self.blocks = kernels, blocks
        self.learned: dict[int, dict] = {}  # of each kernel that has been computed

    def __len__(self) -> int:
        return self.M

    def __repr__(self) -> str:
        how = "".join(f", {step}" for step in self.normalize)
        return f"FittedKernels(M={self.M}, n={self.n}{how})"

    def __iter__(self) -> Iterator[Array]:
        return self._matrices(self.blocks)

    def grams(self, **options: Any) -> GramStack:
        """GramStack(self, **options): what a Problem is made of."""
        return GramStack(self, **options)

    def lazy(self, cache: Any = "500MB") -> LazyStack:
        """A stack that computes kernels when they are needed, see mklopt.LazyStack."""
        from .lazy import LazyStack

        return LazyStack.of(self, cache)

    def subset(self, active: Array) -> FittedKernels:
        """Some of the kernels, by number, normalized as they are here."""
        index = np.arange(self.M)[active]
        if len(self.learned) < self.M:
            for _ in self:
                pass
        part = [self.kernels[m] for m in index]
        found = FittedKernels(part, self.blocks, self.normalize)
        found.learned = {i: self.learned[m] for i, m in enumerate(index.tolist())}
        return found

    def cross(self, X_new: Any) -> Array:
        """(M, n_new, n) kernels of new with training points, normalized as these."""
        blocks = self._new(X_new)
        shape = (len(next(iter(blocks.values()))), self.n)
        return np.fromiter(self._matrices(blocks), (float, shape), count=self.M)

    def cross_blocks(self, X_new: Any, size: int = 256) -> Iterator[Array]:
        """cross(X_new) in pieces of so many new points: (M, ≤ size, n) each.

        f = np.concatenate([result.decision(K) for K in fitted.cross_blocks(X_new)])
        """
        blocks = self._new(X_new)
        size = _count(size, "size", 1)
        for i in range(0, len(next(iter(blocks.values()))), size):
            yield self.cross({v: block[i : i + size] for v, block in blocks.items()})

    def _new(self, X_new: Any) -> Blocks:
        blocks = _blocks(X_new, "X_new")
        if (given := _sizes(blocks)) != (known := _sizes(self.blocks)):
            raise ValueError(
                f"X_new has columns {list(given.values())} in its views {list(given)}; "
                f"the training data have {list(known.values())} in {list(known)}"
            )
        if len(self.learned) < self.M:
            for _ in self:
                pass
        return blocks

    def who(self, m: int) -> str:
        return f"kernel {m}, {self.names[m]},"

    def _matrices(self, blocks: Blocks) -> Iterator[Array]:
        """Training and new points go the same way; the former are what is learned."""
        training, last = blocks is self.blocks, None
        for m, kernel in enumerate(self.kernels):
            if kernel.base != last:
                old = self.blocks[kernel.view][:, kernel.columns]
                new = old if training else blocks[kernel.view][:, kernel.columns]
                rule, last = kernel.rule, kernel.base
                t, diagonal = rule.base(new, old), rule.diagonal(new)
                mean = (t.sum() - diagonal.sum()) / max(t.size - len(t), 1)
            at = Block(slice(None) if training else None, who=self.who(m))
            learned = self.learned.get(m) or {0: mean}
            K, squares = kernel.of(t, diagonal, learned, self.normalize, at)
            if training:
                np.fill_diagonal(K, squares)
                self.learned[m] = learned
            yield K


def from_distances(D: Any, normalize: Steps = None) -> FittedKernels:
    """exp(−D_m / mean D_m) from (M, n, n) distances, or a list or dict of matrices.

    `cross` takes the (M, n_new, n) distances of new to training points; the means stay
    those of the training pairs. Such a kernel is positive semi-definite when D_m is
    conditionally negative definite; GramStack.verify_psd tells.
    """
    blocks, kernels = _blocks(D, "D"), []
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
        name = f"exp(−d/mean) of {'D' if view == '' else view}"
        kernels.append(_Kernel(name, _Gaussian(None, given=True), view=view))
    return FittedKernels(kernels, blocks, normalize)


def _blocks(X: Any, name: str) -> Blocks:
    """X as checked float64 matrices; lists and dicts of arrays have several views."""
    first = X[0] if isinstance(X, list | tuple) and X else None
    several = getattr(X, "ndim", 0) == 3 or getattr(first, "ndim", 0) == 2
    views: dict[Any, Any] = dict(enumerate(X)) if several else {"": X}
    views = dict(X) if isinstance(X, Mapping) else views
    for view, given in views.items():
        who = name if view == "" else f"{name}, view {view!r},"
        block = views[view] = real_array(given, who, "an (n, d) matrix of numbers")
        if block.ndim != 2 or 0 in block.shape:
            raise ValueError(f"{who} has shape {block.shape}; expected (n, d)")
        if not np.all(np.isfinite(block)):
            raise ValueError(f"{who} has NaN or infinite entries; fill in or drop them")
    if len({len(block) for block in views.values()}) != 1:
        rows = {view: len(block) for view, block in views.items()}
        raise ValueError(f"{name} has views with {rows} rows; give each sample in each")
    return views


def _sizes(blocks: Blocks) -> Sizes:
    return {view: block.shape[1] for view, block in blocks.items()}


def _one_view(sizes: Sizes) -> int:
    if "" not in sizes:
        raise ValueError(
            f"X has views {list(sizes)}; say with kernels.views which views are meant"
        )
    return sizes[""]


def _count(given: Any, name: str, least: int) -> int:
    if not isinstance(given, int | np.integer) or given < least:
        raise ValueError(f"{name} is {given!r}; give a whole number from {least} on")
    return int(given)
