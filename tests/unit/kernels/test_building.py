"""Kernels built in one pass: the numbers that every other way computes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from mklopt import kernels
from mklopt.grams.storage import Triangles
from mklopt.kernels import building
from mklopt.kernels.fitted import FittedKernels
from mklopt.kernels.functions import Function, Gaussian, Kernel, Power
from mklopt.kernels.table import KernelTable

rng = np.random.default_rng(8)
X = rng.normal(size=(301, 6)) * [1.0, 3.0, 0.1, 1.0, 20.0, 1.0] + 1.0
FAMILY = (
    kernels.gaussians([0.3, "mean", 5], on="both")
    + kernels.polynomials([1, 2, 3])
    + kernels.subset_gaussians(4)
    + kernels.linear(on="single")
    + kernels.constant()
)
STEPS: list[Any] = [None, "unit_trace", "spherical", ("spherical", "unit_trace")]
STEPS += [("unit_trace", "spherical", "unit_trace")]


class Unfilled(Triangles):
    """Memory that has no number yet."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.P[:] = np.nan


def use_threads(monkeypatch, threads):
    """Build in as many parts, at the same time."""

    def spread(loop, *arguments, count=1, work=1):
        ends = np.linspace(0, count, threads + 1).astype(int)
        with ThreadPoolExecutor(threads) as pool:
            parts = zip(ends[:-1].tolist(), ends[1:].tolist())
            list(pool.map(lambda part: loop(*arguments, *part), parts))

    monkeypatch.setattr(building, "spread", spread)


@pytest.mark.parametrize("steps", STEPS, ids=str)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_entries_are_those_of_matrices_tiles_rows_and_new_points(
    steps, threads, monkeypatch
):
    use_threads(monkeypatch, threads)
    K = FAMILY.fit(X, steps).grams().dense()
    np.testing.assert_array_equal(np.stack(list(FAMILY.fit(X, steps))), K)
    lazy = FAMILY.fit(X, steps).lazy("1MB")
    np.testing.assert_array_equal(lazy.dense(), K)
    which = np.array([300, 0, 17])
    np.testing.assert_array_equal(lazy.rows(which), K[:, which])
    cross = FAMILY.fit(X, steps).cross(X)
    if "spherical" in str(steps):  # a new point is divided by √k·√k, which rounds
        np.testing.assert_allclose(np.diagonal(cross, 0, 1, 2), K.diagonal(0, 1, 2))
        cross[:, range(301), range(301)] = K.diagonal(0, 1, 2)
    np.testing.assert_array_equal(cross, K)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 31, 32, 33, 127, 129, 257, 290])
def test_every_number_of_points_is_filled_whole(n, monkeypatch):
    use_threads(monkeypatch, 2)
    monkeypatch.setattr("mklopt.grams.stack.Triangles", Unfilled)
    fitted = (kernels.gaussians([1, 2]) + kernels.polynomials(2)).fit(X[:n])
    for storage in ("packed", "full"):
        K = fitted.grams(storage=storage).dense()
        np.testing.assert_array_equal(K, np.stack(list(fitted)))


@pytest.mark.parametrize("storage", ["packed", "full"])
def test_single_precision_is_double_precision_rounded(storage):
    fitted = FAMILY.fit(X, "unit_trace")
    K = fitted.grams(storage=storage, dtype="float32")
    assert K.dtype == np.float32 and K.storage == storage
    expected = fitted.grams().dense().astype(np.float32)
    np.testing.assert_array_equal(K.dense(), expected)


def test_it_is_the_formula():
    fitted = kernels.gaussians([2.0]).fit(X, "unit_trace")
    t = np.sum((X[:, None] - X) ** 2, axis=2)
    expected = np.exp(-t / 8) / len(X)
    np.testing.assert_allclose(fitted.grams().dense()[0], expected, rtol=1e-13)
    cubic = kernels.polynomials(3, offset=0.5).fit(X, "spherical")
    k = (X @ X.T + 0.5) ** 3
    root = np.sqrt(np.diag(k))
    expected = k / np.outer(root, root)
    np.testing.assert_allclose(cubic.grams().dense()[0], expected, rtol=1e-10)


