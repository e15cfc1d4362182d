"""Kernel families, and the kernels they become on data.

A family is a description; on data it becomes a table of M kernels (table.py):

    family = kernels.rakotomamonjy() + kernels.constant()
    fitted = family.fit(X, normalize="unit_trace")      # names, len, iteration
    grams, test = fitted.grams(), fitted.cross(X_test)  # a stack, and (M, n_test, n)
    grams = fitted.lazy(cache="500MB")                  # computed on demand

    gaussian(σ)     exp(−‖x − z‖² / 2σ²)       σ = "mean": 2σ² is the mean ‖x_i − x_j‖²
    polynomial(p)   (⟨x, z⟩ + c)^p             linear: p = 1, c = 0; constant: 1
    from_distances  exp(−d / mean d)           means are over training pairs i ≠ j
    function(k)     k(A, B) → the block of kernel values of rows of A with rows of B

Kernels are normalized when they are computed: a stack costs one evaluation of each.
Except for your own functions, an entry depends on its two points alone, to the last
bit: whole matrices and blocks agree (pairwise.py).

References: Rakotomamonjy et al. (2008), SimpleMKL; Suzuki and Tomioka (2009), sections
5.1 and 5.2; Kloft et al. (2011); Orabona et al. (2012), section 5.1.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from ..util.arrays import Array, real_array
from ..util.checks import check_choice, check_list, check_whole, real_number, short
from .fitted import FittedKernels, blocks_of, sizes_of
from .functions import CityBlock, Function, Gaussian, Kernel, Power
from .normalizations import Steps
from .subsets import draw_subsets
from .table import (
    DISTANCES,
    GAUSSIAN,
    Bases,
    KernelTable,
    Names,
    Rules,
    Sizes,
    ends_of,
    rule_of,
    starts_of,
)


@dataclass(frozen=True)
class Family:
    """A description of kernels, immutable. `f + g` has the kernels of f and then of g.

    Families are made by the functions of this module.

    Parameters
    ----------
    parts : tuple of tuples
        Functions that make kernels for given numbers of features, each with its other
        arguments.

    Examples
    --------
    >>> family = gaussians([1, 2]) + constant()
    >>> family.fit([[0.0], [1.0]]).names
    ['gaussian(1)', 'gaussian(2)', 'constant']
    """

    parts: tuple[tuple[Any, ...], ...]

    def __repr__(self) -> str:
        return f"Family{tuple((make.__name__[1:], *how) for make, *how in self.parts)}"

    def __add__(self, other: "Family") -> "Family":
        if not isinstance(other, Family):
            return NotImplemented
        return Family(self.parts + other.parts)

    def expand(self, sizes: Sizes) -> KernelTable:
        """The kernels of this family on data of given numbers of features.

        Parameters
        ----------
        sizes : dict of int
            The number of features of each view; a plain X is the one view "".

        Returns
        -------
        KernelTable
            A sequence of Kernel, each made when it is asked for.
        """
        return KernelTable.joined([make(sizes, *how) for make, *how in self.parts])

    def fit(self, X: Any, normalize: Steps = None) -> FittedKernels:
        """The kernels of this family on training points.

        Parameters
        ----------
        X : array (n, d), or a list or dict of such arrays for `views`
            One row per training point.
        normalize : str, sequence of str, or None
            "multiplicative", "spherical", "unit_trace", "centre", or several of these,
            applied in order.

        Returns
        -------
        FittedKernels

        Raises
        ------
        ValueError
            If X is not a finite matrix, or a normalization is not known.
        """
        blocks = blocks_of(X, "X")
        return FittedKernels(self.expand(sizes_of(blocks)), blocks, normalize)


def gaussians(widths: Any, on: str = "all") -> Family:
    """exp(−‖x − z‖²/2σ²), one kernel for every width σ.

    Parameters
    ----------
    widths : float, "mean", or a sequence of these
        σ > 0; "mean" means that 2σ² is the mean of ‖x_i − x_j‖² over training pairs.
    on : {"all", "single", "both"}
        All features at once, each feature by itself, or both.

    Returns
    -------
    Family

    Raises
    ------
    ValueError
        If a width is not positive, or there is none.
    """
    rules = []
    for width in _listed(widths):
        if isinstance(width, str) and width == "mean":
            rules.append(("gaussian(mean)", Gaussian(None)))
            continue
        sigma = real_number(width, "a width", "a positive number or 'mean'")
        if not (sigma > 0 and 0 < 2 * sigma * sigma < np.inf):
            raise ValueError(
                f"a width is {short(width)}; give positive numbers or 'mean'"
            )
        rules.append((f"gaussian({sigma:g})", Gaussian(2 * sigma**2)))
    return _family(rules, on)


def laplacians(widths: Any, on: str = "all") -> Family:
    """exp(−‖x − z‖₁/σ), one kernel for every width σ.

    Parameters
    ----------
    widths : float, or a sequence of float
        σ > 0.
    on : {"all", "single", "both"}
        All features at once, each feature by itself, or both.

    Returns
    -------
    Family

    Raises
    ------
    ValueError
        If a width is not positive, or there is none.

    Examples
    --------
    >>> laplacians(2.0).fit([[0.0, 1.0], [1.0, 0.0]]).grams().kernel(0).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """
    found = []
    for width in _listed(widths):
        sigma = real_number(width, "a width", "a positive number")
        if not 0 < sigma < np.inf:
            raise ValueError(f"a width is {short(width)}; give positive numbers")
        rule = Function(CityBlock(sigma), f"laplacian({sigma:g})")
        found.append(_family([(rule.name, rule)], on))  # every function has its base
    return reduce(add, found) if found else _family([], on)


def polynomials(degrees: Any, on: str = "all", offset: float = 1.0) -> Family:
    """(⟨x, z⟩ + offset)^degree, one kernel for every degree.

    Parameters
    ----------
    degrees : int, or a sequence of int
        From 1 on.
    on : {"all", "single", "both"}
        All features at once, each feature by itself, or both.
    offset : float
        Not negative.

    Returns
    -------
    Family
    """
    added = real_number(offset, "offset", "a number that is not negative")
    if not 0 <= added < np.inf:
        raise ValueError(f"offset = {added}; give a number that is not negative")
    powers = [Power(check_whole(p, "a degree", 1), added) for p in _listed(degrees)]
    return _family([(f"polynomial({p.degree})", p) for p in powers], on)


def linear(on: str = "all") -> Family:
    """The linear kernel ⟨x, z⟩.

    Parameters
    ----------
    on : {"all", "single", "both"}
        All features at once, each feature by itself, or both.

    Returns
    -------
    Family
    """
    return _family([("linear", Power(1, 0.0))], on)


def _listed(given: Any) -> list:
    """The values of a list, or the one value that was given."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [given]
    return check_list(given, "widths or degrees", "one number, or a list of numbers")


