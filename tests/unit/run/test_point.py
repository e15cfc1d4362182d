"""The returned point: weights that are certified, or coefficients."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import C_zero, GramStack, Problem, certify, solve
from mklopt.formulations import VSKL, BlockL1, Composite, GroupLasso, LpNorm
from mklopt.run.point import certified_again, meets, rounding_forbids, weights_near
from mklopt.solvers import solvers
from tests.problems import subset_gaussians

K, Y = subset_gaussians(60, 6)
GRAMS = GramStack(K)
FACTORS = GramStack.from_factors([np.linalg.cholesky(k + 1e-9 * np.eye(60)) for k in K])


def problem(formulation=None, loss="hinge", C=1.0) -> Problem:
    return Problem(GRAMS, Y, loss, formulation or LpNorm(4 / 3), C=C)


BEST = solve(problem(), "analytic", tol=1e-9).certificate


def test_meets_counts_rounding_errors():
    gap, width = BEST.relative_gap, BEST.width
    assert 0 <= gap < width < 2e-9
    assert meets(BEST, width) and not meets(BEST, gap - 1e-14)
    assert meets(BEST, width * (1 - 1e-7)) and not meets(BEST, 0.999 * width - 2e-15)


def test_rounding_forbids_what_is_smaller_than_all_rounding_errors():
    rounding = BEST.width - BEST.relative_gap
    assert rounding_forbids(BEST, 0.9 * rounding)
    assert not rounding_forbids(BEST, 1.1 * rounding)


def test_all_three_rules_agree_at_a_solution_and_the_best_is_taken():
    """Coefficients with a wrong length in one kernel: only ∂Ω*(v)/v sees nothing."""
    B = BEST.expansion
    B[2] *= 3
    found = certify(problem(), dual=BEST.alpha, coefficients=B)
    assert found.relative_gap > 1e-3
    np.testing.assert_allclose(weights_near(found), BEST.weights, rtol=1e-4)
    again = certified_again(found, tol=1e-6)
    assert again.weights is not None and again.relative_gap < 1e-8


def test_a_sparse_solution_keeps_its_weights():
    """Ω* of BlockL1 is not smooth: the weights come from the primal point."""
    best = solve(problem(BlockL1()), tol=1e-9).certificate
    found = certify(best.problem, dual=best.alpha, coefficients=best.expansion)
    theta = weights_near(found)
    assert 0 < np.count_nonzero(theta) < 6
    np.testing.assert_allclose(theta, best.weights, rtol=1e-6, atol=1e-12)


def test_coefficients_are_returned_where_no_weights_are_as_good():
    rng = np.random.default_rng(1)
    B = BEST.expansion * (1 + 1e-5 * rng.normal(size=(6, 60)))
    alpha = BEST.alpha * (1 - 1e-3 * rng.random(60))
    found = certify(problem(), dual=alpha, coefficients=B)
    again = certified_again(found, tol=1e-12)
    assert again.coefficients is not None and again.relative_gap == found.relative_gap


@pytest.mark.parametrize("name", sorted(solvers()))
def test_what_is_returned_is_what_is_certified(name):
    tried = 0
    for one in (
        problem(C=10.0),
        problem(VSKL([[0, 1], [2, 3, 4, 5]])),
        problem(Composite([[0, 1], [2, 3, 4, 5]])),
        problem(GroupLasso(), "logistic"),
        problem(GroupLasso(), "squared"),
        problem(BlockL1()),
        problem().with_(bias=False),
        problem(loss="squared").with_(bias=False),
        problem().with_(grams=FACTORS),
    ):
        if solvers()[name].why_not(one):
            continue
        tried += 1
        found = solve(one, name, tol=1e-3, max_iter=300)
        again = certify(one, dual=found.dual, weights=found.weights)
        assert found.point == "weights", name
        assert again.relative_gap == found.relative_gap
        assert again.lower == found.certificate.lower
        np.testing.assert_array_equal(again.alpha, found.dual)
        np.testing.assert_array_equal(again.bias, found.bias)
    assert tried


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize("name", ["auto", "active", "spicy"])
def test_below_C_zero_all_weights_are_zero(name, loss):
    one = problem(GroupLasso(), loss)
    below = one.with_(C=0.9 * C_zero(one))
    found = solve(below, name)
    assert found.converged and not np.any(found.weights)
    above = solve(one.with_(C=1.5 * C_zero(one)), name)
    assert above.converged and 0 < np.count_nonzero(above.weights) < 6
