"""Weights held fixed, altogether or inside groups."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mklopt.formulations import FixedWeights
from mklopt.formulations.fixed_weights import FixedInside

GROUPS = ((0, 1), (2,))


@pytest.mark.parametrize("q", [1.0, 2.0, math.inf])
def test_value_and_conjugate_inside_groups(q):
    lam, u = (0.5, 2.0, 1.0), np.array([1.0, 0.4, 0.7])
    held = FixedInside(GROUPS, q, lam)
    sums = np.array([1.0 / 0.5 + 0.16 / 2.0, 0.49])
    assert held.value(u) == pytest.approx(0.5 * np.linalg.norm(sums, q))
    v = np.array([0.3, 0.6, 0.2])
    dual = 1 if math.isinf(q) else (math.inf if q == 1 else q / (q - 1))
    squares = np.array([0.5 * 0.09 + 2.0 * 0.36, 0.04])
    # ½‖√·‖² in the dual of 2q: the norms of the squares have the exponent (2q)*/2.
    e = 1.0 if math.isinf(2 * q) else 2 * q / (2 * q - 1)
    expected = 0.5 * np.sum(np.sqrt(squares) ** e) ** (2 / e)
    assert held.conjugate(v) == pytest.approx(expected)
    assert dual >= 1
    slope = np.array([0.1, 0.2, 0.3])
    assert held.value(u) + held.conjugate(slope) >= slope @ u - 1e-12


def test_a_weight_of_zero_forbids_a_kernel():
    held = FixedInside(GROUPS, 2.0, (0.0, 1.0, 1.0))
    assert held.value(np.array([0.1, 0.0, 0.0])) == np.inf
    assert held.value(np.array([0.0, 2.0, 0.0])) == pytest.approx(2.0)
    assert held.conjugate(np.array([5.0, 0.0, 0.0])) == 0.0
    assert FixedWeights([0.0, 1.0]).value(np.array([0.1, 0.0])) == np.inf


def test_one_weight_for_each_kernel():
    with pytest.raises(ValueError, match="theta has 2 entries but the stack has 3"):
        FixedWeights([1.0, 2.0]).validate(3)
