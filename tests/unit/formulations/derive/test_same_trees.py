"""Trees with parameters and trees with numbers."""

import cvxpy as cp
import numpy as np
import pytest

from mklopt.formulations.derive.same_trees import same_declaration

LAM = cp.Parameter(nonneg=True, value=0.3)


def declared(lam, what):
    x, y = cp.Variable(3, nonneg=True), cp.Variable(3)
    tree = {
        "sum": cp.sum(x) + 0.5 * lam * cp.sum_squares(x),
        "part": cp.sum(x[:2]) + lam * cp.norm(x, 2),
        "other part": cp.sum(x[1:]) + lam * cp.norm(x, 2),
        "other norm": cp.sum(x[:2]) + lam * cp.norm(x, "inf"),
        "auxiliary": cp.sum(y) + lam * cp.sum(x),
        "other variable": cp.sum(x) + lam * cp.sum(x),
    }[what]
    return tree, [y >= lam * x]


@pytest.mark.parametrize("what", ["sum", "part", "auxiliary"])
def test_a_parameter_stands_for_its_value(what):
    assert same_declaration(declared(LAM, what), declared(0.3, what))
    assert not same_declaration(declared(LAM, what), declared(0.4, what))


@pytest.mark.parametrize(
    "one, other",
    [("part", "other part"), ("part", "other norm"), ("auxiliary", "other variable")],
)
def test_other_trees_are_not_the_same(one, other):
    assert not same_declaration(declared(0.3, one), declared(0.3, other))


def test_constraints_count():
    tree, constraints = declared(0.3, "sum")
    assert not same_declaration((tree, constraints), (tree, []))
    ones = cp.Variable(3) @ np.ones(3)
    assert same_declaration((ones, []), (ones, []))
