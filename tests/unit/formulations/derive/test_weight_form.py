"""Kernel weights that a declaration has as a variable."""

import cvxpy as cp
import numpy as np
import pytest

from mklopt import formulation
from mklopt.formulations.derive.weight_form import weight_form
from mklopt.formulations.norms import declared_quadratic

M = 4
X, THETA = cp.Variable(M, nonneg=True), cp.Variable(M, nonneg=True)


def _written(u, half, price):
    theta = cp.Variable(u.shape, nonneg=True)
    terms = [cp.quad_over_lin(u[m], theta[m]) for m in range(u.size)]
    return half(terms) + price(theta)


@pytest.mark.parametrize(
    "half",
    [
        lambda terms: 0.5 * sum(terms),
        lambda terms: 0.5 * cp.sum(cp.hstack(terms)),
        lambda terms: sum(0.5 * each for each in terms),
        lambda terms: cp.sum(terms) * 0.5,
        lambda terms: sum(terms) / 2,
    ],
)
def test_weights_may_be_a_variable_of_the_declaration(half):
    mine = formulation(lambda u: _written(u, half, lambda t: 0.5 * cp.sum(t)))
    assert mine.twin(M).words == "GroupLasso()" and mine.bound(M).exact


@pytest.mark.parametrize(
    "declare",
    [
        lambda u: _written(u, sum, cp.sum),  # Σu²/θ: without the half
        lambda u: _written(u[:3], lambda terms: 0.5 * sum(terms), cp.sum) + cp.sum(u),
        lambda u: _written(u, lambda terms: 0.5 * (sum(terms) + terms[0]), cp.sum),
        lambda u: _written(u, lambda terms: 0.5 * sum(terms), lambda t: t[0] + u[0]),
        lambda u: _written(u[::-1], lambda terms: 0.5 * sum(terms), cp.sum),
    ],
)
def test_other_quotients_have_no_twin(declare):
    assert formulation(declare).twin(M) is None


def test_the_cones_of_this_package_are_read():
    half, cones = declared_quadratic(X, THETA)
    bound = cp.norm(THETA, 2) <= 1
    found = weight_form(half + cp.sum(THETA), [*cones, bound], X)
    assert found is not None and found.theta is THETA and found.constraints == [bound]
    THETA.value = np.arange(M)
    assert found.price.value == pytest.approx(6)
    assert weight_form(half, [*cones, X[0] <= 1], X) is None
    assert weight_form(2 * half, cones, X) is None
    assert weight_form(half, [cp.SOC(cp.sum(THETA), X)], X) is None
