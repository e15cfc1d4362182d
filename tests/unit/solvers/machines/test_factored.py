"""The inner solver in feature space against the one with the n × n matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem, solve
from mklopt import formulations as F
from mklopt.formulations.losses.residual import EpsInsensitive, Huber, Quantile
from mklopt.problem import loss_from
from mklopt.solvers.machines import smooth
from mklopt.solvers.machines.factored import FactoredMachine
from mklopt.solvers.machines.factory import machine_for
from tests.unit.solvers.machines.factor_samples import (
    THETA,
    forbid_matrices,
    made_dense,
    solved,
)

rng = np.random.default_rng(4)
N, RANKS = 90, (2, 3, 1, 4)
FACTORS = [rng.normal(size=(N, r)) / np.sqrt(r) for r in RANKS]
DENSE = GramStack(np.stack([L @ L.T for L in FACTORS]))
COSTS = rng.uniform(0.3, 2.0, N)
NOISY = FACTORS[0][:, 0] + 0.4 * FACTORS[1][:, 1] ** 2 + 0.4 * rng.normal(size=N)
TARGETS = {"binary": np.where(NOISY > 0.2, 1.0, -1.0), "real": NOISY,
           "ones": np.ones(N)}  # fmt: skip
LOSSES: list[Any] = [
    "hinge", "one_class", "eps_insensitive", EpsInsensitive(0.0), "quantile",
    Quantile(0.2), "huber", Huber(0.3), "squared", "logistic",
]  # fmt: skip
CASES = [(loss, bias) for loss in LOSSES for bias in (True, False)
         if not (loss == "one_class" and bias)]  # fmt: skip
every_case = pytest.mark.parametrize(("loss", "bias"), CASES, ids=repr)


@pytest.fixture(autouse=True)
def small_stacks_use_features(monkeypatch):
    forbid_matrices(monkeypatch)


def problem(
    loss, bias=True, C: Any = COSTS, factors=FACTORS, formulation=None
) -> Problem:
    grams = GramStack.from_factors(factors)
    y = TARGETS[loss_from(loss).labels]
    return Problem(grams, y, loss, formulation or F.LpNorm(2), C, bias)


def convexity(p: Problem) -> np.ndarray:
    """The dual is at least so much concave in each α_i, apart from the kernels."""
    form = p.loss.quadratic(p.y, p.costs)
    return 4 / p.costs if form is None else np.broadcast_to(form.ridge, (N,))


@every_case
@pytest.mark.parametrize("tol", [1e-2, 1e-7])
def test_it_agrees_with_the_dense_machine_to_its_gap(loss, bias, tol):
    p = problem(loss, bias)
    exact = solved(made_dense(p), tol=1e-9)
    machine = solved(p, tol=tol)
    assert isinstance(machine, FactoredMachine)
    assert not isinstance(exact, FactoredMachine)
    distance = exact.J - machine.J
    assert -1e-9 <= distance <= machine.gap + 1e-9
    # D* − D(α) ≥ ½‖α − α*‖² in K(θ) plus the curvature of the loss.
    change = machine.point - exact.point
    norm = THETA @ DENSE.quad(change) + convexity(p) @ change**2
    assert np.sqrt(norm) <= np.sqrt(2 * machine.gap) + np.sqrt(2e-9) + 1e-9


@every_case
def test_alpha_is_feasible_and_features_are_primal(loss, bias):
    """The features w reach a primal value within the gap of J."""
    p = problem(loss, bias)
    machine = solved(p, tol=1e-6)
    low, high = p.loss.domain(p.y).ends(p.costs)
    assert np.all(machine.point >= low) and np.all(machine.point <= high)
    if bias:
        assert abs(np.sum(machine.point)) <= 1e-12 * np.sum(np.abs(machine.point))
    w = machine.features
    owner = np.repeat(np.arange(4), RANKS)
    f = np.column_stack(FACTORS) @ w
    b = p.loss.best_bias(f, p.y, p.costs) if bias else 0.0
    ridge = 0.5 * float(np.sum(w**2 / THETA[owner]))
    primal = p.costs @ p.loss.value(f + b, p.y) + ridge
    assert -1e-9 <= primal - machine.J <= machine.gap + 1e-9
    assert set(machine.primal_point()) == {"features"}


def steps(machine) -> int:
    return int(machine._newton.steps)


@every_case
def test_a_warm_start_takes_fewer_steps(loss, bias):
    p = problem(loss, bias)
    machine, near = solved(p), 1.01 * THETA
    cold = solved(p, near)
    machine.solve(near)
    assert machine.gap <= 1e-8 and abs(machine.J - cold.J) <= 1e-8
    assert steps(machine) < steps(cold) or (loss == "squared" and steps(cold) == 1)
    machine.solve(near)  # once more: it is solved
    assert steps(machine) == 0


@every_case
def test_weights_of_zero(loss, bias):
    """Kernels of weight 0 are not used; they come and go between solves."""
    p = problem(loss, bias)
    dense, machine = made_dense(p), machine_for(p)
    assert isinstance(machine, FactoredMachine)
    machine.tol = 1e-8
    for theta in ([1, 0, 2, 0], [0, 0, 1, 0], [0, 1, 1, 0.5], [1, 1, 0, 0.0]):
        weights = np.array(theta, float)
        machine.solve(weights)
        assert machine.gap <= 1e-8
        assert abs(machine.J - solved(dense, weights, 1e-9).J) <= 1e-8
        owner = np.repeat(np.arange(4), RANKS)
        assert not np.any(machine.features[weights[owner] == 0])


@pytest.mark.parametrize("loss", ["hinge", "squared", "logistic"])
def test_all_weights_zero(loss):
    """Only a bias is left."""
    p = problem(loss)
    machine = solved(p, np.zeros(4))
    b = p.loss.best_bias(np.zeros(N), p.y, p.costs)
    value = p.costs @ p.loss.value(np.zeros(N) + b, p.y)
    assert abs(machine.J - value) <= 1e-7
    assert not np.any(machine.features)


@every_case
def test_rank_deficient_factors(loss, bias):
    """Equal columns, zero columns and one kernel twice."""
    L = FACTORS[1]
    twice = np.column_stack([L, L[:, 0], np.zeros(N)])
    p = problem(loss, bias, factors=[twice, L, L])
    theta = np.array([1.0, 0.5, 2.0])
    machine, exact = solved(p, theta), solved(made_dense(p), theta, 1e-9)
    assert abs(machine.J - exact.J) <= 1e-8
    assert np.all(np.isfinite(machine.hessian(np.arange(3))))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "one_class"])
def test_all_samples_at_their_bounds(loss, bias):
    """With a tiny C: J is linear in θ, and no α moves."""
    if loss == "one_class" and bias:
        pytest.skip("one_class has no bias")
    y = np.where(np.arange(N) < N // 2, 1.0, -1.0)  # balanced: Σα = 0 at the bounds
    p = problem(loss, bias, C=1e-6)
    if loss == "hinge":
        p = p.with_(y=y)
    machine = solved(p, tol=1e-14)
    np.testing.assert_allclose(machine.point, 1e-6 * p.y, rtol=1e-12)
    assert not np.any(machine.curvature)
    assert not np.any(machine.hessian(np.arange(4)))
    assert not np.any(machine.sensitivity(np.ones((N, 2))))


def differences(dense: Problem, m, h=1e-3):
    """(∂(−½v²)/∂θ_m, ∂α/∂θ_m) by dense solves at θ ± h θ, if the same samples move."""
    found, h = [], h * THETA[m]
    for sign in (1, -1):
        at = solved(dense, THETA + sign * h * (np.arange(4) == m), 2e-14)
        form = dense.loss.quadratic(dense.y, dense.costs)
        free = np.arange(N) if form is None else form.free(at.point, 1e-7)
        found.append((-0.5 * at.v**2, at.point, free))
    (ahead, up, one), (back, down, two) = found
    return (ahead - back) / (2 * h), (up - down) / (2 * h), np.array_equal(one, two)


@every_case
def test_second_derivatives(loss, bias):
    """Where the free samples stay the same, they are those of finite differences."""
    p = problem(loss, bias)
    machine, dense = solved(p, tol=1e-12), made_dense(p)
    H = machine.hessian(np.arange(4))
    products = machine.products_of(np.arange(4))
    change = machine.sensitivity(products)
    scale = np.sqrt(np.multiply.outer(np.diag(H), np.diag(H)))
    assert np.max(np.abs(H - products.T @ change) / scale) <= 1e-5
    checked = 0
    for m in range(4):
        slopes, moves, same = differences(dense, m)
        if same:
            checked += 1
            assert np.max(np.abs(slopes - H[:, m]) / scale[:, m]) <= 1e-2
            size = np.max(np.abs(change[:, m]))
            assert np.max(np.abs(moves + change[:, m])) <= 1e-2 * size
    assert checked >= 3


@every_case
def test_second_derivatives_are_those_of_the_dense_machine(loss, bias, monkeypatch):
    """Also of kernels of weight 0, and of some of the kernels."""
    monkeypatch.setattr(smooth, "USEFUL_FALL", 0.0)  # a factor for every step
    p, theta = problem(loss, bias), np.array([1.0, 0.0, 2.0, 0.3])
    machine, dense = solved(p, theta, 1e-12), solved(made_dense(p), theta, 1e-12)
    for which in (np.arange(4), np.array([1, 3])):
        H, expected = machine.hessian(which), dense.hessian(which)
        scale = np.max(np.abs(expected))
        np.testing.assert_allclose(H, expected, atol=1e-3 * scale)


def test_the_operator_is_the_sum_of_kernels():
    p = problem("hinge")
    K = np.einsum("m,mij->ij", THETA, DENSE.dense())
    operator = machine_for(p).combined(THETA)
    A = rng.normal(size=(N, 3))
    np.testing.assert_allclose(operator @ A, K @ A, atol=1e-10)
    np.testing.assert_allclose((2.0 * operator) @ A[:, 0], 2 * K @ A[:, 0], atol=1e-10)


def test_it_continues_from_a_point_of_others():
    """After `adopt` the features belong to another α, and are not offered."""
    p = problem("hinge")
    machine = solved(p)
    alpha = p.feasible(0.5 * machine.point)
    machine.adopt(alpha, THETA)
    np.testing.assert_array_equal(machine.primal_point()["weights"], THETA)
    machine.solve(THETA)
    assert machine.gap <= 1e-8
    machine.extrapolate(1e-3 * rng.normal(size=N))
    machine.solve(1.1 * THETA)
    assert machine.gap <= 1e-8
    assert abs(machine.J - solved(p, 1.1 * THETA).J) <= 1e-8


def test_rounded_factors_are_the_data():
    """float32: the kernels of the rounded factors."""
    small = [L.astype(np.float32) for L in FACTORS]
    grams = GramStack.from_factors(small, dtype="float32")
    p = problem("hinge").with_(grams=grams)
    K = np.stack([L.astype(float) @ L.astype(float).T for L in small])
    exact = solved(p.with_(grams=GramStack(K)), tol=1e-9)
    assert abs(solved(p).J - exact.J) <= 1e-8


NORMS = [F.LpNorm(1), F.LpNorm(2), F.GroupLasso()]
PAIRS = [
    pytest.param(solver, formulation, id=f"{solver}-{formulation!r}")
    for solver in ("analytic", "active", "proximal_newton", "auto")
    for formulation in NORMS
    if solver != "active" or formulation != F.LpNorm(2)  # active needs sparse weights
]


@pytest.mark.parametrize(("solver", "formulation"), PAIRS)
@pytest.mark.parametrize("loss", ["hinge", "squared", "logistic"])
def test_solvers_reach_the_same_objective_without_a_matrix(solver, formulation, loss):
    p = problem(loss, formulation=formulation)
    result = solve(p, solver, tol=1e-6)
    other = solve(made_dense(p), "auto", tol=1e-6)
    low = max(result.certificate.lower, other.certificate.lower)
    high = min(result.certificate.upper, other.certificate.upper)
    assert low <= high + 1e-9 * abs(high)  # the intervals meet
    assert result.relative_gap <= 1e-6


def test_the_gap_is_true_with_a_large_bias():
    """Factors far from 0: the best bias moves by 80 between two θ."""
    p = problem("logistic", C=1.0, factors=[L + 30 for L in FACTORS])
    machine, theta = solved(p), np.array([0.0, 1.0, 0.0, 1.0])
    machine.solve(theta)
    exact = solved(made_dense(p), theta)
    assert abs(exact.J - machine.J) <= machine.gap + 1e-7


def test_derivatives_that_overflow_are_no_error_of_scipy():
    """The loop judges iterates: a Hessian that is not finite is a bad step alone."""
    machine = solved(problem("hinge"))
    with np.errstate(all="ignore"):
        change = machine.sensitivity(np.full((N, 1), 1e308))
    assert change.shape == (N, 1) and not np.all(np.isfinite(change))
