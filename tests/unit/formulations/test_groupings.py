"""Groups, trees and graphs from names of kernels."""

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import mklopt
from mklopt.formulations import graph_edges, groups_by, tree_groups

WRONG: Any = 3
NAMES = ["image/colour/red", "image/colour/blue", "image/edges", "text"]


def test_groups_share_a_label():
    assert groups_by(NAMES, "/") == ((0, 1, 2), (3,))
    assert groups_by(NAMES, len) == ((0,), (1,), (2,), (3,))
    assert groups_by(NAMES, {"any": ["text", "image/edges"]}) == ((3, 2),)


def test_a_tree_of_paths_has_a_group_for_each_prefix():
    found = tree_groups(NAMES)
    assert found == ((0, 1, 2, 3), (0, 1, 2), (0, 1), (0,), (1,), (2,), (3,))


def test_a_tree_of_dictionaries_has_a_group_for_each_node():
    tree = {"image": {"colour": ["red", "blue"], "edges": ["edges"]}, "text": ["text"]}
    names = ["text", "red", "edges", "blue"]
    found = tree_groups(tree, names)
    assert found == ((0, 1, 2, 3), (1, 2, 3), (1, 3), (2,), (0,))


def test_edges_are_pairs_of_kernels():
    assert graph_edges([("text", "image/edges")], NAMES) == ((3, 2),)


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda: groups_by(NAMES, {"a": ["txt"]}), "did you mean 'text'"),
        (lambda: groups_by(NAMES, WRONG), "give a text, a function or a dictionary"),
        (lambda: groups_by("text", "/"), "names of kernels"),
        (lambda: groups_by([WRONG], "/"), "is no text"),
        (lambda: graph_edges(["ab"], NAMES), "pairs of names"),
        (
            lambda: graph_edges([("a", "b")], ["a", "a"]),
            "called 'a'; give each its own",
        ),
    ],
)
def test_wrong_names_are_told(wrong, words):
    with pytest.raises(ValueError, match=words):
        wrong()


@mklopt.formulation
def tree_norm(u, groups=(), lam=1.0):
    return lam * sum(cp.norm(u[list(group)]) for group in groups)


def test_groups_are_parameters():
    mine = tree_norm(groups=tree_groups(NAMES), lam=0.5)
    u = np.array([1.0, 2.0, 2.0, 4.0])
    inner = np.sqrt(5) + np.sum(u)  # the node of two, and the leaves
    assert mine.value(u) == pytest.approx(0.5 * (5 + 3 + inner))
    assert hash(mine) == hash(tree_norm(groups=tree_groups(NAMES), lam=0.5))
    assert mine.bound(4).closed("conjugate") and "reweighted" in mine.bound(4).traits
