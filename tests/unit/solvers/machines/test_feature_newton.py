"""Newton's method in feature space: bands, parts of the samples, sums over rows."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem
from mklopt.formulations import LpNorm
from mklopt.solvers.machines import feature_newton
from mklopt.solvers.machines.dual_terms import terms_of
from mklopt.solvers.machines.feature_newton import FeatureNewton, Gram


def made(n=3000, R=6, loss="hinge", C=1.0, bias=True, seed=0):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, R))
    y = np.sign(F[:, 0] + 0.5 * rng.normal(size=n) + 0.2)
    grams = GramStack.from_factors([F])
    p = Problem(grams, y, loss, LpNorm(2.0), C, bias)
    panel = grams.panel()
    root = np.sqrt(0.5) * np.ones(R)
    return p, FeatureNewton(panel, root, terms_of(p), bias, Gram(panel))


def values(p, newton, at):
    """The primal and the dual value, from the definition."""
    Z = np.hstack(p.grams.factors) * newton.root
    g = Z @ at.x + at.b
    primal = p.costs @ p.loss.value(g, p.y) + 0.5 * at.x @ at.x
    alpha = p.feasible(at.alpha)
    dual = p.dual_loss(alpha) - 0.5 * np.sum((Z.T @ alpha) ** 2)
    return primal, dual


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_gap_is_met_and_true(loss, C, bias, monkeypatch):
    monkeypatch.setattr(feature_newton, "FEWEST", 300)
    p, newton = made(loss=loss, C=C, bias=bias)
    worst = float(np.sum(p.costs))
    at = newton.cold(1e-9 * worst)
    primal, dual = values(p, newton, at)
    assert at.gap <= 1e-9 * worst
    assert -1e-12 * worst <= primal - dual <= 2e-9 * worst


def test_parts_and_bands_save_products(monkeypatch):
    """The same solution with all samples in all steps costs several times as much."""
    monkeypatch.setattr(feature_newton, "FEWEST", 1000)
    _, few = made(n=40_000, R=10)
    few.cold(4e-2)
    monkeypatch.setattr(feature_newton, "FEWEST", 10**9)
    monkeypatch.setattr(feature_newton, "MOST_BAND", 0.0)
    _, all_of_them = made(n=40_000, R=10)
    all_of_them.cold(4e-2)
    assert few.products < 0.6 * all_of_them.products
    assert few.gram.rows < 0.6 * all_of_them.gram.rows
    assert few.products <= 40 and few.gram.rows <= 2 * 40_000


def test_sums_are_updated_by_the_rows_that_change():
    rng = np.random.default_rng(0)
    panel = GramStack.from_factors([rng.normal(size=(500, 4))]).panel()
    gram, d = Gram(panel), np.zeros(500)
    wide = np.column_stack([panel.F, np.ones(500)])
    d[:400] = 1.0
    gram.at(None, d)
    assert gram.rows == 400
    d = d.copy()
    d[395:405] = 0.0
    d[450:455] = 2.0
    found = gram.at(None, d)
    assert gram.rows == 410  # 5 have left, 5 have come
    np.testing.assert_allclose(found, wide.T @ (d[:, None] * wide), atol=1e-11)
    gram.at(np.arange(395), np.ones(395))
    np.testing.assert_allclose(gram.sums, wide[:395].T @ wide[:395], atol=1e-11)
    few = gram.at(np.array([1, 2]), np.ones(2))  # made anew: cheaper than an update
    assert gram.rows == 417
    np.testing.assert_allclose(few, wide[1:3].T @ wide[1:3], atol=1e-12)


def test_no_sample_between_its_bounds():
    """J is empty: the step is the gradient, and the bias is still exact."""
    _, newton = made(n=400, R=3, C=1e-6)
    at = newton.cold(1e-12)
    assert at.gap <= 1e-12 and abs(np.sum(at.alpha)) < 1e-15
