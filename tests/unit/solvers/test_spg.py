"""Spectral projected gradient descent on sums of kernels with a price."""

from __future__ import annotations

from itertools import combinations, islice

import numpy as np
import pytest

from mklopt import Problem, solve
from mklopt.formulations import GroupLasso, LpNorm, Tikhonov
from mklopt.reference.contract_problems import load
from mklopt.solvers import find
from mklopt.solvers.spg import SHARPNESS, Priced
from mklopt.solvers.steps.spectral_descent import (
    descend,
)

GRAMS, TARGETS = load("wdbc")
Y = TARGETS["binary"]


def problem(formulation, C=1.0) -> Problem:
    return Problem(GRAMS, Y, "hinge", formulation, C)


@pytest.mark.parametrize("formulation", [GroupLasso(), Tikhonov(1.33, 0.5)])
def test_the_gradient_of_W_is_that_of_finite_differences(formulation):
    p = problem(formulation, 10.0)
    priced = Priced(p, None, tune=False)
    priced.machine.tol = 1e-12
    theta = np.random.default_rng(0).uniform(0.1, 1.0, size=p.grams.M)
    priced.value(theta)
    slope = priced.gradient()
    for m in (0, 7, 13):
        step = 1e-4 * (np.arange(p.grams.M) == m)
        above, below = priced.value(theta + step), priced.value(theta - step)
        measured = (above - below) / 2e-4
        assert measured == pytest.approx(slope[m], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    "formulation", [GroupLasso(), *(Tikhonov(p, 0.7) for p in (1.0, 1.1, 2.0, 5.0))]
)
def test_a_price_is_what_makes_the_penalty(formulation):
    """Ω(u) ≤ ½Σu²/θ + r(θ), with equality at θ = u/∂Ω(u)."""
    rng = np.random.default_rng(1)
    u = rng.uniform(0.1, 2.0, size=6)
    best = formulation.weights(u)
    here = 0.5 * np.sum(u**2 / best) + formulation.price(best)[0]
    assert here == pytest.approx(formulation.value(u), rel=1e-10)
    for _ in range(20):
        theta = best * rng.uniform(0.5, 2.0, size=6)
        other = 0.5 * np.sum(u**2 / theta) + formulation.price(theta)[0]
        assert other >= formulation.value(u) * (1 - 1e-12)
    value, slope = formulation.price(best)
    for m in range(6):
        step = 1e-6 * (np.arange(6) == m)
        measured = formulation.price(best + step)[0] - formulation.price(best - step)[0]
        assert measured / 2e-6 == pytest.approx(slope[m], rel=1e-5)
    assert np.all(np.isfinite(formulation.price(np.zeros(6))[1])) and value > 0


def test_a_price_without_a_gradient_is_not_for_spg():
    with pytest.raises(ValueError, match="Tikhonov does not state a diff"):
        find("spg", problem(Tikhonov(np.inf, 1.0)))
    with pytest.raises(ValueError, match="LpNorm does not state a diff"):
        find("pgd", problem(LpNorm(2.0)))


def test_W_falls_in_every_step_up_to_the_tolerance_of_the_SVM_solver():
    priced = Priced(problem(GroupLasso(), 10.0), None, tune=False)
    switches = dict.fromkeys(("spectral", "nonmonotone", "scaled"), False)
    points = descend(priced, np.full(GRAMS.M, 0.1), **switches)
    values = [point.value for point in islice(points, 25)]
    assert np.all(np.diff(values) <= 2 * priced.noise)
    assert values[-1] < values[0]


def test_projected_gradient_descent_never_rises():
    found = solve(problem(GroupLasso(), 10.0), "pgd", tol=1e-3)
    assert found.converged
    assert np.max(np.diff(found.trace.primal) / found.trace.primal[1:]) <= 1e-5


def test_every_switch_is_one_call():
    p = problem(Tikhonov(1.33, 0.5), 100.0)
    ablation = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 1, 1)]
    found = [
        solve(p, "spg", tol=1e-3, spectral=bool(s), nonmonotone=bool(n), tune=bool(t),
              scaled=False)
        for s, n, t in ablation
    ]  # fmt: skip
    assert all(result.converged for result in found)
    for one, other in combinations(found, 2):  # every switch does something
        assert not np.array_equal(one.trace.primal, other.trace.primal)
    alone = solve(p, "pgd", tol=1e-3)
    assert len(alone.trace) == len(found[0].trace)


def test_precision_is_tuned_by_the_certified_gap():
    p = problem(GroupLasso(), 10.0)
    tuned, precise = Priced(p, None, tune=True), Priced(p, None, tune=False)
    assert tuned.noise > 1e4 * precise.noise
    certificate = solve(p, "analytic", tol=1e-2).certificate
    tuned.set_tolerance(certificate)
    precise.set_tolerance(certificate)
    assert tuned.noise == pytest.approx(SHARPNESS * certificate.gap)
    assert precise.noise < 1e-6 * certificate.primal


def test_p_near_1_is_why_the_metric_is_scaled():
    """The curvature d^{p−2} of the price has no bound: plain spectral steps shrink."""
    p = problem(Tikhonov(1.05, 0.5), 100.0)
    scaled = solve(p, "spg", tol=1e-3, max_iter=300)
    plain = solve(p, "spg", tol=1e-3, max_iter=300, scaled=False)
    assert scaled.converged
    assert len(plain.trace) >= 2 * len(scaled.trace)


def test_a_search_that_remembers_needs_fewer_SVMs_than_armijo():
    p = problem(GroupLasso(), 1000.0)
    armijo = solve(p, "pgd", tol=1e-3)
    better = solve(p, "pgd", tol=1e-3, remember=True)
    assert armijo.converged and better.converged
    assert better.trace.last("svm_solves") < armijo.trace.last("svm_solves")


def test_the_stop_of_the_paper_is_an_option():
    found = solve(problem(GroupLasso()), "spg", tol=0.0, stop="paper")
    assert found.status == "finished" and found.certificate.gap <= 1e-3
    with pytest.raises(ValueError, match="choose 'paper' or None"):
        solve(problem(GroupLasso()), "spg", stop="early")
