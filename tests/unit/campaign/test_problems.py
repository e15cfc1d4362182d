"""Kernels and labels of one's own as problems of the main job."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mklopt.campaign.problems import (
    CS,
    label_kind,
    own_cells,
    problems_by_name,
    read_own,
)
from mklopt.cli import main
from mklopt.formulations import formulations
from mklopt.reference.contract_problems import cells

TINY = ("--solver", "hessian", "--loss", "hinge", "--formulation", "BlockL1")
ALTERNATING = np.where(np.arange(12) % 2 == 0, 1.0, -1.0)


def certify(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(main, ["certify", "--jobs", "1", *arguments])
    assert done.exit_code == code, done.output
    return done.output


def lines(folder: Path) -> list[bytes]:
    return (folder / "rows.jsonl").read_bytes().splitlines()


@pytest.fixture
def mine(tmp_path) -> Path:
    L = np.random.default_rng(0).normal(size=(3, 12, 2))
    np.savez(tmp_path / "mine.npz", K=L @ L.transpose(0, 2, 1), y=ALTERNATING)
    return tmp_path / "mine.npz"


@pytest.mark.parametrize(
    "y, kind",
    [
        ([1, -1, 1], "binary"),
        ([0, 1, 1, 2], "classes"),
        ([0, 1], "classes"),
        ([0, 2], "real"),
        ([1, 2], "real"),
        ([1, 1], "real"),
        ([0, 0], "real"),
        ([-1, 0, 1], "real"),
        ([0.5, 1], "real"),
    ],
)
def test_labels_say_which_losses_take_them(y, kind):
    assert label_kind(np.array(y, float)) == kind


def test_a_file_becomes_every_problem_that_its_labels_allow(mine):
    found = list(own_cells(mine))
    assert {cell.loss.labels for cell in found} == {"binary", "ones"}
    assert {type(cell.formulation).__name__ for cell in found} == set(formulations())
    assert {cell.C for cell in found} == set(CS) and {c.data for c in found} == {"mine"}
    alone = next(cell for cell in found if cell.loss.labels == "ones").problem()
    assert np.all(alone.y == 1) and not alone.bias
    assert np.array_equal(found[0].problem().y, ALTERNATING)
    both = problems_by_name([str(mine)])
    assert len(both) == len(set(both)) == len(problems_by_name()) + len(found)
    assert set(problems_by_name()) == {cell.name for cell in cells()}


def test_other_content_is_another_problem(mine):
    before = next(own_cells(mine))
    with np.load(mine) as arrays:
        K = arrays["K"]
    np.savez(mine, K=2 * K, y=ALTERNATING)
    after = next(own_cells(mine))
    assert before.name != after.name and before.name.startswith("mine-")
    read_own.cache_clear()
    with pytest.raises(ValueError, match="has changed since the job began"):
        before.problem()


def test_a_file_of_ones_own_is_certified_with_references_solved_on_the_way(
    mine, tmp_path
):
    own = ("--data", str(mine), "--out", str(tmp_path / "out"))
    said = certify(*TINY, *own)
    assert "3 of 3 verdicts hold" in said  # three values of C
    rows = [json.loads(line) for line in lines(tmp_path / "out")]
    assert {row["C"] for row in rows} == {0.1, 1.0, 100.0}
    assert {row["data"] for row in rows} == {"mine"}
    assert len(list((tmp_path / "out" / "references").iterdir())) == 3


@pytest.mark.parametrize(
    "arrays, words",
    [
        (
            {"K": np.eye(3)[None], "z": np.ones(3)},
            "it has the arrays K, z; write labels y",
        ),
        ({"X": np.eye(3), "y": np.arange(3)}, "kernels K .* are needed here"),
        (
            {"K": np.eye(3), "y": np.ones(3)},
            r"K is \(3, 3\) for 3 labels y; it must be \(M, n, n\)",
        ),
        ({"K": np.eye(3)[None], "y": np.ones(4)}, r"K is \(1, 3, 3\) for 4 labels y"),
        ({"K": -np.eye(3)[None], "y": [1, -1, 1]}, "not positive semi-definite"),
        ({"K": np.full((1, 3, 3), np.nan), "y": [1, -1, 1]}, "NaN"),
        ({"K": np.eye(3)[None] * 1j, "y": [1, -1, 1]}, "complex"),
        ({"K": np.eye(3)[None], "y": ["a", "b", "c"]}, "values of type"),
        ({"K": np.eye(3)[None], "y": [1, np.nan, 1]}, "finite"),
    ],
)
def test_a_wrong_file_gets_one_clear_sentence(tmp_path, arrays, words):
    np.savez(tmp_path / "mine.npz", **arrays)
    own = ("--data", str(tmp_path / "mine.npz"))
    assert re.search(words, " ".join(certify(*TINY, *own, code=2).split()))
