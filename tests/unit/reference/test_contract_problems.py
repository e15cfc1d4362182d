"""The contract problems: names, sizes, targets for each kind of label."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import formulations as F
from mklopt.reference import contract_problems as contract

SIZES = {"small": (6, 40), "wdbc": (20, 100), "twonorm": (20, 60)}


@pytest.mark.parametrize("name", contract.DATA)
def test_kernels_and_targets_are_loaded(name):
    grams, targets = contract.load(name)
    M, n = SIZES[name]
    assert (grams.M, grams.n) == (M, n) and grams.proof == "factors"
    assert set(targets) == {"real", "binary", "ones", "classes"}
    assert set(targets["binary"]) == {-1.0, 1.0} and set(targets["ones"]) == {1.0}
    assert set(targets["classes"]) == {0, 1, 2}
    for part in (targets["real"], *(grams.factors or [])):
        np.testing.assert_array_equal(part / contract.GRID, np.rint(part / 2.0**-12))


def test_factors_are_the_stored_integers_on_the_grid():
    grams, _ = contract.load("small")
    with np.load(contract.FOLDER / "small.npz") as stored:
        whole = stored["factors"]
    np.testing.assert_array_equal(np.hstack(grams.factors or []) * 4096, whole)


def test_a_cell_is_its_problem():
    hinge = F.losses_by_name()["hinge"]()
    cell = contract.Cell("small", F.LpNorm(2.0), hinge, 3.0, bias=False)
    problem = cell.problem()
    assert (problem.C, problem.bias, problem.loss) == (3.0, False, hinge)
    assert problem.formulation == F.LpNorm(2.0) and problem.grams.n == 40
    assert cell.name == "small-LpNorm(p=2.0)-Hinge()-C3-bias=False"
    free = contract.Cell("small", F.LpNorm(2.0), hinge, 1.0)
    assert free.problem().bias and free.name.endswith("-C1")
    alone = F.losses_by_name()["one_class"]()
    assert not contract.Cell("small", F.LpNorm(2.0), alone, 1.0).problem().bias


def test_every_pair_of_loss_and_formulation_is_a_small_cell():
    found = {(type(c.loss), type(c.formulation)) for c in contract.small_cells()}
    assert found == {
        (V, Omega)
        for V in F.losses_by_name().values()
        for Omega in F.formulations().values()
    }


def test_no_name_comes_twice():
    names = [cell.name for cell in contract.cells()]
    assert len(set(names)) == len(names)
    parts = (contract.wdbc_cells, contract.twonorm_cells, contract.grouped_cells,
             contract.sampled_cells, contract.small_cells)  # fmt: skip
    assert len(names) == sum(len(list(part())) for part in parts)


@pytest.mark.parametrize("groups", [contract.GROUPS, *contract.GROUPINGS.values()])
def test_groups_take_each_kernel_once(groups):
    assert sorted(m for group in groups for m in group) == list(range(20))
