"""Prox of sums of Euclidean norms over nested groups."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.formulations import formulation, stripped
from mklopt.formulations.nested_norms import Tree

M = 7
GROUPS = [range(M), range(4), [4, 5], [0, 1], [2, 3]]
FACTORS = [0.2, 0.5, 0.3, 0.1, 0.4]
TREE = Tree(tuple((tuple(g), c) for g, c in zip(GROUPS, FACTORS)))
RNG = np.random.default_rng(0)


def tree(u):
    """The same, declared."""
    import cvxpy as cp

    return sum(c * cp.norm(u[list(g)]) for g, c in zip(GROUPS, FACTORS))


def value(z):
    return sum(c * np.linalg.norm(z[list(g)]) for g, c in zip(GROUPS, FACTORS))


def steps():
    yield from (np.full(M, s) for s in (0.3, 1.0, 3.0))
    yield from RNG.uniform(0.05, 3.0, size=(5, M))
    yield np.geomspace(1e-4, 1e4, M)


@pytest.mark.parametrize("step", list(steps()))
@pytest.mark.parametrize("size", [0.3, 1.0, 10.0])
def test_prox_satisfies_the_optimality_conditions(step, size):
    """At z the gradient vanishes; groups are 0 where a subgradient is 0."""
    u = size * RNG.uniform(0, 1, M)
    u[RNG.integers(M)] = 0.0
    z = TREE.prox(u, step)
    used = z > 0
    gradient = (z - u) / step
    for group, c in TREE.groups:
        part = list(group)
        if np.any(used[part]):
            gradient[part] += c * z[part] / np.linalg.norm(z[part])
    assert np.max(np.abs(gradient[used]), initial=0.0) <= 1e-11 * (1 + size)
    # the rest of the gradient lies in the sum of dual balls of groups that are 0
    gone = [(g, c) for g, c in TREE.groups if not np.any(used[list(g)])]
    left = np.where(used, 0.0, np.maximum(-gradient, 0.0))
    assert np.all(Tree(tuple(gone)).shrunk(left)[u > 0] <= 1e-12)


def test_equal_steps_are_the_limit_of_different_ones():
    u = RNG.uniform(0, 2, M)
    same = TREE.prox(u, np.full(M, 0.4))
    nearly = TREE.prox(u, 0.4 + 1e-12 * np.arange(M))
    np.testing.assert_allclose(nearly, same, atol=1e-10)


@pytest.mark.parametrize("step", [0.3, RNG.uniform(0.1, 1.0, M)])
def test_prox_is_that_of_the_declaration(step):
    mine = formulation(tree).bound(M)
    assert mine.closed("prox") and mine.closed("prox_slope")
    derived = stripped(formulation(tree))
    for _ in range(3):
        u = RNG.uniform(0, 2, M)
        z, other = mine.prox(u, step), derived.prox(u, step)
        np.testing.assert_allclose(z, other, atol=1e-5)
        np.testing.assert_array_equal(z > 0, other > 0)
        cost = lambda z: value(z) + np.sum((z - u) ** 2 / (2 * np.asarray(step)))  # noqa: B023, E731
        assert cost(z) <= cost(other) + 1e-12


def test_slope_is_the_derivative():
    u, step, h = RNG.uniform(1, 2, M), RNG.uniform(0.1, 1.0, M), 1e-6
    J = TREE.slope(u, step)
    moved = [TREE.prox(u + h * e, step) - TREE.prox(u - h * e, step) for e in np.eye(M)]
    assert J.shape == (M, M)
    np.testing.assert_allclose(J, np.array(moved).T / (2 * h), atol=1e-7)


def test_the_empty_point():
    assert not np.any(TREE.prox(np.zeros(M), np.ones(M)))
    assert TREE.slope(np.zeros(M), np.ones(M)).shape == (0, 0)
    assert TREE.holds(np.zeros(M)) and not TREE.holds(np.full(M, 9.0))
