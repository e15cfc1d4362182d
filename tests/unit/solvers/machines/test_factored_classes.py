"""The inner solver for k classes in feature space against those with n × n matrices."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem, certify, solve
from mklopt import formulations as F
from mklopt.solvers.machines.factored_classes import FactoredClasses
from mklopt.solvers.machines.factory import machine_for
from tests.unit.solvers.machines.factor_samples import (
    THETA,
    forbid_matrices,
    made_dense,
    solved,
)

rng = np.random.default_rng(4)
N, RANKS, K = 90, (2, 3, 1, 4), 4
FACTORS = [rng.normal(size=(N, r)) / np.sqrt(r) for r in RANKS]
COSTS = rng.uniform(0.3, 2.0, N)
SCORES = np.column_stack([FACTORS[0], FACTORS[1][:, :2]])
Y = np.argmax(SCORES + 0.7 * rng.normal(size=(N, K)), axis=1)
OWNER = np.repeat(np.arange(4), RANKS)
HINGE, MULTINOMIAL = "multiclass_hinge", "multinomial"
every_case = pytest.mark.parametrize(
    ("loss", "bias"), [(l, b) for l in (HINGE, MULTINOMIAL) for b in (True, False)]
)


@pytest.fixture(autouse=True)
def small_stacks_use_features(monkeypatch):
    forbid_matrices(monkeypatch)


def problem(loss, bias=True, C: Any = COSTS, factors=FACTORS, formulation=None):
    grams = GramStack.from_factors(factors)
    return Problem(grams, Y, loss, formulation or F.LpNorm(2), C, bias)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("tol", [1e-2, 1e-8])
def test_it_agrees_with_the_dense_machine(bias, tol):
    p = problem(HINGE, bias)
    exact, machine = solved(made_dense(p), tol=1e-10), solved(p, tol=tol)
    assert isinstance(machine, FactoredClasses)
    assert not isinstance(exact, FactoredClasses)
    assert -1e-9 <= exact.J - machine.J <= machine.gap + 1e-9


@pytest.mark.parametrize("bias", [True, False])
def test_it_agrees_with_a_solver_of_matrices(bias):
    """There is no SVM solver for the multinomial loss with matrices."""
    p = problem(MULTINOMIAL, bias)
    dense = made_dense(p)
    K = dense.grams.combine(THETA)[None]
    found = solve(dense.with_(grams=K, formulation=F.LpNorm(2)), "spicy", tol=1e-9)
    J = solved(p).J
    assert found.certificate.lower - 1e-8 <= J <= found.certificate.upper


@every_case
def test_the_gap_is_that_of_its_points(loss, bias):
    """The features W reach a primal value within the gap of J, α is feasible."""
    p = problem(loss, bias)
    machine = solved(p, tol=1e-6)
    alpha, W = machine.point, machine.features
    np.testing.assert_array_equal(p.loss.domain(Y).exact(alpha, COSTS, bias), alpha)
    assert not bias or not any(math.fsum(column) for column in alpha.T)
    f = np.column_stack(FACTORS) @ W
    b = machine._at.b  # a linear program is no better than 1e-7
    assert bias or not np.any(b)
    ridge = 0.5 * float(np.sum(W**2 / THETA[OWNER, None]))
    primal = p.costs @ p.loss.value(f + b, p.y) + ridge
    assert -1e-9 <= primal - machine.J <= machine.gap + 1e-9
    assert machine.primal_point()["features"].shape == (sum(RANKS), K)


@every_case
def test_a_warm_start_takes_fewer_steps(loss, bias):
    p = problem(loss, bias)
    machine, near = solved(p), 1.01 * THETA
    cold = solved(p, near)
    machine.solve(near)
    assert machine.gap <= 1e-8 and abs(machine.J - cold.J) <= 2e-8
    assert machine._newton.steps < cold._newton.steps
    machine.solve(near)  # once more: it is solved
    assert machine._newton.steps == 0


@every_case
def test_weights_of_zero(loss, bias):
    """Kernels of weight 0 are not used; they come and go between solves."""
    p = problem(loss, bias)
    machine: Any = machine_for(p)
    machine.tol = 1e-8
    for theta in ([1, 0, 2, 0], [0, 0, 1, 0], [0, 1, 1, 0.5], [1, 1, 0, 0.0]):
        weights = np.array(theta, float)
        machine.solve(weights)
        assert machine.gap <= 1e-8
        assert abs(machine.J - solved(p, weights).J) <= 2e-8
        assert not np.any(machine.features[weights[OWNER] == 0])


@every_case
def test_second_derivatives(loss, bias):
    """They are those of finite differences where the same classes have a mass."""
    p, theta = problem(loss, bias), np.array([1.0, 0.4, 2.0, 0.1])
    machine = solved(p, theta, 1e-9)
    H, all_of = machine.hessian(np.arange(4)), np.arange(4)
    products = machine.products_of(all_of)
    scale = np.sqrt(np.multiply.outer(np.diag(H), np.diag(H)))
    forced = products.T @ machine.sensitivity(products)
    assert np.max(np.abs(H - forced) / scale) <= 2e-3
    np.testing.assert_allclose(machine.hessian(all_of[1:3]), H[1:3, 1:3], atol=1e-4)
    if loss == HINGE:
        expected, room = solved(made_dense(p), theta, 1e-10).hessian(all_of), 0.15
    else:
        expected, room = differences(p, theta), 1e-3
    assert np.max(np.abs(H - expected) / scale) <= room


def differences(p: Problem, theta: np.ndarray, h=1e-4) -> np.ndarray:
    """∂(−½v²)/∂θ_m of all m, by solves at θ ± h."""
    found = []
    for m in range(4):
        ends = [solved(p, theta + s * h * (np.arange(4) == m), 1e-11) for s in (1, -1)]
        found.append(-0.5 * (ends[0].v ** 2 - ends[1].v ** 2) / (2 * h))
    return np.array(found)


@every_case
def test_a_kernel_of_weight_0_has_derivatives(loss, bias):
    p, theta = problem(loss, bias), np.array([1.0, 0.0, 2.0, 0.3])
    H = solved(p, theta, 1e-9).hessian(np.array([1, 3]))
    near = solved(p, theta + 1e-6 * (theta == 0), 1e-9).hessian(np.array([1, 3]))
    np.testing.assert_allclose(H, near, rtol=0.02)


@every_case
def test_all_samples_at_a_corner(loss, bias):
    """With a tiny C no mass moves: J is nearly linear in θ."""
    machine = solved(problem(loss, bias, C=1e-4), tol=1e-9)
    assert np.all(np.isfinite(machine.hessian(np.arange(4))))
    forced = machine.sensitivity(machine.products_of(np.arange(4)))
    assert np.all(np.isfinite(forced))


PAIRS = [("analytic", F.LpNorm(2)), ("active", F.LpNorm(1)), ("active", F.GroupLasso()),
         ("auto", F.LpNorm(1.5))]  # fmt: skip


@pytest.mark.parametrize(("solver", "formulation"), PAIRS, ids=repr)
@every_case
def test_solvers_reach_the_same_objective_without_a_matrix(
    solver, formulation, loss, bias
):
    p = problem(loss, bias, formulation=formulation)
    result = solve(p, solver, tol=1e-6)
    other = solve(made_dense(p), "spicy", tol=1e-6)
    assert result.relative_gap <= 1e-6 and result.status == "converged"
    low = max(result.certificate.lower, other.certificate.lower)
    high = min(result.certificate.upper, other.certificate.upper)
    assert low <= high + 1e-9 * abs(high)  # the intervals meet


def test_it_continues_from_a_point_of_others():
    """After `adopt` the features belong to another α, and are not offered."""
    p = problem(HINGE)
    machine = solved(p)
    machine.adopt(p.feasible(0.5 * machine.point), THETA)
    np.testing.assert_array_equal(machine.primal_point()["weights"], THETA)
    machine.solve(THETA)
    assert machine.gap <= 1e-8
    machine.extrapolate(1e-3 * rng.normal(size=N * K))
    machine.solve(1.1 * THETA)
    assert machine.gap <= 1e-8
    assert abs(machine.J - solved(p, 1.1 * THETA).J) <= 2e-8


def many_samples(loss: str, n: int = 12_000) -> Problem:
    r = np.random.default_rng(1)
    factors = [r.normal(size=(n, 6)), r.normal(size=(n, 4))]
    y = np.argmax(factors[0][:, :3] + r.normal(size=(n, 3)), axis=1)
    return Problem(GramStack.from_factors(factors), y, loss, F.LpNorm(2), 0.1)


@pytest.mark.parametrize("loss", [HINGE, MULTINOMIAL])
def test_memory_grows_with_n_alone(loss, monkeypatch):
    """An n × n array would take 1.1 GB here; all arrays of a run take 30 MB."""
    monkeypatch.undo()  # no wrapper around methods
    p = many_samples(loss)
    solve(many_samples(loss, 1000), "analytic", tol=1e-2)  # compiled
    tracemalloc.start()
    result = solve(p, "analytic", tol=1e-3)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.status == "converged"
    assert most <= 30e6
    f = result.decision(np.column_stack(p.grams.factors or []))
    assert np.mean(np.argmax(f, axis=1) == p.y) > 0.5
    again = certify(p, dual=result.dual, features=result.features)
    assert again.width <= 1e-3 and not again.assumptions


def test_a_start_on_a_part_of_the_samples():
    """A quarter of 20,000 samples is enough."""
    p = many_samples(HINGE, 20_000)
    machine: Any = machine_for(p)
    machine.tol = 1.0
    machine.solve(np.ones(2))
    assert machine.gap <= 1.0
    assert machine.products < 100


def test_with_matrices_the_multinomial_loss_has_no_svm_solver():
    p = made_dense(problem(MULTINOMIAL))
    with pytest.raises(ValueError, match="no step for the multinomial loss"):
        solve(p, "analytic")
