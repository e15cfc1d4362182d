"""Some of the kernels: every operator is that of all of them with zeros filled in."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from mklopt.formulations import VSKL, ElasticNet, LpNorm, formulation, stripped
from mklopt.formulations.restricted import Restricted

KERNELS = (1, 2, 4)
PART = Restricted(LpNorm(2.0), KERNELS, 5)
U, V = np.array([0.4, 0.0, 2.0]), np.array([1.0, 0.3, 0.2])


def test_operators_are_those_of_the_whole():
    alone = LpNorm(2.0)
    step = np.array([0.1, 0.5, 0.9])
    for name, point in (
        ("value", U),
        ("conjugate", V),
        ("weights", U),
        ("dual_weights", V),
        ("feasible_scale", V),
    ):
        assert getattr(PART, name)(point) == pytest.approx(getattr(alone, name)(point))
    for how in (0.3, step):
        assert PART.prox(V, how) == pytest.approx(alone.prox(V, how), rel=1e-9)
        assert PART.prox_slope(V, how) == pytest.approx(
            alone.prox_slope(V, how), rel=1e-9
        )
    assert PART.reweight(U, V) == pytest.approx(alone.reweight(U, V))
    assert list(PART.fill(V)) == [0.0, 1.0, 0.3, 0.0, 0.2]


def test_traits_and_numbers_of_a_part():
    assert PART.traits == LpNorm(2.0).traits - {"strongly_convex"}
    assert PART.ball == LpNorm(2.0).ball and PART.exact and PART.closed("prox")
    assert PART.rounding(3) == LpNorm(2.0).rounding(5)
    assert Restricted(ElasticNet(0.5), (0,), 2).orthant == ElasticNet(0.5).orthant
    groups = Restricted(VSKL([[0, 1], [2, 3], [4]], 2.0), KERNELS, 5)
    assert groups.simplices(3) == (((0,), (1,), (2,)), 2.0)
    two = Restricted(VSKL([[0, 1, 2], [3, 4]], 2.0), (0, 2), 5)
    assert two.simplices(2) == (((0, 1),), 2.0)


def test_the_declaration_of_a_part_is_that_of_the_whole():
    assert stripped(PART).value(U) == pytest.approx(PART.value(U), rel=1e-7)
    scale = 1.0
    part = Restricted(formulation(lambda u: scale * cp.sum(u)), KERNELS, 5)
    assert not part.closed("prox") and part.value(U) == pytest.approx(2.4)
    first = part.epigraph(3)
    assert part.epigraph(3) is first
    scale = 2.0
    assert part.epigraph(3) is not first
    assert part.epigraph(3).value(U)[0] == pytest.approx(4.8)
