"""α(g), its slope, line searches, biases and gaps, each against a numerical optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mklopt import GramStack, Problem
from mklopt.formulations.fixed_weights import FixedWeights
from mklopt.formulations.losses.residual import EpsInsensitive, Huber, Quantile
from mklopt.problem import loss_from
from mklopt.solvers.machines import dual_terms
from mklopt.solvers.machines.dual_terms import Quadratic, Smooth, terms_of

rng = np.random.default_rng(5)
N = 40
GRAMS = GramStack.from_factors([rng.normal(size=(N, 2))])
COSTS = rng.uniform(0.5, 3.0, N)
G, MOVE = 1.5 * rng.normal(size=N), rng.normal(size=N)
TARGETS = {
    "binary": np.where(rng.normal(size=N) > 0, 1.0, -1.0),
    "real": rng.normal(size=N),
    "ones": np.ones(N),
}
KINKED: list[Any] = [
    "hinge", "one_class", "eps_insensitive", EpsInsensitive(0.0), Quantile(0.2),
]  # fmt: skip
CURVED: list[Any] = ["squared", "huber", Huber(0.3), "logistic"]
LOSSES = KINKED + CURVED


def problem(loss, C=COSTS) -> Problem:
    y = TARGETS[loss_from(loss).labels]
    return Problem(GRAMS, y, loss, FixedWeights((1.0,)), C, False)


def terms_at(loss, sigma=0.7, C=COSTS):
    """The terms, with multipliers a somewhere in the domain."""
    p = problem(loss, C)
    terms = terms_of(p)
    if not terms.curved:
        terms.alpha = p.feasible(np.random.default_rng(1).normal(size=N))
        terms.sigma = sigma
    return p, terms


def ends(p: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The domain of α; finite, for a numerical search."""
    low, high = p.loss.domain(p.y).ends(p.costs)
    return np.maximum(low, -50.0), np.minimum(high, 50.0)


def penalty(terms, alpha):
    """‖α − a‖²/(2σ), term by term; none for σ = ∞."""
    return 0 * alpha if terms.curved else (alpha - terms.alpha) ** 2 / (2 * terms.sigma)


def value(p: Problem, terms, g) -> float:
    """E(g), as the largest value of what α(g) maximizes."""
    alpha = terms.respond(g)[0]
    conjugate = p.loss.conjugate(-alpha / p.costs, p.y)
    return float(np.sum(-p.costs * conjugate - alpha * g - penalty(terms, alpha)))


