"""Kernel functions of a base t, and kernels on columns of a view."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.kernels.functions import Function, Gaussian, Kernel, Power
from mklopt.kernels.normalizations import Block
from mklopt.util.exponential import exponentials

rng = np.random.default_rng(5)
A, B = rng.normal(size=(4, 3)), rng.normal(size=(6, 3))
TWICE = Function(lambda a, b: 2 * a @ b.T, "twice")
D = np.sum((A[:, None] - B) ** 2, axis=2)


@pytest.mark.parametrize(
    "rule, base, values, squares",
    [
        (Gaussian(2.5), D, np.exp(-D / 2.5), np.ones(4)),
        (Gaussian(None), D, np.exp(-D / 7.0), np.ones(4)),  # the mean is given below
        (Power(1, 0.0), A @ B.T, A @ B.T, np.sum(A**2, axis=1)),
        (Power(3, 2.0), A @ B.T, (A @ B.T + 2) ** 3, (np.sum(A**2, axis=1) + 2) ** 3),
        (TWICE, 2 * A @ B.T, 2 * A @ B.T, 2 * np.sum(A**2, axis=1)),
    ],
    ids=["gaussian", "mean", "linear", "cubic", "function"],
)
def test_a_rule_is_its_formula(rule, base, values, squares):
    t = rule.base(A, B)
    np.testing.assert_allclose(t, base)
    np.testing.assert_allclose(rule(t, 7.0), values)
    np.testing.assert_allclose(rule(rule.diagonal(A), 7.0), squares)
    np.testing.assert_allclose(t, base)  # the base is not overwritten


def test_given_distances_are_the_base_and_coinciding_points_give_ones():
    rule = Gaussian(None, given=True)
    assert rule.base(D, D) is D
    np.testing.assert_array_equal(rule(np.zeros((2, 2)), 0.0), 1.0)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_mean_of_distances_needs_no_distances(size):
    X = size * rng.normal(size=(30, 3)) + 1.0
    t = Gaussian(None).base(X, X)
    expected = t.sum() / (30 * 29)
    assert Gaussian(None).mean(X) == pytest.approx(expected, rel=1e-13)
    given = Gaussian(None, given=True)
    assert given.mean(t) == pytest.approx(expected, rel=1e-13)
    for rule in (Gaussian(2.0), Power(1, 0.0), TWICE):
        assert rule.mean(X) == 0  # nothing depends on it
    assert Gaussian(None).mean(X[:1]) == 0
    assert Gaussian(None).mean(np.full((7, 2), 0.1)) == 0  # exactly, of equal points


def test_kernels_of_other_layouts_are_evaluated_as_well():
    for t in (np.asfortranarray(D), D[::2], D[0], D[:, ::-1]):
        np.testing.assert_array_equal(
            Gaussian(2.5)(t, 0.0), Gaussian(2.5)(np.ascontiguousarray(t), 0.0)
        )


def test_a_function_of_the_wrong_shape_is_named():
    with pytest.raises(ValueError, match=r"mine of 4 and 6 points has shape \(4,\)"):
        Function(lambda a, b: a[:, 0], "mine").base(A, B)


def test_the_diagonal_of_a_function_comes_from_small_blocks():
    sizes = []

    def k(a, b):
        sizes.append(a.shape[0] * b.shape[0])
        return a @ b.T

    X = rng.normal(size=(150, 2))
    np.testing.assert_allclose(Function(k, "k").diagonal(X), np.sum(X**2, axis=1))
    assert max(sizes) <= 64**2


def test_kernels_on_the_same_columns_of_a_view_share_their_base():
    one, two = Kernel("a", Gaussian(1.0), (0, 2)), Kernel("b", Gaussian(None), (0, 2))
    assert one.base == two.base
    others = [
        Kernel("c", Power(1, 0.0), (0, 2)),
        Kernel("d", Gaussian(1.0), (0,)),
        Kernel("e", Gaussian(1.0)),
        Kernel("f", Gaussian(1.0), (0, 2), "view"),
    ]
    assert len({one.base, *(kernel.base for kernel in others)}) == 5


def test_a_kernel_learns_each_step_once_and_then_applies_it():
    kernel, t = Kernel("k", Power(1, 0.0)), A @ A.T
    learned = {0: 0.0}  # the mean of t, which a power does not need
    squares, at = np.diag(t).copy(), Block(slice(None), who="k")
    K, diagonal = kernel.of(t, squares, learned, ("unit_trace", "centre"), at)
    H = np.eye(4) - 1 / 4
    np.testing.assert_allclose(K, H @ t @ H / np.trace(t), atol=1e-14)
    np.testing.assert_allclose(diagonal, np.diag(K), atol=1e-14)
    assert learned[1] == pytest.approx(np.trace(t)) and set(learned) == {0, 1, 2}
    learned[1] *= 2  # what is known is used
    K, _ = kernel.of(t, squares, learned, ("unit_trace",), at)
    np.testing.assert_allclose(2 * K, t / np.trace(t))


def test_widths_at_the_ends_of_the_range_give_no_nan():
    t = np.array([0.0, 1e-320, 1.0, 1e300, np.inf])
    for scale in (5e-324, 1e-310, 1e-300, 1e300, 1.7e308):
        k = Gaussian(scale)(t, 0.0)
        assert k[0] == 1 and k[-1] == 0 and np.all(np.diff(k) <= 0)


def test_the_reciprocal_of_a_width_is_rounded_once():
    assert Gaussian(3.0).rate(0.0) == -1 / 3 and Gaussian(None).rate(7.0) == -1 / 7
    np.testing.assert_array_equal(Gaussian(3.0)(D, 0.0), exponentials_of(D * (-1 / 3)))


def exponentials_of(x):
    out = np.ascontiguousarray(x)
    exponentials(out.reshape(-1))
    return out
