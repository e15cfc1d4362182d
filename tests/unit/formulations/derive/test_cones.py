"""Small conic programs: solved, with given rows, and refused when infeasible."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mklopt.formulations.derive.cones import Cones, Solution, unit_rows


def program(blocks, A, b, q, P=None):
    A = sp.csc_matrix(A)
    n = A.shape[1]
    P = sp.csc_matrix((n, n)) if P is None else sp.csc_matrix(P)
    x, t = np.arange(n - 1), np.array([n - 1])
    return Cones(P, np.asarray(q, float), A, np.asarray(b, float), blocks, x, t, 0.0)


def distance():
    """min t subject to ‖(x_0 − 3, x_1 − 4)‖ ≤ t."""
    A = np.array([[0.0, 0.0, -1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    return program([("soc", 3, 0.0)], A, [0.0, 3.0, 4.0], [0.0, 0.0, 1.0])


def test_a_program_is_solved_with_and_without_given_x():
    form = distance()
    free = form.solve(form.q)
    assert free.status == "Solved" and free.error < 1e-8
    assert free.z == pytest.approx([3.0, 4.0, 0.0], abs=1e-6)
    at_zero = form.at(np.zeros(2))
    assert at_zero.z[form.t] == pytest.approx(5.0, rel=1e-9)
    slope = -at_zero.y[:2]  # the gradient of the distance
    assert slope == pytest.approx([-0.6, -0.8], rel=1e-6)


def test_linear_and_quadratic_terms_are_added():
    form = distance()
    pull = sp.diags(form.cost(1.0))  # ½‖x‖² and −⟨(1, 2), x⟩ instead of t
    found = form.solve(-form.cost(np.array([1.0, 2.0])), P=pull)
    assert found.z[form.x] == pytest.approx([1.0, 2.0], rel=1e-6)
    assert form.cost(7.0, 2.0) == pytest.approx([7.0, 7.0, 2.0])


def test_an_infeasible_and_an_unbounded_program_are_told_apart():
    A = np.array([[1.0, 0.0], [-1.0, 0.0]])  # x ≤ −1 and x ≥ 0
    infeasible = program([("nonneg", 2, 0.0)], A, [-1.0, 0.0], [1.0, 0.0])
    assert "PrimalInfeasible" in infeasible.solve(infeasible.q).status
    form = distance()
    assert "DualInfeasible" in form.solve(-form.q).status


@pytest.mark.parametrize(
    "block, point, expected",
    [
        (("exp", 3, 0.0), (1.0, 1.0), np.e),  # exp(x/y) y ≤ z
        (("pow", 3, 0.25), (1.0, 16.0), 8.0),  # x^¼ y^¾ ≥ |z|
    ],
)
def test_exponential_and_power_cones(block, point, expected):
    form = program([block], -np.eye(3), np.zeros(3), [0.0, 0.0, 1.0])
    sign = 1.0 if block[0] == "exp" else -1.0
    found = form.solve(sign * form.q, row=form.unit_rows(), rhs=np.array(point))
    assert found.z[2] == pytest.approx(expected, rel=1e-7)


def test_unit_rows_read_columns():
    rows = unit_rows(np.array([2, 0]), 4)
    assert list(rows @ np.arange(4.0)) == [2.0, 0.0]
    assert Solution("", np.empty(0), np.empty(0)).error == np.inf
