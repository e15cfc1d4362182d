"""Pricing, and the problem restricted to a working set."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem, certify, solve
from mklopt import formulations as F
from mklopt.certificates.pricing import prices
from mklopt.formulations import stripped
from mklopt.formulations.restricted import Restricted
from mklopt.solvers.steps.working_set import at_most, restricted
from tests.problems import subset_gaussians

K, Y = subset_gaussians(120, 40)
GRAMS = GramStack(K)
HALVES = F.VSKL([tuple(range(20)), tuple(range(20, 40))], 2.0)
SUMS = F.Composite([tuple(range(10)), tuple(range(10, 25)), tuple(range(25, 40))])
SPARSE = [F.BlockL1(), F.GroupLasso(), F.ElasticNet(0.5), HALVES, SUMS]


@pytest.mark.parametrize("formulation", SPARSE, ids=repr)
def test_prices_ask_for_the_kernels_of_the_solution(formulation):
    """u = prox(u + γv) at the optimum, whatever γ is."""
    p = Problem(GRAMS, Y, "hinge", formulation, 1.0)
    found = solve(p, tol=1e-9).certificate
    v, u = np.sqrt(GRAMS.quad(found.shrink * found.alpha)), found.norms
    for gamma in (0.1, np.linspace(0.5, 2.0, GRAMS.M)):
        asked = prices(formulation, v, gamma, u)
        np.testing.assert_allclose(asked, u, atol=2e-3 * np.max(u))
    assert 0 < np.count_nonzero(u) < GRAMS.M
    assert np.all(prices(formulation, 0.5 * v, 1.0) <= prices(formulation, v, 1.0))


def test_at_most_keeps_the_largest():
    values = np.array([3.0, 0.0, 5.0, 1.0, 4.0])
    np.testing.assert_array_equal(at_most(values, 2), [0.0, 0.0, 5.0, 0.0, 4.0])
    np.testing.assert_array_equal(at_most(values, 4), values)
    equal = np.array([0.0, 2.0, 2.0, 2.0, 3.0])
    np.testing.assert_array_equal(at_most(equal, 2), [0.0, 2.0, 0.0, 0.0, 3.0])


SAME = [F.LpNorm(1.0), F.LpNorm(2.0), F.BlockNorm(3.0), F.BlockL1(), F.GroupLasso()]
SAME += [F.ElasticNet(0.3), F.Tikhonov(2.0, 0.7)]


@pytest.mark.parametrize("formulation", SAME, ids=repr)
def test_what_is_the_same_for_a_part_needs_no_zeros(formulation, monkeypatch):
    kernels, rng = np.array([1, 4, 20, 33]), np.random.default_rng(0)
    u, step = rng.uniform(0.2, 2.0, 4), rng.uniform(0.5, 1.0, 4)
    p = Problem(GRAMS, Y, "hinge", formulation, 1.0)
    filled = restricted(p, kernels).formulation
    assert isinstance(filled, Restricted)
    monkeypatch.setattr("mklopt.solvers.steps.working_set.MANY", 0)
    plain = restricted(p, kernels).formulation
    assert plain is formulation
    assert plain.value(u) == pytest.approx(filled.value(u), rel=1e-13)
    v = u / (2 * np.max(u))
    assert plain.conjugate(v) == pytest.approx(filled.conjugate(v), rel=1e-13)
    np.testing.assert_allclose(plain.prox(u, step), filled.prox(u, step), rtol=1e-9)
    np.testing.assert_allclose(plain.weights(u), filled.weights(u), rtol=1e-12)


def test_a_subclass_has_to_say_itself_that_it_is_the_same(monkeypatch):
    class Weighted(F.GroupLasso):
        """It could have a number for every kernel."""

    monkeypatch.setattr("mklopt.solvers.steps.working_set.MANY", 0)
    p = Problem(GRAMS, Y, "hinge", Weighted(), 1.0)
    assert isinstance(restricted(p, np.array([1, 2])).formulation, Restricted)


@pytest.mark.parametrize("formulation", SPARSE, ids=repr)
def test_a_restricted_formulation_is_its_declaration_with_zeros(formulation):
    kernels = (1, 4, 20, 33)
    part = Restricted(formulation, kernels, 40)
    bare = stripped(part)
    rng = np.random.default_rng(0)
    u, step = rng.uniform(0.2, 2.0, 4), rng.uniform(0.5, 1.0, 4)
    assert part.value(u) == pytest.approx(bare.value(u), rel=1e-7)
    v = u / (2 * np.max(u))
    assert part.conjugate(v) == pytest.approx(bare.conjugate(v), rel=1e-6, abs=1e-8)
    np.testing.assert_allclose(part.prox(u, step), bare.prox(u, step), atol=1e-6)
    np.testing.assert_allclose(part.weights(u), bare.weights(u), rtol=1e-5)


def test_a_restricted_problem_bounds_the_whole_one_from_above():
    p = Problem(GRAMS, Y, "hinge", F.GroupLasso(), 1.0)
    whole, part = solve(p), solve(restricted(p, np.arange(0, 40, 2)))
    assert part.converged
    assert part.certificate.primal > whole.certificate.dual
    theta = np.zeros(40)
    theta[::2] = part.certificate.weights
    same = certify(p, dual=part.dual, weights=theta).primal
    assert same == pytest.approx(part.certificate.primal, rel=1e-12)
