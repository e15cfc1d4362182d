"""Multiples and stretches of formulations."""

import numpy as np
import pytest

from mklopt.formulations import BlockNorm, GroupLasso, SparseBlockNorm, WeightedLpNorm
from mklopt.formulations.rescaled import Rescaled
from mklopt.judge.closed_forms import check_closed_forms

D = (1.0, 2.0, 0.5)


@pytest.mark.parametrize("inner", [GroupLasso(), BlockNorm(1.5), BlockNorm(3.0)])
def test_closed_forms_are_those_of_the_declaration(inner):
    report = check_closed_forms(Rescaled(inner, 0.7, D), 3)
    assert report.passed, str(report)


def test_a_prior_is_a_stretch():
    prior = 1 / np.array(D) ** 2
    known = WeightedLpNorm(2.0, tuple(prior.tolist()))
    mine = Rescaled(BlockNorm(4 / 3), 1.0, D)
    theta, v = np.array([0.3, 1.0, 2.0]), np.array([1.0, 0.2, 0.6])
    for one, other in zip(mine.elasticities(theta, v), known.elasticities(theta, v)):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_allclose(mine.reweight(theta, v), known.reweight(theta, v))


def test_strong_convexity_is_that_of_the_multiple():
    p, a, c = Rescaled(SparseBlockNorm(1.5, 0.3), 2.0, (3.0,) * 3).strongly_convex
    assert (p, a, c) == (1.5, 2 * 3 * 0.3, 2 * 9)
    assert "strongly_convex" not in Rescaled(BlockNorm(1.5), 2.0, D).traits
