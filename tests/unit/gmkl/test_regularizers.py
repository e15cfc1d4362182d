"""Regularizers of kernel parameters: values, gradients, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mklopt.gmkl.families import Product
from mklopt.gmkl.regularizers import (
    Given,
    LogDeterminant,
    MixedNorm,
    Regularizer,
    SquaredNorm,
    Total,
    signs,
)
from tests.unit.gmkl.samples import D0, FAMILIES, REGULARIZERS, D, differences

NOTHING: Any = (1.0, None)


@pytest.mark.parametrize("name", REGULARIZERS)
def test_gradients_of_regularizers_are_those_of_finite_differences(name):
    price, d = REGULARIZERS[name], D0 + 0.1
    measured = differences(price.value, d)
    np.testing.assert_allclose(price.gradient(d), measured, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["half square", "p", "p = 2", "mixed", "mixed p"])
def test_norms_of_parameters_below_zero(name):
    price, d = REGULARIZERS[name], np.array([0.5, -0.2, 1.5, -0.4, 0.7])
    assert price.value(d) == pytest.approx(price.value(np.abs(d)))
    measured = differences(price.value, d)
    np.testing.assert_allclose(price.gradient(d), measured, rtol=1e-5, atol=1e-7)


def test_regularizers_are_what_they_say():
    assert REGULARIZERS["total"].value(D0) == pytest.approx(2.9)
    assert REGULARIZERS["half square"].value(D0) == pytest.approx(0.5 * 2.9**2)
    assert REGULARIZERS["p = 2"].value(D0) == pytest.approx(1.5 * np.sum(D0**2))
    assert REGULARIZERS["mixed"].value(D0) == pytest.approx(0.5 * (0.5**2 + 2.4**2))
    kernel = Product(D).combine(D0) + 1e-3 * np.eye(60)
    determinant = np.linalg.slogdet(kernel)[1]
    assert REGULARIZERS["log det"].value(D0) == pytest.approx(-0.1 * determinant)
    for price in (SquaredNorm(1.5), MixedNorm([range(5)], 2.0, 2.0)):
        assert np.all(np.isfinite(price.gradient(np.zeros(5))))


@pytest.mark.parametrize("weight", [-1.0, 0.0, np.nan, np.inf, "a", None])
def test_weights_are_positive(weight):
    for make in (Total, SquaredNorm, Regularizer):
        with pytest.raises(
            ValueError, match=f"{make.__name__}: weight = .* (positive|real number)"
        ):
            make(weight=weight)
    with pytest.raises(ValueError, match="weight ="):
        MixedNorm([[0, 1]], weight=weight)
    with pytest.raises(ValueError, match="weight ="):
        Given(np.sum, np.ones_like, weight=weight)


def test_a_singular_kernel_has_no_log_determinant():
    price = LogDeterminant(FAMILIES["sum"], ridge=0.0)
    with pytest.raises(ValueError, match="the kernel is singular"):
        price.value(np.zeros(5))


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: MixedNorm([[0, 1], [1]]), "share no kernel"),
        (lambda: SquaredNorm(0.5), "p = 0.5 is not a number"),
        (lambda: LogDeterminant(None), "takes the family"),
        (lambda: Given(*NOTHING), "two functions"),
        (lambda: MixedNorm([[0, 1]]).validate(5), "list every kernel 0 to 4"),
        (lambda: LogDeterminant(Product(D[:2])).validate(5),
         "a family with 2 parameters, but the problem has 5"),
    ],
)  # fmt: skip
def test_bad_input_gets_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_a_regularizer_states_value_and_gradient():
    with pytest.raises(TypeError, match="Regularizer states no value"):
        Regularizer().value(D0)
    with pytest.raises(TypeError, match="Regularizer states no gradient"):
        Regularizer().gradient(D0)
    np.testing.assert_array_equal(signs(np.array([-2.0, 0.0, 3.0])), [-1, 1, 1])
