"""The inner solver of twice differentiable losses: its gap, J and its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem, reference
from mklopt import formulations as F
from mklopt.reference.contract_problems import load
from mklopt.solvers.machines import smooth
from mklopt.solvers.machines.smooth import SmoothMachine
from tests.problems import subset_gaussians

WDBC, TARGETS = load("wdbc")
K, Y = subset_gaussians(120, 40)
GRAMS = GramStack(K)


def problem(formulation, loss="hinge", C=1.0, grams=GRAMS, **more) -> Problem:
    return Problem(grams, Y, loss, formulation, C, **more)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [0.1, 100.0])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_it_meets_the_reference_at_fixed_weights(loss, C, bias):
    theta = np.array([1.0, 0.5, 2.0])
    y = TARGETS[F.losses_by_name()[loss]().labels]
    part = WDBC.subset(np.arange(3))
    p = Problem(part, y, loss, F.FixedWeights(theta), C, bias)
    machine = SmoothMachine(p, None)
    machine.tol = 1e-9
    machine.solve(theta)
    exact = reference.solve(p, tol=1e-7)
    assert -1e-12 <= machine.gap <= 1e-9
    slack = 1e-6 * abs(exact.upper)
    assert exact.lower - slack <= machine.J <= exact.upper + slack


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_second_derivatives(loss, bias, monkeypatch):
    monkeypatch.setattr(smooth, "USEFUL_FALL", 0.0)  # a factor for every step
    p = problem(F.GroupLasso(), loss, grams=GRAMS.subset(np.arange(5)), bias=bias)
    machine, theta = (
        SmoothMachine(p, None, keep_products=True),
        np.array([1.0, 0.5, 0.0, 2.0, 0.3]),
    )
    machine.tol = 1e-12

    def slope(theta):
        machine.solve(theta)
        return -0.5 * machine.v**2

    slope(theta)
    H, h = machine.hessian(np.arange(5)), 1e-4
    for m in range(1, 5):
        e = h * (np.arange(5) == m)
        ahead = slope(theta + e)
        back = slope(np.maximum(theta - e, 0.0))
        length = h if theta[m] == 0 else 2 * h
        close = 1e-2 if theta[m] == 0 else 1e-4
        scale = np.max(np.abs(H[:, m]))
        assert np.max(np.abs((ahead - back) / length - H[:, m])) <= close * scale


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_predicted_move_saves_steps(loss, monkeypatch):
    """If the prediction is exact, one step remains."""
    p = problem(F.GroupLasso(), loss, grams=GRAMS.subset(np.arange(5)))
    steps, step = [], SmoothMachine._step

    def counted(machine, foreign):
        steps.append(1)
        step(machine, foreign)

    monkeypatch.setattr(SmoothMachine, "_step", counted)

    def solved(predicted=None):
        """β at two θ in turn, with a prediction for the second."""
        machine: Any = SmoothMachine(p, None)
        machine.tol = 1e-10
        machine.solve(np.ones(5))
        first = machine.beta
        if predicted is not None:
            machine.extrapolate(predicted - first)
        steps.clear()
        machine.solve(np.full(5, 1.5))
        assert machine.gap <= 1e-10
        return machine.beta

    second = solved()
    plain = len(steps)
    solved(second)
    assert len(steps) == 1 and (plain > 1 or loss == "squared")


def test_single_and_double_precision_give_the_same_answer(monkeypatch):
    p = problem(F.GroupLasso(), "logistic", C=10.0, grams=GRAMS.subset(np.arange(5)))
    found = []
    for trace in (np.inf, 0.0):
        monkeypatch.setattr(smooth, "SINGLE_PRECISION_TRACE", trace)
        machine = SmoothMachine(p, None)
        machine.tol = 1e-9
        found.append(machine.solve(np.ones(5)))
        kind = np.float32 if trace else np.float64
        assert machine._room.dtype == kind and machine.gap <= 1e-9
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
