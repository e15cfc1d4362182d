"""Hinge, one-class and logistic loss at points where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.formulations.losses.margin import Hinge, Logistic, OneClass

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
