"""The loss in the augmented Lagrangian: α(g), its slope, searches, the gap."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from mklopt import GramStack, Problem
from mklopt.formulations import LpNorm, losses_by_name
from mklopt.solvers.machines.dual_terms import terms_of

LOSSES = [
    name
    for name, kind in losses_by_name().items()
    if kind.labels != "classes"
]  # fmt: skip
N = 30


def terms(loss, seed=0, sigma=0.7):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=N)
    kind = losses_by_name()[loss]()
    y = np.sign(y) if kind.labels == "binary" else y
    y = np.ones(N) if kind.labels == "ones" else y
    C, grams = rng.uniform(0.5, 2, size=N), GramStack.from_factors([np.ones((N, 1))])
    p = Problem(grams, y, loss, LpNorm(2.0), C, bias=False)
    found = terms_of(p)
    found.alpha, found.sigma = p.feasible(C * y * rng.uniform(size=N)), sigma
    return p, found, 1.5 * rng.normal(size=N)


@pytest.mark.parametrize("loss", LOSSES)
def test_alpha_maximizes_and_d_is_its_slope(loss):
    p, found, g = terms(loss)
    alpha, d = found.respond(g)
    inverse = 0.0 if found.curved else 1 / found.sigma

    def gain(i, a):
        point = np.zeros(N)
        point[i] = a
        mine = -p.costs[i] * p.loss.conjugate(-point / p.costs, p.y)[i]
        return mine - a * g[i] - 0.5 * inverse * (a - found.alpha[i]) ** 2

    for i in range(N):
        low, high = (end[i] for end in p.loss.domain(p.y).ends(p.costs))
        low, high = max(low, -50.0), min(high, 50.0)
        best = minimize_scalar(
            lambda a, i=i: -gain(i, a), bounds=(low, high), method="bounded",
            options={"xatol": 1e-11},
        )  # fmt: skip
        assert gain(i, alpha[i]) >= -best.fun - 1e-9
    h = 1e-7
    slope = (found.respond(g - h)[0] - found.respond(g + h)[0]) / (2 * h)
    smooth = np.abs(found.respond(g + h)[1] - found.respond(g - h)[1]) < 1e-5
    np.testing.assert_allclose(slope[smooth], d[smooth], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_gap_is_that_of_fenchel_and_young(loss):
    p, found, g = terms(loss)
    for alpha in (found.alpha, np.zeros(N), found.respond(g)[0]):
        values = p.costs @ p.loss.value(g, p.y) - p.dual_loss(alpha) + alpha @ g
        assert found.fenchel(g, alpha) == pytest.approx(values, abs=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_searches_on_a_line(loss):
    """The best length and the best bias are roots of increasing functions."""
    _, found, g = terms(loss)
    dg, bend = np.random.default_rng(1).normal(size=N), 0.3
    first = float(found.respond(g)[0] @ dg)
    along = first - 1.0  # the slope at 0 is −1
    t = found.length(g, dg, along, bend)
    slope = along + t * bend - float(found.respond(g + t * dg)[0] @ dg)
    assert t > 0 and abs(slope) <= 2e-3
    surplus = lambda b: float(np.sum(found.respond(g + b)[0])) - 0.5  # noqa: E731
    if surplus(-1e3) > 0 > surplus(1e3):
        b = found.best_bias(g, 0.0, -0.5)
        assert b == pytest.approx(brentq(surplus, -1e3, 1e3, xtol=1e-13), abs=1e-9)


def test_a_bias_is_found_where_no_sample_moves():
    """All samples are at a bound: Newton's step would be infinite."""
    _, found, g = terms("hinge", sigma=1e6)
    assert not np.any(found.respond(g + 30.0)[1])
    b = found.best_bias(g + 30.0, 0.0, 0.0)
    assert abs(np.sum(found.respond(g + 30.0 + b)[0])) < 1e-7  # α moves by σ u g


@pytest.mark.parametrize("loss", ["hinge", "eps_insensitive", "huber", "quantile"])
def test_samples_away_from_kinks_do_not_move(loss):
    _, found, g = terms(loss)
    found.sigma = 1e12
    alpha = found.respond(g)[0]
    away = found.away(g, alpha)
    still = np.flatnonzero(away > 0)
    assert len(still) > 0
    for sign in (-1, 1):
        moved = found.respond(g + 0.99 * sign * away)[0]
        np.testing.assert_array_equal(moved[still], alpha[still])
    assert np.all(found.away(g, alpha + 0.01)[still] == 0)


@pytest.mark.parametrize("loss", LOSSES)
def test_parts_and_multiples(loss):
    """With C larger by a factor, α is: so is the gap of α/C."""
    _, found, g = terms(loss)
    which = np.array([3, 7, 20])
    alpha, d = found.respond(g)
    part = found.part(which).respond(g[which])
    np.testing.assert_allclose(part[0], alpha[which])
    np.testing.assert_allclose(part[1], d[which])
    more = found.times(4.0)
    np.testing.assert_allclose(more.respond(g)[0], 4 * alpha, rtol=1e-12)
    assert more.fenchel(g, 4 * found.alpha) == pytest.approx(
        4 * found.fenchel(g, found.alpha)
    )
