"""The committed references are candidates: certified afresh here, in milliseconds."""

from __future__ import annotations

import json
import os
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from mklopt import GramStack, Problem, reference
from mklopt.formulations.group_lasso import GroupLasso
from mklopt.formulations.lp_norm import LpNorm
from mklopt.formulations.mixed_norm import VSKL
from mklopt.reference.contract_problems import (
    FOLDER,
    GRID,
    STORE,
    cells,
    load,
    wdbc_cells,
)
from mklopt.util.archives import read_member
from tests.contract import make_references

ALL = cells()
FLOOR = 944  # may only grow: the number of contract cells with a stored reference
BY_KIND = [
    pytest.param(list(group), id="-".join(key))
    for key, group in groupby(
        sorted(ALL, key=lambda c: (c.data, type(c.formulation).__name__)),
        key=lambda c: (c.data, type(c.formulation).__name__),
    )
]


@pytest.mark.parametrize("group", BY_KIND)
def test_stored_references_prove_their_interval(group, cell_counter):
    for cell in group:
        found = STORE.load(cell.problem())
        assert found is not None, f"no stored reference for {cell.name}: make contract"
        assert found.certificate.assumptions == [], cell.name
        assert 0 <= found.relative_gap <= 1e-8, cell.name
    cell_counter("run", len(group))


def test_the_number_of_cells_only_grows():
    assert len(ALL) >= FLOOR
    assert len({STORE.path(cell.problem()) for cell in ALL}) == len(ALL)


def test_no_stale_references_are_committed():
    known = {STORE.path(cell.problem()).name for cell in ALL}
    assert STORE.names() == known
    assert not list(STORE), "references are packed: make contract"


def test_contract_kernels_are_exact():
    for name in ("small", "wdbc"):
        grams, _ = load(name)
        assert grams.proof == "factors"
        for m, L in enumerate(grams.factors or []):  # sums of integers below 2^53
            whole = (L / GRID).astype(np.int64)
            np.testing.assert_array_equal(grams.kernel(m) / GRID**2, whole @ whole.T)


def test_a_stored_reference_for_another_problem_proves_nothing(tmp_path):
    """Candidates moved to the wrong problem are judged by that problem."""
    first, second = list(wdbc_cells())[:2]
    name = STORE.path(first.problem()).name
    body = json.loads(read_member(FOLDER / "wdbc.zip", name))
    store = reference.Store(tmp_path)
    store.path(second.problem()).write_text(json.dumps(body))
    assert store.load(second.problem()) is None


@pytest.mark.parametrize("name", make_references.DRAWN)
def test_kernels_that_are_drawn_again_are_those_stored(name, tmp_path):
    """Labels and sizes to the bit; factors up to the sign of an eigenvector."""
    make_references.save(tmp_path / f"{name}.npz", make_references.DRAWN[name]())
    with (
        np.load(tmp_path / f"{name}.npz") as new,
        np.load(FOLDER / f"{name}.npz") as old,
    ):
        assert new.files == old.files
        for key in new.files:
            off = np.abs(np.abs(1.0 * new[key]) - np.abs(1.0 * old[key]))
            assert np.max(off) <= (1.0 if key == "factors" else 0.0), key


def test_a_reference_is_good_where_it_is_narrow(tmp_path, monkeypatch):
    cell = next(wdbc_cells())
    assert make_references.is_good(cell)
    monkeypatch.setattr(make_references, "STORE", reference.Store(tmp_path))
    monkeypatch.setattr(make_references, "cells", lambda: [cell])
    assert not make_references.is_good(cell)
    name, gap = make_references.solve_and_save(cell, 2e-9)
    assert name == cell.name and 0 <= gap <= 1e-8 and make_references.is_good(cell)
    (tmp_path / "0.json").write_text("{}")
    assert make_references.remove_stale() == (1, 1)
    assert make_references.is_good(cell) and not (tmp_path / "0.json").exists()


SLICE = [c for i, c in enumerate(wdbc_cells()) if i % 7 == 3]


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(c, id=c.name, marks=[] if c in SLICE else [pytest.mark.full])
        for c in wdbc_cells()
    ],
)
def test_solving_again_lands_in_the_stored_interval(cell, cell_counter):
    """n = 100, M = 20, real data: a fresh solve certifies to 1e-8 and agrees."""
    problem = cell.problem()
    fresh, stored = reference.solve(problem, tol=5e-9), STORE.load(problem)
    assert stored is not None
    assert 0 <= fresh.relative_gap <= 1e-8
    assert fresh.lower <= stored.upper and stored.lower <= fresh.upper
    cell_counter("run")


@pytest.mark.skipif(
    not (Path(os.environ.get("MKLOPT_DATA", "")) / "sonar.npz").is_file(),
    reason="MKLOPT_DATA names no folder with sonar.npz",
)
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_sonar_as_plain_gram_matrices(loss, C, cell_counter):
    """Gram matrices instead of factors, proved positive semi-definite: still 1e-8."""
    with np.load(Path(os.environ["MKLOPT_DATA"]) / "sonar.npz") as data:
        X, y = data["X"][::2][:100], data["y"][::2][:100]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    K = [rbf_kernel(X[:, part], gamma=g / 15) for part in np.split(np.arange(60), 4)
         for g in (0.03, 0.1, 0.3, 1.0, 3.0)]  # fmt: skip
    grams = GramStack(np.stack(K))
    grams.verify_psd()
    groups = [range(5 * j, 5 * j + 5) for j in range(4)]
    for formulation in (GroupLasso(), LpNorm(4 / 3), VSKL(groups, 2.0)):
        problem = Problem(grams, y, loss, formulation, C)
        found = reference.solve(problem, tol=5e-9)
        assert found.certificate.assumptions == []
        assert 0 <= found.relative_gap <= 1e-8, problem
        cell_counter("run")
