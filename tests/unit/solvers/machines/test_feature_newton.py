"""Newton's method in feature space: its gap, its sums, its bands and its starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem
from mklopt.formulations.fixed_weights import FixedWeights
from mklopt.problem import loss_from
from mklopt.solvers.machines import feature_newton
from mklopt.solvers.machines.dual_terms import terms_of
from mklopt.solvers.machines.factory import dual_machine
from mklopt.solvers.machines.feature_newton import (
    FeatureNewton,
    Gram,
    Point,
    Samples,
)
from mklopt.solvers.machines.smooth import SmoothMachine

rng = np.random.default_rng(8)
N, R = 400, 5
FACTOR = rng.normal(size=(N, R))
TARGETS = {
    "binary": np.where(FACTOR[:, 0] + 0.7 * rng.normal(size=N) > 0, 1.0, -1.0),
    "real": FACTOR[:, 0] + 0.5 * np.abs(FACTOR[:, 1]) + 0.3 * rng.normal(size=N),
    "ones": np.ones(N),
}
COSTS = rng.uniform(0.2, 2.0, N)
LOSSES: list[Any] = [
    "hinge", "one_class", "eps_insensitive", "quantile", "huber", "squared", "logistic",
]  # fmt: skip
CASES = [(loss, bias) for loss in LOSSES for bias in (True, False)
         if not (loss == "one_class" and bias)]  # fmt: skip
every_case = pytest.mark.parametrize(("loss", "bias"), CASES)


def problem(loss, bias=True, C: Any = COSTS, L=FACTOR) -> Problem:
    y = TARGETS[loss_from(loss).labels][: len(L)]
    grams = GramStack.from_factors([L])
    return Problem(grams, y, loss, FixedWeights((1.0,)), C, bias)


def newton(p: Problem, theta=1.0) -> FeatureNewton:
    panel = p.grams.panel()
    root = np.full(panel.R, np.sqrt(theta))
    return FeatureNewton(panel, root, terms_of(p), p.bias, Gram(panel))


def primal(p: Problem, at: Point, root=1.0, L=FACTOR) -> float:
    """½‖x‖² + ΣC V(Zx + b), with nothing but the problem."""
    g = root * (L @ at.x) + at.b
    return float(0.5 * at.x @ at.x + p.costs @ p.loss.value(g, p.y))


def dual(p: Problem, alpha, root=1.0, L=FACTOR) -> float:
    """−ΣC V*(−α/C) − ½‖Zᵀα‖²."""
    folded = root * (L.T @ alpha)
    return p.dual_loss(alpha) - 0.5 * float(folded @ folded)


def best(p: Problem, L=FACTOR) -> float:
    """The optimal value from the solvers that have the n × n matrix, to 1e-9."""
    dense = p.with_(grams=GramStack((L @ L.T)[None]))
    kind = dual_machine(dense) or SmoothMachine
    machine = kind(dense, None, 1e-5)
    machine.tol = 1e-9
    machine.solve(np.ones(1))
    assert machine.gap <= 1e-9
    return machine.J


@every_case
def test_the_gap_is_primal_minus_dual_and_bounds_the_distance(loss, bias):
    p = problem(loss, bias)
    optimum = best(p)
    for tol in (1.0, 1e-2, 1e-6):
        at = newton(p).cold(tol)
        upper, lower = primal(p, at), dual(p, at.alpha)
        assert at.gap <= tol
        assert at.gap == pytest.approx(upper - lower, abs=1e-10 * abs(upper))
        assert lower - 1e-8 <= optimum <= upper + 1e-8
        assert abs(np.sum(at.alpha)) <= 1e-10 * np.sum(np.abs(at.alpha)) or not bias


@every_case
def test_the_gap_of_any_point(loss, bias):
    """Where x is far from Zᵀα, too."""
    p = problem(loss, bias)
    solver = newton(p)
    x, alpha = np.ones(R), 0.9 * p.feasible(0.1 * np.cos(np.arange(N)))
    at = Point(x, 0.0, alpha, 1.0, FACTOR @ x, FACTOR.T @ alpha)
    solver._place(Samples(None, solver.panel, solver.terms), at)
    assert at.gap == pytest.approx(primal(p, at) - dual(p, alpha), rel=1e-10)


@every_case
def test_a_point_tells_what_belongs_to_it(loss, bias):
    p = problem(loss, bias)
    at = newton(p, 0.5).cold(1e-5)
    root = np.sqrt(0.5)
    np.testing.assert_allclose(at.g, root * FACTOR @ at.x + at.b, atol=1e-9)
    np.testing.assert_allclose(at.folded, root * FACTOR.T @ at.alpha, atol=1e-9)
    assert bias or at.b == 0
    low, high = p.loss.domain(p.y).ends(p.costs)
    assert np.all(at.alpha >= low) and np.all(at.alpha <= high)


@every_case
def test_a_warm_start_takes_fewer_steps(loss, bias):
    p = problem(loss, bias)
    first = newton(p)
    last = first.cold(1e-6)
    theta = 1.02
    cold, warm = newton(p, theta), newton(p, theta)
    expected = cold.cold(1e-6)
    folded = np.sqrt(theta) * (FACTOR.T @ last.alpha)
    start = Point(
        last.x / np.sqrt(theta), last.b, last.alpha, last.sigma, last.g, folded
    )
    found = warm.warm(last.alpha, folded, start, 1e-6)
    assert found.gap <= 1e-6
    root = np.sqrt(theta)
    values = dual(p, found.alpha, root), dual(p, expected.alpha, root)
    assert abs(values[0] - values[1]) <= 1e-6
    # One step solves a squared loss, whatever the start.
    assert warm.steps < cold.steps or (loss == "squared" and cold.steps == 1)


@every_case
def test_going_on_from_a_solution_is_free(loss, bias):
    p = problem(loss, bias)
    at = newton(p).cold(1e-6)
    again = newton(p)
    assert again.again(at, 1e-5) is at and again.steps == 0
    better = newton(p).again(at, 1e-9)
    assert better.gap <= 1e-9


def test_sums_follow_d():
    """Whatever changes: the sums are those of d, and few rows are read."""
    gram = Gram(problem("hinge").grams.panel())
    F = np.column_stack([FACTOR, np.ones(N)])
    d = np.where(rng.random(N) < 0.5, rng.random(N), 0.0)
    numbers = np.arange(0, N, 3)
    for _ in range(6):
        found = gram.at(None, d)
        np.testing.assert_allclose(found, F.T @ (d[:, None] * F), atol=1e-10)
        before = gram.rows
        some = rng.choice(N, 7, replace=False)
        d = d.copy()
        d[some] = np.where(d[some] > 0, 0.0, 2.0)
        gram.at(None, d)
        assert gram.rows - before == 7
    only = np.zeros(N)
    only[numbers] = d[numbers]
    found = gram.at(numbers, d[numbers])
    np.testing.assert_allclose(found, F.T @ (only[:, None] * F), atol=1e-10)


def test_sums_are_made_anew_when_little_is_left(monkeypatch):
    """A difference of large sums would keep their rounding errors."""
    monkeypatch.setattr(feature_newton, "FORGOTTEN", 0.5)
    gram, rows = Gram(problem("hinge").grams.panel()), []
    for held in (400, 250, 150, 100):
        gram.at(None, 1.0 * (np.arange(N) < held))
        rows.append(gram.rows)
    # All, the 150 that have left, anew (150 < 400/2), the 50 that have left.
    np.testing.assert_array_equal(np.diff([0, *rows]), [400, 150, 150, 50])


@pytest.mark.parametrize("bias", [True, False])
def test_the_newton_system(bias):
    p = problem("hinge", bias)
    solver = newton(p, 0.3)
    d = np.where(rng.random(N) < 0.3, rng.random(N), 0.0)
    Z = np.sqrt(0.3) * FACTOR
    slope = rng.normal(size=R)
    some = Samples(None, solver.panel, solver.terms)
    solver.look(some, d, slope, 0 * slope)
    dx, db = solver.direction()
    # The whole system, with the bias as one more unknown.
    rows = np.column_stack([Z, np.ones(N)]) if bias else Z
    whole = rows.T @ (d[:, None] * rows)
    whole[:R, :R] += np.eye(R)
    expected = np.linalg.solve(whole, np.append(-slope, np.zeros(int(bias))))
    np.testing.assert_allclose(dx, expected[:R], rtol=1e-9)
    assert db == pytest.approx(expected[R] if bias else 0.0, rel=1e-9)


def test_no_sample_moves():
    """J is empty: the step is that of the quadratic ½‖x − c‖²."""
    p = problem("hinge")
    solver, slope = newton(p), rng.normal(size=R)
    some = Samples(None, solver.panel, solver.terms)
    solver.look(some, np.zeros(N), slope, 0 * slope)
    dx, db = solver.direction()
    np.testing.assert_array_equal(dx, -slope)
    assert db == 0 and solver.gram.rows == 0


@pytest.mark.parametrize("loss", ["hinge", "one_class", "huber", "eps_insensitive"])
def test_all_samples_at_their_bounds(loss):
    """With a tiny C every α of the hinge is at C; x = Zᵀα."""
    p = problem(loss, bias=False, C=1e-7)
    at = newton(p).cold(1e-16)
    assert at.gap <= 1e-16
    low, high = p.loss.domain(p.y).ends(p.costs)
    if loss in ("hinge", "one_class"):
        bound = np.where(p.y > 0, high, low)
        np.testing.assert_array_equal(at.alpha, bound)
    np.testing.assert_allclose(at.x, FACTOR.T @ at.alpha, atol=1e-8)


@pytest.mark.parametrize("loss", ["hinge", "eps_insensitive", "quantile"])
def test_bands_give_the_same_answer(loss, monkeypatch):
    """Few samples move in a band; all of them have to be looked at for the gap."""
    monkeypatch.setattr(feature_newton, "FEWEST", 25)
    p, sizes = problem(loss), []
    move = FeatureNewton._move

    def counted(solver, some, band, *rest):
        if some.panel.n == N:
            sizes.append(len(band))
        return move(solver, some, band, *rest)

    monkeypatch.setattr(FeatureNewton, "_move", counted)
    banded = newton(p).cold(1e-8)
    assert sizes and max(sizes) < N / 2
    monkeypatch.setattr(feature_newton, "MOST_BAND", 0.0)
    sizes.clear()
    whole = newton(p).cold(1e-8)
    assert not sizes
    assert max(banded.gap, whole.gap) <= 1e-8
    assert abs(dual(p, banded.alpha) - dual(p, whole.alpha)) <= 1e-8


@pytest.mark.parametrize("loss", ["hinge", "eps_insensitive", "logistic", "squared"])
def test_a_cold_start_begins_on_a_part(loss, monkeypatch):
    monkeypatch.setattr(feature_newton, "FEWEST", 25)
    p, sizes = problem(loss), []
    solve = FeatureNewton.solve

    def counted(solver, some, *rest):
        sizes.append(some.panel.n)
        return solve(solver, some, *rest)

    monkeypatch.setattr(FeatureNewton, "solve", counted)
    at = newton(p).cold(1e-7)
    assert sizes == ([N] if loss == "squared" else [25, 100, N])
    assert at.gap <= 1e-7
    assert dual(p, at.alpha) == pytest.approx(best(p), abs=1e-6)


@every_case
def test_rank_deficient_factors(loss, bias):
    """Two equal columns and a column of zeros: the same kernel as with fewer."""
    L = np.column_stack([FACTOR[:, :2], FACTOR[:, 1], np.zeros(N)])
    few = np.column_stack([FACTOR[:, 0], np.sqrt(2) * FACTOR[:, 1]])
    p, q = problem(loss, bias, L=L), problem(loss, bias, L=few)
    at, expected = newton(p).cold(1e-7), newton(q).cold(1e-7)
    assert at.gap <= 1e-7 and expected.gap <= 1e-7
    values = dual(p, at.alpha, L=L), dual(q, expected.alpha, L=few)
    assert abs(values[0] - values[1]) <= 1e-7
    assert at.x[1] == pytest.approx(at.x[2], abs=1e-3) and abs(at.x[3]) <= 1e-3


def test_outside_samples_count_in_a_band():
    """Half of the samples stay: the others are solved with c = Σα_iz_i, and Σα = 0."""
    p = problem("hinge")
    solver = newton(p)
    exact = solver.cold(1e-9)
    some = Samples(None, solver.panel, terms_of(p))
    inside = np.flatnonzero(np.arange(N) % 2 == 0)
    outside = np.setdiff1d(np.arange(N), inside)
    c, total = FACTOR[outside].T @ exact.alpha[outside], np.sum(exact.alpha[outside])
    part = some.part(inside)
    start = Point(0 * exact.x, 0.0, 0.0 * COSTS[inside], 1.0, 0.0 * COSTS[inside], c)
    found = solver.minimize(part, start, (c, float(total)), 1e-8)
    assert found.gap <= 1e-8
    assert abs(np.sum(found.alpha) + total) <= 1e-10
    np.testing.assert_allclose(found.x, exact.x, atol=2e-4)  # √(2 gap)


def test_sigma_follows_the_steps():
    factors = [feature_newton.next_sigma(steps) for steps in (1, 3, 5, 8, 20)]
    assert factors == [3.0, 3.0, 1.0, 0.5, 0.5]


def test_the_same_kernels_and_weights_are_known():
    p = problem("hinge")
    assert newton(p).same(newton(p)) and not newton(p).same(newton(p, 2.0))


def test_what_stands_still_is_not_solved_again(monkeypatch):
    """Of a smooth loss, with all samples: the next round would be the same."""
    p = problem("squared")
    one, rounds = newton(p), []
    minimize = FeatureNewton.minimize

    def counted(self, some, at, outside, goal):
        rounds.append(1)
        return minimize(self, some, at, outside, goal)

    monkeypatch.setattr(FeatureNewton, "minimize", counted)
    at = one.cold(0.0)  # nothing is as exact as that
    assert at.gap <= 1e-9 * primal(p, at)
    assert len(rounds) <= 4