@pytest.mark.parametrize("sigma", [0.05, 0.7, 20.0])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_alpha_is_the_argmax(loss, sigma):
    p, terms = terms_at(loss, sigma)
    alpha, d = terms.respond(G)
    low, high = ends(p)
    assert np.all(alpha >= low) and np.all(alpha <= high) and np.all(d >= 0)

    def costs(i: int, t: float) -> float:
        at = np.where(np.arange(N) == i, t, 0.0)
        conjugate = p.loss.conjugate(-at / p.costs, p.y)[i]
        return float(p.costs[i] * conjugate + t * G[i] + penalty(terms, at)[i])

    for i in range(0, N, 2):
        search = minimize_scalar(
            lambda t, i=i: costs(i, t), bounds=(low[i], high[i]), method="bounded",
            options={"xatol": 1e-10},
        )  # fmt: skip
        assert costs(i, alpha[i]) <= search.fun + 1e-12
        assert alpha[i] == pytest.approx(search.x, abs=2e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_d_is_minus_the_slope_of_alpha(loss):
    """Away from ends and kinks, where α(g) has two slopes."""
    _, terms = terms_at(loss)
    d, h = terms.respond(G)[1], 1e-6
    ahead, back = terms.respond(G + h), terms.respond(G - h)
    smooth = np.isclose(ahead[1], back[1], rtol=1e-4)
    assert np.sum(smooth) >= N - 3
    slopes = (back[0] - ahead[0]) / (2 * h)
    np.testing.assert_allclose(slopes[smooth], d[smooth], rtol=1e-6, atol=1e-8)
    assert np.any(d > 0) and (terms.curved or np.any(d == 0))


@pytest.mark.parametrize("bend", [0.3, 5.0])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_length_is_that_of_the_least_value(loss, bend):
    p, terms = terms_at(loss)
    slope = terms.respond(G)[0] @ MOVE  # −E'
    for along in (slope - 30.0, slope - 1.0):  # the first slope is −30, −1
        t = terms.length(G, MOVE, along, bend)

        def at(t: float, along: float = along) -> float:
            return value(p, terms, G + t * MOVE) + along * t + 0.5 * bend * t**2

        best = minimize_scalar(at, bounds=(0, 200), method="bounded").x
        assert t > 0
        # The slope at t is at most a part of the first one, and increases by `bend`.
        room = dual_terms.FLAT_SLOPE * (slope - along) / bend
        assert abs(t - best) <= room + 1e-5


@pytest.mark.parametrize("guess", [0.0, 5.0, -40.0])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_best_bias_balances_alpha(loss, guess):
    p, terms = terms_at(loss)
    low, high = ends(p)
    if loss == "squared":
        low, high = -p.costs, p.costs
    for share in (0.1, 0.5, 0.9):
        total = -float(np.sum(low + share * (high - low)))
        b = terms.best_bias(G, guess, total)
        surplus = np.sum(terms.respond(G + b)[0]) + total
        assert abs(surplus) <= 1e-12 * np.sum(high - low)


def test_the_best_bias_is_found_from_where_a_loss_is_flat():
    terms = terms_of(problem("logistic"))
    b = terms.best_bias(G, 100.0, 0.0)
    assert abs(np.sum(terms.respond(G + b)[0])) <= 1e-12 * np.sum(COSTS)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_fenchel_is_primal_minus_dual(loss):
    p, terms = terms_at(loss)
    for scale in (0.1, 1.0, 10.0):
        alpha = p.feasible(scale * np.random.default_rng(2).normal(size=N))
        if loss == "logistic":
            alpha *= 0.99
        primal = p.costs @ p.loss.value(G, p.y)
        dual = -p.costs @ p.loss.conjugate(-alpha / p.costs, p.y)
        gap = primal - dual + alpha @ G
        assert gap > 0
        assert terms.fenchel(G, alpha) == pytest.approx(gap, rel=1e-12)


@pytest.mark.parametrize("loss", CURVED, ids=repr)
def test_the_gap_of_a_curved_loss_is_zero_at_its_alpha(loss):
    """E is the loss itself: α = −C V'(g)."""
    p, terms = terms_at(loss)
    alpha = terms.respond(G)[0]
    np.testing.assert_allclose(alpha, -p.costs * p.loss.gradient(G, p.y), atol=1e-12)
    assert abs(terms.fenchel(G, alpha)) <= 1e-12 * np.sum(p.costs)


@pytest.mark.parametrize("loss", [*KINKED, "huber"], ids=repr)
def test_alpha_moves_no_sooner_than_away(loss):
    p = problem(loss)
    terms = terms_of(p)
    terms.sigma = 1e9

    def settled(g):
        return terms.respond(g)[0]

    alpha = settled(G)
    away = terms.away(G, alpha)
    assert np.sum(away > 0) >= N // 2 and np.all(np.isfinite(away))
    for sign in (-1, 1):
        still = settled(G + sign * 0.999 * away)
        np.testing.assert_array_equal(still[away > 0], alpha[away > 0])
    moved = [settled(G + sign * (1.001 * away + 1e-6)) != alpha for sign in (-1, 1)]
    assert np.all((moved[0] | moved[1])[away > 0])
    # An α that is not the one of g is not settled.
    wrong = terms.away(G, 0.5 * (terms.form.low + terms.form.high) + 1e-3)
    np.testing.assert_array_equal(wrong, np.zeros(N))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_part_is_these_samples_alone(loss):
    _, terms = terms_at(loss)
    rows = np.array([3, 7, 8, 21])
    part = terms.part(rows)
    for whole, mine in zip(terms.respond(G), part.respond(G[rows]), strict=True):
        np.testing.assert_array_equal(whole[rows], mine)
    assert part.curved == terms.curved and part.sigma == terms.sigma


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_times_a_factor_is_a_larger_C(loss):
    _, terms = terms_at(loss)
    _, larger = terms_at(loss, sigma=2.8, C=4 * COSTS)
    larger.alpha = 4 * terms.alpha
    found = terms.times(4.0)
    for mine, expected in zip(found.respond(G), larger.respond(G), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-12)
    np.testing.assert_allclose(found.respond(G)[0], 4 * terms.respond(G)[0], rtol=1e-12)
    alpha = larger.respond(G)[0]
    assert found.fenchel(G, alpha) == pytest.approx(larger.fenchel(G, alpha), abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_what_kind_of_terms_a_loss_has(loss):
    terms = terms_of(problem(loss))
    assert isinstance(terms, Smooth if loss == "logistic" else Quadratic)
    assert terms.curved == (loss in CURVED)
    assert terms.shrinks == (loss not in ("squared", "logistic"))
    assert terms.first_sigma > 0
    if isinstance(terms, Quadratic) and terms.shrinks:
        assert np.all(terms.form.low <= terms.middle)
        assert np.all(terms.middle <= terms.form.high)


@pytest.mark.parametrize("size, C", [(1e200, 90.0), (1e308, 1e-300), (1e-300, 1e308)])
def test_the_first_sigma_has_an_inverse(size, C):
    """The spread of labels overflows before the labels do."""
    y = size * np.where(np.arange(N) % 2, 1.0, -0.9)
    terms = terms_of(Problem(GRAMS, y, "eps_insensitive", FixedWeights((1.0,)), C))
    assert isinstance(terms, Quadratic)
    terms.sigma = terms.first_sigma
    assert 0 < terms.sigma < np.inf and 0 < 1 / terms.sigma < np.inf
    assert np.all(np.isfinite(terms.respond(np.zeros(N))[0]))
    if size == 1e200:  # α moves through its interval while g moves by about 3 sizes
        assert 0.1 < terms.sigma * size / C < 1.5
