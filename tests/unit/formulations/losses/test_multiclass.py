"""Losses with k outputs at points where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from mklopt.formulations.losses.multiclass import MulticlassHinge, Multinomial, one_hot

Y = np.array([0, 1, 2, 1])
RNG = np.random.default_rng(0)
F = np.array([[0.0, 0.5, -1.0], [0.0, 3.0, 1.0], [1.0, 1.0, 1.0], [2.0, 0.0, 0.0]])


def test_values():
    assert MulticlassHinge().value(F, Y) == pytest.approx([1.5, 0.0, 1.0, 3.0])
    expected = logsumexp(F, axis=1) - F[np.arange(4), Y]
    assert Multinomial().value(F, Y) == pytest.approx(expected)
    assert one_hot(Y, 3).tolist()[2] == [0.0, 0.0, 1.0]
    assert MulticlassHinge().margins(Y) == pytest.approx(1 - one_hot(Y, 3))


@pytest.mark.parametrize("loss", [MulticlassHinge(), Multinomial()], ids=repr)
@pytest.mark.parametrize("step", [0.1, 3.0, 50.0])
def test_prox_is_stationary(loss, step):
    f = 5 * RNG.normal(size=(4, 3))
    z = loss.prox(f, Y, step)
    g = (f - z) / step
    inside = -loss.domain(Y).restore(-g, np.ones(4), bias=False)
    assert g == pytest.approx(inside, abs=1e-10)
    excess = loss.value(z, Y) + loss.conjugate(inside, Y) - np.sum(inside * z, axis=1)
    assert excess == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("loss", [MulticlassHinge(), Multinomial()], ids=repr)
def test_slopes_attain_the_conjugate_and_lie_in_the_simplex(loss):
    g = loss.gradient(F, Y)
    assert np.sum(g, axis=1) == pytest.approx(0.0, abs=1e-15)
    excess = loss.value(F, Y) + loss.conjugate(g, Y) - np.sum(g * F, axis=1)
    assert excess == pytest.approx(0.0, abs=1e-12)
    assert np.all(np.isinf(loss.conjugate(g + 0.1, Y)))


@pytest.mark.parametrize("loss", [MulticlassHinge(), Multinomial()], ids=repr)
def test_the_best_bias_balances_the_slopes(loss):
    f = RNG.normal(size=(60, 3))
    y, C = np.arange(60) % 3, RNG.uniform(0.5, 2.0, 60)
    b = loss.best_bias(f, y, C)
    best = C @ loss.value(f + b, y)
    for _ in range(30):
        other = b + 0.05 * RNG.normal(size=3)
        assert C @ loss.value(f + other, y) >= best - 1e-9
    if loss.twice_differentiable:
        assert C @ loss.gradient(f + b, y) == pytest.approx(np.zeros(3), abs=1e-6)


def test_the_inverse_and_the_root_of_the_multinomial_loss():
    loss = Multinomial()
    a = loss.gradient(F, Y)
    assert loss.gradient(loss.inverse(a, Y), Y) == pytest.approx(a)
    g, R = a + one_hot(Y, 3), loss.root(a, Y)
    for i in range(4):
        assert R[i] @ R[i].T == pytest.approx(np.diag(g[i]) - np.outer(g[i], g[i]))
