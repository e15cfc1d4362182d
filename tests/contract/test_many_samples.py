"""Solvers on factors with many samples: none of them forms an n × n matrix.

Two kinds of solvers read all kernels in full and say so: those that keep "full", which
refuse many samples, and those that go from sample to sample (`draws`), which read them
in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem, certify, solve
from mklopt.formulations import VSKL, GroupLasso, LpNorm
from mklopt.grams.factors import Factors
from mklopt.solvers import Unsupported, solvers

N, M, RANK = 1200, 4, 3
FORMULATIONS = (LpNorm(p=1.0), LpNorm(p=2.0), GroupLasso(), VSKL(((0, 1), (2, 3)), 2.0))
LOSSES = ("hinge", "logistic", "squared")
TOLERANCE = 1e-5
# They have to run on factors; all others that need no row of all kernels do, too.
NAMED = {"analytic", "active", "spicy", "spg", "hessian", "mirror"}


def problem(loss: str, formulation, bias: bool) -> Problem:
    rng = np.random.default_rng(0)
    L = [rng.normal(size=(N, RANK)) / RANK for _ in range(M)]
    y = np.sign(L[0][:, 0] + 0.3 * rng.normal(size=N))
    return Problem(GramStack.from_factors(L), y, loss, formulation, 0.1, bias)


def cases() -> Iterator[tuple[str, str, Any, bool]]:
    """Every solver that reads no rows with every loss, with one formulation."""
    for name, solver in solvers().items():
        if "full" in solver.keeps or solver.draws:
            continue
        for loss in LOSSES:
            able = (
                (name, loss, formulation, bias)
                for bias in (True, False)
                for formulation in FORMULATIONS
                if not solver.why_not(problem(loss, formulation, bias))
            )
            yield from list(able)[:1]


CASES = list(cases())


@pytest.fixture
def no_matrices(monkeypatch):
    """Everything that makes n × n numbers of factors raises an error."""

    def forbidden(*_):
        raise AssertionError("an n × n matrix was formed")

    for name in ("combine", "kernel", "against", "rows"):
        monkeypatch.setattr(Factors, name, forbidden)


@pytest.mark.parametrize(
    "name, loss, formulation, bias",
    CASES,
    ids=[f"{name}-{loss}-{f.name}" for name, loss, f, _ in CASES],
)
def test_no_matrix_is_formed(no_matrices, name, loss, formulation, bias):
    p = problem(loss, formulation, bias)
    tol = max(solvers()[name].promise(p), TOLERANCE)
    result = solve(p, name, tol=tol, time_limit=60)
    assert result.status == "converged" and result.certificate.width <= tol


def test_the_solvers_for_many_samples_are_among_them():
    assert {name for name, *_ in CASES} >= NAMED


def test_a_matrix_would_be_noticed(no_matrices):
    p = problem("hinge", LpNorm(p=2.0), True)
    with pytest.raises(AssertionError, match="n × n"):
        p.grams.combine(np.ones(M))
    with pytest.raises(AssertionError, match="n × n"):
        p.grams.full()
    certify(p, dual=0.01 * p.y, weights=np.ones(M))  # and certificates form none


@pytest.mark.parametrize("name", ["interleaved", "smo_mkl"])
def test_solvers_that_read_rows_refuse_and_name_others(name):
    n = 20_000
    rng = np.random.default_rng(1)
    grams = GramStack.from_factors([rng.normal(size=(n, 1)) for _ in range(20)])
    y = np.sign(rng.normal(size=n))
    with pytest.raises(Unsupported) as refused:
        solve(Problem(grams, y, "hinge", LpNorm(p=2.0)), name)
    assert "it keeps all kernels in full, here 64.0 GB" in str(refused.value)
    assert "analytic" in str(refused.value) and "\n" not in str(refused.value)
