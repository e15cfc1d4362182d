"""Normalizations in feature space, on training and on new points."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import kernels

rng = np.random.default_rng(11)
MEANS = np.array([0.0, 5.0, 0.0, -1.0])
X = rng.normal(size=(17, 4)) * [1.0, 3.0, 0.2, 1.0] + MEANS
X_NEW = rng.normal(size=(6, 4)) + MEANS
FAMILY = (
    kernels.gaussians([0.7, "mean"], on="both")
    + kernels.polynomials([1, 2])
    + kernels.linear()
)
SINGLE = kernels.linear("single")
NORMALIZATIONS = ["multiplicative", "spherical", "unit_trace", "centre"]


def stack(fitted):
    return np.stack(list(fitted))


def psd(K):
    return np.linalg.eigvalsh(K).min() >= -1e-13 * np.trace(K)


def features(K):
    """ψ with K = ψψᵀ, to state normalizations in feature space."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0))


def test_multiplicative_normalization_gives_variance_one_in_feature_space():
    for K in FAMILY.fit(X, normalize="multiplicative"):
        psi = features(K)
        variance = np.mean(np.sum((psi - psi.mean(axis=0)) ** 2, axis=1))
        assert variance == pytest.approx(1.0, abs=1e-10)


def test_spherical_normalization_is_the_cosine():
    for raw, K in zip(FAMILY.fit(X), FAMILY.fit(X, normalize="spherical")):
        np.testing.assert_array_equal(np.diag(K), 1.0)
        d = np.sqrt(np.diag(raw))
        np.testing.assert_allclose(K, raw / d[:, None] / d, rtol=1e-12)


def test_unit_trace():
    for raw, K in zip(FAMILY.fit(X), FAMILY.fit(X, normalize="unit_trace")):
        assert np.trace(K) == pytest.approx(1.0, abs=1e-14)
        np.testing.assert_allclose(K * np.trace(raw), raw, rtol=1e-13)


def test_centring_moves_the_mean_to_the_origin():
    H = np.eye(17) - 1 / 17
    for raw, K in zip(FAMILY.fit(X), FAMILY.fit(X, normalize="centre")):
        top = np.max(np.abs(raw))
        np.testing.assert_allclose(K, H @ raw @ H, atol=1e-13 * top)
        np.testing.assert_allclose(K.sum(axis=1), 0.0, atol=1e-12 * top)


@pytest.mark.parametrize(
    "steps",
    [
        None,
        *NORMALIZATIONS,
        ("centre", "spherical"),
        ("spherical", "centre", "unit_trace"),
        ("centre", "multiplicative"),
    ],
)
def test_training_points_as_new_points_give_the_training_matrices(steps):
    fitted = FAMILY.fit(X, normalize=steps)
    K = stack(fitted)
    np.testing.assert_array_equal(K, K.transpose(0, 2, 1))
    assert all(map(psd, K))
    C = fitted.cross(X)
    top = np.abs(K).max(axis=(1, 2))[:, None, None]
    np.testing.assert_allclose(C / top, K / top, atol=1e-12)
    np.testing.assert_array_equal(C[:, 4:9], fitted.cross(X[4:9]))


@pytest.mark.parametrize("steps", [*NORMALIZATIONS, ("centre", "spherical")])
def test_new_points_are_normalized_with_training_statistics(steps):
    """Explicit features of the polynomial (x + 1)² on one column: x², √2 x, 1."""
    column, new = X[:, [0]], X_NEW[:, [0]]

    def psi(x):
        return np.hstack([x**2, np.sqrt(2) * x, np.ones_like(x)])

    A, B = psi(column), psi(new)
    for step in [steps] if isinstance(steps, str) else steps:
        if step == "multiplicative":
            scale = np.sqrt(np.mean(np.sum((A - A.mean(axis=0)) ** 2, axis=1)))
            A, B = A / scale, B / scale
        if step == "unit_trace":
            A, B = A / np.linalg.norm(A), B / np.linalg.norm(A)
        if step == "centre":
            A, B = A - A.mean(axis=0), B - A.mean(axis=0)
        if step == "spherical":
            A, B = (P / np.linalg.norm(P, axis=1, keepdims=True) for P in (A, B))
    fitted = kernels.polynomials(2).fit(column, normalize=steps)
    np.testing.assert_allclose(stack(fitted)[0], A @ A.T, atol=1e-12)
    np.testing.assert_allclose(fitted.cross(new)[0], B @ A.T, atol=1e-12)


def test_a_constant_feature_gives_ones_and_no_nan():
    Z = np.column_stack([X[:, 0], np.full(17, 3.7)])
    family = kernels.rakotomamonjy() + kernels.gaussians("mean", on="single")
    for steps in (None, "unit_trace", "spherical"):
        fitted = family.fit(Z, normalize=steps)
        assert np.all(np.isfinite(stack(fitted))) and np.all(
            np.isfinite(fitted.cross(Z))
        )
    ones = [K for K, name in zip(family.fit(Z), fitted.names) if "mean) on x1" in name]
    np.testing.assert_array_equal(ones[0], 1.0)


@pytest.mark.parametrize(
    "family, steps, words",
    [
        (kernels.constant(), "multiplicative", "kernel 0, constant, is the same at"),
        (kernels.constant(), "centre", "constant, is the same .* centring"),
        (kernels.gaussians(2, "single"), "multiplicative", r"gaussian\(2\) on x1, is"),
        (kernels.polynomials(3, "single"), "centre", r"polynomial\(3\) on x1, is the"),
        (SINGLE, "unit_trace", "kernel 1, linear on x1, is zero"),
        (SINGLE, "spherical", "kernel 0, linear on x0, is zero at point 5"),
        (SINGLE, ("centre", "spherical"), "linear on x1, is the same"),
    ],
)
def test_what_cannot_be_normalized_is_named(family, steps, words):
    Z = np.column_stack([X[:, 0], np.zeros(17)])
    Z[5, 0] = 0.0
    fitted = family.fit(Z, normalize=steps)
    with pytest.raises(ValueError, match=words):
        list(fitted)
    with pytest.raises(ValueError, match=words):
        fitted.cross(Z)


def test_a_point_at_the_mean_has_no_place_on_the_sphere():
    Z = np.array([[0.1], [0.2], [0.3]])  # the centred kernel at 0.2 is rounding
    with pytest.raises(ValueError, match="linear, is zero at point 1"):
        list(kernels.linear().fit(Z, normalize=("centre", "spherical")))
    fitted = kernels.linear().fit(Z, normalize="spherical")
    with pytest.raises(ValueError, match="linear, is zero at point 1"):
        fitted.cross([[1.0], [0.0]])
