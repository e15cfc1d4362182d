"""Acceleration of the analytic step: Newton, Anderson, and the trust region."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem, solve
from mklopt.formulations import LpNorm
from mklopt.solvers.machines.factory import machine_for
from mklopt.solvers.steps import acceleration
from mklopt.solvers.steps.acceleration import Ahead, Anderson, newton
from tests.problems import subset_gaussians

TOL = 1e-6


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_newton_does_not_linearize_the_reweighting(seed):
    """Near p = 1 it bends most: seven iterates if it were linearized with log v."""
    K, y = subset_gaussians(150, 30, seed)
    found = solve(Problem(GramStack(K), y, "hinge", LpNorm(1.1)), "analytic", tol=TOL)
    assert found.converged and len(found.trace) <= 5


def test_anderson_finds_the_fixed_point_of_a_linear_map():
    """In as many steps as there are dimensions, and one more."""
    rng = np.random.default_rng(0)
    A, b = 0.3 * rng.normal(size=(3, 3)), rng.normal(size=3)
    fixed = np.linalg.solve(np.eye(3) - A, b)
    method, x = Anderson(), np.zeros(3)
    for _ in range(5):
        x = method.next(x, A @ x + b, np.ones(3))
    np.testing.assert_allclose(x, fixed, atol=1e-5)


def inner(p=4 / 3, tol=1e-11):
    K, y = subset_gaussians(60, 5)
    problem = Problem(GramStack(K), y, "hinge", LpNorm(p), 1.0)
    machine = machine_for(problem, second_order=True)
    machine.tol = tol
    return problem, machine


def test_newton_is_much_nearer_to_the_fixed_point_than_the_plain_step():
    problem, machine = inner()
    best = solve(problem, "analytic", tol=1e-11).certificate.weights
    theta = best * np.exp(0.02 * np.arange(-2, 3))
    theta /= np.linalg.norm(theta, 4 / 3)
    machine.solve(theta)
    plain = problem.formulation.reweight(theta, machine.v, 1e-9)
    x, image, goal = np.log(theta), np.log(plain), np.log(best)
    ahead = newton(machine, x, image, np.ones(5), image)
    errors = [np.max(np.abs(z - goal)) for z in (x, image, ahead)]
    assert errors[1] < errors[0] and errors[2] < 0.1 * errors[1]


def test_a_step_stays_in_the_trust_region_and_shrinks_it_when_taken_back():
    problem, machine = inner()
    theta = problem.formulation.weights(np.ones(5))
    machine.solve(theta)
    plain = problem.formulation.reweight(theta, machine.v, 1e-9)
    ahead = Ahead(machine, "newton")
    ahead.trust = 1e-4
    near = ahead.step(theta, plain, 0.1)
    assert ahead.length == ahead.trust == 2e-4
    assert 0 < np.max(np.abs(np.log(near / plain))) < 1e-2
    ahead.retreat()
    assert ahead.trust == pytest.approx(0.5e-4)
    assert np.array_equal(Ahead(machine, None).step(theta, plain, 0.1), plain)


def test_newton_needs_a_small_gap_and_not_too_many_kernels(monkeypatch):
    problem, machine = inner()
    theta = problem.formulation.weights(np.ones(5))
    machine.solve(theta)
    plain = problem.formulation.reweight(theta, machine.v, 1e-9)
    first = lambda gap: Ahead(machine, "newton").step(theta, plain, gap)  # noqa: E731
    assert np.allclose(first(0.9), plain) and not np.allclose(first(0.1), plain)
    monkeypatch.setattr(acceleration, "NEWTON_KERNELS", 4)
    assert np.allclose(first(0.1), plain)


def test_an_unknown_method_gets_a_sentence():
    with pytest.raises(ValueError, match="choose 'newton', 'anderson' or None"):
        Ahead(inner()[1], "quick")