def _family(rules: list, on: str) -> Family:
    check_choice(on, "on", ("all", "single", "both"))
    if not rules:
        raise ValueError("there are 0 kernels; give at least one")
    return Family(((_on_features, tuple(rules), on),))


def _on_features(sizes: Sizes, rules: tuple, on: str) -> KernelTable:
    """All rules on all features, then on each one; they are of one class."""
    d, (view, start) = _one_view(sizes), _place_of_view(sizes)
    widths = {"all": [d], "single": [1] * d, "both": [d] + [1] * d}[on]
    every = np.arange(start, start + d, dtype=np.int32)
    found, B = [rule_of(rule) for _, rule in rules], len(widths)
    own = {b: rule for b in range(B) for _, rule in rules if isinstance(rule, Function)}
    kinds, degrees, numbers, base = np.tile(np.array(found).T, B)
    columns = np.concatenate([every, every]) if on == "both" else every
    return KernelTable(
        Rules(kinds, degrees, numbers, np.repeat(np.arange(B), len(rules))),
        Bases(np.full(B, base[0]), np.full(B, view), columns, ends_of(widths)),
        sizes,
        Names([(B * len(rules), partial(_on, [name for name, _ in rules], on))]),
        own,
    )


def _on(names: list[str], on: str, i: int) -> str:
    """The name of rule i mod R on feature set i div R."""
    place = i // len(names) - (on == "both")
    name = names[i % len(names)]
    return name if on == "all" or place < 0 else f"{name} on x{place}"


