"""α(g), its slope and the best bias of losses with k classes."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.formulations.losses import multiclass
from mklopt.formulations.losses.class_terms import (
    bend,
    least_bias,
    pseudo_inverse,
    total_bend,
)
from mklopt.formulations.losses.multiclass import MulticlassHinge, Multinomial

rng = np.random.default_rng(0)
N, K, SIGMA = 40, 4, 0.7
Y = np.append(np.arange(K), rng.integers(0, K, N - K))
COSTS = rng.uniform(0.2, 2.0, N)
G = 2 * rng.normal(size=(N, K))
LOSSES = [MulticlassHinge(), Multinomial()]
both = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)


def terms_of(loss, start=None):
    terms = loss.class_terms(Y, COSTS)
    terms.sigma = SIGMA
    if start is not None:
        terms.alpha = loss.domain(Y).restore(start, COSTS, False)
    return terms


def test_alpha_is_that_of_a_proximal_step():
    """By Moreau: α = a − σ(g − z), with z the prox of the loss."""
    loss = MulticlassHinge()
    terms = terms_of(loss, rng.normal(size=(N, K)))
    expected = terms.alpha - SIGMA * (G - prox_point(loss, terms))
    np.testing.assert_allclose(terms.respond(G)[0], expected, atol=1e-10)


def prox_point(loss, terms):
    """argmin over z of C V(z) + (σ/2)‖z − g + a/σ‖²: where α = a − σ(g − z)."""
    return loss.prox(G - terms.alpha / SIGMA, Y, COSTS / SIGMA)


@both
def test_slopes_are_those_of_finite_differences(loss):
    terms = terms_of(loss, 0.1 * rng.normal(size=(N, K)))
    dg, h = rng.normal(size=(N, K)), 1e-7
    alpha, s = terms.respond(G)
    ahead, back = terms.respond(G + h * dg)[0], terms.respond(G - h * dg)[0]
    np.testing.assert_allclose(bend(s, dg), (back - ahead) / (2 * h), atol=1e-5)
    first, second = terms.slopes(G, dg, 0.0)
    assert first == pytest.approx(np.sum(alpha * dg), rel=1e-12)
    assert second == pytest.approx(np.sum(dg * bend(s, dg)), rel=1e-10)


@both
def test_blocks_sum_to_their_total(loss):
    s = terms_of(loss).respond(G)[1]
    shift = rng.normal(size=K)
    moved = bend(s, np.broadcast_to(shift, G.shape))
    np.testing.assert_allclose(total_bend(s) @ shift, np.sum(moved, axis=0), atol=1e-12)
    N_ = total_bend(s)
    centred = shift - np.mean(shift)
    np.testing.assert_allclose(N_ @ pseudo_inverse(N_) @ centred, centred, atol=1e-10)


@both
def test_the_fenchel_gap_is_loss_plus_conjugate(loss):
    terms = terms_of(loss)
    alpha = loss.domain(Y).restore(rng.normal(size=(N, K)), COSTS, False)
    plain = loss.value(G, Y) + loss.conjugate(-alpha / COSTS[:, None], Y)
    expected = COSTS @ plain + np.sum(alpha * G)
    assert terms.fenchel(G, alpha) == pytest.approx(expected, rel=1e-10)
    if loss == LOSSES[1]:
        assert terms.fenchel(G, terms.respond(G)[0]) <= 1e-12


@both
def test_the_bias_balances_alpha(loss):
    terms = terms_of(loss)
    b = terms.best_bias(G + 5 * np.arange(K), np.zeros(K))
    alpha = terms.respond(G + 5 * np.arange(K) + b)[0]
    assert np.max(np.abs(np.sum(alpha, axis=0))) <= 1e-12 * np.sum(COSTS)
    assert abs(np.sum(b)) <= 1e-12


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_the_least_bias_is_that_of_a_linear_program(scale, monkeypatch):
    loss, f = MulticlassHinge(), scale * (G + 3 * np.arange(K))
    exact = COSTS @ loss.value(f + loss.best_bias(f, Y, COSTS), Y)
    found = COSTS @ loss.value(f + least_bias(terms_of(loss), f), Y)
    assert 0 <= found - exact + 1e-12 <= 1e-9 * exact
    monkeypatch.setattr(multiclass, "LARGEST_PROGRAM", 0)
    again = COSTS @ loss.value(f + loss.best_bias(f, Y, COSTS), Y)
    assert again == pytest.approx(exact, rel=1e-9)


def test_the_support_counts_classes_with_mass():
    terms = terms_of(MulticlassHinge())
    alpha = np.zeros((N, K))
    alpha[0] = [0.5 * COSTS[0], -0.5 * COSTS[0], 0.0, 0.0]  # y = 0
    support = terms.support(alpha, 1e-9)
    np.testing.assert_array_equal(support[0], [1, 1, 0, 0])
    assert not np.any(support[1:])


@both
def test_parts_and_multiples(loss):
    terms, rows = terms_of(loss), np.array([3, 5, 8])
    part = terms.part(rows).times(2.0)
    part.sigma, twice = 2 * SIGMA, 2 * terms.respond(G)[0][rows]
    np.testing.assert_allclose(part.respond(G[rows])[0], twice, atol=1e-12)


def test_sigma_has_an_inverse_if_C_is_denormal():
    y = np.array([0, 1, 2])
    terms = MulticlassHinge().class_terms(y, np.full(3, 5e-324))
    assert 1 / terms.first_sigma < np.inf
    terms.sigma = 0.0
    assert np.all(np.isfinite(terms.respond(np.zeros((3, 3)))[1]))
