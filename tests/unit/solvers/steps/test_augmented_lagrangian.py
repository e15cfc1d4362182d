"""The augmented Lagrangian: its derivatives, working sets, and the proximal step."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import Problem
from mklopt import formulations as F
from mklopt.reference.contract_problems import load
from mklopt.solvers.steps.augmented_lagrangian import Gammas, Lagrangian

GROUPS = ((0, 1), (2, 3, 4), (5,))
SMALL, TARGETS = load("small")


def problem(loss: str, formulation=None, C: float = 1.0) -> Problem:
    labels = F.losses_by_name()[loss]().labels
    return Problem(SMALL, TARGETS[labels], loss, formulation or F.GroupLasso(), C)


def somewhere(p: Problem, seed: int = 0) -> tuple[Lagrangian, np.ndarray]:
    """An augmented Lagrangian with every part of it at work, and a ρ inside."""
    rng = np.random.default_rng(seed)
    M = p.grams.M
    B = (
        0.3
        * rng.normal(size=(M, *p.shape))
        * (np.arange(M) % 3 > 0).reshape(-1, *[1] * len(p.shape))
    )
    gammas = Gammas(rng.uniform(0.5, 2.0, M), 0.7, 1.3)
    lagrangian = Lagrangian(p, gammas, B, rng.normal(size=p.shape[1:]))
    rho = lagrangian.side.inside(rng.normal(size=p.shape))
    return lagrangian, rho


def at(lagrangian: Lagrangian, rho: np.ndarray):
    return lagrangian.enter(np.arange(lagrangian.problem.grams.M), rho)


LOSSES = ["logistic", "squared", "multinomial", "huber", "hinge", "eps_insensitive"]


FORMULATIONS = [
    F.GroupLasso(), F.ElasticNet(0.5), F.BlockL1(), F.LpNorm(4 / 3), F.BlockNorm(3.0),
    F.VSKL(GROUPS, 2.0), F.VSKL(GROUPS, np.inf), F.Tikhonov(2.0, 1.0),
    F.WeightedLpNorm(1.0, (1.0, 2.0, 0.5, 1.0, 3.0, 1.0)),
]  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=repr)
def test_the_gradient_is_the_slope_of_the_lagrangian(loss, formulation):
    lagrangian, rho = somewhere(problem(loss, formulation))
    slope = at(lagrangian, rho).gradient
    rng, h = np.random.default_rng(1), 1e-6
    for _ in range(3):
        d = rng.normal(size=rho.shape)
        d -= d.mean(axis=1, keepdims=True) if d.ndim == 2 else 0.0
        up, down = (at(lagrangian, rho + s * h * d).value for s in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(np.sum(slope * d), abs=2e-6)


@pytest.mark.parametrize("loss", ["logistic", "squared", "multinomial"])
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=repr)
def test_newtons_direction_solves_the_linearized_equation(loss, formulation):
    """∇φ(ρ + hΔ) ≈ (1 − h)∇φ(ρ): the Hessian, the slopes of prox and the solve."""
    lagrangian, rho = somewhere(problem(loss, formulation), seed=3)
    point, h = at(lagrangian, rho), 1e-6
    delta = lagrangian.direction(point)
    moved = at(lagrangian, rho + h * delta).gradient
    change = (moved - point.gradient) / h + point.gradient
    if change.ndim == 2:  # a constant per sample is invisible to a softmax
        change = change - change.mean(axis=1, keepdims=True)
    assert np.max(np.abs(change)) <= 1e-4 * np.max(np.abs(point.gradient))


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_newton_steps_minimize_and_the_step_is_a_proximal_one(loss):
    """At the minimum, z and ρ satisfy the optimality of the proximal problem."""
    p = problem(loss)
    lagrangian, rho = somewhere(p)
    point = at(lagrangian, rho)
    values = [point.value]
    for _ in range(30):
        point = lagrangian.newton(point)
        values.append(point.value)
    assert np.all(np.diff(values) <= 1e-12 * abs(values[0]))
    assert np.max(np.abs(point.gradient)) <= 1e-6
    assert lagrangian.unsolved(point) <= 1e-8
    B, W = lagrangian.coefficients(point), lagrangian.gammas.kernels
    moved = (B - lagrangian.B.reshape(B.shape)) / W[:, None]
    gap = point.rho - moved  # w_m = θ_m-shrunk: ρ − Δβ/γ is a subgradient of Ω at w_m
    K = p.grams.dense() if p.grams.factors is None else p.grams.full().dense()
    sizes = np.sqrt(np.einsum("mn,mnk,mk->m", gap, K, gap))
    assert np.max(sizes) <= 1 + 1e-6  # the dual norm of the group lasso
    np.testing.assert_allclose(sizes[point.z > 0], 1.0, rtol=1e-5)


def test_a_direction_that_is_too_long_is_shortened():
    lagrangian, rho = somewhere(problem("squared"))
    point = at(lagrangian, rho)
    delta = 10 * lagrangian.direction(point)
    assert at(lagrangian, rho + delta).value > point.value
    assert lagrangian._search(point, delta).value < point.value


def test_a_step_is_accepted_with_its_products():
    p = problem("squared")
    lagrangian, rho = somewhere(p)
    rho = rho + 0.1  # so that the bias moves
    point = at(lagrangian, rho)
    B, bias = lagrangian.coefficients(point), lagrangian.bias + 0.7 * np.sum(rho)
    lagrangian.accept(point)
    np.testing.assert_allclose(lagrangian.B[:, :, 0], B)
    products = p.grams.apply(lagrangian.B)
    np.testing.assert_allclose(lagrangian.KB, products, atol=1e-10)
    np.testing.assert_allclose(lagrangian.bias, bias)


def test_kernels_that_enter_cost_one_product_each():
    p = problem("logistic")
    lagrangian, rho = somewhere(p)
    few, more = np.array([0, 2]), np.array([0, 1, 2])
    point = lagrangian.enter(few, rho)
    again = lagrangian.enter(more, rho, point)
    np.testing.assert_array_equal(again.KR[[0, 2]], point.KR)
    np.testing.assert_allclose(again.KR, lagrangian.enter(more, rho).KR, atol=1e-12)
    assert len(lagrangian.coefficients(again)) == p.grams.M


def test_residuals_are_the_step_over_gamma():
    lagrangian, rho = somewhere(problem("logistic"))
    point = at(lagrangian, rho)
    kernels, bias, loss = lagrangian.residuals(point)
    B = lagrangian.coefficients(point)[:, :, None]
    change = B - lagrangian.B
    products = lagrangian.problem.grams.apply(change)
    squares = np.sum(change * products, axis=(1, 2)) / lagrangian.gammas.kernels**2
    assert kernels == pytest.approx(np.sqrt(np.sum(squares)), rel=1e-8)
    assert bias == pytest.approx(abs(np.sum(rho))) and loss == 0.0
