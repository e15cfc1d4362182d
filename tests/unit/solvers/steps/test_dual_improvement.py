"""Dual candidates of stochastic solvers are improved, and never made worse."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem, certify, solve
from mklopt.formulations import BlockNorm, GroupLasso, LpNorm
from mklopt.reference.contract_problems import load
from mklopt.solvers.steps.dual_improvement import _argmin, _best_between, improve

rng = np.random.default_rng(5)
n, k = 36, 3
X = rng.normal(size=(n, 4))
Y = np.argmax(X[:, :k] + 0.5 * rng.normal(size=(n, k)), axis=1)


def gaussian(width, X=X):
    return np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / (2 * width**2))


STACK = GramStack([gaussian(0.5), gaussian(1.0), gaussian(3.0), X @ X.T])


@pytest.mark.parametrize("formulation", [LpNorm(4 / 3), GroupLasso()], ids=repr)
@pytest.mark.parametrize(
    "loss", ["multiclass_hinge", "multinomial", "hinge", "logistic", "squared"]
)
@pytest.mark.parametrize("bias", [True, False])
def test_improving_never_loses(loss, formulation, bias):
    y = Y if loss.startswith("multi") else np.where(Y == 0, 1.0, -1.0)
    p = Problem(STACK, y, loss, formulation, C=2.0, bias=bias)
    sharp = solve(p, "spicy", tol=1e-5)
    fit = p.feasible(0.3 * sharp.dual)
    for alpha in (rng.normal(size=p.shape), fit, sharp.dual):
        for theta in (sharp.weights, rng.uniform(0, 2, size=4)):
            for budget in (1, None):
                found = improve(p, alpha, theta, budget)
                before = certify(p, dual=alpha, weights=theta).dual
                after = certify(p, dual=found, weights=theta).dual
                assert after >= before - 1e-12 * abs(before)
                assert after <= sharp.certificate.upper


@pytest.mark.parametrize("loss", ["multiclass_hinge", "multinomial", "hinge"])
def test_improving_closes_most_of_the_gap_at_good_weights(loss):
    y = Y if loss.startswith("multi") else np.where(Y == 0, 1.0, -1.0)
    p = Problem(STACK, y, loss, LpNorm(2.0), C=2.0, bias=False)
    sharp = solve(p, "spicy", tol=1e-6)
    alpha = p.feasible(sharp.dual + 0.5 * rng.normal(size=p.shape))
    lost = sharp.certificate.dual - certify(p, dual=alpha, weights=sharp.weights).dual
    left = (
        sharp.certificate.dual
        - certify(
            p, dual=improve(p, alpha, sharp.weights, 10 * n), weights=sharp.weights
        ).dual
    )
    assert left <= 0.1 * lost


def test_the_improved_dual_is_better():
    grams, targets = load("small")
    p = Problem(grams, targets["binary"], "hinge", BlockNorm(1.25), 10.0, bias=False)
    runs = [
        solve(p, "obscure", tol=0.0, T2=20, improve=better)
        for better in (None, improve)
    ]
    assert runs[1].certificate.dual > runs[0].certificate.dual
    np.testing.assert_array_equal(runs[1].trace.primal, runs[0].trace.primal)


def test_the_best_point_of_a_segment_is_found():
    """As good as the best of a fine grid, and better than both ends."""
    p = Problem(STACK, np.where(Y == 0, 1.0, -1.0), "hinge", LpNorm(2.0), C=2.0)
    best = solve(p, "analytic", tol=1e-8).dual
    away = p.feasible(rng.normal(size=n))
    ends = p.feasible(best + 0.3 * away), p.feasible(best - 0.2 * away)
    dual = lambda alpha: certify(p, dual=alpha, weights=np.zeros(4)).dual  # noqa: E731
    grid = [dual(ends[0] + t * (ends[1] - ends[0])) for t in np.linspace(0, 1, 101)]
    found = dual(_best_between(p, *ends))
    assert found >= max(grid) - 1e-3 * abs(max(grid)) and found > max(map(dual, ends))


def test_the_search_includes_both_ends():
    assert _argmin(lambda t: t) == 0.0 and _argmin(lambda t: -t) == 1.0
    assert _argmin(lambda t: (t - 0.3) ** 2) == pytest.approx(0.3, abs=1e-4)
