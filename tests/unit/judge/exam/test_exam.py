"""The exam judges solvers of every form, and its reports can be read and recomputed."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mklopt
from mklopt import check_solver
from mklopt.cli import main
from mklopt.judge.exam.exam import SolverReport, examine, judge_answer
from mklopt.judge.exam.plan import plan
from mklopt.judge.exam.answer import Answer, Candidate
from mklopt.reference.graded_problems import reference_of
from mklopt.solvers import Iterate, solvers

BRIEF: Any = {"grades": ["easy"], "leave_out": ["twonorm"]}  # three problems


def right(problem):
    """(weights, dual) of the reference."""
    found = reference_of(problem)
    return found.weights, found.dual


# ---- every form of solver ----------------------------------------------------


def as_iterates(problem):
    weights, dual = right(problem)
    yield Iterate(np.zeros(problem.shape), weights)
    yield Iterate(dual, weights)


def as_functions(problem):
    """Iterates that are functions of a state which moves on."""
    weights, dual = right(problem)
    state = {"dual": dual, "weights": weights}
    yield Iterate(lambda: state["dual"], state["weights"])
    state["dual"] = np.zeros(problem.shape)


@pytest.mark.parametrize(
    "solver",
    [
        right,
        lambda p: right(p)[0],
        lambda p: list(right(p)),
        reference_of,
        as_iterates,
        as_functions,
    ],
    ids=[
        "pair",
        "weights alone",
        "list",
        "an object with both",
        "generator",
        "generator of functions",
    ],
)
def test_every_form_of_solver_is_taken(solver):
    found = check_solver(solver, **BRIEF)
    assert found.passed and len(found.rows) == 3
    assert found.diagnosis == "" and found.failures == ()


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_weights_alone_are_enough_where_the_dual_is_not_quadratic(loss):
    weights = lambda p: right(p)[0]  # noqa: E731
    asked = {"grades": ["easy"], "leave_out": ["twonorm", "small, C = 0.1"]}
    assert check_solver(weights, losses=[loss], **asked).passed


@pytest.mark.parametrize("name", ["analytic", "hessian", "smo_mkl", "spicy", "simple"])
def test_our_solvers_pass(name):
    found = check_solver(name, **BRIEF)
    assert found.passed, found


# Their steps are as long as the largest kernel allows: 1e8 between the kernels' sizes.
SHORT_STEPS = {name: ["sizes 0.01 to 100"] for name in ("ista", "simple", "ufo")}


@pytest.mark.full
@pytest.mark.parametrize("name", solvers())
def test_our_solvers_pass_all_of_it(name):
    leave_out = SHORT_STEPS.get(name, [])
    found = check_solver(name, leave_out=leave_out, time_limit=60)
    assert found.passed, found


# ---- what is reported --------------------------------------------------------


def beyond(problem):
    """Right after clipping, and so certified: only what was given is wrong."""
    weights, dual = right(problem)
    return weights, np.where(np.abs(dual) > 0.9999 * problem.C, 1.3 * dual, dual)


def test_every_number_of_a_row_can_be_computed_again():
    slightly_off = lambda p: (1.01 * right(p)[0], right(p)[1])  # noqa: E731
    asks = plan(slightly_off, **BRIEF).questions
    report = check_solver(slightly_off, **BRIEF)
    for row, question in zip(report.rows, asks):
        weights, dual = slightly_off(question.problem)
        found = mklopt.certify(question.problem, dual, weights)
        reference = reference_of(question.problem)
        assert (row.gap, row.lower, row.upper) == pytest.approx(
            (found.relative_gap, found.lower, found.upper), rel=1e-12
        )
        assert row.lower <= reference.upper and reference.lower <= row.upper
        apart = (row.above + row.below) * reference.upper
        assert apart == pytest.approx(row.gap * found.primal, rel=1e-3)
        assert not row.passed and row.above > 1e-6


def test_the_report_is_readable_as_text_frame_and_json():
    found = check_solver(lambda p: (2 * right(p)[0], right(p)[1]), **BRIEF)
    text = str(found)
    assert "FAILS" in text and "they are 2 times the right ones" in text
    assert max(map(len, text.splitlines())) <= 100
    frame = found.to_frame()
    assert list(frame.problem) == ["small", "small, C = 0.1", "unbalanced"]
    assert not frame.passed.any()
    read = json.loads(found.to_json())
    assert read["passed"] is False and read["kind"] == "not normalized"
    assert len(read["rows"]) == 3


def test_a_dual_that_is_right_only_after_repair_fails():
    rows = check_solver(beyond, **BRIEF).rows
    assert all(row.gap <= 1e-6 and row.infeasible > 0.1 for row in rows)
    assert not any(row.passed for row in rows)


def test_no_row_at_all_is_no_pass():
    assert not SolverReport("nothing", ()).passed


def test_questions_can_be_asked_one_by_one():
    question = plan(right, **BRIEF).questions[0]
    seen: list[tuple[int, int]] = []
    ((good,), _) = examine(right, [question], progress=lambda *n: seen.append(n))
    assert good.passed and good.problem == "small" and seen == [(1, 1)]
    ((bad,), _) = examine(lambda p: (right(p)[0], -right(p)[1]), [question])
    assert bad.kind == "sign reversed"


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda w, a: (-w, a), "weights are ≥ 0"),
        (lambda w, a: (w, a * np.nan), "NaN or infinite"),
    ],
)
def test_what_cannot_be_certified_is_a_bad_answer(change, words):
    question = plan(right, **BRIEF).questions[0]
    weights, dual = change(*right(question.problem))
    given = Candidate(dual, weights)
    row, case = judge_answer(question, Answer("returned", "", given, given, given))
    assert (row.passed, row.kind, case) == (False, "bad answer", None)
    assert words in row.diagnosis


def test_a_run_that_raised_fails_whatever_it_reached():
    question = plan(right, **BRIEF).questions[0]
    weights, dual = right(question.problem)
    good = Candidate(dual, weights)
    row, case = judge_answer(question, Answer("raised", "lost", good, good, good))
    assert row.gap <= 1e-6 and not row.passed and case is None
    assert (row.kind, row.diagnosis) == ("raised", "raised: lost")


# ---- the command -------------------------------------------------------------

SOLVER = """
import numpy as np
import mklopt

def good(problem):
    print("noise")
    found = mklopt.solve(problem, "analytic", tol=1e-9).certificate
    return found.weights, found.alpha

def bad(problem):
    weights, dual = good(problem)
    return 3 * weights, dual
"""


@pytest.fixture
def check(tmp_path, monkeypatch):
    """`mklopt check` in a folder with mine.py in it."""
    (tmp_path / "mine.py").write_text(SOLVER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    return lambda *words: CliRunner().invoke(main, ["check", *words])


def test_the_command_judges_a_module_of_the_current_folder(check):
    brief = ["--grade", "easy", "--leave-out", "twonorm", "--formulation", "LpNorm"]
    good = check("mine:good", *brief, "--json")
    assert good.exit_code == 0, good.output
    assert json.loads(good.stdout)["passed"] is True  # what it prints goes elsewhere
    bad = check("mine:bad", *brief)
    assert bad.exit_code == 1 and "3 times the right ones" in bad.stdout
    wrong = check("mine:ugly")
    assert wrong.exit_code == 2 and "module 'mine' has no 'ugly'" in wrong.stderr
    assert "Example: mklopt check mysolver" in check("--help").stdout
