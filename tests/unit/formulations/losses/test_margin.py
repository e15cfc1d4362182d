"""Hinge, one-class and logistic loss at points where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem
from mklopt.formulations import LpNorm, losses_by_name
from mklopt.formulations.losses.margin import (
    Hinge,
    Logistic,
    OneClass,
    SquaredHinge,
)

Y = np.array([1.0, -1.0, 1.0])


def test_hinge():
    loss, f = Hinge(), np.array([0.4, -3.0, -1.0])
    assert loss.value(f, Y) == pytest.approx([0.6, 0.0, 2.0])
    assert loss.gradient(f, Y) == pytest.approx([-1.0, 0.0, -1.0])
    assert loss.prox(f, Y, 0.5) == pytest.approx([0.9, -3.0, -0.5])
    assert loss.prox(f, Y, 5.0) == pytest.approx([1.0, -3.0, 1.0])
    assert loss.conjugate(np.array([-0.5, 0.5, 0.1]), Y) == pytest.approx(
        [-0.5, -0.5, np.inf]
    )
    assert loss.best_bias(np.zeros(3), Y, np.array([1.0, 5.0, 1.0])) == -1.0


def test_one_class_is_the_hinge_of_ones():
    loss, ones = OneClass(), np.ones(2)
    assert loss.value(np.array([0.0, 2.0]), ones) == pytest.approx([1.0, 0.0])
    assert not loss.bias_allowed and loss.labels == "ones" and loss.name == "one_class"
    assert loss.pointwise() == Hinge().pointwise()


def test_logistic():
    loss, f = Logistic(), np.array([0.0, 2.0, -800.0])
    assert loss.value(f, Y) == pytest.approx([np.log(2), np.log1p(np.exp(2.0)), 800.0])
    assert loss.gradient(f, Y) == pytest.approx([-0.5, 1 / (1 + np.exp(-2.0)), -1.0])
    assert loss.curvature(f, Y)[0] == 0.25
    a = np.array([-0.3, 0.9, -0.5])
    assert loss.gradient(loss.inverse(a, Y), Y) == pytest.approx(a)
    assert loss.root(a, Y) ** 2 == pytest.approx(loss.curvature(loss.inverse(a, Y), Y))


@pytest.mark.parametrize("step", [1e-3, 1.0, 15.0, 30.0, 1e4])
def test_prox_of_the_logistic_loss_is_stationary_for_steps_of_any_size(step):
    """Plain Newton steps run in cycles for margins near −step/2 and large steps."""
    y = np.where(np.arange(4001) % 2 == 0, 1.0, -1.0)
    f = y * np.linspace(-2 * step - 20.0, step + 20.0, 4001)
    z = Logistic().prox(f, y, step)
    slope = (f - z) / step
    assert slope == pytest.approx(Logistic().gradient(z, y), abs=1e-11 + 1e-13 / step)


def test_domains_are_intervals_of_slopes():
    for loss in (Hinge(), Logistic()):
        domain = loss.domain(Y)
        assert list(domain.low) == [-1.0, 0.0, -1.0]
        assert list(domain.high) == [0.0, 1.0, 0.0]


# ---- the squared hinge ---------------------------------------------------------------

SIGNS = np.array([1.0, -1.0, 1.0, -1.0])
F = np.array([0.3, 0.2, 1.7, -2.0])
LOSS = SquaredHinge()


def test_squared_hinge_values_and_slopes():
    np.testing.assert_allclose(LOSS.value(F, SIGNS), [0.245, 0.72, 0, 0])
    np.testing.assert_allclose(LOSS.gradient(F, SIGNS), [-0.7, 1.2, 0, 0])
    np.testing.assert_allclose(LOSS.expression(F, SIGNS).value, LOSS.value(F, SIGNS))


def test_squared_hinge_conjugate_is_that_of_the_value():
    """V(f) + V*(V'(f)) = f V'(f), and V* = ∞ on the wrong side."""
    a = LOSS.gradient(F, SIGNS)
    np.testing.assert_allclose(LOSS.value(F, SIGNS) + LOSS.conjugate(a, SIGNS), F * a)
    assert np.all(np.isinf(LOSS.conjugate(SIGNS, SIGNS)))


def test_squared_hinge_prox_minimizes():
    z, step = LOSS.prox(F, SIGNS, 0.7), 0.7
    np.testing.assert_allclose(z - F + step * LOSS.gradient(z, SIGNS), 0, atol=1e-14)


@pytest.mark.parametrize("bias", [True, False])
def test_squared_hinge_is_solved_like_its_declaration(bias):
    rng = np.random.default_rng(0)
    L = rng.normal(size=(2, 20, 3))
    y = np.sign(L[0, :, 0] + 0.3 * rng.normal(size=20))
    grams = GramStack(L @ L.transpose(0, 2, 1))
    problem = Problem(grams, y, LOSS, LpNorm(p=2), C=2.0, bias=bias)
    found, exact = mklopt.solve(problem, tol=1e-8), mklopt.reference.solve(problem)
    assert found.converged
    assert (
        found.certificate.lower <= exact.upper <= found.certificate.upper * (1 + 1e-7)
    )


def test_squared_hinge_is_not_offered_by_name():
    assert "squared_hinge" not in losses_by_name()
