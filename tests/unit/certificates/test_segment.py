"""Points between two solutions: certified, at least as good as chord and tangents."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem
from mklopt.certificates.along_C import BoundsAlongC, cut_of
from mklopt.certificates.segment import Segment, largest
from mklopt.formulations import ElasticNet, GroupLasso, LpNorm
from mklopt.run.loop import solve


def problem(loss="hinge", formulation=None, factors=False, classes=2, bias=True):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(24, 3))
    L = [np.column_stack([X[:, m], X[:, m] ** 2, X[:, m] > 0]) for m in range(3)]
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=24), [0.0, 1.0][: classes - 1])
    y = 2.0 * y - 1 if classes == 2 else y
    K = GramStack.from_factors(L) if factors else np.array([A @ A.T for A in L])
    return Problem(K, y, loss, formulation or GroupLasso(), 1.0, bias)


def between(p, low=0.7, high=1.4):
    ends = [solve(p.with_(C=C), tol=1e-7) for C in (low, high)]
    one, two = ends
    thetas = one.weights, two.weights
    return ends, Segment(one.certificate, two.certificate, thetas)


CASES = [
    ("hinge", GroupLasso(), False, 2),
    ("logistic", ElasticNet(0.5), False, 2),
    ("squared", LpNorm(4 / 3), True, 2),
    ("hinge", LpNorm(2), True, 2),
    ("multinomial", LpNorm(2), False, 3),
    ("multiclass_hinge", GroupLasso(), True, 3),
]


@pytest.mark.parametrize("loss, formulation, factors, classes", CASES)
def test_between_two_solutions(loss, formulation, factors, classes):
    p = problem(loss, formulation, factors, classes)
    ends, found = between(p)
    bounds = BoundsAlongC(cut_of(r.certificate, C) for r, C in zip(ends, (0.7, 1.4)))
    plain = bounds.worst(0.7, 1.4).gap
    for C in (0.8, 1.0, 1.3):
        at = found.certify(p.with_(C=C))
        truth = solve(p.with_(C=C), tol=1e-6).certificate
        assert at.lower <= truth.upper and truth.lower <= at.upper
        assert at.lower >= bounds.lower(C) - 1e-6 * at.upper
        assert at.upper <= bounds.upper(C) * (1 + 1e-6)
        assert at.width <= bounds.gap(C) + 2e-6
        assert at.width < 0.5 * plain or p.loss.smoothness is None


def test_without_memory_for_coefficients_weights_are_interpolated(monkeypatch):
    p = problem("squared", LpNorm(2))
    found = between(p)[1]
    monkeypatch.setattr("mklopt.grams.norms.LARGEST_KEPT", 0)
    at = found.certify(p.with_(C=1.0))
    assert found.kernels is None and at.weights is not None
    assert at.relative_gap < 0.05


def test_at_an_end_it_is_the_end():
    p = problem("logistic", ElasticNet(0.5))
    ends, found = between(p)
    for end in ends:
        at = found.certify(end.problem)
        assert at.relative_gap == pytest.approx(end.relative_gap, abs=2e-7)


@pytest.mark.parametrize("top", [0.0, 0.2, 0.77, 1.0])
def test_the_largest_value_is_found(top):
    def value(s):
        return -abs(s - top)

    assert largest(value, 0.5) == pytest.approx(top, abs=2e-3)
    assert largest(value, top) == top
