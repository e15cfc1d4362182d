"""Forms that are read off expression trees, and when their numbers are exact."""

import cvxpy as cp
import numpy as np
import pytest

from mklopt.formulations.derive.structure import INF, Form, form_of, linear_map

M = 4
X = cp.Variable(M, nonneg=True)


def read(tree) -> Form:
    """The form of a tree that has one."""
    form = form_of(tree, X)
    assert form is not None
    return form


def value(form, x):
    """The value of a form, from its definition."""
    total = form.constant + form.a @ x
    for atom in form.atoms:
        parts = [np.array(p.d) * x[list(p.index)] for p in atom.parts]
        if atom.lam:
            total += atom.c * np.sort(parts[0])[::-1] @ np.array(atom.lam)
        elif atom.Q:
            total += atom.c * parts[0] @ np.array(atom.Q) @ parts[0]
        else:
            inner = [np.linalg.norm(z, p.r) for z, p in zip(parts, atom.parts)]
            total += atom.c * np.linalg.norm(inner, atom.s) ** atom.k
    return total


TREES = [
    cp.sum(X) + 3,
    2 * X[0] + cp.sum(X[1:]) / 4,
    np.arange(8.0).reshape(2, 4)[1] @ X,
    cp.sum(np.arange(8.0).reshape(2, 4) @ X),
    cp.norm(X[[0, 2]]) + cp.max(X),
    cp.square(cp.sum(X) + cp.norm(X)),
    cp.sum(cp.norm(cp.reshape(X, (2, 2), order="F"), 2, axis=0)),
    cp.norm(cp.hstack([cp.norm(X[:2], "inf"), X[2], cp.sum(X[1:])])),
    cp.norm(cp.multiply([1, 2, 3, 4], X), 1) + cp.abs(X[0]),
    cp.quad_over_lin(X, 4.0),
    cp.power(cp.square(cp.norm(X, 3)), 1.5),
    cp.quad_form(X, np.ones((M, M))),
    cp.dotsort(X[:3], np.array([1.0, 2.0])) + cp.sum_largest(X, 2.5),
    cp.maximum(X[0], 2 * X[1], cp.sum(X)),
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_a_form_has_the_values_of_its_tree(tree):
    form = read(tree)
    for x in np.random.default_rng(0).uniform(0, 2, size=(5, M)):
        X.save_value(x)
        assert value(form, x) == pytest.approx(float(tree.value), rel=1e-12)


@pytest.mark.parametrize(
    "tree",
    [
        cp.sum(cp.exp(X)),
        cp.sum(cp.sqrt(X)),
        cp.norm(X - 1),
        -cp.sum(X),
        cp.sum(X) + cp.Variable(),
        cp.norm(cp.square(X)),
        cp.quad_form(X, 2 * np.eye(M) - 0.1),
    ],
    ids=str,
)
def test_other_trees_have_no_form(tree):
    assert form_of(tree, X) is None


def test_norms_are_flat_where_they_can_be():
    (atom,) = read(cp.norm(cp.hstack([cp.norm(X[:2]), X[2:]]))).atoms
    assert [p.r for p in atom.parts] == [2.0] and atom.support == (0, 1, 2, 3)
    squares = read(cp.square(cp.norm(X))).atoms
    assert [a.k for a in squares] == [2.0] * M
    assert read(cp.max(X)).atoms[0].parts[0].r == INF


@pytest.mark.parametrize(
    "tree, exact",
    [
        (0.5 * (0.3 * cp.sum(X)), True),
        (0.7 * (0.3 * cp.sum(X)), False),
        (0.3 * cp.sum(X) + 0.1 * X[0], False),
        (0.5 * cp.sum(X) + 0.25 * X[0], True),
        (cp.sum(X) / 3, False),
        (0.1 * cp.square(cp.sum(X)), True),
        (cp.square(0.1 * cp.sum(X)), True),  # the factors stay inside
        (cp.square(0.1 * cp.norm(X)), False),
    ],
    ids=str,
)
def test_rounded_constants_are_noticed(tree, exact):
    assert read(tree).exact is exact


def test_matrices_of_linear_maps():
    A, other = np.arange(8.0).reshape(2, 4) - 3, cp.Variable(M)
    np.testing.assert_array_equal(linear_map(A @ X, X), A)
    np.testing.assert_array_equal(linear_map(X[[2]], X), np.eye(M)[[2]])
    for node in (A @ X + 1, cp.square(X), A @ other, A @ (X + other), cp.Constant(0)):
        assert linear_map(node, X) is None


def test_entries_that_are_0_are_left_out():
    zeros = frozenset({1, 2})
    form = form_of(cp.sum(X) + cp.norm(X[:3]) + cp.square(X[1]), X, zeros)
    assert form is not None and form.a.tolist() == [2, 0, 0, 1] and not form.atoms
    sorted_sum = form_of(cp.dotsort(X, np.arange(M)), X, zeros)
    assert sorted_sum is not None and sorted_sum.atoms[0].lam == (3.0, 2.0)
