"""Fitted kernels: matrices one at a time, new points, subsets, distances."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from mklopt import GramStack, LazyStack, kernels
from mklopt.kernels.fitted import blocks_of, rows_of, sizes_of
from mklopt.kernels.functions import Gaussian, Power

rng = np.random.default_rng(11)
MEANS = np.array([0.0, 5.0, 0.0, -1.0])
X = rng.normal(size=(17, 4)) * [1.0, 3.0, 0.2, 1.0] + MEANS
X_NEW = rng.normal(size=(6, 4)) + MEANS
FAMILY = (
    kernels.gaussians([0.7, "mean"], on="both")
    + kernels.polynomials([1, 2])
    + kernels.linear()
)


def stack(fitted):
    return np.stack(list(fitted))


def psd(K):
    return np.linalg.eigvalsh(K).min() >= -1e-13 * np.trace(K)


def gaussian(A, B, sigma):
    return np.array(
        [[np.exp(-np.sum((a - b) ** 2) / (2 * sigma**2)) for b in B] for a in A]
    )


def test_bases_are_computed_once_for_the_kernels_that_share_them(monkeypatch):
    calls = []
    base = Gaussian.base

    def counted(*args):
        calls.append(1)
        return base(*args)

    monkeypatch.setattr(Gaussian, "base", counted)
    fitted = kernels.suzuki().fit(X, normalize="multiplicative")
    list(fitted)
    assert len(calls) == 5  # all features, and four single ones, for 24 widths each
    fitted.cross(X_NEW)
    assert len(calls) == 10


def test_matrices_come_one_at_a_time_and_are_the_callers_own():
    fitted = kernels.gaussians([1, 2]).fit(X)
    iterator = iter(fitted)
    first = next(iterator)
    first[:] = 0.0
    np.testing.assert_allclose(next(iterator), gaussian(X, X, 2))
    np.testing.assert_allclose(next(iter(fitted)), gaussian(X, X, 1))


def test_grams_makes_a_stack():
    fitted = kernels.rakotomamonjy().fit(X, normalize="unit_trace")
    grams = fitted.grams()
    assert isinstance(grams, GramStack) and grams.M == 65 and grams.n == 17
    np.testing.assert_allclose(grams.diag().sum(axis=1), 1.0)
    alpha = rng.normal(size=17)
    np.testing.assert_allclose(grams.quad(alpha), alpha @ stack(fitted) @ alpha)


def test_distances_become_kernels_with_the_training_mean():
    D = np.stack([np.abs(X[:, None, j] - X[:, j]) for j in range(3)])
    D_new = np.stack([np.abs(X_NEW[:, None, j] - X[:, j]) for j in range(3)])
    for given, new in [(D, D_new), (list(D), list(D_new))]:
        fitted = kernels.from_distances(given)
        means = D.sum(axis=(1, 2)) / (17 * 16)
        np.testing.assert_allclose(stack(fitted), np.exp(-D / means[:, None, None]))
        cross = fitted.cross(new)
        np.testing.assert_allclose(cross, np.exp(-D_new / means[:, None, None]))
        assert cross.shape == (3, 6, 17) and all(map(psd, fitted))
    named = kernels.from_distances({"colour": D[0], "shape": D[1]}, normalize="centre")
    assert named.names == ["exp(−d/mean) of colour", "exp(−d/mean) of shape"]
    np.testing.assert_allclose(stack(named).sum(axis=2), 0.0, atol=1e-13)
    np.testing.assert_allclose(
        named.cross({"colour": D[0], "shape": D[1]}), stack(named)
    )


def test_distances_with_rounding_errors_are_made_exactly_symmetric():
    D = np.abs(X[:, None, 0] - X[:, 0]) * (1 + 1e-12 * rng.random((17, 17))) + 1e-12
    (K,) = kernels.from_distances([D])
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diag(K), 1.0)


def test_cross_does_not_need_the_training_matrices_first():
    fitted = FAMILY.fit(X, normalize="multiplicative")
    early = fitted.cross(X_NEW)
    list(fitted)
    np.testing.assert_array_equal(early, fitted.cross(X_NEW))


def test_scales_that_need_only_squares_are_learned_without_matrices(monkeypatch):
    sizes = []
    base = Gaussian.base

    def watched(self, A, B):
        sizes.append(len(A))
        return base(self, A, B)

    monkeypatch.setattr(Gaussian, "base", watched)
    fitted = kernels.gaussians([1, "mean"], on="both").fit(X, "unit_trace")
    fitted.cross(X_NEW)
    assert set(sizes) == {len(X_NEW)}


@pytest.mark.parametrize("steps", [None, "centre"])
def test_a_subset_keeps_its_normalization(steps):
    fitted = FAMILY.fit(X, steps)
    part = fitted.subset(np.array([3, 0]))
    assert part.names == [fitted.names[3], fitted.names[0]]
    np.testing.assert_array_equal(part.cross(X_NEW), fitted.cross(X_NEW)[[3, 0]])
    np.testing.assert_array_equal(stack(part), stack(fitted)[[3, 0]])


def test_slices_are_subsets_and_numbers_are_matrices():
    fitted = FAMILY.fit(X, "unit_trace")
    K = stack(fitted)
    assert fitted[2:5].names == fitted.names[2:5]
    np.testing.assert_array_equal(stack(fitted[2:5]), K[2:5])
    np.testing.assert_array_equal(stack(fitted[K[:, 0, 1] > 0]), K[K[:, 0, 1] > 0])
    np.testing.assert_array_equal(fitted[-1], K[-1])
    with pytest.raises(IndexError):
        fitted[len(fitted)]


@pytest.mark.parametrize("steps", ["unit_trace", "centre"])
def test_a_subset_learns_for_its_own_kernels_only(steps):
    fitted = FAMILY.fit(X, steps)
    fitted.subset(np.array([3, 0]))
    assert np.flatnonzero(fitted.learned.known).tolist() == [0, 3]
    np.testing.assert_array_equal(stack(fitted[3:4]), stack(FAMILY.fit(X, steps))[3:4])


def test_arrays_for_loops_are_those_of_the_kernels():
    fitted = FAMILY.fit(X, ("spherical", "unit_trace"))
    K, index = stack(fitted), np.array([8, 1, 11, 1])
    np.testing.assert_array_equal(fitted.squares(index), K.diagonal(0, 1, 2)[index])
    np.testing.assert_allclose(fitted.traces(index), 1.0)
    degrees, numbers = fitted.rules()
    for m, kernel in enumerate(fitted.kernels):
        if isinstance(kernel.rule, Gaussian):
            rate = kernel.rule.rate(fitted.learned.means[m])
            assert (degrees[m], numbers[m]) == (0, rate)
        else:
            assert Power(int(degrees[m]), float(numbers[m])) == kernel.rule
    for whole, part in zip((degrees, numbers), fitted.rules(index)):
        np.testing.assert_array_equal(whole[index], part)
    assert fitted.points.shape == (4, 17) and fitted.points.flags.c_contiguous


def test_many_kernels_are_a_few_arrays():
    """200,000 kernels on 300 points: no object for each, nothing of size M n."""
    points = rng.normal(size=(300, 6))
    kernels.subset_gaussians(200_000).expand({"": 6})  # compiled before
    tracemalloc.start()
    try:
        fitted = kernels.subset_gaussians(200_000).fit(points, "unit_trace")
        fitted.learn()
        kept, peak = tracemalloc.get_traced_memory()
        part = fitted.subset(np.array([7, 199_999])).cross(points[:3])
    finally:
        tracemalloc.stop()
    assert kept < 50 * 200_000 and peak < 200 * 200_000  # one name has 90 bytes
    assert part.shape == (2, 3, 300) and len(fitted.kernels.bases) == 63
    few = list(kernels.subset_gaussians(8).fit(points, "unit_trace"))
    np.testing.assert_array_equal(part[0], few[7][:3])


def test_a_lazy_stack_has_the_same_kernels_and_names():
    fitted = FAMILY.fit(X, "unit_trace")
    grams = fitted.lazy(cache="1MB")
    assert isinstance(grams, LazyStack) and grams.cache.limit == 10**6
    np.testing.assert_array_equal(grams.dense(), stack(fitted))
    assert grams.kernels.who(1) == "kernel 1, gaussian(mean),"


def test_new_points_come_in_pieces():
    fitted = FAMILY.fit(X, "multiplicative")
    pieces = list(fitted.cross_blocks(X_NEW, size=4))
    assert [len(K[0]) for K in pieces] == [4, 2]
    np.testing.assert_array_equal(np.hstack(pieces), fitted.cross(X_NEW))


def test_views_are_matrices_with_the_same_rows():
    assert list(blocks_of(X, "X")) == [""]
    blocks = blocks_of({"a": X, "b": X[:, :2]}, "X")
    assert rows_of(blocks) == 17 and sizes_of(blocks) == {"a": 4, "b": 2}
    assert list(blocks_of([X, X], "X")) == list(blocks_of(np.stack([X, X]), "X"))
    with pytest.raises(ValueError, match="X, view 1, has missing"):
        blocks_of([X, X * np.nan], "X")


# ---- sums over kernels at new points -----------------------------------------------

MIXED = kernels.gaussians([1, "mean"], "both") + kernels.polynomials([2], "both")


@pytest.mark.parametrize("steps", [None, "unit_trace", ("unit_trace", "spherical")])
@pytest.mark.parametrize("swept", [True, False])
def test_sums_at_new_points_are_those_of_the_kernels(steps, swept, monkeypatch):
    rng = np.random.default_rng(0)
    points, new = rng.normal(size=(30, 3)) + 2, rng.normal(size=(11, 3)) + 2
    monkeypatch.setattr("mklopt.kernels.streams.WIDE", 64 if swept else 0)
    monkeypatch.setattr("mklopt.kernels.fitted.SUM_NUMBERS", 150)  # 5 points at a time
    fitted = MIXED.fit(points, normalize=steps)
    theta = rng.uniform(size=fitted.M) * (rng.uniform(size=fitted.M) < 0.7)
    pieces = list(fitted.cross_sums(new, theta))
    assert [len(piece) for piece in pieces] == [5, 5, 1]
    expected = np.tensordot(theta, fitted.cross(new), 1)
    np.testing.assert_allclose(np.concatenate(pieces), expected, rtol=1e-12)
    assert not np.any(next(fitted.cross_sums(new, 0 * theta)))


def test_sums_of_your_own_functions_and_at_points_without_a_place():
    points = np.array([[1.0, 2.0], [3.0, 1.0], [1.0, 1.0]])
    own = (kernels.function(lambda A, B: A @ B.T) + kernels.linear()).fit(points)
    (found,) = own.cross_sums(points[:2], np.array([2.0, 1.0]))
    np.testing.assert_allclose(found, 3 * points[:2] @ points.T)
    sphere = kernels.linear().fit(points, normalize="spherical")
    with pytest.raises(ValueError, match="zero at new point 1"):
        next(sphere.cross_sums([[1.0, 1.0], [0.0, 0.0]], np.ones(1)))
