"""Which kernels can vanish: what is proved, against prox."""

import cvxpy as cp
import numpy as np
import pytest

import mklopt
from mklopt.judge.support import limits, support

M = 4
DECLARED = {
    "sum": (lambda u: 2 * cp.sum(u), "every kernel alone"),
    "ridge": (lambda u: cp.sum_squares(u), "no kernel while others are used"),
    "norm": (lambda u: cp.norm(u), "no kernel while others are used"),
    "squared sum": (lambda u: cp.square(cp.sum(u)), "every kernel alone"),
    "groups": (
        lambda u: cp.norm(u[:2]) + cp.norm(u[2:]),
        "kernels 0, 1 together; kernels 2, 3 together",
    ),
    "tree": (
        lambda u: cp.norm(u) + cp.norm(u[:3]) + u[0],
        "kernels 0 alone; kernels 0, 1, 2 together",
    ),
    "composite": (
        lambda u: cp.square(cp.norm(u[:2]) + cp.norm(u[2:])),
        "kernels 0, 1 together; kernels 2, 3 together",
    ),
    "dense across": (
        lambda u: cp.norm(cp.hstack([cp.sum(u[:2]), cp.sum(u[2:])])),
        "every kernel alone",
    ),
    "sorted": (lambda u: cp.sum_largest(u, 2), "no kernel while others are used"),
    "form": (lambda u: cp.quad_form(u, np.eye(M) + 1), "every kernel alone"),
}


@pytest.mark.parametrize("name", DECLARED)
def test_what_can_vanish_is_said(name):
    declare, said = DECLARED[name]
    assert support(mklopt.formulation(declare).bound(M), M) == said


@pytest.mark.parametrize("name", DECLARED)
def test_what_is_proved_is_seen_in_differences(name):
    """The slopes at points with all patterns of zeros."""
    mine = mklopt.formulation(DECLARED[name][0]).bound(M)
    form, h = mine.twin(M).form, 1e-7
    for pattern in range(1, 2**M):
        zeros = frozenset(m for m in range(M) if pattern >> m & 1)
        u = np.array([0.0 if m in zeros else 1.0 + 0.3 * m for m in range(M)])
        for m in zeros:
            slope = (mine.value(u + h * (np.arange(M) == m)) - mine.value(u)) / h
            assert form.has_kink(m, zeros) == (slope > 1e-3), (zeros, m)


def test_limits_are_those_of_an_elastic_net():
    @mklopt.formulation
    def elastic(u, lam=0.5):
        return cp.sum(u) + lam * cp.sum_squares(u)

    found = limits(elastic.bound(M), M, None)
    assert found["u → 0"].endswith("degree 1") and found["u → ∞"].endswith("degree 2")
    assert found["lam = 0"] == "GroupLasso()"


def test_nothing_is_proved_of_unknown_terms():
    assert support(mklopt.formulation(lambda u: cp.sum(cp.exp(u))), M) == ""
