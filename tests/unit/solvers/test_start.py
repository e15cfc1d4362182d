"""Where solvers begin: given points are checked, and others have a default."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem, certify, solve
from mklopt.formulations import GroupLasso, LpNorm
from mklopt.solvers.start import (
    SMALLEST_SHARE,
    Start,
    first_coefficients,
    first_dual,
    first_weights,
    weights_of,
)
from tests.problems import subset_gaussians

K, Y = subset_gaussians(60, 6)
GRAMS = GramStack(K)


def problem(**changes) -> Problem:
    return Problem(GRAMS, Y, "hinge", LpNorm(4 / 3), C=1.0).with_(**changes)


def test_a_start_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="for each of the 6 kernels"):
        solve(problem(), "analytic", start=(np.ones(3), None))
    with pytest.raises(ValueError, match="shape"):
        solve(problem(), "analytic", start=(np.ones(6), np.ones(5)))


BEST = solve(problem(), "analytic", tol=1e-6)


def test_every_form_of_a_start_is_the_same_point():
    p = problem()
    result, pair = Start.of(p, BEST), Start.of(p, (BEST.weights, BEST.dual))
    certificate = Start.of(p, BEST.certificate)
    for start in (result, pair, certificate):
        np.testing.assert_array_equal(start.dual, BEST.dual)
        np.testing.assert_allclose(start.weights, BEST.weights, rtol=1e-2)
    assert result.certificate is certificate.certificate is BEST.certificate
    assert result.bias == BEST.bias and pair.bias == 0.0 and pair.certificate is None
    assert Start.of(problem(bias=False), BEST).bias == 0.0
    with pytest.raises(ValueError, match="give a result of solve, or a pair"):
        Start.of(p, "here")


def test_weights_of_a_certificate():
    theta = np.arange(6.0)
    found = certify(problem(), dual=BEST.dual, weights=theta)
    np.testing.assert_array_equal(weights_of(found), theta)
    explicit = certify(problem(), dual=BEST.dual, coefficients=found.expansion)
    u = found.norms
    np.testing.assert_allclose(weights_of(explicit), LpNorm(4 / 3).weights(u))


def test_first_weights_are_uniform_or_those_of_the_start_but_never_zero():
    theta, alpha = first_weights(problem(), None)
    assert alpha is None and np.ptp(theta) == 0 and np.sum(theta ** (4 / 3)) <= 1 + 1e-9
    given = np.array([2.0, 0, 0, 0, 0, 1.0])
    theta, alpha = first_weights(problem(), (given, BEST.dual))
    np.testing.assert_array_equal(alpha, BEST.dual)
    np.testing.assert_allclose(theta, np.maximum(given, 2 * SMALLEST_SHARE))
    zero, _ = first_weights(problem(), (0 * given, None))
    np.testing.assert_array_equal(zero, first_weights(problem(), None)[0])


def test_first_coefficients_are_zero_with_the_best_bias():
    p = problem(loss="logistic", formulation=GroupLasso())
    B, alpha, bias = first_coefficients(p, None)
    assert not np.any(B) and abs(np.sum(alpha)) <= 1e-8
    share = np.mean(Y == 1)
    assert bias == pytest.approx(np.log(share / (1 - share)), abs=1e-6)
    np.testing.assert_allclose(alpha, (Y + 1) / 2 - share, atol=1e-6)


def test_first_coefficients_of_a_start():
    found = BEST.certificate
    B, _, bias = first_coefficients(problem(), BEST)
    np.testing.assert_array_equal(B, found.expansion)
    assert bias == BEST.bias
    pair = (BEST.weights, BEST.dual)
    B, _, _ = first_coefficients(problem(), pair)
    np.testing.assert_allclose(B, np.multiply.outer(*pair))
    with pytest.raises(ValueError, match="give the dual"):
        first_coefficients(problem(), (BEST.weights, None))


@pytest.mark.parametrize("C", [1e-3, 100.0])
def test_the_first_dual_is_the_best_multiple_of_the_labels(C):
    p = problem(C=C)
    alpha = first_dual(p)

    def dual(s):
        v = np.sqrt(GRAMS.quad(s * alpha))
        return p.dual_loss(s * alpha) - p.formulation.conjugate(v)

    assert dual(1.0) >= dual(0.9) > 0
    full = np.max(np.abs(alpha)) >= C * (1 - 1e-12)
    assert full or dual(1.0) >= dual(1.1)


def test_feature_weights_begin_as_weights_near_them():
    """A point of feature weights has no coefficients; solvers of the primal take θ."""
    rng = np.random.default_rng(0)
    grams = GramStack.from_factors(rng.normal(size=(3, 60, 2)))
    p, alpha = problem(grams=grams), 0.1 * (Y - np.mean(Y))
    found = certify(p, dual=alpha, features=rng.normal(size=6))
    B, dual, bias = first_coefficients(p, found)
    np.testing.assert_allclose(B, np.multiply.outer(weights_of(found), found.alpha))
    np.testing.assert_array_equal(dual, found.alpha)
    assert bias == found.bias
    assert solve(p, "spicy", start=found, tol=1e-3).status == "converged"
