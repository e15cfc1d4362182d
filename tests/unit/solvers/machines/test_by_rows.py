"""The SVM solver by rows against the one with the n × n matrix."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem, certify, kernels, solve
from mklopt.formulations import GroupLasso, LpNorm
from mklopt.formulations.losses.residual import EpsInsensitive, Huber, Quantile
from mklopt.kernels import by_rows
from mklopt.problem import loss_from
from mklopt.solvers.base import REGISTRY
from mklopt.solvers.machines import by_rows as machines
from mklopt.solvers.machines.by_rows import RowsMachine
from mklopt.solvers.machines.factory import machine_for
from mklopt.solvers.machines.svm import SVMMachine
from mklopt.util import threads

rng = np.random.default_rng(12)
N = 160
X = rng.normal(size=(N, 5))
NOISY = X[:, 0] + X[:, 1] ** 2 - 1 + 0.3 * rng.normal(size=N)
TARGETS = {"binary": np.where(NOISY > 0, 1.0, -1.0), "real": NOISY,
           "ones": np.ones(N)}  # fmt: skip
COSTS = rng.uniform(0.5, 5.0, N)
FITTED = kernels.gaussians([0.7, 1, 2, 3, 5]).fit(X)
DENSE = FITTED.grams()
THETA = np.array([0.3, 0.0, 1.0, 0.2, 0.5])
LOSSES: list[Any] = [
    "hinge", "one_class", "eps_insensitive", EpsInsensitive(0.0), Quantile(0.2),
    Huber(0.3), "squared",
]  # fmt: skip
CASES = [(loss, bias) for loss in LOSSES for bias in (True, False)
         if not (loss == "one_class" and bias)]  # fmt: skip
every_case = pytest.mark.parametrize(("loss", "bias"), CASES, ids=repr)


@pytest.fixture(autouse=True)
def small_blocks_and_no_matrix(monkeypatch):
    """Blocks smaller than the problem; a matrix of all samples is an error."""
    monkeypatch.setattr(by_rows, "MATRIX_BYTES", 0)
    monkeypatch.setattr(machines, "NEW", 40)
    monkeypatch.setattr(machines, "LARGEST", 80)
    for name in ("combine", "kernel", "dense", "full"):
        method = getattr(GramStack, name)

        def checked(grams, *rest, method=method, name=name):
            assert not grams.by_rows, f"{name} of a stack that is read by rows"
            return method(grams, *rest)

        monkeypatch.setattr(GramStack, name, checked)


def problem(loss, bias=True, grams=None, formulation=None, C: Any = COSTS) -> Problem:
    y = TARGETS[loss_from(loss).labels]
    grams = FITTED.lazy() if grams is None else grams
    return Problem(grams, y, loss, formulation or LpNorm(4 / 3), C, bias)


def both(loss, bias=True, tol=1e-9) -> tuple[RowsMachine, SVMMachine]:
    """The two inner solvers, after a solve at the same θ."""
    found = []
    for grams in (FITTED.lazy(), DENSE):
        p = problem(loss, bias, grams)
        machine: Any = machine_for(p) if grams.by_rows else SVMMachine(p)
        machine.tol = tol
        for _ in range(50):
            machine.solve(THETA)
            if machine.gap <= tol:
                break
        found.append(machine)
    assert type(found[0]) is RowsMachine
    return found[0], found[1]


@every_case
def test_it_finds_the_same_value_as_with_a_matrix(loss, bias):
    rows, dense = both(loss, bias)
    assert rows.gap <= 1e-9
    assert abs(rows.J - dense.J) <= 1e-8
    np.testing.assert_allclose(rows.v, dense.v, rtol=1e-5)
    if bias:
        total, most = np.sum(rows.point), np.max(np.abs(rows.point))
        assert abs(total) <= 1e-15 * len(rows.point) * most  # rounding of the sum


def test_the_hessian_is_that_with_a_matrix(monkeypatch):
    monkeypatch.setattr(machines, "LARGEST", 6000)
    rows, dense = both("hinge")
    which = np.array([0, 2, 3, 4])
    np.testing.assert_allclose(rows.hessian(which), dense.hessian(which), rtol=1e-4)
    assert np.all(np.linalg.eigvalsh(rows.hessian(which)) >= -1e-9)


@pytest.mark.parametrize("bias", [True, False])
def test_of_too_many_free_coordinates_it_is_nearly_so(bias, monkeypatch):
    rows, dense = both("hinge", bias)
    monkeypatch.setattr(machines, "LARGEST", 10)
    assert len(rows.free) > 50
    which = np.array([0, 2, 3, 4])
    found, exact = rows.hessian(which), dense.hessian(which)
    np.testing.assert_allclose(found, exact, rtol=0, atol=0.05 * np.max(exact))
    answer = rows.sensitivity(rows.products_of(which))
    assert not bias or np.max(np.abs(np.sum(answer, axis=0))) <= 1e-9 * np.max(answer)
    monkeypatch.setattr(machines, "ITERATIONS", 1000)
    monkeypatch.setattr(machines, "ACCURATE", 1e-9)
    np.testing.assert_allclose(rows.hessian(which), exact, rtol=1e-4)


@pytest.mark.parametrize("formulation", [LpNorm(4 / 3), LpNorm(1.0), GroupLasso()])
@pytest.mark.parametrize("loss", ["hinge", "eps_insensitive"])
def test_solvers_do_not_know_which_one_they_have(loss, formulation):
    grams = FITTED.lazy()
    grams.verify_psd()
    found = solve(problem(loss, True, grams, formulation), tol=1e-5)
    other = solve(problem(loss, True, DENSE, formulation), tol=1e-5)
    assert found.converged and found.certificate.assumptions == []
    lower = max(found.certificate.lower, other.certificate.lower)
    assert lower <= min(found.certificate.upper, other.certificate.upper)


def test_the_certificate_of_a_point_is_that_of_stored_kernels():
    found = solve(problem("hinge"), "analytic", tol=1e-4)
    stored = certify(
        problem("hinge", grams=DENSE), dual=found.dual, weights=found.weights
    )
    again = certify(problem("hinge"), dual=found.dual, weights=found.weights)
    quick = certify(
        problem("hinge"), dual=found.dual, weights=found.weights, remembered=True
    )
    for one in (again, quick):
        assert one.primal == pytest.approx(stored.primal, rel=1e-12)
        assert one.dual == pytest.approx(stored.dual, rel=1e-12)
    assert again.lower <= stored.upper and stored.lower <= again.upper
    assert quick.upper == again.upper and quick.lower == again.lower


def test_no_bit_depends_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(threads, "MIN_SHARED_WORK", 0)
    found = []
    for count in (1, 2):
        with threads.threads(count):
            found.append(solve(problem("hinge"), "analytic", tol=1e-4))
    np.testing.assert_array_equal(found[0].dual, found[1].dual)
    np.testing.assert_array_equal(found[0].weights, found[1].weights)
    assert found[0].certificate.lower == found[1].certificate.lower


def test_a_budget_of_rows_ends_a_solve(monkeypatch):
    monkeypatch.setattr(machines, "PASSES", 0)
    monkeypatch.setattr(machines, "FEWEST_ROWS", 40)
    machine = machine_for(problem("hinge"))
    machine.tol = 1e-9
    machine.solve(THETA)
    first = machine.gap
    assert first > 1e-3 and machine.work >= 1
    for _ in range(30):
        machine.solve(THETA)
    assert machine.gap < 0.01 * first
    ended = solve(problem("hinge"), "analytic", tol=1e-9, time_limit=0.0)
    assert ended.status == "time_limit" and len(ended.trace) == 1
    assert np.isfinite(ended.certificate.width)


def test_only_rows_of_changed_coordinates_are_read(monkeypatch):
    """A block is added to the gradient by the rows of its own coordinates."""
    p = problem("hinge")
    asked: list[int] = []
    product = GramStack.product

    def counted(grams, theta, A):
        asked.append(int(np.count_nonzero(A)))
        return product(grams, theta, A)

    monkeypatch.setattr(GramStack, "product", counted)
    machine = machine_for(p)
    machine.tol = 1e-3
    machine.solve(THETA)
    assert asked[0] == 0 and max(asked) <= 80 and len(asked) > 3
    alpha, before = machine.point.copy(), len(asked)
    machine.solve(THETA)  # the start is optimal: its own product, and nothing else
    assert len(asked) == before + 1 and asked[-1] == np.count_nonzero(alpha)


def test_nothing_of_size_n_squared_is_allocated(monkeypatch):
    n = 2500
    monkeypatch.setattr(by_rows, "CHUNK_BYTES", 2**20)
    points = rng.normal(size=(n, 3))
    points[:, 0] += np.where(np.arange(n) % 2 == 0, 2.5, -2.5)  # few support vectors
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    grams = kernels.gaussians([2.0, 3.0, 5.0]).fit(points).lazy(cache="2MB")
    p = Problem(grams, y, "hinge", LpNorm(4 / 3), C=1.0)
    solve(problem("hinge"), "analytic", tol=1e-2)  # compiles
    tracemalloc.start()
    found = solve(p, "analytic", tol=1e-3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.converged
    assert peak < 8 * n**2 / 4


def test_a_matrix_that_is_too_large_is_refused(monkeypatch):
    from mklopt.solvers.base import KEEPS

    p = problem("hinge")
    assert REGISTRY["spicy"].why_not(p) == ""
    monkeypatch.setitem(KEEPS, "matrix", KEEPS["matrix"]._replace(most=N**2 - 1))
    assert REGISTRY["spicy"].why_not(p).startswith("it keeps Σθ_mK_m as a matrix")
    for name in ("analytic", "active", "auto"):
        q = p.with_(formulation=LpNorm(1.0)) if name == "active" else p
        assert REGISTRY[name].why_not(q) == ""
        logistic = q.with_(loss="logistic")
        assert "as a matrix" in REGISTRY[name].why_not(logistic)
    assert REGISTRY["spicy"].why_not(p.with_(grams=DENSE)) == ""
