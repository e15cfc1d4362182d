"""Slips of Jain et al. (2012): each row of papers/ERRATA.md, shown anew."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.gmkl.families import Product
from mklopt.gmkl.problem import Envelope, KernelFamilyProblem
from mklopt.gmkl.regularizers import SquaredNorm
from mklopt.reference.envelope import envelope_value

# ---- section 1: derivatives that exist are not enough --------------------------------


class Hinged:
    """K(d) of the features a + (d − 1) b: a smooth kernel, positive semi-definite."""

    M, n = 1, 4
    a, b = np.array([1.0, 1.0, -1.0, -1.0]), np.array([1.0, -1.0, 0.0, 0.0])

    def features(self, d):
        return self.a + (d[0] - 1) * self.b

    def combine(self, d):
        return np.outer(self.features(d), self.features(d))

    def gradient(self, d, alpha):
        return np.array([2 * (alpha @ self.features(d)) * (alpha @ self.b)])


@pytest.mark.parametrize("value", ["ours", "OSQP"])
def test_W_has_a_kink_where_alpha_is_not_unique(value):
    """K and r are smooth in d and jointly continuous with α, yet W has no gradient.

    The margin of the four points is 2 − |d − 1|, so that W = r + 2/(2 − |d − 1|)² with
    slopes r' ± ½ at d = 1, inside the set: two points coincide there, and α may be
    divided between them at will.
    """
    p = KernelFamilyProblem(Hinged(), np.array([1.0, 1, -1, -1]), "hinge",
                            SquaredNorm(2.0), 100.0)  # fmt: skip

    def W(d):
        at = np.array([d])
        if value == "OSQP":
            return envelope_value(p, at)
        return Envelope(p, tune=False).precisely(at)[0]

    h = 1e-3
    left, right = (W(1.0) - W(1 - h)) / h, (W(1 + h) - W(1.0)) / h
    assert left == pytest.approx(0.5, abs=5e-3)  # r' = 1, less ½
    assert right == pytest.approx(1.5, abs=5e-3)
    for d in (0.7, 1.0, 1.2):
        assert W(d) == pytest.approx(0.5 * d**2 + 2 / (2 - abs(d - 1)) ** 2, rel=1e-5)
    p.family.b = np.array([1.0, 0.0, 0.0, 0.0])  # no longer symmetric about d = 1 …
    sides = (W(1.0) - W(1 - h)) / h, (W(1 + h) - W(1.0)) / h
    assert sides[0] != pytest.approx(sides[1], abs=0.1)  # … the kink stays
    p.family.a = np.array([1.0, 2.0, -1.0, -2.0])  # points apart: α is unique
    sides = (W(1.0) - W(1 - h)) / h, (W(1 + h) - W(1.0)) / h
    assert sides[0] == pytest.approx(sides[1], abs=0.01)


# ---- section 5: products of kernels --------------------------------------------------


def test_not_every_distance_makes_a_kernel():
    """exp(−d D) with the shortest paths of the graph K_{2,3}, a metric, and d > 0."""
    D = np.ones((5, 5))
    D[:2, :2], D[2:, 2:] = 2.0, 2.0
    np.fill_diagonal(D, 0.0)
    triangle = D[:, :, None] <= D[:, None, :] + D.T[None, :, :]
    assert np.all(triangle)  # a metric
    lowest = {d: np.linalg.eigvalsh(Product([D]).combine(np.array([d])))[0]
              for d in (0.01, 0.1, 0.3, 3.0)}  # fmt: skip
    assert lowest[0.1] < -1e-3 and lowest[0.01] < -1e-4 and lowest[3.0] > 0
    points = np.array([[0.0], [1.0], [2.0], [4.0], [7.0]])
    squares = (points - points.T) ** 2  # of negative type: positive for every d ≥ 0
    for d in (0.01, 0.1, 3.0):
        K = Product([squares]).combine(np.array([d]))
        assert np.linalg.eigvalsh(K)[0] > -1e-12
