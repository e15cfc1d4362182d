"""Block steps on exact rows: they climb, stay feasible, and end at the optimum."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import Problem, certify, solve
from mklopt.certificates.enclosure import exact_point
from mklopt.formulations import BlockL1, LpNorm
from mklopt.kernels.entries import Entries, Products
from mklopt.problem import quadratic_dual
from mklopt.tasks import exact_improvement
from mklopt.tasks.exact_improvement import improved, violators
from mklopt.tasks.exact_values import Images
from tests.unit.tasks.low_rank_samples import FAMILY, points

N = 240
X, Y = points(N)
FITTED = FAMILY.fit(X)
GRAMS = FITTED.grams()


def start(problem):
    entries, alpha = Entries.of(FITTED), problem.feasible(np.zeros(N))
    products = Products(entries, np.arange(N), alpha[:, None])
    return alpha, Images(entries, products.at(slice(None)), products.spread)


@pytest.mark.parametrize("block", [60, 2000])
@pytest.mark.parametrize(
    "loss, formulation, bias",
    [
        ("hinge", LpNorm(p=2), True),
        ("hinge", LpNorm(p=4 / 3), False),
        ("hinge", BlockL1(), True),
        ("eps_insensitive", LpNorm(p=2), True),
        ("squared", LpNorm(p=2), True),
    ],
)
def test_passes_end_at_the_optimum(monkeypatch, block, loss, formulation, bias):
    monkeypatch.setattr(exact_improvement, "BLOCK", block)
    y = Y if loss == "hinge" else X[:, 0] ** 2
    problem = Problem(GRAMS, y, loss, formulation, C=2.0, bias=bias)
    (alpha, images), theta, values = start(problem), np.ones(3), []
    for _ in range(12):
        alpha, theta = improved(problem, alpha, theta, images)
        found = certify(problem, alpha, theta)
        values.append(found.dual)
        np.testing.assert_allclose(found.alpha, alpha, atol=1e-12)  # it is feasible
        Ka = GRAMS.matvec(alpha)
        limit = images.roots * images.spread + 1e-12
        assert np.all(np.abs(images.values[:, :, 0] - Ka) <= limit)
    best = solve(problem, tol=1e-8).certificate
    assert max(values) >= best.dual - 1e-3 * abs(best.primal)
    assert values[0] < values[-1] or values[0] == pytest.approx(best.dual, rel=1e-6)


def test_images_are_those_of_the_feasible_point(monkeypatch):
    """However far α is moved to be feasible, the error bounds are for where it ends."""
    problem = Problem(GRAMS, Y, "hinge", LpNorm(p=2), C=2.0)
    nearby = lambda problem, alpha: exact_point(problem, alpha * (1 - 1e-6))  # noqa: E731
    monkeypatch.setattr(exact_improvement, "exact_point", nearby)
    alpha, images = start(problem)
    alpha, _ = improved(problem, alpha, np.ones(3), images)
    off = np.abs(images.values[:, :, 0] - GRAMS.matvec(alpha))
    assert np.all(off <= images.roots * images.spread + 1e-12)
    assert np.max(off) > 1e-8  # they were computed for the point before


def test_the_block_has_those_that_violate_most():
    problem = Problem(GRAMS, Y, "hinge", LpNorm(p=2), C=1.0)
    dual = quadratic_dual(problem)
    alpha = np.where(np.arange(N) < 10, Y, 0.0)  # at the bound
    g = np.arange(N, dtype=float) / N
    g[:10] = 5.0 * Y[:10]  # they want to go back, to 0
    which = violators(dual, True, alpha, g, 40)
    assert len(which) == 40 and np.all(np.diff(which) > 0)
    back = {i for i in range(10) if Y[i] > 0}
    assert back <= set(which.tolist())
    alone = violators(dual, False, alpha, g, N)
    up = (alpha < dual.high) & (g < 0)
    down = (alpha > dual.low) & (g > 0)
    np.testing.assert_array_equal(alone, np.flatnonzero(up | down))
    assert violators(dual, False, np.zeros(N), -dual.linear * 0, N).size == 0


def test_nothing_moves_at_the_optimum():
    problem = Problem(GRAMS, Y, "hinge", LpNorm(p=2), C=0.5)
    found = solve(problem, tol=1e-9)
    entries, alpha = Entries.of(FITTED), np.array(found.dual)
    products = Products(entries, np.arange(N), alpha[:, None])
    images = Images(entries, products.at(slice(None)), products.spread)
    after, _ = improved(problem, alpha, found.weights, images)
    assert certify(problem, after, found.weights).dual >= found.certificate.dual - 1e-6


def test_weights_stay_where_norms_overflow():
    problem = Problem(GRAMS, Y, "hinge", LpNorm(p=2), C=1e220)
    _alpha, images = start(problem)
    images.values[:] = np.inf
    theta = np.array([1.0, 0.0, 2.0])
    with np.errstate(all="ignore"):
        found = exact_improvement._followed(problem, 1e200 * Y, theta, images)
    np.testing.assert_array_equal(found, theta)
