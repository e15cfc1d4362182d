"""Which problems are asked, how solvers are found, and what wrong input is told."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from mklopt import check_solver
from mklopt.formulations import GroupLasso, LpNorm
from mklopt.judge.exam.plan import Question, plan
from mklopt.reference.graded_problems import GRADED, GRADES, reference_of
from mklopt.solvers import solvers


def right(problem):
    """(weights, dual) of the reference."""
    found = reference_of(problem)
    return found.weights, found.dual


@pytest.mark.parametrize(
    "solver, asked, words",
    [
        (right, {"losses": ["hing"]}, "loss = 'hing' is not known"),
        (right, {"formulations": ["L2"]}, "formulation 'L2' is not known"),
        (right, {"formulations": ["LpNorm(p=x)"]}, "x is no plain number"),
        (right, {"formulations": ["LpNorm(p=0.1)"]}, "cannot be read: LpNorm: p = 0.1"),
        (right, {"formulations": [3]}, "give an instance such as"),
        (right, {"grades": ["hard"]}, "grade 'hard' is not known; choose one of easy"),
        (right, {"grades": ["eazy"]}, "'eazy' is not known; did you mean 'easy'?"),
        (right, {"leave_out": ["x"]}, "problem to leave out 'x' is not known"),
        (right, {"tol": 0.0}, "tol = 0.0: a relative gap between"),
        (right, {"time_limit": -1}, "give a positive number"),
        ("hessian", {"formulations": [LpNorm(2.0)]}, "hessian supports none of these"),
    ],
)
def test_wrong_input_gets_one_sentence(solver, asked, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        check_solver(solver, **asked)


def test_what_is_asked_follows_the_arguments():
    two: Any = {"formulations": ["LpNorm(p=inf)", GroupLasso()], "losses": ["squared"]}
    asks = plan(right, grades=GRADES, **two)
    assert len(asks.questions) == 2 * len(GRADED) and asks.left_out == ()
    assert {q.formulation for q in asks.questions} == {"LpNorm(p=inf)", "GroupLasso()"}
    without = plan(right, bias=False)
    assert not any(q.problem.bias for q in without.questions)
    only = plan(right, bias=True)
    assert all(q.problem.bias for q in only.questions) and only.left_out == ("no bias",)
    stated = plan(solvers()["lbfgs"])
    assert not any(q.problem.bias for q in stated.questions)
    assert {q.loss for q in stated.questions} == {"squared()"}
    open_ended = plan(solvers()["fista"], grades=GRADES)
    assert all(math.isnan(q.tol) for q in open_ended.questions)  # it is asked itself


def test_a_question_says_what_it_asks():
    question = plan(right, grades=["easy"], tol=1e-3).questions[0]
    assert isinstance(question, Question) and question.tol == 1e-3
    assert question.title == "easy: small, hinge(), LpNorm(p=2)"
    assert question.problem.formulation == LpNorm(2.0)
    unstated = plan(right, grades=["easy"]).questions[0]
    assert unstated.tol == 1e-6


def test_a_solver_that_states_its_traits_is_asked_the_first_of_them():
    """Three formulations with the first loss, and one more loss with the first."""
    questions = plan(solvers()["spicy"], grades=["easy"]).questions
    pairs = list(dict.fromkeys((q.formulation, q.loss) for q in questions))
    assert [loss for _, loss in pairs] == ["hinge()"] * 3 + ["squared()"]
    kinds = [formulation.partition("(")[0] for formulation, _ in pairs]
    assert kinds == ["LpNorm", "BlockL1", "GroupLasso", "LpNorm"]


def test_graded_problems_are_theorems_of_all_grades():
    assert {graded.grade for graded in GRADED} == set(GRADES)
    assert len({graded.name for graded in GRADED}) == len(GRADED)
    for question in plan(right, grades=GRADES).questions:
        assert question.problem.grams.proof == "factors"
        assert reference_of(question.problem).relative_gap <= 1e-8, question.title


@pytest.mark.parametrize("seed", range(3))
def test_every_claimed_loss_is_asked_for_with_a_large_C(seed):
    losses = ["squared", "hinge", "logistic", "multinomial", "eps_insensitive"]
    asks = plan(right, losses=losses, grades=["fresh"], seed=seed).questions
    largest: dict[str, float] = {}
    for q in asks:
        name, C = q.problem.loss.name, float(np.max(q.problem.C))
        largest[name] = max(largest.get(name, 0.0), C)
    assert min(largest[name] for name in losses) > 1000


def test_the_number_of_classes_varies():
    found: set[int] = set()
    for seed in range(3):
        some: Any = {"losses": ["multinomial"], "grades": ["fresh"], "seed": seed}
        found |= {q.problem.shape[1] for q in plan(right, **some).questions}
    assert found == {2, 3, 4, 5}