@pytest.mark.parametrize("steps", STEPS, ids=str)
@pytest.mark.parametrize("family", [kernels.gaussians([1, 3]), kernels.linear()])
def test_families_of_one_kind_are_the_same_matrices(family, steps):
    K = family.fit(X, steps).grams().dense()
    np.testing.assert_array_equal(np.stack(list(family.fit(X, steps))), K)


def test_views_have_their_own_columns():
    parts = {"a": X[:, :2], "b": X[:, 2:]}
    family = kernels.views(kernels.gaussians([1, 2], on="both"), parts)
    fitted = family.fit(parts, "unit_trace")
    np.testing.assert_array_equal(fitted.grams().dense(), np.stack(list(fitted)))


def test_products_and_distances_are_computed_once_for_each_base(monkeypatch):
    seen = []

    def watched(loop, *arguments, count, work):
        seen.append(arguments)
        loop(*arguments, 0, count)

    monkeypatch.setattr(building, "spread", watched)
    kernels.rakotomamonjy().fit(X).grams()
    ((_, _, _, points, _, _, order, ends, apart, *_),) = seen
    assert points.shape == X.T.shape  # not a copy for every kernel
    assert len(apart) == 2 * 7 and sum(apart) == 7  # all features, and single ones
    assert sorted(order) == list(range(13 * 7)) and set(np.diff(ends)) == {3, 10}


def test_what_is_not_surely_positive_semi_definite_is_screened():
    direct: list[Any] = [Gaussian(1.0), Gaussian(None), Power(1, 0.0), Power(3, 2.0)]
    others: list[Any] = [
        Gaussian(None, given=True),
        Power(2, -1.0),
        Function(np.dot, "f"),
    ]
    table = KernelTable.of([Kernel("k", r) for r in [*direct, *others]], {"": 7})
    assert table.direct.tolist() == [True] * 4 + [False] * 3
    negative = FittedKernels([Kernel("k", Power(1, -50.0))], {"": X}, None)
    with pytest.raises(ValueError, match="negative diagonal entry"):
        negative.grams()
    with pytest.raises(ValueError, match="not positive semi-definite"):
        kernels.from_distances(np.abs(np.subtract.outer(X[:, 0], X[:, 0])) ** 9).grams()


@pytest.mark.parametrize(
    "family, points, steps, dtype, words",
    [
        (kernels.polynomials(3), X * 1e110, None, "float64", "kernel 0 has NaN or inf"),
        (kernels.polynomials(3), X * 1e20, None, "float32", "too large for float32"),
        (kernels.linear(), X * 1e153, "unit_trace", "float64", "an infinite trace"),
        (kernels.gaussians("mean"), X * 1e160, None, "float64", "mean of all"),
        (kernels.linear(), 0 * X, "unit_trace", "float64", "is zero"),
        (kernels.linear(), 0 * X, "spherical", "float64", "is zero at point 0"),
    ],
)  # fmt: skip
def test_wrong_numbers_get_one_sentence(family, points, steps, dtype, words):
    with pytest.raises(ValueError, match=words):
        family.fit(points, steps).grams(dtype=dtype)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_data_that_are_not_numbers_are_refused(bad):
    points = X.copy()
    points[7, 2] = bad
    with pytest.raises(ValueError, match="X has missing"):
        kernels.gaussians(1.0).fit(points)


@pytest.mark.parametrize("size", [1e160, 1e-170])
def test_distances_beyond_the_range_give_zeros_and_ones(size):
    K = kernels.gaussians([1.0, 1e-150]).fit(X * size).grams().dense()
    assert np.all(np.isfinite(K))
    expected = np.eye(len(X)) if size > 1 else np.ones((len(X), len(X)))
    np.testing.assert_array_equal(K[0], expected)


def test_wrong_options_are_refused():
    fitted = kernels.gaussians(1.0).fit(X)
    with pytest.raises(ValueError, match="storage = 'dense'"):
        fitted.grams(storage="dense")
    with pytest.raises(ValueError, match="dtype = 'int'"):
        fitted.grams(dtype="int")
    with pytest.raises(TypeError, match="copies"):
        fitted.grams(copies=2)
