"""The conic oracle: its value is that of two other problems."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem, reference
from mklopt.formulations import VSKL, BlockNorm
from mklopt.reference.contract_problems import load

GRAMS, TARGETS = load("small")
INF = float("inf")
LAM = np.array([0.2, 0.8, 0.5, 0.1, 0.4, 1.0])


def problem(groups, **more) -> Problem:
    return Problem(GRAMS, TARGETS["binary"], "hinge", VSKL(groups, INF), 2.0, **more)


@pytest.mark.parametrize("bias", [True, False])
def test_groups_are_combined_kernels_under_the_largest_norm(bias):
    """min over γ of Σ D_j/(2γ_j) is ½(Σ√D_j)²: the conjugate of ½ max u²."""
    groups = ((0, 1), (2, 3, 4), (5,))
    found = reference.conic_oracle(problem(groups, bias=bias), LAM)
    parts = [sum(LAM[k] * GRAMS.kernel(k) for k in group) for group in groups]
    combined = GramStack(np.stack(parts))
    other = Problem(
        combined, TARGETS["binary"], "hinge", BlockNorm(INF), 2.0, bias=bias
    )
    exact = reference.solve(other)
    assert found.value == pytest.approx(exact.upper, rel=1e-8)
    assert found.gamma.shape == (3,) and np.sum(found.gamma) == pytest.approx(1.0)
    D = np.sqrt(np.maximum(combined.quad(found.alpha), 0.0))
    np.testing.assert_allclose(found.gamma, D / np.sum(D), atol=1e-4)


def test_one_group_is_an_svm():
    one = problem((tuple(range(6)),))
    found = reference.conic_oracle(one, LAM)
    assert found.value == pytest.approx(reference.at_weights(one, LAM).upper, rel=1e-6)


def test_a_finite_q_is_refused():
    finite = problem(((0, 1), (2, 3, 4, 5))).with_(
        formulation=VSKL(((0, 1), (2, 3, 4, 5)), 2.0)
    )
    with pytest.raises(ValueError, match="q = ∞ only"):
        reference.conic_oracle(finite, LAM)
