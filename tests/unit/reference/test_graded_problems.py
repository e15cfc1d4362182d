"""The graded problems: what each of them is meant to be, and its reference."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.formulations import LpNorm, losses_by_name
from mklopt.reference.contract_problems import GRID
from mklopt.reference.graded_problems import GRADED, GRADES, reference_of

HINGE = losses_by_name()["hinge"]()
BY_NAME = {graded.name: graded for graded in GRADED}


def drawn(name):
    return BY_NAME[name].problem(LpNorm(2.0), HINGE)


@pytest.mark.parametrize("graded", GRADED, ids=lambda graded: graded.name)
def test_kernels_are_exact_and_drawn_the_same_every_time(graded):
    one, other = (graded.problem(LpNorm(2.0), HINGE) for _ in range(2))
    assert one.digest() == other.digest()
    assert graded.grade in GRADES and one.grams.proof == "factors"
    for L in one.grams.factors:
        np.testing.assert_array_equal(L / GRID, np.rint(L / GRID))
    assert set(one.y) == {-1.0, 1.0}
    assert one.bias == graded.bias


def test_degenerate_problems_are_degenerate():
    twins = drawn("every kernel twice").grams
    for m in range(3):
        np.testing.assert_array_equal(twins.kernel(m), twins.kernel(m + 3))
    assert not np.any(drawn("a kernel of zeros").grams.kernel(3))
    both = drawn("both labels at once")
    np.testing.assert_array_equal(both.grams.kernel(0)[:4], both.grams.kernel(0)[20:])
    np.testing.assert_array_equal(both.y[:4], -both.y[20:])
    assert {L.shape[1] for L in drawn("rank one").grams.factors} == {1}


def test_ill_conditioned_and_edge_problems_are_what_they_say():
    sizes = [np.trace(K) for K in drawn("sizes 0.01 to 100").grams.dense()]
    assert 0.3e8 < sizes[-1] / sizes[0] < 3e8
    assert drawn("one kernel").grams.M == 1 and drawn("two samples").grams.n == 2
    assert np.sum(drawn("one against the rest").y == 1) == 2
    assert np.shape(drawn("one C per sample").C) == (24,)
    assert not drawn("no bias").bias and drawn("C = 0.001").C == 0.001


def test_targets_fit_every_kind_of_loss():
    graded = BY_NAME["unbalanced"]
    for name, kind in losses_by_name().items():
        problem = graded.problem(LpNorm(2.0), kind())
        assert problem.loss.name == name
        assert problem.bias == kind.bias_allowed


def test_a_reference_is_read_or_solved():
    for name in ("small", "two samples"):
        problem = drawn(name)
        found = reference_of(problem)
        assert found.certificate.problem.digest() == problem.digest()
        assert 0 <= found.relative_gap <= 1e-8
