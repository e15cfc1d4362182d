"""Newton's method in the weights: quadratic convergence, and steps that fall."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem, certify
from mklopt import formulations as F
from mklopt.solvers.machines.factory import machine_for
from mklopt.solvers.steps import weight_newton
from mklopt.solvers.steps.orthant_oracle import Orthant
from mklopt.solvers.steps.simplex_oracle import Oracle
from tests.problems import subset_gaussians

K, Y = subset_gaussians(80, 12)
GRAMS = GramStack(K)
GROUPS = (tuple(range(5)), tuple(range(5, 12)))


def oracle(kind: str) -> Oracle | Orthant:
    if kind == "orthant":
        p = Problem(GRAMS, Y, "hinge", F.GroupLasso(), 1.0)
        return Orthant(p, machine_for(p, second_order=True))
    if kind == "simplex":
        p = Problem(GRAMS, Y, "hinge", F.BlockL1(), 1.0)
        return Oracle(p, (tuple(range(12)),), 1.0)
    if kind == "below 2":
        p = Problem(GRAMS, Y, "hinge", F.Composite(GROUPS, 1.0, 1.5), 1.0)
        return Oracle(p, GROUPS, 0.75)
    p = Problem(GRAMS, Y, "hinge", F.VSKL(GROUPS, 2.0), 1.0)
    return Oracle(p, GROUPS, 2.0)


def run(kind: str, count: int):
    """Weights, values and certificates of the first steps."""
    found = oracle(kind)
    first = np.full(12, 0.1)
    steps = weight_newton.newton(found, first)
    certificate: Any = None
    values, gaps = [], []
    for _ in range(count):
        iterate = steps.send(certificate)
        certificate = certify(found.problem, dual=iterate.dual, weights=iterate.weights)
        values.append(found.value)
        gaps.append(certificate.relative_gap)
    return found, values, gaps


@pytest.mark.parametrize("kind", ["simplices", "below 2"])
def test_weights_of_groups_converge_as_fast_as_those_inside(kind):
    """The response of θ_j to the norms is exact; a factor per step would leave 1e-7."""
    assert min(run(kind, 9)[2]) <= 1e-10


@pytest.mark.parametrize("kind", ["simplex", "simplices", "below 2", "orthant"])
def test_few_steps_reach_a_tiny_gap(kind):
    _, values, gaps = run(kind, 12)
    assert min(gaps) <= 1e-7 and gaps[0] > 1e-3
    assert values[-1] < values[0]


@pytest.mark.parametrize("kind", ["simplex", "simplices"])
def test_weights_stay_on_their_simplices_with_exact_zeros(kind):
    found, _, _ = run(kind, 12)
    assert isinstance(found, Oracle)
    np.testing.assert_allclose(found.sums(found.lam), 1.0, rtol=1e-12)
    assert np.all(found.lam >= 0) and np.any(found.lam == 0)


def test_tiny_weights_become_zero():
    theta = np.ones(12)
    theta[[2, 7]] = 1e-12
    on_simplices = weight_newton._clean(theta, oracle("simplices"))
    np.testing.assert_array_equal(np.flatnonzero(on_simplices == 0), [2, 7])
    np.testing.assert_allclose(on_simplices[:5], [0.25, 0.25, 0.0, 0.25, 0.25])
    on_orthant = weight_newton._clean(3 * theta, oracle("orthant"))
    np.testing.assert_array_equal(on_orthant, 3.0 * (theta == 1))


def test_on_the_orthant_the_sum_of_the_weights_falls_at_most_by_half():
    found = oracle("orthant")
    step = np.full(12, -1.0)
    t = weight_newton._first_length(np.full(12, 0.1), step, found)
    assert t == pytest.approx(0.05)
    assert weight_newton._first_length(np.full(12, 0.1), -step, found) == 1.0
    assert weight_newton._first_length(step, step, oracle("simplex")) == 1.0
