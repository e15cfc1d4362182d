"""Intervals through optimality conditions contain what is optimal."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem
from mklopt.certificates.optimality import (
    Interval,
    dual_domain,
    dual_from_predictions,
    norms_from_dual,
    predictions_from_dual,
    unknown,
    unused_kernels,
    weights_from_norms,
)
from mklopt.formulations import VSKL, ElasticNet, GroupLasso, LpNorm

Y = np.array([1.0, -1.0, 1.0, -1.0])


def problem(loss="hinge", formulation=None, M=3, C=2.0):
    K = np.stack([np.eye(4)] * M)
    return Problem(GramStack(K), Y, loss, formulation or LpNorm(2), C)


def around(x, room=1e-3):
    x = np.asarray(x, float)
    return Interval(x - room, x + room)


def holds(found: Interval, x, width=np.inf):
    inside = np.all(found.lower <= x) and np.all(x <= found.upper)
    return inside and np.all(found.upper - found.lower <= width)


@pytest.mark.parametrize("formulation", [ElasticNet(0.5), LpNorm(4 / 3), LpNorm(2)])
def test_norms_and_weights_are_those_of_the_gradient_of_omega(formulation):
    """At u and v = ∇Ω(u): weights are u/v, and norms come back from v."""
    p, u, h = problem(formulation=formulation), np.array([0.5, 1.0, 2.0]), 1e-6
    values = [p.formulation.value(u + s * h * e) for e in np.eye(3) for s in (1, -1)]
    v = (np.array(values[::2]) - np.array(values[1::2])) / (2 * h)
    assert holds(norms_from_dual(p, around(v)), u, 0.05)
    assert holds(weights_from_norms(p, around(u)), u / v, 0.05)
    assert holds(weights_from_norms(p, Interval(0 * u, 0 * u)), 0 * u, 0)


def test_on_a_simplex_a_kernel_is_unused_below_the_largest_norm_and_not_above():
    v = Interval(np.array([1.0, 0.9, 0.5]), np.array([1.2, 1.1, 0.99]))
    found = unused_kernels(problem("squared", LpNorm(p=1)), v)
    assert found.tolist() == [False, False, True]


def test_below_its_price_or_the_best_of_its_group_a_kernel_is_unused():
    v = Interval(np.array([0.2, 0.9, 0.5]), np.array([0.3, 1.1, 0.99]))
    lasso = unused_kernels(problem(formulation=GroupLasso()), v)
    assert lasso.tolist() == [True, False, True]
    groups = unused_kernels(problem(formulation=VSKL([[0, 1], [2]])), v)
    assert groups.tolist() == [True, False, False]
    assert not np.any(unused_kernels(problem(), v))


@pytest.mark.parametrize("loss", ["logistic", "squared", "huber", "hinge"])
def test_dual_variables_are_slopes_of_the_loss(loss):
    f, p = np.array([0.3, 0.4, 2.0, -0.2]), problem(loss)
    alpha = -2.0 * p.loss.gradient(f, Y)
    assert holds(dual_from_predictions(p, around(f)), alpha, 0.02)
    assert holds(dual_domain(p), alpha)
    known = dual_from_predictions(p, around(f))
    if loss == "hinge":  # away from the kink α is one number
        assert np.all(known.lower == known.upper)


def test_at_a_kink_the_slope_is_not_known():
    found = dual_from_predictions(problem("hinge"), around(Y))
    assert np.all(found.upper - found.lower == 2.0)


def test_predictions_come_back_from_dual_variables():
    f, p = np.array([0.3, 0.4, 2.0, -0.2]), problem("logistic")
    alpha = -2.0 * p.loss.gradient(f, Y)
    assert holds(predictions_from_dual(p, around(alpha, 1e-6)), f, 1e-3)
    assert not np.any(predictions_from_dual(problem("hinge"), around(alpha)).known)


def test_meet_and_unknown():
    nothing = unknown((2,), 0.0)
    assert not np.any(nothing.known) and np.all(nothing.lower == 0)
    both = nothing.meet(Interval(np.array([-1.0, 1.0]), np.array([2.0, 3.0])))
    assert both.lower.tolist() == [0, 1] and both.upper.tolist() == [2, 3]