def constant() -> Family:
    """The kernel k = 1: a bias that is penalized like any other weight.

    Returns
    -------
    Family
    """
    return Family(((_constant,),))


def _constant(sizes: Sizes) -> KernelTable:
    one = (Power(1, 1.0), (), next(iter(sizes)))
    return KernelTable.of([Kernel("constant", *one)], sizes)


def function(k: Callable[[Array, Array], Any], name: str = "") -> Family:
    """Your own kernel.

    Parameters
    ----------
    k : callable
        k(A, B) returns the (r, s) kernel values of the r rows of A with the s rows of
        B. It must be symmetric, k(A, B) = k(B, A)ᵀ, and positive semi-definite.
    name : str, optional
        What it is called in `names`; the name of the function by default.

    Returns
    -------
    Family

    Examples
    --------
    >>> minimum = function(lambda A, B: np.minimum(A, B.T), "minimum")
    >>> list(minimum.fit([[1.0], [2.0]]))[0]
    array([[1., 1.],
           [1., 2.]])
    """
    if not callable(k):
        raise ValueError(f"k = {short(k)}; give a function of two matrices of points")
    if not isinstance(name, str):
        raise ValueError(f"name = {short(name)}; give text")
    name = name or getattr(k, "__name__", type(k).__name__)
    return _family([(name, Function(k, name))], "all")


def rakotomamonjy(
    widths: Any = (0.5, 1, 2, 5, 7, 10, 12, 15, 17, 20), degrees: Any = (1, 2, 3)
) -> Family:
    """The kernels of SimpleMKL: 13 on all features and on each one, 13 (d + 1) in all.

    Ten Gaussians and polynomials of degree 1 to 3. The papers give no widths: these are
    the ones of the authors' published scripts, where features are standardized on the
    training data and kernels normalized to unit trace.

    Parameters
    ----------
    widths : sequence of float
        Of the Gaussians.
    degrees : sequence of int
        Of the polynomials.

    Returns
    -------
    Family
    """
    return gaussians(widths, "both") + polynomials(degrees, "both")


def suzuki() -> Family:
    """The kernels of SpicyMKL: 27 on all features and on each one, 27 (d + 1) in all.

    Gaussians of the 24 widths 0.1, 0.25, 0.5, 0.75, 1, 2, …, 20 and polynomials of
    degree 1 to 3 (section 5.1); the paper normalizes them to unit trace.

    Returns
    -------
    Family
    """
    return rakotomamonjy((0.1, 0.25, 0.5, 0.75, *range(1, 21)))


def kloft(M: int = 50) -> Family:
    """Gaussians with 2σ² = 1.2^0, …, 1.2^(M−1), of Kloft's scaling experiments.

    Parameters
    ----------
    M : int
        The number of kernels.

    Returns
    -------
    Family
    """
    return gaussians([np.sqrt(1.2**m / 2) for m in range(check_whole(M, "M", 1, 3000))])


def subset_gaussians(M: int, seed: int = 0) -> Family:
    """M Gaussians on random subsets of features, σ = 5χ² + 0.1 (Suzuki, section 5.2).

    The paper leaves open how subsets and χ² are drawn: here the size of a subset is
    uniform on 1, …, d, the subset uniform among those of its size, and χ² has one
    degree of freedom. The first kernels of a larger M are those of a smaller one.

    Parameters
    ----------
    M : int
        The number of kernels.
    seed : int
        Of the random subsets and widths.

    Returns
    -------
    Family
    """
    return Family(((_subsets, check_whole(M, "M", 1), check_whole(seed, "seed", 0)),))


