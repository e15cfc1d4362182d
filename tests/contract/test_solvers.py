"""Every solver on every problem it supports, against references it has never seen.

`make test` runs a covering slice: for each solver every formulation with every C, every
loss with every C, every data set with every loss; `make test-all` the whole product,
with the smallest set, where every formulation meets every loss. A new file in
mklopt/solvers is judged here without being mentioned.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from mklopt import Problem, data, kernels, reference, solve
from mklopt.campaign.job import covering
from mklopt.formulations import LpNorm
from mklopt.judge.verdict import judge_run
from mklopt.reference.contract_problems import (
    STORE,
    Cell,
    grouped_cells,
    sampled_cells,
    small_cells,
    twonorm_cells,
    wdbc_cells,
)
from mklopt.solvers import Unsupported, solvers, that_can

CELLS = [
    *twonorm_cells(),
    *grouped_cells(),
    *sampled_cells(),
    *(c for c in wdbc_cells() if c.C != 10.0),
    *small_cells(),
]
FLOOR = 5000  # may only grow: solver × problem pairs that are solved and certified


def pairs() -> tuple[list[tuple[str, Cell]], int]:
    """What each solver promises, and how many pairs it does not support."""
    able = {cell: set(that_can(cell.problem())) for cell in CELLS}
    found = [
        (name, cell)
        for name, solver in solvers().items()
        for cell in CELLS
        if name in able[cell] and solver.promise(cell.problem()) < np.inf
    ]
    return found, len(solvers()) * len(CELLS) - len(found)


ALL, UNSUPPORTED = pairs()


def aspects(solver: str, cell: Cell) -> set[tuple]:
    """What a slice must cover."""
    C, bias = cell.C, cell.problem().bias
    return {
        (solver, repr(cell.formulation), C),
        (solver, cell.loss.name, bias, C),
        (solver, cell.data, cell.loss.name),
    }


LARGER = [pair for pair in ALL if pair[1].data != "small"]
SLICE = set(covering(LARGER, lambda pair: aspects(*pair)))


@lru_cache(maxsize=64)
def stored(cell: Cell):
    return STORE.load(cell.problem())


def assert_meets(result, found, tol: float) -> None:
    """Certified, inside the reference interval, and with its weights where unique."""
    verdict = judge_run(result, found, tol)
    assert verdict.holds, f"{result}: {verdict.reason}"


@pytest.mark.parametrize(
    "solver, cell",
    [
        pytest.param(
            *pair,
            id=f"{pair[0]}-{pair[1].name}",
            marks=[] if pair in SLICE else [pytest.mark.full],
        )
        for pair in ALL
    ],
)
def test_solver_meets_the_reference(solver, cell, cell_counter):
    found = stored(cell)
    assert found is not None, f"no stored reference for {cell.name}: make contract"
    tol = solvers()[solver].promise(cell.problem())
    assert_meets(solve(cell.problem(), solver, tol=tol, time_limit=18), found, tol)
    cell_counter("run")


@pytest.mark.parametrize(
    "cell", [c for s, c in LARGER if s == "mirror"], ids=lambda c: c.name
)
def test_mirror_descent_finished_by_newton_meets_the_reference(cell, cell_counter):
    """Below 1e-3 Newton on the product of simplices goes on, to 1e-6."""
    found = solve(cell.problem(), "mirror", tol=1e-6, time_limit=18, polish=True)
    assert_meets(found, stored(cell), 1e-6)
    cell_counter("run")


def test_the_number_of_pairs_only_grows(cell_counter):
    assert len(ALL) >= FLOOR
    cell_counter("unsupported", UNSUPPORTED)


def test_the_slice_covers_what_it_says():
    whole = set().union(*(aspects(*pair) for pair in LARGER))
    assert set().union(*(aspects(*pair) for pair in SLICE)) == whole


def test_an_unsupported_problem_names_the_solvers_that_can():
    cell = next(c for c in CELLS if c.formulation == LpNorm(2.0))
    with pytest.raises(Unsupported, match=r"hessian cannot solve.*can: analytic"):
        solve(cell.problem(), "hessian")


@pytest.mark.skipif(
    not (Path(os.environ.get("MKLOPT_DATA", "")) / "sonar.npz").is_file(),
    reason="MKLOPT_DATA names no folder with sonar.npz",
)
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("p", [1.0, 4 / 3, 4.0])
def test_sonar_with_every_solver_that_can(p, C, cell_counter):
    """Plain Gram matrices of real data; the reference is solved here, once for all."""
    sonar = data.load("sonar").standardized()
    rows = np.arange(0, len(sonar.y), 2)[:80]
    groups = [range(12 * j, 12 * j + 12) for j in range(5)]
    family = kernels.views(kernels.gaussians([2.0, 4.0, 8.0, 16.0]), groups)
    grams = family.fit(sonar.X[rows]).grams()
    problem = Problem(grams, sonar.y[rows], "hinge", LpNorm(p), C)
    found = reference.solve(problem, tol=1e-8)
    for solver in that_can(problem):
        tol = solvers()[solver].promise(problem)
        if tol == np.inf:
            continue
        assert_meets(solve(problem, solver, tol=tol, time_limit=10), found, tol)
        cell_counter("run")
