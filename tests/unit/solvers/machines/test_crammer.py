"""The multi-class SVM against conic programs, the binary SVM and its own gap."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem, reference, solve
from mklopt.formulations import GroupLasso, LpNorm
from mklopt.formulations.fixed_weights import FixedWeights
from mklopt.formulations.losses.domains import Simplex, project_simplex
from mklopt.solvers.machines import crammer, svm
from mklopt.solvers.machines.crammer import BALANCING
from mklopt.solvers.machines.factory import machine_for

rng = np.random.default_rng(5)
n, k = 36, 3
X = rng.normal(size=(n, 4))
Y = np.argmax(X[:, :k] + 0.5 * rng.normal(size=(n, k)), axis=1)
LINEAR = X @ X.T  # rank 4: far from definite


def gaussian(width, X=X):
    return np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / (2 * width**2))


KERNEL = gaussian(1.5)
STACK = GramStack([gaussian(0.5), gaussian(1.0), gaussian(3.0), LINEAR])


def problem(K=KERNEL, y=Y, C=1.0, bias=False, loss="multiclass_hinge"):
    return Problem(GramStack(K[None]), y, loss, FixedWeights((1.0,)), C, bias)


def solved(p, K, start=None, *, tol=0.0, budget=None):
    machine = crammer.CrammerMachine(p, start)
    machine.tol = tol
    return machine.solve_on(K, budget)


def values(p, K, alpha):
    """(primal, dual) of the inner problem at α, with the best bias."""
    f = K @ alpha
    half = 0.5 * np.sum(alpha * f)
    b = p.loss.best_bias(f, p.y, p.costs) if p.bias else 0.0
    return p.costs @ p.loss.value(f + b, p.y) + half, p.dual_loss(alpha) - half


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("K", [KERNEL, LINEAR], ids=["gaussian", "linear"])
def test_agrees_with_the_conic_program(K, C, bias):
    p = problem(K, C=C, bias=bias)
    found, other = solved(p, K, tol=1e-12), reference.solve(p)
    primal, dual = values(p, K, found.alpha)
    assert other.lower * (1 - 1e-9) <= dual and primal <= other.upper * (1 + 1e-9)
    assert abs(primal - dual) <= 1e-9 * primal  # 0 up to rounding
    np.testing.assert_array_equal(p.feasible(found.alpha), found.alpha)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [0.3, 100.0])
def test_the_gap_is_the_true_one(C, bias):
    """As the solver computes it long before the end, and computed here."""
    p = problem(C=C, bias=bias)
    found = solved(p, KERNEL, budget=60)
    primal, dual = values(p, KERNEL, found.alpha)
    assert 1e-3 * primal < primal - dual <= found.gap * (1 + 1e-9)
    f = KERNEL @ found.alpha + found.bias
    told = p.costs @ p.loss.value(f, p.y) + 0.5 * np.sum(
        found.alpha * (KERNEL @ found.alpha)
    )
    assert told - dual == pytest.approx(found.gap, rel=1e-6)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [0.2, 50.0])
def test_two_classes_are_the_binary_SVM(C, bias):
    """f = f_1 − f_0 with w_1 = −w_0 = w/2: half the binary value at 2C."""
    y = (X[:, 0] > 0).astype(int)
    p, half = (
        problem(y=y, C=C, bias=bias),
        problem(y=2.0 * y - 1, C=2 * C, bias=bias, loss="hinge"),
    )
    both = solved(p, KERNEL, tol=1e-12).alpha
    alone = svm.solve(half, KERNEL, tol=1e-12).alpha
    binary = half.dual_loss(alone) - 0.5 * alone @ KERNEL @ alone
    assert values(p, KERNEL, both)[1] == pytest.approx(0.5 * binary, rel=1e-9)


def test_gains_and_the_gap_are_those_of_the_scores():
    K, S = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([[3.0, 0.0], [1.0, 0.5]])
    mass, gain = np.array([[0.25, 1.0], [0.75, 0.0]]), np.empty(2)
    gap, best = crammer._gains(K, S, mass, gain)
    assert gap == 0.75 * 2 + 1.0 * 0.5
    # Sample 0 moves t = 2/(2·2) of its mass, sample 1 t = 0.5/2: t(difference − K t).
    np.testing.assert_allclose(gain, [0.5 * (2 - 2 * 0.5), 0.25 * (0.5 - 0.25)])
    assert best == np.max(gain)


def test_one_sample_moves_to_the_nearest_point_of_its_simplex():
    for _ in range(200):
        size, a, total = rng.integers(2, 9), rng.uniform(0.01, 5), rng.uniform(0.1, 10)
        m = project_simplex(rng.normal(size=(1, size)), np.array([total]))[0]
        s, d = rng.normal(size=size), np.empty(size)
        crammer.ascent(a, s, m, d)
        best = project_simplex((m + s / a)[None], np.array([total]))[0]
        np.testing.assert_allclose(m + d, best, atol=1e-12 * total)
        assert abs(np.sum(d)) <= 1e-14 * total and np.all(m + d >= 0)
        crammer.ascent(0.0, s, m, d)  # no curvature: everything to the highest score
        np.testing.assert_allclose(m + d, total * (np.arange(size) == np.argmax(s)))


def test_a_warm_start_needs_no_move():
    p = problem(C=10.0)
    cold = solved(p, KERNEL, tol=1e-8)
    again = solved(p, KERNEL, cold.alpha, tol=1e-8)
    assert again.moves == 0 and again.gap <= 1e-8 and cold.moves > 100
    np.testing.assert_array_equal(cold.alpha, again.alpha)


@pytest.mark.parametrize("bias", [True, False])
def test_one_cost_per_sample(bias):
    costs = 10.0 ** rng.uniform(-3, 3, size=n)
    p = problem(C=costs, bias=bias)
    found = solved(p, KERNEL, tol=1e-9)
    primal, dual = values(p, KERNEL, found.alpha)
    assert primal - dual <= 1e-8 * primal
    assert np.all(found.alpha[np.arange(n), Y] <= costs)


@pytest.mark.parametrize("bias", [True, False])
def test_noisy_labels_and_a_huge_C(bias):
    """Rank 4 and random labels, C = 1e4: within any budget, and sharp without one."""
    p = problem(LINEAR, rng.permutation(Y), C=1e4, bias=bias)
    short = solved(p, LINEAR, tol=0.0, budget=300)
    one_turn = BALANCING if bias else 0
    assert short.moves <= 300 + 2 * n + one_turn and np.isfinite(short.gap)
    assert values(p, LINEAR, short.alpha)[1] > -np.inf
    sharp = solved(p, LINEAR, tol=0.0)
    primal, dual = values(p, LINEAR, sharp.alpha)
    assert primal - dual <= 1e-9 * primal


def test_newton_replaces_thousands_of_moves(monkeypatch):
    p = problem(LINEAR, C=100.0)
    with_it = solved(p, LINEAR, tol=1e-8, budget=200_000)
    monkeypatch.setattr(crammer.Ascent, "newton", lambda self, most: 0)
    without = solved(p, LINEAR, tol=1e-8, budget=200_000)
    assert with_it.gap <= 1e-8 and with_it.moves < 0.2 * without.moves


def test_the_bias_is_found_without_newton(monkeypatch):
    """By the multipliers alone, as where there are too many free coordinates."""
    monkeypatch.setattr(crammer.Ascent, "newton", lambda self, most: 0)
    p = problem(bias=True)
    found = solved(p, KERNEL, tol=1e-4, budget=100_000)
    primal, dual = values(p, KERNEL, found.alpha)
    assert primal - dual <= found.gap * (1 + 1e-9) <= 1e-4


@pytest.mark.parametrize("bias", [True, False])
def test_a_zero_kernel_is_a_constant_predictor(bias):
    p = problem(np.zeros((n, n)), C=2.0, bias=bias)
    found = solved(p, np.zeros((n, n)), tol=1e-9)
    f = np.zeros((n, k)) + (
        p.loss.best_bias(np.zeros((n, k)), Y, p.costs) if bias else 0
    )
    assert p.dual_loss(found.alpha) == pytest.approx(p.costs @ p.loss.value(f, Y))


@pytest.mark.parametrize("bias", [True, False])
def test_the_hessian_of_J_by_differences(bias):
    p = Problem(STACK, Y, "multiclass_hinge", LpNorm(2.0), C=1.0, bias=bias)
    theta, which, h = np.array([0.5, 1.0, 0.8, 0.3]), np.arange(4), 1e-4

    def slope(theta):
        machine = machine_for(p)
        machine.tol = 1e-12
        machine.solve(theta)
        return -0.5 * machine.v**2, machine

    _, machine = slope(theta)
    columns = [
        (slope(theta + h * e)[0] - slope(theta - h * e)[0]) / (2 * h) for e in np.eye(4)
    ]
    np.testing.assert_allclose(machine.hessian(which), np.array(columns), rtol=1e-3)


def test_restoring_what_is_feasible_changes_no_bit():
    """Otherwise every product with it would be computed twice."""
    domain, C = Simplex(Y, k), rng.uniform(0.1, 10, n)
    for bias in (False, True):
        alpha = domain.restore(rng.normal(size=(n, k)) * C[:, None], C, bias)
        np.testing.assert_array_equal(domain.restore(alpha, C, bias), alpha)
        a = -alpha / C[:, None]
        p = problem(C=C, bias=bias)
        assert np.all(np.isfinite(p.loss.conjugate(a, Y)))
    full = domain.restore(-1e9 * np.ones((n, k)) * (np.arange(k) == 1), C, False)
    np.testing.assert_allclose(np.max(np.abs(full), axis=1)[Y != 1], C[Y != 1])


# ---- at the edge --------------------------------------------------------------------

K4 = STACK.dense()
TWICE = gaussian(1.0, np.concatenate([X[:12]] * 3))
EDGES = {
    "contradicting-duplicates": (TWICE[None], np.repeat([0, 1, 2], 12), LpNorm(2.0), 1),
    "only-zero-kernels": (0 * K4, Y, LpNorm(2.0), 1.0),
    "a-zero-kernel": (np.concatenate([K4, 0 * K4[:1]]), Y, LpNorm(2.0), 1.0),
    "a-zero-kernel-sparse": (np.concatenate([K4, 0 * K4[:1]]), Y, LpNorm(1.0), 1.0),
    "constant-kernel": (np.ones((1, n, n)), Y, LpNorm(2.0), 1.0),
    "n-2": (K4[:, :2, :2], np.array([1, 0]), LpNorm(2.0), 1.0),
    "every-sample-a-class": (K4[:, :9, :9], np.arange(9), LpNorm(2.0), 10.0),
    "C-1e-6": (K4, Y, LpNorm(2.0), 1e-6),
    "C-1e6": (K4, Y, LpNorm(2.0), 1e6),
    "C-1e6-sparse": (K4, Y, LpNorm(1.0), 1e6),
    "C-per-sample": (K4, Y, LpNorm(2.0), 10.0 ** rng.uniform(-3, 3, n)),
    "kernels-of-size-1e-8": (1e-8 * K4, Y, LpNorm(2.0), 1.0),
    "group-lasso-at-zero": (K4, Y, GroupLasso(), 1e-3),
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", EDGES)
def test_a_right_answer_at_the_edge(name, bias):
    K, y, formulation, C = EDGES[name]
    p = Problem(GramStack(K), y, "multiclass_hinge", formulation, C, bias)
    result = solve(p, "analytic", tol=1e-6, time_limit=15)
    assert result.converged or result.status == "rounding", result
    assert result.relative_gap <= 1e-6
    assert result.certificate.lower <= result.certificate.upper


def test_a_limit_on_time_ends_it_with_a_certified_point():
    """C = 1e4 on noise, rank 4, to a gap that is out of reach."""
    noise = np.random.default_rng(0)
    Z, y = noise.normal(size=(200, 4)), noise.integers(0, 5, size=200)
    p = Problem(GramStack((Z @ Z.T)[None]), y, "multiclass_hinge", LpNorm(2.0), 1e4)
    result = solve(p, "analytic", tol=0.0, time_limit=0.1)
    assert result.status == "time_limit"
    assert 0 <= result.relative_gap < np.inf


@pytest.mark.parametrize("y", [[0], [0, 0, 0], [1, 1, 2]])
def test_fewer_classes_than_said_get_a_sentence(y):
    with pytest.raises(ValueError, match="number at least two classes 0, 1"):
        Problem(np.eye(len(y))[None], np.array(y), "multiclass_hinge", LpNorm(2.0))