def _subsets(sizes: Sizes, M: int, seed: int) -> KernelTable:
    columns, widths, sigmas = draw_subsets(M, _one_view(sizes), seed)
    view, start = _place_of_view(sizes)
    columns += np.int32(start)
    scales = np.fromiter((2 * float(sigma) ** 2 for sigma in sigmas), float, M)
    kinds, apart = np.full(M, GAUSSIAN, np.int8), np.full(M, DISTANCES, np.int8)
    views = np.full(M, view, np.int32)
    return KernelTable(
        Rules(kinds, np.zeros(M, np.int32), scales, np.arange(M, dtype=np.int32)),
        Bases(apart, views, columns, ends_of(widths)),
        sizes,
        Names([(M, partial(_subset_name, sigmas, widths))]),
    )


def _subset_name(sigmas: Array, widths: Array, m: int) -> str:
    return f"subset {m}: gaussian({sigmas[m]:.4g}) on {widths[m]} features"


def views(families: Family | Iterable[Family], at: Any) -> Family:
    """Families on several views of the same samples.

    Parameters
    ----------
    families : Family, or a sequence of Family
        One for all views, or one for each view.
    at : dict or sequence
        The views of an X that is a list or dict of arrays: that dict, its keys, or
        positions in the list. Or lists of columns of an X that is one array.

    Returns
    -------
    Family

    Raises
    ------
    ValueError
        If there are neither one family nor as many as views.

    Examples
    --------
    >>> both = views([linear(), gaussians(1)], {"colour": [0, 1], "shape": [2]})
    >>> both.fit([[1.0, 2.0, 3.0]]).names
    ['colour: linear', 'shape: gaussian(1)']
    """
    places = []
    for i, key in enumerate(check_list(at, "at", "a list or a dict of views")):
        given = at[key] if isinstance(at, Mapping) else key
        name = key if isinstance(key, str) else f"view {i}"
        places.append((name, _columns(given) or key))
    many = [families] * len(places) if isinstance(families, Family) else families
    each = check_list(many, "families", "a family, or a list of families")
    fit = len(each) == len(places) and all(isinstance(f, Family) for f in each)
    if not each or not fit:
        raise ValueError(
            f"{len(each)} families for {len(places)} views; give one, or one for each"
        )
    return Family(tuple((_view, f, *place) for f, place in zip(each, places)))


def _columns(given: Any) -> tuple[int, ...]:
    """The columns that a view names; () where it is a name, or a matrix of data."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        return ()
    found = real_array(given, "a view", "a list of columns, or a name")
    return tuple(found.astype(int).tolist()) if found.ndim == 1 else ()


def _view(sizes: Sizes, family: Family, name: str, at: Any) -> KernelTable:
    """A family on one view of X, or on some of the columns of a plain X."""
    some = isinstance(at, tuple)  # columns; otherwise a view as a whole
    d = _one_view(sizes) if some else sizes.get(at, 0)
    group = at if some else range(d)
    if not group or not 0 <= min(group) <= max(group) < d:
        raise ValueError(
            f"{name!r} at {short(at)} is not in X, whose views have these numbers of "
            f"columns: {dict(sizes)}; columns are counted from 0"
        )
    view = "" if some else at
    return family.expand({"": len(group)}).on(name, view, np.array(group), sizes)


def _one_view(sizes: Sizes) -> int:
    if "" not in sizes:
        raise ValueError(
            f"X has views {list(sizes)}; say with kernels.views which views are meant"
        )
    return sizes[""]


def _place_of_view(sizes: Sizes) -> tuple[int, int]:
    """The number of the view "", and its first row among those of all views."""
    return list(sizes).index(""), starts_of(sizes)[""]
