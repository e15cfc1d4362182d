"""The SVM solver against OSQP, scikit-learn and its own gap."""

from __future__ import annotations

import numpy as np
import osqp
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from mklopt import GramStack, Problem
from mklopt.formulations.fixed_weights import FixedWeights
from mklopt.formulations.losses.residual import EpsInsensitive, Huber, Quantile
from mklopt.reference.exact import at_weights
from mklopt.solvers.machines import svm

rng = np.random.default_rng(3)
X = rng.normal(size=(70, 3))
KERNEL = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
LINEAR = X @ X.T  # rank 3: far from definite
Y = np.where(X[:, 0] + 0.5 * rng.normal(size=70) > 0, 1.0, -1.0)
LOSSES = ["hinge", "eps_insensitive", EpsInsensitive(0.0), "quantile", Quantile(0.2),
          "huber", Huber(0.3), "squared", "one_class"]  # fmt: skip


def problem(loss, K=KERNEL, C=1.0, bias=True):
    target = {"one_class": np.ones(70)}.get(loss if isinstance(loss, str) else "", Y)
    if not isinstance(loss, str) or loss in ("eps_insensitive", "quantile", "squared"):
        target = X[:, 0] + 0.3 * X[:, 1] ** 2
    bias = bias and loss != "one_class"
    return Problem(GramStack(K[None]), target, loss, FixedWeights((1.0,)), C, bias)


def qp_value(p: Problem, K) -> float:
    """The optimal value from OSQP, on α = a − b for the kinks."""
    dual = p.loss.quadratic(p.y, p.costs)
    n = len(p.y)
    low, high = np.maximum(dual.low, -1e6), np.minimum(dual.high, 1e6)
    H = K + np.diag(dual.ridge)
    split = sp.csc_matrix(np.block([[H, -H], [-H, H]]) + 1e-11 * np.eye(2 * n))
    cost = np.concatenate([dual.kink - dual.linear, dual.kink + dual.linear])
    ends = np.zeros(2 * n), np.concatenate([high, -low])
    rows = [sp.eye(2 * n)]
    lower, upper = [ends[0]], [ends[1]]
    if p.bias:
        rows.append(sp.csc_matrix(np.concatenate([np.ones(n), -np.ones(n)])[None]))
        lower.append(np.zeros(1))
        upper.append(np.zeros(1))
    machine = osqp.OSQP()
    machine.setup(
        split, cost, sp.vstack(rows, format="csc"), np.concatenate(lower),
        np.concatenate(upper), verbose=False, eps_abs=1e-9, eps_rel=1e-9,
        max_iter=200_000, polishing=True,
    )  # fmt: skip
    return -float(machine.solve(raise_error=False).info.obj_val)


def dual_value(p: Problem, K, alpha) -> float:
    dual = p.loss.quadratic(p.y, p.costs)
    value = dual.linear @ alpha - dual.kink @ np.abs(alpha)
    return float(value - 0.5 * alpha @ (dual.ridge * alpha) - 0.5 * alpha @ K @ alpha)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_agrees_with_osqp(loss, C, bias):
    p = problem(loss, C=C, bias=bias)
    found = svm.solve(p, KERNEL, tol=1e-10)
    value = dual_value(p, KERNEL, found.alpha)
    scale = max(1.0, abs(value))
    assert found.gap <= 1e-8 * scale
    assert value == pytest.approx(qp_value(p, KERNEL), rel=2e-5, abs=2e-5)
    low, high = p.loss.quadratic(p.y, p.costs)[3:]
    assert np.all(found.alpha >= low) and np.all(found.alpha <= high)
    if p.bias:
        assert abs(np.sum(found.alpha)) <= 1e-10 * np.sum(np.abs(found.alpha))


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_the_gap_is_the_true_one(C):
    """As the solver computes it, and computed here."""
    p = problem("hinge", C=C)
    found = svm.solve(p, KERNEL, tol=1e-3 * C)
    f = KERNEL @ found.alpha
    b = p.loss.best_bias(f, p.y, p.costs)
    primal = float(p.costs @ p.loss.value(f + b, p.y)) + 0.5 * found.alpha @ f
    assert found.gap >= primal - dual_value(p, KERNEL, found.alpha) - 1e-9


@pytest.mark.parametrize("C", [0.5, 100.0])
def test_agrees_with_scikit_learn_and_is_sharper(C):
    p = problem("hinge", C=C)
    theirs = SVC(C=C, kernel="precomputed", tol=1e-6).fit(KERNEL, Y)
    alpha = np.zeros(70)
    alpha[theirs.support_] = theirs.dual_coef_[0]
    ours = svm.solve(p, KERNEL, tol=1e-12)
    assert dual_value(p, KERNEL, ours.alpha) >= dual_value(p, KERNEL, alpha) - 1e-12
    decision = KERNEL @ ours.alpha + ours.bias
    np.testing.assert_allclose(decision, theirs.decision_function(KERNEL), atol=2e-3)


