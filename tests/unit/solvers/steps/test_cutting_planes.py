"""The master program of cutting planes: its minimum, its mixture, its ball."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.solvers.steps.cutting_planes import Cuts


def cuts(p: float) -> Cuts:
    """t ≥ 3 − ½⟨θ, (4, 1)⟩ and t ≥ 2 − ½⟨θ, (0, 2)⟩."""
    found = Cuts(2, p)
    found.add(np.array([1.0, 0.0]), 3.0, np.array([2.0, 1.0]))
    found.add(np.array([0.0, 1.0]), 2.0, np.array([0.0, np.sqrt(2.0)]))
    return found


def largest(theta: np.ndarray) -> float:
    return max(3 - 2 * theta[0] - 0.5 * theta[1], 2 - theta[1])


def test_on_the_simplex_the_minimum_is_where_both_cuts_meet():
    found = cuts(1.0)
    theta = found.minimum()
    # 3 − 2a − ½(1 − a) = 2 − (1 − a) at a = 3/5
    np.testing.assert_allclose(theta, [0.6, 0.4], atol=1e-8)
    # On the simplex the slopes −3/2 and 1 of the cuts are balanced by 2/5 and 3/5.
    np.testing.assert_allclose(found.mixture(), [0.4, 0.6], atol=1e-8)


@pytest.mark.parametrize("p", [4 / 3, 2.0])
def test_in_a_ball_it_is_nearly_as_low_as_on_a_fine_grid(p):
    theta = cuts(p).minimum()
    assert np.sum(theta**p) == pytest.approx(1.0)
    a = np.linspace(0, 1, 10_001)
    grid = [largest(np.array([x, (1 - x**p) ** (1 / p)])) for x in a]
    assert largest(theta) == pytest.approx(min(grid), abs=1e-4)


def test_in_a_box_every_weight_is_one():
    found = cuts(np.inf)
    np.testing.assert_array_equal(found.minimum(), [1.0, 1.0])
    np.testing.assert_array_equal(found.mixture(), [0.0, 1.0])  # the last α
