"""Rows at few samples by BLAS: the entries of the stack, but for rounding."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from mklopt import kernels, threads
from mklopt.kernels import sample_rows as module
from mklopt.kernels.sample_rows import sample_rows

RNG = np.random.default_rng(3)
X = RNG.normal(size=(70, 7)) + 1.0
THREE = kernels.linear() + kernels.polynomials([2, 3]) + kernels.gaussians([1, "mean"])
FAMILIES = {
    "views": kernels.views(THREE, [[0, 1, 2], [2, 5, 6]]),
    "subsets": kernels.subset_gaussians(9),
}


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(module, "TILE", 32)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(
    "steps", [None, "spherical", "multiplicative", ("unit_trace", "spherical")]
)
def test_entries_are_those_of_the_stack(name, steps):
    fitted = FAMILIES[name].fit(X, normalize=steps)
    grams = fitted.lazy()
    index, which = np.array([7, 2, 5]), np.array([3, 69, 0, 31, 32])
    rows, F = grams.subset(index).sample_rows(), RNG.normal(size=(3, 2, 70))
    K = grams.rows(which)[index]
    scale = np.max(np.abs(K))
    np.testing.assert_allclose(rows.between(which), K[:, :, which], atol=1e-13 * scale)
    changes = RNG.normal(size=(2, 5)) * [[1, 0, 1, 1, 0], [0, 1, 1, 0, 1]]
    expected = F + np.einsum("ci,min->mcn", changes, K)
    rows.add(which, changes, F)
    np.testing.assert_allclose(F, expected, rtol=0, atol=1e-12 * max(scale, 1.0))


def test_kernels_on_the_same_features_share_their_products():
    fitted = FAMILIES["views"].fit(X)
    found = sample_rows(fitted, np.arange(fitted.M))
    assert found is not None
    assert [len(part.kernels) for part in found.sets] == [5, 5]
    assert all(part.apart for part in found.sets)
    powers = sample_rows(fitted, np.array([0, 1]))
    assert powers is not None and [part.apart for part in powers.sets] == [False]


def test_bits_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("mklopt.util.threads.MIN_SHARED_WORK", 1)
    fitted = FAMILIES["views"].fit(X, normalize="spherical")
    which, changes = np.arange(0, 70, 2), RNG.normal(size=(3, 35))
    found = []
    for k in (1, 2, 3):
        with threads(k):
            rows, F = sample_rows(fitted, np.arange(10)), np.zeros((10, 3, 70))
            assert rows is not None
            rows.add(which, changes, F)
            found.append((F, rows.between(which)))
    for F, inner in found[1:]:
        assert np.array_equal(F, found[0][0]) and np.array_equal(inner, found[0][1])


def test_what_loops_do_not_know_has_to_be_asked_for_rows():
    own = kernels.function(lambda A, B: A @ B.T) + kernels.linear()
    fitted = own.fit(X)
    assert fitted.lazy().sample_rows() is None
    assert sample_rows(fitted, np.array([1])) is not None
    centred = kernels.linear().fit(X, normalize="centre")
    assert centred.lazy().sample_rows() is None
    assert kernels.linear().fit(X).grams().sample_rows() is None


def test_memory_is_what_is_given_and_tiles(monkeypatch):
    """No (M, b, n) rows: these would be 8 · 60 · 20,000 numbers, 77 MB."""
    monkeypatch.setattr(module, "TILE", 512)
    Z = RNG.normal(size=(20_000, 4))
    family = kernels.gaussians([1, 2, 3, 4]) + kernels.polynomials([1, 2, 3, 4])
    rows = sample_rows(family.fit(Z), np.arange(8))
    assert rows is not None
    F, which, changes = np.zeros((8, 1, 20_000)), np.arange(60), np.ones((1, 60))
    rows.add(which[:2], changes[:, :2], F)
    tracemalloc.start()
    try:
        rows.add(which, changes, F)
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()
