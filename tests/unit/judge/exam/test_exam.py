"""The exam judges solvers of every form, and its reports can be read and recomputed."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mklopt
from mklopt import check_solver
from mklopt.cli import main
from mklopt.judge.exam import sandbox
from mklopt.judge.exam.answer import Answer, Candidate
from mklopt.judge.exam.exam import SolverReport, examine, judge_answer
from mklopt.judge.exam.fresh import facts
from mklopt.judge.exam.plan import plan
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
SHORT_STEPS["simple"] = ["sizes 0.01 to 100", "kernels of other sizes"]
# Its λ stays at 1/‖∇W‖∞ of the first weights, which falls with C.
SHORT_STEPS["pgd"] = ["C from 1000", "C near 1e5"]


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
        found = mklopt.certify(question.problem, dual=dual, weights=weights)
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


# ---- solvers that cheat ------------------------------------------------------

FAKE = """
class Fake:
    primal = dual = lower = upper = 1.0
    relative_gap = gap = width = 0.0
    weights = alpha = coefficients = None

def fake(*a, **k):
    return Fake()
"""
WRONG = """
def solve(problem):
    return np.ones(problem.grams.M), 0.3 * problem.C * problem.y
"""
PATCHES = {
    "the function": "import mklopt.certificates.certificate as c; c.certify = fake",
    "the package": "mklopt.certify = fake",
    "the judge": "import mklopt.judge.exam.case as c; c.certify = c.certified = fake; "
    "import mklopt.judge.exam.exam as e; e.certified = e.certify = fake; "
    "e.infeasibility = lambda *a: (0.0, '')",
    "a class": "import mklopt.certificates.certificate as c; "
    "c.Certificate.relative_gap = property(lambda self: 0.0)",
    "the report": "from mklopt.judge.exam.exam import SolverReport; "
    "SolverReport.passed = property(lambda self: True)",
    "numpy": "np.dot = np.matmul = np.einsum = np.sum = lambda *a, **k: 0.0",
    "the answers": "import mklopt.judge.exam.answer as a; "
    "a.Answer.__init__.__defaults__ = None",
}


@pytest.mark.parametrize("name", PATCHES)
def test_what_a_module_replaces_at_import_does_not_matter(name, folder):
    code = f"import numpy as np, mklopt\n{FAKE}\n{PATCHES[name]}\n{WRONG}"
    (folder / "evil.py").write_text(code)
    found = check_solver("evil:solve", **BRIEF)
    assert not found.passed and len(found.failures) == 3
    assert "evil" not in sys.modules
    assert check_solver("analytic", **BRIEF).passed  # the judge is as before


def test_what_a_solver_replaces_when_it_is_called_does_not_matter():
    def patches(problem):
        for name, module in list(sys.modules.items()):
            if name.startswith("mklopt") and "certify" in vars(module):
                setattr(module, "certify", lambda *a, **k: None)  # noqa: B010
        return np.ones(problem.grams.M), np.zeros(problem.shape)

    assert len(check_solver(patches, **BRIEF).failures) == 3


def in_the_stack():
    import inspect

    names = [f"{f.filename} {f.function}" for f in inspect.stack()[1:]]
    return any("mklopt/judge" in name or "check_solver" in name for name in names)


def in_the_words():
    words = " ".join([*sys.argv, *sys.orig_argv, *os.environ]).lower()
    return "pytest" in words or " check" in words


def in_the_modules():
    return any(name.startswith(("mklopt.judge", "pytest")) for name in sys.modules)


def in_another_process():
    import multiprocessing

    return multiprocessing.parent_process() is not None


@pytest.mark.parametrize(
    "notices", [in_the_stack, in_the_words, in_the_modules, in_another_process]
)
def test_a_solver_that_is_right_only_in_an_exam_is_caught(notices):
    def solver(problem):
        weights, dual = right(problem)
        return (weights, dual) if notices() else (2 * weights, dual)

    assert not check_solver(solver, **BRIEF).passed


def slow_sometimes(problem):
    if problem.grams.n > 30:
        time.sleep(1.2)
    return right(problem)


def never_idle(problem):
    end = time.perf_counter() + 1.2
    while time.perf_counter() < end:
        pass
    return right(problem)


def slow_steps(problem):
    weights, dual = right(problem)
    yield Iterate(0.5 * dual, weights)
    time.sleep(1.2)
    yield Iterate(dual, weights)


def turns_back_the_clock(problem):
    time.sleep(1.2)
    time.perf_counter = time.monotonic = time.time = lambda: 0.0
    return right(problem)


@pytest.mark.parametrize(
    "solver", [slow_sometimes, never_idle, slow_steps, turns_back_the_clock]
)
def test_a_solver_that_takes_too_long_fails(solver, monkeypatch):
    monkeypatch.setattr(sandbox, "START_UP", 0.0)
    question = plan(right, **BRIEF).questions[0]
    ((row,), _) = examine(solver, [question], time_limit=0.4)
    assert not row.passed and row.kind == "hangs"
    assert "no answer within" in row.diagnosis


def test_after_three_hangs_the_exam_is_over(monkeypatch):
    monkeypatch.setattr(sandbox, "START_UP", 0.0)
    made = plan(right, grades=["easy", "edge"]).questions
    rows, _ = examine(lambda p: time.sleep(60), made, time_limit=0.05)
    kinds = [row.kind for row in rows]
    assert kinds == ["hangs"] * 3 + ["not asked"] * (len(made) - 3)
    assert not any(row.passed for row in rows)


def test_a_solver_cannot_promise_too_little(folder):
    (folder / "modest.py").write_text(
        "import mklopt, numpy as np\n"
        "@mklopt.solver('modest', accuracy=lambda problem: 0.9)\n"
        "def modest(problem, *, start=None):\n"
        "    yield mklopt.solvers.Iterate(np.zeros(problem.shape),"
        " np.ones(problem.grams.M))\n"
    )
    found = check_solver("modest:modest", losses=["hinge"], **BRIEF)
    assert not found.passed and {row.tol for row in found.rows} == {1e-2}


@pytest.mark.parametrize("name", solvers())
def test_our_solvers_pass_as_functions(name):
    """(weights, dual) of a result is all that is needed to certify it."""

    def wrapped(problem):
        found = mklopt.solve(problem, name, tol=promised(problem) / 2, time_limit=9)
        return found.weights, found.dual

    def promised(problem):
        return min(solvers()[name].promise(problem), 1e-2)

    made = plan(solvers()[name], **BRIEF).questions
    questions = [replace(q, tol=promised(q.problem)) for q in made[:3]]
    rows, _ = examine(wrapped, questions)
    assert rows and all(row.passed for row in rows), rows


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", solvers())
def test_our_solvers_pass_fresh_problems(name, seed):
    how: Any = {"leave_out": SHORT_STEPS.get(name, []), "time_limit": 60}
    found = check_solver(name, grades=["fresh"], seed=seed, **how)
    assert found.passed and found.seed == seed, found


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
def folder(tmp_path, monkeypatch):
    """An empty folder, the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def check(folder):
    """`mklopt check` in a folder with mine.py in it."""
    (folder / "mine.py").write_text(SOLVER)
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


