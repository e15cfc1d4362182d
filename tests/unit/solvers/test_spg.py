"""Spectral projected gradient: the descent itself, and sums of kernels with a price."""

from __future__ import annotations

from itertools import combinations, islice

import numpy as np
import pytest

from mklopt import Problem, solve
from mklopt.formulations import Composite, GroupLasso, LpNorm, Tikhonov
from mklopt.reference.contract_problems import GROUPINGS, load
from mklopt.solvers import find
from mklopt.solvers.composite import Levels
from mklopt.solvers.spg import Priced
from mklopt.solvers.steps.spectral_descent import (
    Average,
    descend,
    parabola,
    spectral_length,
)

GRAMS, TARGETS = load("wdbc")
Y = TARGETS["binary"]


def problem(formulation, C=1.0) -> Problem:
    return Problem(GRAMS, Y, "hinge", formulation, C)


class Bowl:
    """½⟨d − a, H(d − a)⟩ over d ≥ 0, exact."""

    noise = 0.0

    def __init__(self, curves, a):
        self.curves, self.a, self.asked, self.sharpened = curves, a, 0, 0
        self.work = 0.0

    def value(self, d):
        self.asked, self.d, self.work = self.asked + 1, d, self.work + 0.125
        return 0.5 * float(self.curves @ (d - self.a) ** 2)

    def gradient(self):
        return self.curves * (self.d - self.a)

    def project(self, d):
        return np.maximum(d, 0.0)

    def sharpen(self):
        self.sharpened += 1


A = np.array([1.0, -1.0, 2.0, 0.5])
CURVES = np.array([1.0, 3.0, 100.0, 10.0])


def steps_to(bowl, tol=1e-8, most=3000, **switches):
    for count, point in enumerate(descend(bowl, np.ones(4), **switches)):
        if np.max(np.abs(point.d - np.maximum(A, 0.0))) <= tol:
            return count
        if count == most:
            return most
    return most


def test_spectral_steps_see_the_curvature():
    slow = steps_to(Bowl(CURVES, A), spectral=False, nonmonotone=False, scaled=False)
    fast = steps_to(Bowl(CURVES, A), scaled=False)
    assert fast <= 40 and slow >= 4 * fast


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("nonmonotone", [False, True])
def test_a_bowl_is_solved_with_any_switches(nonmonotone, scaled):
    bowl = Bowl(CURVES, A)
    assert steps_to(bowl, nonmonotone=nonmonotone, scaled=scaled) <= 300


def test_armijo_never_rises_and_the_average_may():
    values = [p.value for p in islice(descend(Bowl(CURVES, A), np.ones(4),
                                              nonmonotone=False), 40)]  # fmt: skip
    assert np.all(np.diff(values) <= 0)
    loose = [p.value for p in islice(descend(Bowl(CURVES, A), np.ones(4)), 40)]
    assert np.any(np.diff(loose) > 0)


def test_one_step_of_the_right_length_solves_a_round_bowl():
    assert spectral_length(A, 4 * A, np.ones(4), 1.0) == pytest.approx(0.25)
    assert spectral_length(A, -A, np.ones(4), 2.0) == 20.0
    assert spectral_length(A, -A, np.ones(4), 2.0, longest=10.0) == 10.0
    assert spectral_length(A, 1e-3 * A, np.ones(4), 2.0, longest=10.0) == 10.0
    assert spectral_length(A, 1e-3 * A, np.ones(4), 2.0) == pytest.approx(1e3)
    assert steps_to(Bowl(np.full(4, 7.0), A), scaled=False) <= 3


def test_the_search_goes_to_the_minimum_of_a_parabola():
    # W(t) = −t + 2t²: at t = 1 it has risen by 1, its minimum is at 1/4.
    assert parabola(1.0, 1.0, 1.0) == pytest.approx(0.25)
    assert parabola(1.0, 100.0, 1.0) == pytest.approx(0.1)
    assert parabola(1.0, -0.9, 1.0) == 0.5


def test_the_average_of_zhang_and_hager():
    average = Average(10.0, nonmonotone=True)
    average.add(4.0, gain=0.05)  # η = 1: the plain mean
    assert average.level == pytest.approx(7.0) and average.mixing == 1.0
    average.add(10.0, gain=-1.0)
    assert average.level == pytest.approx(8.0)
    assert average.mixing == pytest.approx(0.975)
    armijo = Average(10.0, nonmonotone=False)
    armijo.add(4.0, gain=1.0)
    assert armijo.level == 4.0 and armijo.mixing == 0.0


def test_a_wrong_gradient_asks_for_precision():
    class Liar(Bowl):
        def gradient(self):
            return -super().gradient()

    bowl = Liar(CURVES, A)
    steps = descend(bowl, np.ones(4), spectral=False, nonmonotone=False)
    shown = [point.value for point in islice(steps, 5)]
    assert bowl.sharpened == 2
    # On its way to nowhere each search shows its eighth trial.
    assert shown[0] == shown[2] == shown[4] < shown[1] == shown[3]


