"""Kernels that are proved to be used, by solving without them."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem, prove_used, solve
from mklopt.formulations import GroupLasso


def problem(copies):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    columns = [X[:, [0]], X[:, [1]], *[X[:, [0]]] * copies]
    y = np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0)
    return Problem(GramStack.from_factors(columns), y, "hinge", GroupLasso(), 1.0)


def test_kernels_that_nothing_replaces_are_proved():
    result = solve(problem(copies=0))
    assert not np.any(result.intervals().used)  # the gap alone proves nothing
    assert prove_used(result).tolist() == [0, 1]
    assert prove_used(result, [1]).tolist() == [1]


def test_a_kernel_that_has_a_copy_is_not():
    result = solve(problem(copies=1))
    assert prove_used(result, [0, 1, 2]).tolist() == [1]


def test_one_kernel_and_wrong_numbers():
    one = Problem(GramStack(np.eye(3)[None]), [1, -1, 1], "hinge", GroupLasso(), 9.0)
    assert prove_used(solve(one)).tolist() == []
    result = solve(problem(copies=0))
    with pytest.raises(ValueError, match="a kernel"):
        prove_used(result, [2])
    with pytest.raises(ValueError, match="prove_used takes a Result"):
        prove_used(np.ones(3))
