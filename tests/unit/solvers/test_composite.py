"""Composite kernel learning: weights on two levels."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import Problem, solve
from mklopt.formulations import Composite
from mklopt.reference.contract_problems import GROUPINGS, load
from mklopt.solvers import find
from mklopt.solvers.composite import Levels

GRAMS, TARGETS = load("wdbc")
Y = TARGETS["binary"]


def problem(formulation, C=1.0) -> Problem:
    return Problem(GRAMS, Y, "hinge", formulation, C)


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
