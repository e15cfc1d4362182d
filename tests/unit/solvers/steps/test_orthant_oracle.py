"""F(t) = J(θ(t)) + cΣt: the formulation it stands for, and its derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem
from mklopt import formulations as F
from mklopt.solvers.machines import smooth
from mklopt.solvers.machines.factory import machine_for
from mklopt.solvers.machines.smooth import SmoothMachine
from mklopt.solvers.steps.orthant_oracle import Orthant
from tests.problems import subset_gaussians


@pytest.mark.parametrize("formulation", [F.GroupLasso(), F.ElasticNet(0.3)], ids=repr)
def test_the_orthant_is_the_formulation(formulation):
    """Ω(u) = min over t ≥ 0 of ½Σu²(1/t + κ) + cΣt, on a fine grid of t."""
    c, kappa = formulation.orthant
    t = np.geomspace(1e-3, 1e3, 200_001)
    for u in (0.05, 0.7, 3.0):
        least = np.min(0.5 * u**2 * (1 / t + kappa) + c * t)
        assert formulation.value(np.array([u])) == pytest.approx(least, rel=1e-8)


def orthant(formulation, loss="hinge") -> Orthant:
    K, y = subset_gaussians(40, 5)
    p = Problem(GramStack(K), y, loss, formulation, 1.0)
    machine = machine_for(p, second_order=True)
    machine.tol = 1e-12
    return Orthant(p, machine)


def at(oracle: Orthant, t: np.ndarray) -> Orthant:
    assert list(oracle.solve(t)) == []
    return oracle


@pytest.mark.parametrize("formulation", [F.GroupLasso(), F.ElasticNet(0.3)], ids=repr)
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_derivatives_are_those_of_differences(formulation, loss, monkeypatch):
    monkeypatch.setattr(smooth, "USEFUL_FALL", 0.0)  # a factorization for every step
    oracle, h = orthant(formulation, loss), 1e-4
    t, every = np.array([0.6, 0.3, 1.0, 0.8, 0.5]), np.arange(5)
    slope = at(oracle, t).slope.copy()
    H = oracle.hessian(every).copy()
    for m in every:
        e = h * (every == m)
        up, above = at(oracle, t + e).value, oracle.slope.copy()
        down, below = at(oracle, t - e).value, oracle.slope.copy()
        assert (up - down) / (2 * h) == pytest.approx(slope[m], rel=1e-4, abs=1e-6)
        size = np.max(np.abs(H[m]))
        np.testing.assert_allclose((above - below) / (2 * h), H[m], atol=2e-3 * size)


def test_weights_go_both_ways_and_the_gap_is_that_of_the_inner_problem():
    oracle = orthant(F.ElasticNet(0.3))
    t = np.array([0.6, 0.0, 1.0, 0.8, 0.5])
    np.testing.assert_allclose(oracle.of_weights(at(oracle, t).weights), t, rtol=1e-12)
    assert oracle.machine.gap <= oracle.gap <= 1e-9
    iterate = oracle.iterate()
    np.testing.assert_array_equal(iterate.weights, oracle.weights)


def test_a_predicted_move_is_a_better_start():
    """α + the first-order change is nearer to the next α than α is."""
    oracle, every = orthant(F.GroupLasso(), "logistic"), np.arange(5)
    t, step = np.full(5, 0.5), np.array([0.02, 0.0, -0.01, 0.01, 0.0])
    before = at(oracle, t).machine.point.copy()
    oracle.hessian(every)
    oracle.extrapolate(every, step, np.ones(len(step)))
    assert isinstance(oracle.machine, SmoothMachine)
    predicted = before + oracle.machine.move
    after = at(oracle, t + step).machine.point
    assert np.linalg.norm(predicted - after) < 0.2 * np.linalg.norm(before - after)


@pytest.mark.parametrize("huge", [1e110, 1e160, 1e305])
def test_a_huge_t_has_no_effect_and_gives_no_warning(huge):
    """(1 + κt)³ or (1 + κt)² overflows: θ is 1/κ, whatever t is."""
    oracle, every = orthant(F.ElasticNet(0.3)), np.arange(5)
    at(oracle, np.array([0.6, 0.3, huge, 0.8, 0.5]))
    H = oracle.hessian(every)
    assert np.all(np.isfinite(H)) and oracle.slope[2] == oracle.c
    np.testing.assert_allclose(H[2], 0.0, atol=1e-200)
    assert np.all(np.diag(H)[every != 2] > 0)