def test_agrees_with_the_reference_at_fixed_weights():
    K = KERNEL[:25, :25]
    p = Problem(GramStack(K[None]), Y[:25], "hinge", FixedWeights((1.0,)), C=10.0)
    found = svm.solve(p, K, tol=1e-12)
    other = at_weights(p, np.ones(1))
    assert dual_value(p, K, found.alpha) == pytest.approx(other.upper, rel=1e-7)


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_one_cost_per_sample(C):
    costs = C * rng.uniform(0.2, 2.0, size=70)
    p = problem("hinge", C=costs)
    found = svm.solve(p, KERNEL, tol=1e-9)
    assert found.gap <= 1e-7 * C and np.all(np.abs(found.alpha) <= costs)
    assert dual_value(p, KERNEL, found.alpha) == pytest.approx(
        qp_value(p, KERNEL), rel=1e-4
    )


def test_a_warm_start_needs_fewer_moves():
    p = problem("hinge", C=10.0)
    cold = svm.solve(p, KERNEL, tol=1e-8)
    again = svm.solve(p, KERNEL, cold.alpha, tol=1e-8)
    assert again.moves == 0 and again.gap <= 1e-8 < cold.moves
    np.testing.assert_array_equal(cold.alpha, again.alpha)


def test_noisy_labels_and_a_huge_C_stay_within_the_budget():
    """Rank 3 and random labels: nothing to separate, C = 1e4 keeps moving for ever."""
    y = np.where(rng.uniform(size=70) < 0.5, 1.0, -1.0)
    p = problem("hinge", LINEAR, C=1e4).with_(y=y)
    found = svm.solve(p, LINEAR, tol=0.0, budget=5_000)
    assert found.moves <= 5_000 and np.isfinite(found.gap)
    sharp = svm.solve(p, LINEAR, tol=1e-6 * 1e4)
    assert sharp.gap <= 1e-6 * 1e4


@pytest.mark.parametrize("loss", ["hinge", "one_class", "eps_insensitive", "squared"])
def test_a_zero_kernel_is_a_constant_predictor(loss):
    p = problem(loss, np.zeros((70, 70)), C=2.0)
    found = svm.solve(p, np.zeros((70, 70)), tol=1e-9)
    f = np.zeros(70) + (p.loss.best_bias(np.zeros(70), p.y, p.costs) if p.bias else 0.0)
    value = float(p.costs @ p.loss.value(f, p.y))
    assert dual_value(p, np.zeros((70, 70)), found.alpha) == pytest.approx(value)


def test_a_loss_without_a_quadratic_dual_is_refused():
    p = Problem(KERNEL[None], Y, "logistic", FixedWeights((1.0,)))
    with pytest.raises(ValueError, match="logistic is not quadratic"):
        svm.solve(p, KERNEL)


def test_newton_steps_are_charged_to_the_budget(monkeypatch):
    """They cost more than moves: uncounted, one SVM once took eight seconds."""
    calls = []

    def dear(*arguments):
        calls.append(1)
        return 10_000

    monkeypatch.setattr(svm.SMO, "newton", dear)
    y = np.where(rng.uniform(size=70) < 0.5, 1.0, -1.0)
    p = problem("hinge", LINEAR, C=1e4).with_(y=y)
    svm.solve(p, LINEAR, tol=0.0, budget=25_000)
    assert 1 <= len(calls) <= 3


def few_directions(seed: int, C: float, n: int = 40, rank: int = 5):
    """A stack of rank-1 kernels: more samples are free than there are directions."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(rank, n, 1))
    y = np.where(L[0, :, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    grams = GramStack.from_factors(L)
    return Problem(grams, y, "hinge", FixedWeights((1.0,) * rank), C)


@pytest.mark.parametrize("seed", range(4))
def test_kernels_of_low_rank_take_few_moves(seed):
    p = few_directions(seed, 100.0)
    steep = np.array([100.0, 30.0, 10.0, 3.0, 1.0]) * p.formulation.theta
    K = p.grams.combine(steep)
    found = svm.solve(p, K, tol=1e-5)
    assert found.gap <= 1e-5
    assert found.moves < 40_000  # one at a time, and with Σα adrift, it was 800,000
    assert abs(np.sum(found.alpha)) <= 1e-9 * np.sum(np.abs(found.alpha))