# ---- sums of kernels -----------------------------------------------------------------


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


def test_W_falls_in_every_step_up_to_the_tolerance_of_the_machine():
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
    assert tuned.noise == pytest.approx(1e-2 * certificate.gap)
    assert precise.noise < 1e-6 * certificate.primal


def test_p_near_1_is_why_the_metric_is_scaled():
    """The curvature d^{p−2} of the price has no bound: plain spectral steps shrink."""
    p = problem(Tikhonov(1.05, 0.5), 100.0)
    scaled = solve(p, "spg", tol=1e-3, max_iter=300)
    plain = solve(p, "spg", tol=1e-3, max_iter=300, scaled=False)
    assert scaled.converged
    assert len(plain.trace) >= 2 * len(scaled.trace)


def test_a_search_that_remembers_needs_fewer_machines_than_armijo():
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


# ---- two levels ----------------------------------------------------------------------


@pytest.mark.parametrize("r, s", [(1.0, 1.0), (1.0, 1.98), (4 / 3, 1.0), (1.5, 1.5)])
def test_the_weights_on_two_levels_are_the_best_ones(r, s):
    formulation = Composite(GROUPINGS["three"], r, s)
    levels, u = Levels(formulation), np.random.default_rng(0).uniform(size=20)
    u[4:12] *= u[4:12] > 0.5
    inside = levels.inside(u, np.zeros(20))
    across = levels.across(u, inside)
    theta = across[levels.owner] * inside
    np.testing.assert_allclose(theta, formulation.weights(u), rtol=1e-12)
    balls = across, *(inside[list(g)] for g in formulation.groups)
    for weights, e in zip(balls, (s, r, r, r)):
        assert np.sum(weights ** (e / (2 - e))) == pytest.approx(1.0)
    used = u > 0
    half = 0.5 * np.sum(u[used] ** 2 / theta[used])
    assert half == pytest.approx(formulation.value(u))


def test_groups_without_use_keep_no_weight():
    levels = Levels(Composite(GROUPINGS["three"], 1.0, 1.5))
    u, held = np.where(np.arange(20) < 4, 1.0, 0.0), np.full(20, 0.3)
    inside = levels.inside(u, held)
    across = levels.across(u, inside)
    assert across[0] == 1 and np.all(across[1:] == 0) and np.all(inside[4:] == 0.3)
    assert np.all(np.isfinite(levels.across(np.zeros(20), held)))
    g, lam = levels.split(np.arange(1.0, 21.0))
    assert np.sum(g**3) == pytest.approx(1.0)
    assert np.ptp(g[levels.owner] * lam / np.arange(1.0, 21.0)) <= 1e-15


@pytest.mark.parametrize("r, s", [(1.0, 1.5), (1.5, 1.5)])
def test_each_level_is_the_best_for_the_other(r, s):
    rng = np.random.default_rng(1)
    levels, u = Levels(Composite(GROUPINGS["three"], r, s)), rng.uniform(size=20)
    lam = rng.uniform(0.5, 1.0, size=20)
    lam /= levels.norms(lam, r / (2 - r))[levels.owner]
    price = lambda g, at: np.sum(u**2 / (g[levels.owner] * at))  # noqa: E731
    best = levels.across(u, lam)
    for _ in range(20):
        g = rng.uniform(0.1, 1.0, size=3)
        g /= np.sum(g ** (s / (2 - s))) ** ((2 - s) / s)
        assert price(best, lam) <= price(g, lam) * (1 + 1e-12)
        assert price(g, levels.inside(u, lam)) <= price(g, lam) * (1 + 1e-12)


def test_two_levels_in_turn_are_not_the_iterates_of_analytic():
    p = problem(Composite(GROUPINGS["three"], 1.0, 1.5), 10.0)
    turns = solve(p, "composite", tol=0.0, max_iter=6)
    joint = solve(p, "analytic", tol=0.0, max_iter=6, accelerate=None)
    apart = np.abs(turns.trace.primal - joint.trace.primal) / joint.trace.primal
    assert np.all(apart[1:] > 1e-6)


def test_the_plain_wrapper_never_raises_the_objective():
    p = problem(Composite(GROUPINGS["three"], 1.0, 1.5), 10.0)
    found = solve(p, "composite", tol=1e-3)
    assert found.converged and len(found.trace) > 3
    rises = np.diff(found.trace.primal) / found.trace.primal[1:]
    assert np.max(rises) <= 1e-6
    with pytest.raises(
        ValueError, match="Composite does not state kernel weights on two"
    ):
        find("composite", problem(Composite(GROUPINGS["three"], 1.0, 2.0)))
