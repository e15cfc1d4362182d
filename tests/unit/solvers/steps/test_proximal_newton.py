"""Proximal Newton steps in feature space: gaps, searches on a line, and solutions."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem, solve
from mklopt import formulations as F
from mklopt.grams import stack
from mklopt.solvers import Unsupported, find
from mklopt.solvers.proximal_newton import prepared
from mklopt.solvers.steps.proximal_newton import ProximalNewton

rng = np.random.default_rng(5)
N, RANKS = 300, (2, 3, 1, 4)
FACTORS = [rng.normal(size=(N, r)) / np.sqrt(r) for r in RANKS]
ALL = np.hstack(FACTORS)
NOISY = FACTORS[0][:, 0] + 0.4 * FACTORS[1][:, 1] ** 2 + 0.4 * rng.normal(size=N)
Y = np.where(NOISY > 0.2, 1.0, -1.0)
NORMS = [F.LpNorm(1.0), F.LpNorm(2.0), F.GroupLasso(), F.ElasticNet(0.5)]


@pytest.fixture(autouse=True)
def small_stacks_use_features(monkeypatch):
    monkeypatch.setattr(stack, "FEATURE_SAMPLES", 50)


def problem(loss="hinge", formulation=NORMS[0], C=1.0, bias=True) -> Problem:
    y = Y if loss in ("hinge", "logistic") else NOISY
    return Problem(GramStack.from_factors(FACTORS), y, loss, formulation, C, bias)


def method(p: Problem) -> ProximalNewton:
    return prepared(p)


@pytest.mark.parametrize("formulation", NORMS, ids=repr)
@pytest.mark.parametrize("loss", ["hinge", "logistic", "eps_insensitive"])
def test_the_gap_is_primal_minus_dual(loss, formulation):
    p = problem(loss, formulation)
    found = method(p)
    at = found.cold(1e-3)
    assert at.gap <= 1e-3
    u = found.lengths(at.x)
    primal = formulation.value(u) + p.costs @ p.loss.value(ALL @ at.x + at.b, p.y)
    s = formulation.feasible_scale(found.lengths(ALL.T @ at.alpha)) * (1 - 1e-12)
    v = found.lengths(ALL.T @ (s * at.alpha))
    dual = p.dual_loss(s * at.alpha) - formulation.conjugate(v)
    assert primal - dual == pytest.approx(at.gap, abs=1e-9 * abs(primal))
    assert abs(np.sum(at.alpha)) <= 1e-9 * np.sum(np.abs(at.alpha))


@pytest.mark.parametrize("formulation", NORMS, ids=repr)
def test_the_slope_of_the_penalty_on_a_line(formulation):
    found, e = method(problem(formulation=formulation)), 1e-6
    x, dx = rng.normal(size=10), rng.normal(size=10)
    values = [found.penalty(x + (0.7 + t) * dx) for t in (-e, e)]
    slope = (values[1] - values[0]) / (2 * e)
    assert found._slope(x, dx, 0.7) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("formulation", NORMS, ids=repr)
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("bias", [True, False])
def test_it_finds_what_spicy_finds_on_matrices(formulation, C, bias):
    p = problem("hinge", formulation, C, bias)
    found = solve(p, "proximal_newton", tol=1e-8)
    dense = GramStack(np.stack([L @ L.T for L in FACTORS]))
    other = solve(p.with_(grams=dense), "spicy", tol=1e-7).certificate
    low = max(found.certificate.lower, other.lower)
    high = min(found.certificate.upper, other.upper)
    assert low <= high + 1e-9 * abs(high)  # the intervals meet
    assert found.relative_gap <= 1e-8


@pytest.mark.parametrize("seed", [1, 2])
def test_long_proximal_steps_are_ended(seed, monkeypatch):
    """Where C is large, many Newton steps; a step that is left is a bad start."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000, 4))
    noisy = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(size=1000)
    waves = [2.0**k * X @ rng.normal(size=(4, 20)) for k in range(-1, 3)]
    grams = GramStack.from_factors([np.cos(wave + np.arange(20)) for wave in waves])
    p = Problem(grams, np.sign(noisy), "hinge", F.LpNorm(1.0), 1e5)
    left, minimize = [], ProximalNewton.minimize

    def watched(self, some, at, outside, goal):
        found = minimize(self, some, at, outside, goal)
        left.append(found.gap > goal)
        return found

    monkeypatch.setattr(ProximalNewton, "minimize", watched)
    assert solve(p, "proximal_newton", tol=1e-6).relative_gap <= 1e-6
    assert left and not any(left)


def test_few_steps_from_a_start():
    """At the solution of a near C it takes fewer Newton steps than from nothing."""
    start = solve(problem(C=1.0), "proximal_newton", tol=1e-8)
    again = solve(problem(C=1.0), "proximal_newton", tol=1e-7, start=start)
    assert again.trace.last("svm_solves") == 0
    given = (start.weights, start.dual)
    warm = solve(problem(C=1.01), "proximal_newton", tol=1e-7, start=given)
    cold = solve(problem(C=1.01), "proximal_newton", tol=1e-7)
    assert warm.converged and cold.converged
    assert warm.trace.last("svm_solves") < cold.trace.last("svm_solves")


def test_matrices_are_refused():
    dense = GramStack(np.stack([L @ L.T for L in FACTORS]))
    with pytest.raises(Unsupported, match="needs kernels as factors"):
        find("proximal_newton", problem().with_(grams=dense))


def test_auto_takes_it_for_several_kernels():
    assert solve(problem(), tol=1e-4).choice.startswith("proximal_newton: factors")
    one = problem().with_(grams=GramStack.from_factors(FACTORS[:1]))
    assert solve(one, tol=1e-4).choice.startswith("active")
    fixed = problem(formulation=F.FixedWeights((1.0,) * 4))
    assert solve(fixed, tol=1e-4).choice.startswith("analytic: factors")
