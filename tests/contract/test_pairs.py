"""Every loss × every formulation: the primal meets the derived dual."""

from __future__ import annotations

import math
from itertools import groupby

import pytest

from mklopt import reference
from mklopt.campaign.runs import AGREEMENT, REFERENCE, ReferenceRun
from mklopt.formulations.lp_norm import LpNorm
from mklopt.reference.contract_problems import small_cells

GROUPS = [
    pytest.param(list(cells), id=f"{key[0]}-{key[1]}")
    for key, cells in groupby(
        small_cells(), key=lambda c: (c.loss, type(c.formulation).__name__)
    )
]


@pytest.mark.parametrize("cells", GROUPS)
def test_primal_and_derived_dual_agree(cells, tmp_path, cell_counter):
    for cell in cells:
        row = ReferenceRun(REFERENCE, cell, AGREEMENT, math.inf, tmp_path).row()
        assert row.holds and row.theorem, f"{cell.name}: {row.reason}"
    cell_counter("run", len(cells))


def test_the_dual_is_not_the_primal_in_disguise():
    """A wrong declaration of Ω must open the gap between the two programs."""
    cell = next(c for c in small_cells() if c.formulation.name == "LpNorm")
    problem = cell.problem()
    other = problem.with_(formulation=LpNorm(p=1.1))
    primal = reference.solve(problem)
    derived = reference.solve_dual(other)
    assert not primal.lower <= derived.value <= primal.upper
