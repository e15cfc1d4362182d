"""Kernel families: values, gradients, new points, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mklopt.gmkl.families import KernelFamily, Polynomial, Product
from tests.unit.gmkl.samples import D0, FAMILIES, D, K, X, differences

TEXT: Any = "a"


def test_kernels_are_what_they_say():
    np.testing.assert_allclose(FAMILIES["sum"].combine(D0), np.tensordot(D0, K, 1))
    product = np.prod([np.exp(-d * m) for d, m in zip(D0, D)], axis=0)
    np.testing.assert_allclose(FAMILIES["product"].combine(D0), product)
    cubic = (0.5 + np.tensordot(D0, K, 1)) ** 3
    np.testing.assert_allclose(FAMILIES["polynomial"].combine(D0), cubic)
    same = Product.from_features(X).combine(D0)
    np.testing.assert_allclose(same, product)


@pytest.mark.parametrize("name", FAMILIES)
def test_kernels_stay_positive_semi_definite(name):
    for d in (D0, 10 * D0, np.zeros(5)):
        values = np.linalg.eigvalsh(FAMILIES[name].combine(d))
        assert values[0] >= -1e-10 * max(values[-1], 1.0)


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_of_families_are_those_of_finite_differences(name):
    family, alpha = FAMILIES[name], np.random.default_rng(0).normal(size=60)
    measured = differences(lambda d: alpha @ family.combine(d) @ alpha, D0 + 0.1)
    np.testing.assert_allclose(family.gradient(D0 + 0.1, alpha), measured, rtol=1e-6)
    S = np.random.default_rng(1).normal(size=(60, 60))
    measured = differences(lambda d: np.sum((S + S.T) * family.combine(d)), D0 + 0.1)
    found = family.derivative(D0 + 0.1, S + S.T)
    np.testing.assert_allclose(found, measured, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_new_points_get_the_same_kernel(name):
    family = FAMILIES[name]
    given = (D if name == "product" else K)[:, :7]
    np.testing.assert_allclose(family.cross(D0, given), family.combine(D0)[:7])
    with pytest.raises(ValueError, match=r"expected .5, n_test, 60"):
        family.cross(D0, given[:, :, :3])


def broken(change):
    wrong = D.copy()
    change(wrong)
    return wrong


@pytest.mark.parametrize(
    "distances, words",
    [
        (broken(lambda d: d.__setitem__((1, 0, 2), -1.0)), "1 has a negative entry"),
        (broken(lambda d: d.__setitem__((2, 0, 0), np.nan)), "2 has NaN or infinite"),
        (broken(lambda d: d.__setitem__((0, 3, 1), np.inf)), "0 has NaN or infinite"),
        (broken(lambda d: d.__setitem__((0, 3, 1), 9.0)), "not symmetric"),
        (D[0], r"expected \(M, n, n\)"),
        ([], "at least one"),
        (None, "distances = None; give"),
        (3, "distances = 3; give"),
        (K, "0 has 1 on its diagonal"),
    ],
)
def test_wrong_distances_get_a_sentence(distances, words):
    with pytest.raises(ValueError, match=words):
        Product(distances)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Polynomial(K, degree=0), "whole number ≥ 1"),
        (lambda: Polynomial(K, offset=-1.0), "offset ≥ 0"),
        (lambda: Polynomial(K, offset=TEXT), "offset = 'a'"),
        (lambda: Polynomial(K, offset=np.inf), "finite number, offset ≥ 0"),
        (lambda: Product.from_features(X[0]), r"expected \(n, d\)"),
        (lambda: FAMILIES["sum"].stack.against(np.eye(3)), r"expected \(60, 60\)"),
    ],
)
def test_bad_input_gets_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_a_family_states_its_function_and_its_derivative():
    family = KernelFamily(K)
    with pytest.raises(TypeError, match="no function of the sum"):
        family.combine(D0)
    with pytest.raises(TypeError, match="no derivative"):
        family.slope(K[0])
    assert repr(FAMILIES["product"]) == "Product(M=5, n=60)"
