"""Entries of exact kernels: sums over blocks, normalizations, bounds of rounding."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from mklopt import kernels
from mklopt.kernels import entries as module
from mklopt.kernels.entries import Entries, Products, chain
from mklopt.kernels.psd_theorem import EXP
from mklopt.util import threads

rng = np.random.default_rng(5)
X = rng.normal(size=(300, 4))
FAMILY = (
    kernels.gaussians([0.7, "mean"], on="both")
    + kernels.polynomials([1, 3], offset=0.5)
    + kernels.linear(on="single")
    + kernels.constant()
)
STEPS = [None, "unit_trace", "spherical", ("spherical", "unit_trace")]


@pytest.mark.parametrize("steps", STEPS)
def test_products_are_those_of_the_stored_matrices(steps):
    fitted = FAMILY.fit(X, steps)
    K, which = fitted.grams().dense(), np.sort(rng.permutation(300)[:120])
    for c in (rng.normal(size=(120, 2)), rng.normal(size=(fitted.M, 120, 1))):
        products = Products(Entries.of(fitted), which, c)
        found = products.at(slice(20, 90))
        expected = K[:, 20:90][:, :, which] @ c
        top = np.max(np.abs(expected), axis=(1, 2), keepdims=True)
        np.testing.assert_allclose(found / top, expected / top, atol=1e-13)


def test_one_group_has_all_kernels_on_the_same_features():
    groups = Entries.of((FAMILY + kernels.gaussians(2)).fit(X)).groups
    sizes = sorted(len(group.numbers) for group in groups)
    # all features: three Gaussians, two polynomials; single ones: two, and one linear
    assert sizes == [1] * 5 + [2] * 5 + [3]


def test_a_users_function_is_asked_block_by_block():
    own = kernels.function(lambda A, B: np.minimum.outer(A[:, 0], B[:, 0]), "least")
    Z = np.abs(X)
    fitted = own.fit(Z)
    entries = Entries.of(fitted)
    c = rng.normal(size=(300, 1))
    found = Products(entries, np.arange(300), c).at(slice(None))
    np.testing.assert_allclose(found, fitted.grams().dense() @ c, rtol=1e-12)
    assert entries.own and not Entries.of(FAMILY.fit(X)).own


def test_the_sum_of_kernels_between_some_points():
    fitted = FAMILY.fit(X, "spherical")
    theta = rng.random(fitted.M) * (rng.random(fitted.M) < 0.7)
    which = np.array([4, 9, 200])
    found = Entries.of(fitted).combined(theta, which)
    expected = fitted.grams().combine(theta)[np.ix_(which, which)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(threads, "MIN_SHARED_WORK", 0)
    products = Products(Entries.of(FAMILY.fit(X)), np.arange(300), X[:, :1])
    found = []
    for k in (1, 2, 3):
        with threads.threads(k):
            found.append(products.at(slice(None)))
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()
    parts = [products.at(slice(a, a + 50)) for a in range(0, 300, 50)]
    assert np.concatenate(parts, axis=1).tobytes() == found[0].tobytes()


def test_sums_over_several_bands(monkeypatch):
    """More than STRIP · BAND points: bands are added up."""
    n = module.STRIP * module.BAND + 300
    Z = np.zeros((n, 1))
    products = Products(Entries.of(kernels.gaussians(1).fit(Z)), np.arange(n), Z + 1)
    np.testing.assert_array_equal(products.at(slice(0, 3)).ravel(), [n] * 3)
    assert 256 < chain(n) < 1400 and chain(10) == 14


# ---- rounding ------------------------------------------------------------------------


def true_kernel(kernel, x, z, mean):
    """k(x, z) with 60 digits, of the float64 points."""
    x = [mpmath.mpf(float(v)) for v in np.atleast_1d(x[kernel.columns,].ravel())]
    z = [mpmath.mpf(float(v)) for v in np.atleast_1d(z[kernel.columns,].ravel())]
    rule = kernel.rule
    if hasattr(rule, "degree"):
        t = mpmath.fsum(a * b for a, b in zip(x, z))
        return (t + mpmath.mpf(rule.offset)) ** rule.degree
    t = mpmath.fsum((a - b) ** 2 for a, b in zip(x, z))
    return mpmath.exp(-t / mpmath.mpf(float(rule.scale or mean)))


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("size", [1.0, 30.0, 1e-3])
def test_errors_are_below_their_bounds_and_these_are_not_absurd(steps, size):
    points = size * rng.normal(size=(12, 4))
    fitted = FAMILY.fit(points, steps)
    entries, c = Entries.of(fitted), rng.normal(size=(12, 1))
    products = Products(entries, np.arange(12), c)
    found, spread = products.at(slice(None)), products.spread
    with mpmath.workdps(60):
        for m, kernel in enumerate(entries.kernels):
            A, r = entries.points(m), entries.root_squares(m)
            roots = entries.roots(m, A)
            roots = np.ones(12) if roots is None else roots
            for i in range(12):
                total = mpmath.mpf(0)
                for j in range(12):
                    k = true_kernel(kernel, points[i], points[j], entries.means[m])
                    k /= mpmath.mpf(float(roots[i])) * mpmath.mpf(float(roots[j]))
                    k /= mpmath.mpf(float(entries.traces[m]))
                    assert i != j or mpmath.sqrt(k) <= mpmath.mpf(float(r[i]))
                    total += k * mpmath.mpf(float(c[j, 0]))
                error = abs(mpmath.mpf(float(found[m, i, 0])) - total)
                assert error <= mpmath.mpf(float(r[i] * spread[m, 0]))
            assert spread[m, 0] <= 1e-13 * np.sum(r * np.abs(c[:, 0]))


def test_an_error_as_large_as_the_bound_occurs():
    """The exponential of large distances: most of the bound is needed."""
    Z = 3 + rng.normal(size=(400, 60))
    entries = Entries.of(kernels.gaussians("mean").fit(Z))
    c = np.ones((1, 1))
    found = Products(entries, np.arange(1), c).at(slice(None)).ravel()
    with mpmath.workdps(40):
        kernel = entries.kernels[0]
        true = [true_kernel(kernel, Z[i], Z[0], entries.means[0]) for i in range(400)]
        worst = max(abs(mpmath.mpf(float(a)) - b) for a, b in zip(found, true))
    assert entries.error(0) / 1000 < worst <= entries.error(0)


@pytest.mark.parametrize("d", [1, 2, 10, 300])
def test_the_bound_of_an_entry_counts_every_step(d):
    """Exponent −t: relative error γ_{d+4}, and t e^{−t} ≤ 1/e; then the exponential's.

    Powers: p (d + 3) roundings. Computed entries are off by much less, so that only
    the sum of the bounds shows a step that was left out.
    """
    family = kernels.gaussians(1.0) + kernels.polynomials([1, 3])
    entries = Entries.of(family.fit(np.ones((2, d))))
    unit = Fraction(1, 2**53)
    rho = (d + 4) * unit / (1 - (d + 4) * unit)
    with mpmath.workdps(60):
        exponent = mpmath.mpf(rho.numerator) / rho.denominator * mpmath.exp(-1)
        assert mpmath.mpf(entries.error(0)) >= exponent + mpmath.mpf(EXP)
    for m, degree in ((1, 1), (2, 3)):
        assert Fraction(entries.error(m)) >= degree * (d + 3) * unit


# ---- what is refused -----------------------------------------------------------------


@pytest.mark.parametrize("steps", ["centre", "multiplicative", ("centre", "spherical")])
def test_normalizations_that_need_matrices_are_refused(steps):
    with pytest.raises(ValueError, match="needs whole kernel matrices; choose spher"):
        Entries.of(kernels.gaussians(1).fit(X, steps))


def test_given_distances_and_zero_points_are_refused():
    D = np.abs(X[:, :1] - X[:, :1].T)
    with pytest.raises(ValueError, match="given distances have no points"):
        Entries.of(kernels.from_distances(D[None]))
    entries = Entries.of(kernels.linear().fit(np.vstack([X, 0 * X[:1]])))
    entries.spherical = True
    with pytest.raises(ValueError, match="linear, is zero at a point"):
        entries.roots(0, np.zeros((1, 4)))
    with pytest.raises(ValueError, match="has the trace 0; drop it"):
        Entries.of(kernels.linear().fit(np.zeros((3, 2)), "unit_trace"))
