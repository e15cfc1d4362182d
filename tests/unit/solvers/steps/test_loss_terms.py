"""How losses enter the augmented Lagrangian."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mklopt import Problem
from mklopt import formulations as F
from mklopt.reference.contract_problems import load
from mklopt.solvers.steps.loss_terms import Kinked, Smooth, smoothed

SMALL, TARGETS = load("small")
LOSSES = ["logistic", "squared", "multinomial", "huber", "hinge", "eps_insensitive"]


def problem(loss: str, C: float = 1.0) -> Problem:
    labels = F.losses_by_name()[loss]().labels
    return Problem(SMALL, TARGETS[labels], loss, F.GroupLasso(), C)


def term(loss: str, seed: int = 0) -> tuple[Any, np.ndarray]:
    """L at some predictions, with a ρ inside its domain."""
    rng, p = np.random.default_rng(seed), problem(loss)
    side = smoothed(p, rng.normal(size=p.shape))
    side.gamma = 1.3
    return side, side.inside(rng.normal(size=p.shape))


def test_the_prox_of_the_hinge_is_the_papers_pair_of_slacks():
    """Eq. (11): ξ ← max(0, ξ − γ(C − yρ)), ζ ← max(0, ζ − γ yρ), y f = 1 − ξ + ζ."""
    side, rho = term("hinge")
    assert isinstance(side, Kinked)
    y, gamma, C = side.problem.y, 1.3, 1.0
    margin, push = y * side.f, y * rho
    xi, zeta = np.maximum(1 - margin, 0.0), np.maximum(margin - 1, 0.0)
    xi, zeta = xi - gamma * (C - push), zeta - gamma * push
    new = 1 - np.maximum(0, xi) + np.maximum(0, zeta)
    assert y * side.point(rho) == pytest.approx(new, abs=1e-14)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_slope_of_L_is_minus_f(loss):
    side, rho = term(loss)
    rng, h = np.random.default_rng(1), 1e-6
    d = rng.normal(size=rho.shape)
    d -= d.mean(axis=1, keepdims=True) if d.ndim == 2 else 0.0
    if isinstance(side, Kinked):  # away from where f does not move
        rho = rho + 0.3 * rng.normal(size=rho.shape)
    slope = (side.value(rho + h * d) - side.value(rho - h * d)) / (2 * h)
    assert slope == pytest.approx(-np.sum(side.point(rho) * d), abs=2e-6)


def test_the_form_follows_the_loss():
    for loss in LOSSES:
        expected = Smooth if problem(loss).loss.twice_differentiable else Kinked
        assert type(term(loss)[0]) is expected


def test_steps_end_inside_the_domain_of_smooth_losses():
    side, rho = term("logistic")
    step = 10 * np.sign(rho)
    t = side.longest(rho, step)
    assert 0 < t < 1 and np.isfinite(side.value(rho + t * step))
    assert not np.isfinite(side.value(rho + 1.1 * t * step))
    kinked, rho = term("hinge")
    assert kinked.longest(rho, step[: len(rho)]) == 1.0


def test_predictions_move_only_where_they_are_variables():
    kinked, rho = term("huber")
    expected = np.sum((kinked.point(rho) - kinked.f) ** 2) / (2 * 1.3)
    assert kinked.moved(rho) == pytest.approx(expected) and expected > 0
    new = kinked.point(rho)
    kinked.accept(rho)
    np.testing.assert_array_equal(kinked.f, new)
    smooth, rho = term("logistic")
    smooth.accept(rho)
    assert smooth.moved(rho) == 0.0


@pytest.mark.parametrize("loss", ["logistic", "squared", "multinomial"])
def test_the_residual_costs_its_square_in_the_curvature(loss):
    """½⟨r, C V'' r⟩: the curvature of C V at f(ρ), by differences."""
    side, rho = term(loss)
    p, f = side.problem, side.point(rho)
    r, h = np.random.default_rng(2).normal(size=rho.shape), 1e-4
    value = lambda f: float(p.costs @ p.loss.value(f, p.y))  # noqa: E731
    bend = (value(f + h * r) - 2 * value(f) + value(f - h * r)) / h**2
    assert side.residual_cost(rho, r) == pytest.approx(0.5 * bend, rel=1e-4)
