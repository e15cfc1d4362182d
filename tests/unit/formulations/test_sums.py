"""Sums over disjoint, nested and overlapping kernels."""

import numpy as np
import pytest

from mklopt.formulations import BlockNorm
from mklopt.formulations.norm_terms import PowerSum, UnitNorm
from mklopt.formulations.rescaled import Rescaled
from mklopt.formulations.sums import Forbidden, Sum, euclidean_factor
from mklopt.judge.closed_forms import check_closed_forms

TWICE = Rescaled(UnitNorm(2.0), 2.0, (1.0, 1.0))
SUMS = {
    "disjoint": Sum((((0, 2), TWICE), ((1,), PowerSum(1.5, (1.0,)))), (0.0,) * 3),
    "linear": Sum((((0, 2), UnitNorm(2.0)),), (0.3, 1.0, 0.0)),
    "nested": Sum((((0, 1), TWICE), ((0, 1, 2), UnitNorm(2.0))), (0.1, 0.0, 0.5)),
    "some alone": Sum((((1,), Forbidden()),), (0.3, 0.0, 1.0)),
    "overlapping": Sum((((0, 1), TWICE), ((1, 2), UnitNorm(2.0))), (0.1,) * 3),
}


@pytest.mark.parametrize("name", SUMS)
def test_closed_forms_are_those_of_the_declaration(name):
    report = check_closed_forms(SUMS[name], 3)
    assert report.passed, str(report)


def test_what_is_closed_depends_on_how_kernels_are_shared():
    closed = {name: [op for op in ("value", "conjugate", "prox") if one.closed(op)]
              for name, one in SUMS.items()}  # fmt: skip
    assert closed["disjoint"] == closed["linear"] == ["value", "conjugate", "prox"]
    assert closed["nested"] == ["value", "conjugate", "prox"]
    assert closed["overlapping"] == ["value"]
    assert SUMS["linear"].exact and not SUMS["nested"].exact


def test_what_must_not_be_used_has_no_weight():
    one, u = SUMS["some alone"], np.ones(3)
    assert one.value(u) == np.inf and one.value(np.array([1.0, 0, 2])) == 2.3
    assert one.weights(u)[1] == one.prox(u, 0.1)[1] == one.conjugate(9 * u * [0, 1, 0])
    assert one.exact and "reweighted" in one.traits


def test_a_steep_term_ends_the_majorization():
    steep = Sum((((0, 1), UnitNorm(np.inf)), ((2,), PowerSum(1.5, (1.0,)))), (0.0,) * 3)
    assert "reweighted" not in steep.traits and "reweighted" in SUMS["nested"].traits
    mixed = Sum((((0, 1), BlockNorm(3.0)), ((2,), PowerSum(1.5, (1.0,)))), (0.0,) * 3)
    assert "reweighted" not in mixed.traits


def test_factors_of_euclidean_norms():
    assert euclidean_factor(TWICE) == 2 and euclidean_factor(UnitNorm(2.0)) == 1
    assert euclidean_factor(UnitNorm(3.0)) == 0
    assert euclidean_factor(Rescaled(UnitNorm(2.0), 2.0, (1.0, 2.0))) == 0
