"""Users' own losses: constants, auxiliary variables, and what is refused."""

from __future__ import annotations

import pickle

import cvxpy as cp
import numpy as np
import pytest

from mklopt import Problem, loss, reference
from mklopt.formulations import GroupLasso, LpNorm, stripped_loss
from mklopt.formulations.losses.margin import Hinge
from mklopt.formulations.losses.residual import Huber
from mklopt.reference.contract_problems import load

GRAMS, TARGETS = load("small")
Y = TARGETS["binary"]


def test_additive_constants_of_a_loss_are_kept():
    @loss
    def pseudo_huber(f, y):
        return cp.norm(cp.vstack([f - y, np.ones(len(y))]), 2, axis=0) - 1

    y = TARGETS["real"]
    a = np.linspace(-0.9, 0.9, len(y))
    by_hand = a * y - np.sqrt(1 - a**2) + 1
    np.testing.assert_allclose(pseudo_huber.conjugate(a, y), by_hand, atol=1e-7)
    found = reference.solve(Problem(GRAMS, y, pseudo_huber, LpNorm(2.0)))
    assert 0 <= found.relative_gap <= 1e-6


def test_a_loss_with_auxiliary_variables_is_the_same_loss():
    @loss
    def huber(f, y):
        s = cp.Variable(f.shape[0])
        return 0.5 * cp.square(s) + cp.abs(f - y - s), []

    y = TARGETS["real"]
    mine = reference.solve(Problem(GRAMS, y, huber, LpNorm(2.0)))
    known = reference.solve(Problem(GRAMS, y, Huber(1.0), LpNorm(2.0)))
    assert mine.lower <= known.upper and known.lower <= mine.upper
    assert 0 <= mine.relative_gap <= 1e-6


@pytest.mark.parametrize(
    "declare, words",
    [
        (lambda f, y: f, "not bounded below"),
        (lambda f, y: cp.sum(cp.abs(f)), "must be 40 numbers"),
        (lambda f, y: cp.sqrt(cp.abs(f)), "not a convex CVXPY expression"),
    ],
)
def test_a_wrong_loss_is_refused_when_the_problem_is_made(declare, words):
    with pytest.raises(ValueError, match=words):
        Problem(GRAMS, Y, loss(declare), GroupLasso())


def test_what_is_not_a_function_is_refused():
    with pytest.raises(ValueError, match="takes a function"):
        loss(3)
    with pytest.raises(ValueError, match="labels = 'words'"):
        loss(lambda f, y: cp.abs(f), labels="words")


def test_another_C_compiles_nothing_again_and_another_value_does():
    width = 1.0
    mine = loss(lambda f, y: cp.pos(cp.abs(f - y) - width))
    y = TARGETS["real"]
    problem = Problem(GRAMS, y, mine, GroupLasso())
    epigraph, domain = mine.epigraph(problem.y), mine.domain(problem.y)
    again = problem.with_(C=2.0)
    assert mine.epigraph(again.y) is epigraph and mine.domain(again.y) is domain
    assert mine.value(y + 3.0, y) == pytest.approx(2.0)
    width = 2.0
    assert mine.value(y + 3.0, y) == pytest.approx(1.0)


def test_a_loss_without_a_key_is_compiled_for_every_problem():
    width = cp.Parameter(value=1.0)
    mine = loss(lambda f, y: cp.pos(cp.abs(f - y) - width.value))
    y = TARGETS["real"]
    Problem(GRAMS, y, mine, GroupLasso())
    assert mine.value(y + 3.0, y) == pytest.approx(2.0)
    width.value = 2.0
    Problem(GRAMS, y, mine, GroupLasso())
    assert mine.value(y + 3.0, y) == pytest.approx(1.0)


@loss(labels="binary")
def squared_hinge(f, y):
    return cp.square(cp.pos(1 - cp.multiply(y, f)))


def test_a_declared_loss_is_pickled_by_its_name_and_knows_its_labels():
    assert pickle.loads(pickle.dumps(squared_hinge)) is squared_hinge
    assert squared_hinge.name == "squared_hinge" and squared_hinge.labels == "binary"
    assert squared_hinge.kinds(Y) == {"squared_hinge", "any"}
    with pytest.raises(ValueError, match="squared_hinge needs −1/"):
        squared_hinge.validate(np.array([0.0, 1.0]))


def test_a_stripped_loss_has_no_closed_form():
    bare = stripped_loss(Hinge())
    assert bare.labels == "binary" and bare.quadratic(Y, np.ones(40)) is None
    assert bare.value(2 * Y, -Y) == pytest.approx(3.0 * np.ones(40))
