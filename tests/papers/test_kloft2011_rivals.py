"""The methods of section 5.5 reach the gap that they are asked for, stored or not."""

from __future__ import annotations

import numpy as np
import pytest

import mklopt
from mklopt import kernels
from mklopt.formulations import LpNorm
from papers.kloft2011 import rivals


def problem(p: float, stored: bool) -> mklopt.Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=60))
    fitted = kernels.gaussians([0.5, 1.0, 2.0, 4.0]).fit(X)
    grams = fitted.grams() if stored else fitted.lazy(cache="0MB")
    return mklopt.Problem(grams, y, "hinge", LpNorm(p), 1.0)


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize(("p", "cuts"), [(1.0, True), (2.0, True), (2.0, False)])
def test_chunking_ends_at_the_gap(p, cuts, stored):
    given = problem(p, stored)
    found = mklopt.solve(given, rivals.chunking, tol=1e-3, max_iter=20, cuts=cuts)
    assert found.converged and found.relative_gap <= 1e-3


@pytest.mark.parametrize("method", [rivals.simple_mkl, rivals.silp, rivals.wrapper])
def test_wrappers_end_at_the_gap(method):
    p = 4 / 3 if method is rivals.wrapper else 1.0
    found = mklopt.solve(problem(p, True), method, tol=1e-3, max_iter=200)
    assert found.converged and found.relative_gap <= 1e-3
