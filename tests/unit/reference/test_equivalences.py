"""Parameter maps: their factors on known numbers; the contract tests solve both sides.

tests/contract/test_equivalences.py compares solutions of every entry of the ledger.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mklopt import Problem, reference
from mklopt import formulations as F
from mklopt.formulations.norms import norm
from mklopt.reference import equivalences as maps
from mklopt.reference.contract_problems import load

GRAMS, TARGETS = load("small")
U = np.array([3.0, 4.0, 0.0, 0.0, 0.0, 0.0])
INF = float("inf")


class Known:
    """A solution with the block norms U, as far as the maps look at it."""

    norms, upper = U, 100.0

    def __init__(self, problem):
        self.certificate = self
        self.problem = problem


def mapped(move, formulation, **more) -> Problem:
    problem = Problem(GRAMS, TARGETS["binary"], "hinge", formulation, 2.0)
    known: Any = Known(problem)
    return move(problem, known, **more)


@pytest.mark.parametrize(
    "move, start, C, target",
    [
        (maps.to_ivanov, F.Tikhonov(1.0, 0.5), 2 * (49 / 2) ** (1 / 3), F.Ivanov(1.0)),
        (maps.to_tikhonov, F.Ivanov(1.0), 2 * (49 / 4) ** (-1 / 3), F.Tikhonov(1.0)),
        (maps.lp_to_block_norm, F.LpNorm(2.0), 2.0, F.BlockNorm(4 / 3)),
        (maps.block_norm_to_lp, F.BlockNorm(1.5), 2.0, F.LpNorm(3.0)),
        (maps.block_norm_to_lp, F.BlockNorm(2.0), 2.0, F.LpNorm(INF)),
        (maps.to_block_power, F.BlockNorm(1.0), 1 / 7, F.BlockPower(1.0)),
        (maps.to_block_norm, F.BlockPower(1.0), 28.0, F.BlockNorm(1.0)),
        (maps.to_block_l1, F.GroupLasso(), 14.0, F.BlockL1()),
        (maps.to_group_lasso, F.BlockL1(), 2 / 7, F.GroupLasso()),
        (maps.one_group, F.BlockL1(), 2.0, F.VSKL((tuple(range(6)),), 2.0)),
        (maps.singletons, F.LpNorm(INF), 2.0, F.VSKL([(m,) for m in range(6)], 1.0)),
    ],
)
def test_a_map_has_its_factor(move, start, C, target):
    found = mapped(move, start)
    assert pytest.approx(C) == found.C and found.formulation == target
    assert found.grams is GRAMS


@pytest.mark.parametrize("entry", maps.ledger(6), ids=lambda entry: entry.name)
def test_there_and_back_again(entry):
    """C comes back where both maps see the same block norms."""
    there = mapped(entry.to_right, entry.left)
    known: Any = Known(there)
    back = entry.to_left(there, known)
    assert there.formulation == entry.right
    assert type(back.formulation) is type(entry.left)
    assert back.formulation.value(U) == pytest.approx(entry.left.value(U))
    assert pytest.approx(2.0) == back.C


def test_the_supremum_is_attained_on_the_unit_sphere():
    problem = Problem(GRAMS, TARGETS["binary"], "hinge", F.BlockNorm(3.0))
    known: Any = Known(problem)
    theta = maps.sup_form(problem, known)
    assert norm(theta, 3.0) == pytest.approx(1.0)  # r = q/(q − 2) = 3
    assert theta @ U**2 == pytest.approx(norm(U, 3.0) ** 2)
    for q, words in ((1.5, "in the denominator"), (INF, "not a formula")):
        with pytest.raises(ValueError, match=words):
            maps.sup_form(problem.with_(formulation=F.BlockNorm(q)), known)


def test_dialects_of_other_papers():
    problem = maps.from_orabona(GRAMS, TARGETS["binary"], 0.01, 1.5, loss="hinge")
    assert pytest.approx(1 / (0.01 * 40)) == problem.C and not problem.bias
    assert maps.to_orabona(problem) == pytest.approx((0.01, 1.5))
    assert maps.suzuki_C(0.05) == 20 and maps.suzuki_C(0.5, half_squared=False) == 4
    plain = Problem(GRAMS, TARGETS["binary"], "hinge", F.GroupLasso(), 3.0)
    assert pytest.approx(1.5) == maps.jain_l1(plain, weight=2.0).C
    assert pytest.approx(3 / 2**0.5) == maps.jain_l1(plain).C
    assert maps.from_group_lasso_to_jain(3 / 2**0.5) == pytest.approx(3.0)
    assert maps.jain_lp(plain, 1.5, weight=3.0).formulation == F.Tikhonov(1.5, 1.5)


def test_lanckriets_program_has_the_value_of_the_reference():
    problem = Problem(GRAMS, TARGETS["binary"], "hinge", F.BlockL1())
    found = maps.lanckriet(problem)
    assert found.value == pytest.approx(reference.solve(problem).upper, rel=1e-8)
    assert np.sum(found.weights) == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(ValueError, match="for the hinge with a bias"):
        maps.lanckriet(problem.with_(bias=False))


def test_without_block_norms_there_is_no_map():
    problem = Problem(GRAMS, TARGETS["binary"], "logistic", F.GroupLasso(), 1e-4)
    with pytest.raises(ValueError, match=r"w\* = 0"):
        maps.block_norms(reference.solve(problem))
    with pytest.raises(ValueError, match="this map starts from Tikhonov, but"):
        mapped(maps.to_ivanov, F.Ivanov(2.0))
