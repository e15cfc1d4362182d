"""The factored machine: the answers of dense ones, for every loss, and derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem, threads
from mklopt.formulations import (
    VSKL,
    BlockL1,
    ElasticNet,
    GroupLasso,
    LpNorm,
    Tikhonov,
    losses_by_name,
)
from mklopt.grams import stack as stack_module
from mklopt.solvers.machines import smooth
from mklopt.solvers.machines.factored import Combined, FactoredMachine
from mklopt.solvers.machines.factory import machine_for

LOSSES = [n for n, kind in losses_by_name().items() if kind.labels != "classes"]


@pytest.fixture(autouse=True)
def features(monkeypatch):
    """Small factors count as large ones."""
    monkeypatch.setattr(stack_module, "FEATURE_SAMPLES", 1)


def made(loss="hinge", formulation=None, C=1.0, bias=True, n=150, seed=0) -> Problem:
    rng = np.random.default_rng(seed)
    L = [rng.normal(size=(n, r)) for r in (3, 5, 2, 4)]
    y = L[0] @ rng.normal(size=3) + 0.5 * L[1][:, 0] + 0.6 * rng.normal(size=n)
    kind = losses_by_name()[loss]()
    y = np.sign(y) if kind.labels == "binary" else y
    y = np.ones(n) if kind.labels == "ones" else y
    C = np.exp(rng.normal(size=n)) if C == "each" else C
    bias = bias and kind.bias_allowed
    grams = GramStack.from_factors(L)
    return Problem(grams, y, kind, formulation or LpNorm(2.0), C, bias)


def dense(p: Problem) -> Problem:
    return p.with_(grams=GramStack([L @ L.T for L in p.grams.factors or []]))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [0.1, 10.0, "each"])
@pytest.mark.parametrize("formulation", [LpNorm(2.0), BlockL1()], ids=repr)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_optimum_as_with_matrices(loss, formulation, C, bias):
    p = made(loss, formulation, C, bias)
    assert isinstance(machine_for(p), FactoredMachine)
    found, other = mklopt.solve(p, tol=1e-7), mklopt.solve(dense(p), tol=1e-7)
    assert found.status == "converged", found
    assert found.certificate.width <= 1.1e-7
    assert found.certificate.lower <= other.certificate.upper
    assert other.certificate.lower <= found.certificate.upper


@pytest.mark.parametrize(
    "solver, formulation",
    [
        ("hessian", BlockL1()),
        ("simple", BlockL1()),
        ("spg", Tikhonov(2.0, 0.5)),
        ("mirror", VSKL(((0, 1), (2, 3)), 2.0)),
        ("mirror", VSKL(((0, 1), (2,), (3,)), np.inf)),
        ("active", GroupLasso()),
        ("active", ElasticNet(0.5)),
        ("silp", LpNorm(2.0)),
        ("spicy", LpNorm(4 / 3)),
        ("spicy", GroupLasso()),
    ],
    ids=str,
)
def test_solvers_do_not_know_how_kernels_are_stored(solver, formulation):
    p = made(formulation=formulation)
    found = mklopt.solve(p, solver, tol=1e-4)
    other = mklopt.solve(dense(p), tol=1e-6)
    assert found.converged and found.certificate.assumptions == []
    assert found.certificate.lower <= other.certificate.upper
    assert other.certificate.lower <= found.certificate.upper


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_derivatives_of_J(loss, bias, monkeypatch):
    """−½v² and the Hessian, against those of the dense machine."""
    monkeypatch.setattr(smooth, "USEFUL_FALL", 0.0)  # a factor for every step
    p = made(loss, C=2.0, bias=bias)
    theta = np.array([1.0, 0.5, 0.0, 0.3])
    machine, other = machine_for(p), machine_for(dense(p), second_order=True)
    for each in (machine, other):
        each.tol = 1e-11
        each.solve(theta)
    np.testing.assert_allclose(machine.J, other.J, rtol=1e-9)
    np.testing.assert_allclose(machine.v, other.v, rtol=1e-4, atol=1e-5)
    which = np.arange(4)
    H, true = machine.hessian(which), other.hessian(which)
    np.testing.assert_allclose(H, true, rtol=2e-3, atol=2e-4 * np.max(true))
    some = np.array([0, 3])
    np.testing.assert_allclose(machine.hessian(some), H[np.ix_(some, some)], rtol=1e-6)
    B = machine.products_of(which)
    np.testing.assert_allclose(B, other.products_of(which), atol=1e-4)
    step = machine.sensitivity(B)
    np.testing.assert_allclose(B.T @ step, H, rtol=2e-3, atol=2e-4 * np.max(true))
    if p.bias:
        np.testing.assert_allclose(np.sum(step, axis=0), 0, atol=1e-6 * np.max(step))


def test_a_new_theta_starts_from_the_last_point():
    p = made(n=4000)
    cold, warm = (FactoredMachine(p, None, 1e-5) for _ in range(2))
    theta = np.array([1.0, 0.5, 0.2, 0.3])
    for machine in (cold, warm):
        machine.tol = 1e-3
    warm.solve(theta)
    before = warm.products
    warm.solve(1.001 * theta)
    cold.solve(1.001 * theta)
    assert warm.products - before < 0.7 * cold.products
    np.testing.assert_allclose(warm.J, cold.J, rtol=1e-5)
    before = warm.products
    warm.solve(1.001 * theta)  # nothing to do
    assert warm.products == before


def test_no_weights_at_all():
    p = made()
    machine = machine_for(p)
    machine.tol = 1e-9
    machine.solve(np.zeros(4))
    zero, y = np.zeros(150), p.y
    best = p.costs @ p.loss.value(zero + p.loss.best_bias(zero, y, p.costs), y)
    np.testing.assert_allclose(machine.J, best, rtol=1e-8)


def test_the_operator_is_the_matrix():
    p = made()
    theta, alpha = np.array([1.0, 0.5, 0.0, 0.3]), np.arange(150.0)
    K = p.grams.combine(theta)
    np.testing.assert_allclose(Combined(p.grams, theta) @ alpha, K @ alpha)
    np.testing.assert_allclose((2.0 * Combined(p.grams, theta)) @ alpha, 2 * K @ alpha)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bits_do_not_depend_on_the_number_of_threads(dtype):
    rng = np.random.default_rng(0)
    F = rng.normal(size=(20_000, 60)).astype(dtype)
    y = np.sign(F[:, 0] + F[:, 40] + rng.normal(size=20_000))
    grams = GramStack.from_factors(F, ranks=[30, 30], dtype=dtype)
    p, found = Problem(grams, y, "hinge", LpNorm(2.0)), []
    for k in (1, 2):
        with threads(k):
            found.append(mklopt.solve(p, tol=1e-5))
    one, two = found
    assert one.converged and one.certificate.upper == two.certificate.upper
    np.testing.assert_array_equal(one.dual, two.dual)
    np.testing.assert_array_equal(one.certificate.features, two.certificate.features)


def test_a_result_goes_on_from_another_one():
    p = made(C=1.0, n=600)
    first = mklopt.solve(p, tol=1e-5)
    again = mklopt.solve(p.with_(C=1.1), tol=1e-5, start=first)
    assert again.converged and first.point == "features"
    assert again.certificate.primal > first.certificate.primal
