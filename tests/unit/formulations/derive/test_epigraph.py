"""Everything that follows from the epigraph of one declared function."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from mklopt.formulations.derive.declaration import split
from mklopt.formulations.derive.epigraph import DerivationError, Epigraph


def ridge(x):
    return 0.5 * cp.sum_squares(x) + cp.sum(x) + 3


def ridge_with_auxiliaries(x):
    t = cp.Variable(x.shape)
    return 0.5 * cp.sum_squares(t) + cp.sum(t) + 3, [t >= x]


@pytest.mark.parametrize("declare", [ridge, ridge_with_auxiliaries])
def test_operators_of_a_function_on_the_orthant(declare):
    epi = Epigraph(declare, (2,), nonneg=True)
    x, step = np.array([0.5, 2.0]), np.array([1.0, 0.5])
    assert epi.value(x)[0] == pytest.approx(0.5 * x @ x + x.sum() + 3, rel=1e-8)
    assert epi.subgradient(x) == pytest.approx(x + 1, rel=1e-6)
    assert epi.conjugate(np.array([3.0, 0.5]))[0] == pytest.approx(-1, rel=1e-7)
    prox = np.maximum(x - step, 0) / (1 + step)
    assert epi.prox(x, step) == pytest.approx(prox, abs=1e-5)


def test_the_domain_of_the_conjugate_is_known_by_its_recession():
    epi = Epigraph(lambda x: cp.sum(x) + cp.norm(x), (2,), nonneg=True)
    v = np.array([4.0, 0.0])
    assert epi.feasible_scale(v) == pytest.approx(0.5, rel=1e-7)  # slope 2 along e_1
    assert epi.feasible_scale(np.zeros(2)) == np.inf
    assert epi.conjugate(0.99 * 0.5 * v)[0] == pytest.approx(0, abs=1e-7)
    assert epi.conjugate(1.01 * 0.5 * v)[0] == np.inf


@pytest.mark.parametrize(
    "declare, slope",
    [
        (lambda x: cp.abs(x), 1.0),
        (lambda x: cp.square(x), np.inf),
        (lambda x: cp.logistic(2 * x), 2.0),
        (lambda x: cp.Variable(1, name="t") * 0 + cp.abs(3 * x), 3.0),
    ],
)
def test_slopes_at_infinity(declare, slope):
    epi = Epigraph(declare, (1,))
    assert epi.slope_at_infinity(np.ones(1)) == pytest.approx(slope, rel=1e-5)


def test_heights_are_told_apart_and_must_not_be_coupled():
    scale = np.array([1.0, 2.0, 4.0])
    epi = Epigraph(lambda x: 0.5 * cp.multiply(scale, cp.square(x)), (3,), heights=3)
    a = np.array([1.0, -2.0, 3.0])
    assert epi.conjugate(a) == pytest.approx(0.5 * a**2 / scale, rel=1e-7)
    assert epi.value(a) == pytest.approx(0.5 * scale * a**2)
    coupled = Epigraph(lambda x: cp.abs(x + cp.sum(x)), (3,), heights=3)
    with pytest.raises(DerivationError, match="couples several samples"):
        coupled.conjugate(np.zeros(3))


def test_the_support_function_as_constraints_is_the_conjugate():
    for declare in (
        lambda x: 0.5 * cp.sum_squares(x),
        lambda x: cp.sum(cp.power(x, 1.5)),
        lambda x: cp.sum(cp.exp(x)),
        lambda x: cp.norm(x) + cp.max(x),
    ):
        epi = Epigraph(declare, (2,), nonneg=True)
        g = cp.Variable(2)
        v = np.array([1.2, 0.4])
        expression, constraints = epi.support_program(g, np.array([-1.0]))
        program = cp.Problem(cp.Minimize(expression), [g == v, *constraints])
        program.solve(solver=cp.CLARABEL)
        expected = epi.conjugate(v)[0]
        if np.isfinite(expected):
            assert program.value == pytest.approx(expected, abs=1e-6)
        else:
            assert program.status == "infeasible"


def test_values_outside_the_constraints_are_infinite():
    epi = Epigraph(lambda x: (cp.sum(x), [cp.sum(x) <= 1]), (2,), nonneg=True)
    assert epi.value(np.array([0.2, 0.3]))[0] == pytest.approx(0.5, rel=1e-7)
    assert epi.value(np.array([2.0, 0.3]))[0] == np.inf


def test_what_cannot_be_derived_is_an_error():
    semidefinite = Epigraph(lambda x: cp.lambda_max(cp.diag(x)), (2,), nonneg=True)
    with pytest.raises(DerivationError, match="semidefinite"):
        semidefinite.cones  # noqa: B018
    with pytest.raises(ValueError, match="it must be 3 numbers"):
        Epigraph(lambda x: cp.sum(x), (3,), heights=3).cones  # noqa: B018


def test_a_declaration_may_come_with_constraints():
    assert split(1) == (1, [])
    assert split((1, (2, 3))) == (1, [2, 3])
