"""Hard margins: known by hand, by the formula of margins, and refused elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem, reference
from mklopt.formulations import BlockNorm, ElasticNet, LpNorm
from mklopt.reference.largest_margin import margin


def problem(formulation, scale=1.0, **more) -> Problem:
    """Two copies of orthogonal samples: f_i is a coordinate of v_1 + v_2."""
    y = np.array([1.0, -1.0, 1.0, -1.0])
    grams = GramStack.from_factors([scale * np.eye(4)] * 2)
    return Problem(grams, y, "hinge", formulation, bias=False, **more)


@pytest.mark.parametrize(
    "formulation, known",
    [
        (BlockNorm(2.0), 1.0),  # v_1 = v_2 = y/2: ½ (1 + 1)
        (LpNorm(1.0), 2.0),  # all in one: ½ ‖y‖²
        (BlockNorm(1.5), 0.5 * 2 ** (4 / 3)),  # ½ (1 + 1)^(2/q)
    ],
)
def test_orthogonal_samples_are_known_by_hand(formulation, known):
    found = reference.hard_margin(problem(formulation))
    assert found.lower <= known * (1 + 1e-12) and known <= found.upper * (1 + 1e-12)
    assert found.upper - found.lower <= 1e-6 * found.upper
    low, high = found.norm
    assert low <= np.sqrt(2 * known) * (1 + 1e-12) and np.sqrt(2 * known) <= high
    f = np.sum(found.coefficients, axis=0)  # K = I
    assert np.min(problem(formulation).y * f) >= 1 - 1e-9


def test_C_does_not_matter_and_small_kernels_take_large_C():
    small = reference.hard_margin(problem(BlockNorm(2.0), scale=0.01, C=7.0))
    assert small.lower <= 1e4 <= small.upper * (1 + 1e-12)


def test_the_margin_is_the_smallest_of_all_samples():
    p = problem(BlockNorm(2.0))
    f = p.y * np.array([3.0, 0.4, 2.0, 9.0])
    assert margin(p, f) == pytest.approx(0.4)
    assert margin(p, -f) == pytest.approx(-9.0)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"loss": "logistic"}, "logistic has no margin of 1"),
        ({"bias": True}, "squared norms without a bias"),
        ({"formulation": ElasticNet()}, "squared norms without a bias"),
        ({"grams": GramStack(np.ones((2, 4, 4)))}, "the classes overlap"),
    ],
)
def test_other_problems_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        reference.hard_margin(problem(BlockNorm(2.0)).with_(**change))