def test_a_report_tells_where_it_failed_what_was_asked_and_the_seed():
    def packed_wrong(problem):
        if problem.loss.name != "hinge" or problem.formulation.name != "LpNorm":
            raise NotImplementedError
        found = mklopt.solve(problem, "analytic", tol=1e-8)
        weights, dual = found.weights, found.dual
        return (2 * weights if facts(problem)["storage"] == "packed" else weights), dual

    found = check_solver(packed_wrong, quick=True, grades=["fresh"], seed=11)
    text = " ".join(str(found).split())
    assert len(found.failures) >= 2 and len(found.failures) < len(found.rows)
    assert "drawn with seed 11" in text and "passed, have storage packed" in text
    assert "asked: losses hinge (not " in text and "(refused)" in text
    assert "formulations LpNorm (not BlockL1" in text
    same = check_solver(packed_wrong, quick=True, grades=["fresh"], seed=11)
    assert [row.gap for row in same.rows] == [row.gap for row in found.rows]
    other = check_solver(packed_wrong, quick=True, grades=["fresh"])
    assert other.seed != 11 and not other.passed
    again = [row.problem for row in found.rows if row.problem.endswith(", again")]
    assert len(again) == 3


def test_a_solver_that_refuses_everything_is_told_so():
    def picky(problem):
        raise NotImplementedError("nothing")

    found = check_solver(picky, **BRIEF)
    assert {row.kind for row in found.rows} == {"refused"} and not found.passed
