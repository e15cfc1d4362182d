"""Single terms: closed forms against their own declarations, and safe domains."""

from fractions import Fraction

import numpy as np
import pytest

from mklopt.formulations.derive.structure import Part
from mklopt.formulations.norm_terms import (
    AnyNorm,
    LinearSquares,
    PowerNorm,
    PowerSum,
    QuadraticForm,
    UnitNorm,
)
from mklopt.judge.closed_forms import check_closed_forms

TERMS = [
    *(UnitNorm(q) for q in (1.2, 2.0, 3.0, np.inf)),
    *(PowerNorm(q, k) for q, k in ((1.0, 1.5), (2.0, 1.2), (1.5, 2.0))),
    PowerSum(1.5, (1.0, 2.0, 0.5)),
    PowerSum(4.0, (1.0, 2.0, 0.5)),
    LinearSquares((1.0, 0.5, 0.0), (0.0, 2.0, 1.0)),
    LinearSquares((0.3,) * 3, (0.7,) * 3),
]


@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_closed_forms_are_those_of_the_declaration(term):
    report = check_closed_forms(term, 3)
    assert report.passed, str(report)


def test_what_is_called_inside_the_dual_ball_is_inside():
    """In exact arithmetic, at the edge of the ball."""
    rng, term = np.random.default_rng(0), UnitNorm(2.0)
    for _ in range(200):
        v = rng.uniform(0, 1, 7)
        v = v * term.feasible_scale(10 * v) * 10
        assert term.conjugate(v * (1 - 1e-12)) == 0
        if term.conjugate(v) == 0:
            assert sum(Fraction(x) ** 2 for x in v.tolist()) <= 1


def test_the_prox_of_a_norm_is_zero_inside_the_dual_ball():
    term, step = UnitNorm(3.0), np.array([0.5, 1.0, 2.0])
    v = np.array([0.4, 0.3, 0.2])
    v = v / np.linalg.norm(v, 1.5)
    assert not np.any(term.prox(0.999 * step * v, step))
    assert np.all(term.prox(1.001 * step * v, step) > 0)


def test_slopes_of_overlapping_norms_and_quadratic_forms_are_differences():
    parts = (Part(2.0, (0, 1), (1.0, 2.0)), Part(1.0, (1, 2), (1.0, 1.0)))
    Q = ((2.0, 0.5, 0.0), (0.5, 1.0, 0.0), (0.0, 0.0, 3.0))
    u, h = np.array([0.5, 1.0, 2.0]), 1e-6
    for term in (AnyNorm(0.7, 1.5, 3.0, parts), QuadraticForm(Q)):
        ahead = [term.value(u + h * e) - term.value(u - h * e) for e in np.eye(3)]
        np.testing.assert_allclose(u / term.weights(u), np.array(ahead) / (2 * h), 1e-6)
