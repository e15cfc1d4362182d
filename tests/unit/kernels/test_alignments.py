"""Alignments of kernels with each other and with a target, by their definition."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, kernels

rng = np.random.default_rng(11)
MEANS = np.array([0.0, 5.0, 0.0, -1.0])
X = rng.normal(size=(17, 4)) * [1.0, 3.0, 0.2, 1.0] + MEANS
FAMILY = (
    kernels.gaussians([0.7, "mean"], on="both")
    + kernels.polynomials([1, 2])
    + kernels.linear()
)


def stack(fitted):
    return np.stack(list(fitted))


def brute_force(K, L, centred):
    H = np.eye(len(K)) - 1 / len(K)
    K, L = (H @ K @ H, H @ L @ H) if centred else (K, L)
    return np.sum(K * L) / np.sqrt(np.sum(K * K) * np.sum(L * L))


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("slab", [2**22, 1, 17 * 8 * 5])
def test_alignments_are_their_definition(centred, slab, monkeypatch):
    monkeypatch.setattr("mklopt.kernels.alignments.SLAB_ENTRIES", slab)
    K = stack(FAMILY.fit(X))[:8]
    y = np.where(X[:, 0] > 0.3, 1.0, -1.0)
    expected = [[brute_force(k, l, centred) for l in K] for k in K]
    for grams in (K, GramStack(K)):
        A = kernels.alignment(grams, centred=centred)
        np.testing.assert_allclose(A, expected, atol=1e-13)
        np.testing.assert_array_equal(A, A.T)
        target = kernels.target_alignment(grams, y, centred=centred)
        expected_target = [brute_force(k, np.outer(y, y), centred) for k in K]
        np.testing.assert_allclose(target, expected_target, atol=1e-13)


def test_target_alignment_of_classes_is_that_of_their_indicators():
    K, classes = stack(FAMILY.fit(X)), np.arange(17) % 3
    Y = np.eye(3)[classes]
    expected = [brute_force(k, Y @ Y.T, True) for k in K]
    np.testing.assert_allclose(kernels.target_alignment(K, Y), expected, atol=1e-13)
    assert kernels.target_alignment([Y @ Y.T], Y)[0] == pytest.approx(1.0, abs=1e-14)


def test_alignment_neither_cancels_nor_overflows():
    """A large constant part and large scales change nothing when centred."""
    K = stack(kernels.gaussians([1, 3], on="single").fit(X))
    A = kernels.alignment(K)
    np.testing.assert_allclose(kernels.alignment(K + 1e6), A, atol=1e-8)
    scales = np.logspace(-200, 200, len(K))[:, None, None]
    np.testing.assert_allclose(kernels.alignment(scales * K), A, atol=1e-14)
    y = np.sign(X[:, 0])
    target = kernels.target_alignment(K, y)
    np.testing.assert_allclose(kernels.target_alignment(scales * K, 1e200 * y), target)


def test_alignment_of_nothing_is_refused():
    K = stack((kernels.gaussians(1) + kernels.constant()).fit(X))
    with pytest.raises(ValueError, match="kernel 1 is zero, or the same at all points"):
        kernels.alignment(K)
    assert kernels.alignment(K, centred=False).shape == (2, 2)
    with pytest.raises(ValueError, match="y is the same"):
        kernels.target_alignment(K[:1], np.ones(17))
    with pytest.raises(ValueError, match=r"y has shape \(3,\).*17 × 17"):
        kernels.target_alignment(K, np.ones(3))
    with pytest.raises(ValueError, match=r"shape \(17, 17\); expected \(M, n, n\)"):
        kernels.alignment(K[0])
