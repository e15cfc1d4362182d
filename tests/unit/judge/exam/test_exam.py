"""The kit judges solvers of every form, names what is wrong, and survives them all."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mklopt
from mklopt import check_solver
from mklopt.cli import main
from mklopt.formulations import BlockNorm, GroupLasso, LpNorm
from mklopt.judge.exam.case import distance, machine
from mklopt.judge.exam.exam import Report, judge_alone
from mklopt.judge.exam.plan import Question, plan
from mklopt.reference.graded_problems import GRADED, GRADES, reference_of
from mklopt.solvers import Iterate, solvers

pytest_plugins = ["pytester"]
BRIEF: Any = {"grades": ["easy"], "leave_out": ["twonorm"]}  # three problems


def right(problem):
    """(weights, dual) of the reference."""
    found = reference_of(problem)
    return found.weights, found.dual


def instead(**changes):
    """A solver of another problem: the bug that every change stands for."""

    def solver(problem):
        made = {k: v(problem) if callable(v) else v for k, v in changes.items()}
        return right(problem.with_(**made))

    return solver


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
    assert not Report("nothing", ()).passed


def test_graded_problems_are_theorems_of_all_grades():
    assert {graded.grade for graded in GRADED} == set(GRADES)
    assert len({graded.name for graded in GRADED}) == len(GRADED)
    for question in plan(right).questions:
        assert question.problem.grams.proof == "factors"
        assert reference_of(question.problem).relative_gap <= 1e-8, question.title


# ---- diagnoses ---------------------------------------------------------------


def signless(problem):
    weights, dual = right(problem)
    return weights, problem.y * dual


def labels_forgotten(problem):
    """α ≥ 0 all along: in αᵀK_mα, too, and so in the weights."""
    theta = np.full(problem.grams.M, problem.grams.M**-0.5)
    for _ in range(30):
        alpha: Any = machine(problem, theta)
        v = np.sqrt(problem.grams.quad(np.abs(alpha)))
        theta = LpNorm(2.0).weights(theta * v)
    return theta, np.abs(alpha)


def backwards(problem):
    weights, dual = right(problem)
    return weights, -dual


def off_centre(problem):
    weights, dual = right(problem)
    return weights, dual + 0.02 * problem.C


def beyond(problem):
    """Right after clipping, and so certified: only what was given is wrong."""
    weights, dual = right(problem)
    return weights, np.where(np.abs(dual) > 0.9999 * problem.C, 1.3 * dual, dual)


def stale(problem):
    weights, _ = right(problem)
    return weights, machine(problem, np.ones(len(weights)))


def old_weights(problem):
    weights, dual = right(problem)
    return np.full(len(weights), len(weights) ** -0.5), dual


def shuffled(problem):
    weights, dual = right(problem)
    return weights[::-1], dual


def single(problem):
    return tuple(np.float32(part) for part in right(problem))


def early(problem):
    found = mklopt.solve(problem, "interleaved", max_iter=8)
    return found.certificate.weights, machine(problem, found.certificate.weights)


def cut_short(problem):
    steps: Any = solvers()["interleaved"].steps(problem)
    certificate = None
    for _ in range(6):
        certificate = yield steps.send(certificate)


def noise(problem):
    rng = np.random.default_rng(0)
    dual = rng.uniform(size=problem.shape) * problem.y * problem.C
    return rng.uniform(size=problem.grams.M), problem.feasible(dual)


DIAGNOSES = {
    "C/n": (instead(C=lambda p: p.C / len(p.y)), "other C", "C′ = C/n"),
    "2C": (instead(C=lambda p: 2 * p.C), "other C", "C′ = 2·C"),
    "C'": (instead(C=lambda p: 0.7 * p.C), "other C", "C′ = 0.7·C"),
    "bias": (instead(bias=False), "bias missing", "bias missing"),
    "q": (instead(formulation=LpNorm(4 / 3)), "other formulation", "q = 2p/(p+1)"),
    "unsquared": (instead(formulation=GroupLasso()), "other formulation", "GroupLasso"),
    "block": (instead(formulation=BlockNorm(2.0)), "other formulation", "block norm"),
    "loss": (instead(loss="logistic"), "other loss", "optimal for logistic"),
    "signless": (signless, "label sign dropped", "multiply it by y"),
    "labels": (labels_forgotten, "label sign dropped", "which are wrong too"),
    "backwards": (backwards, "sign reversed", "−α is certified"),
    "off centre": (off_centre, "dual infeasible", "where a bias asks for 0"),
    "beyond": (beyond, "dual infeasible", "outside the box by 0.3·C"),
    "stale": (stale, "stale dual", "solved again at the returned weights"),
    "old weights": (old_weights, "stale weights", "belong to the dual"),
    "shuffled": (shuffled, "weights permuted", "change places"),
    "early": (early, "stopped early", "stopped early"),
    "cut short": (cut_short, "stopped early", "still falling"),
    "noise": (noise, "not diagnosed", "not diagnosed"),
}


@pytest.mark.parametrize("name", DIAGNOSES)
def test_a_failure_is_named(name):
    solver, kind, words = DIAGNOSES[name]
    found = check_solver(solver, **BRIEF)
    assert not found.passed
    assert (found.kind, words in found.diagnosis) == (kind, True), found


def test_single_precision_is_named():
    found = check_solver(single, tol=1e-9, **BRIEF)
    assert (found.passed, found.kind) == (False, "single precision"), found


def test_a_stale_dual_of_a_generator_is_traced_to_its_weights():
    def late(problem):
        weights, _ = right(problem)
        old: Any = np.ones(len(weights))
        alpha: Any = machine(problem, old)
        yield Iterate(alpha, old)
        yield Iterate(alpha, weights)

    found = check_solver(late, **BRIEF)
    assert found.kind == "stale dual"
    assert "weights of the iterate before" in found.diagnosis


def test_distance_says_which_constraint_is_broken():
    problem = plan(right, **BRIEF).questions[0].problem
    dual = np.array(right(problem)[1])
    assert distance(problem, dual)[0] < 1e-9
    dual[3] = 3 * problem.C * problem.y[3]
    off, words = distance(problem, dual)
    assert off == 2 and words.startswith("α is outside the box by 2·C (sample 3")


# ---- solvers that misbehave --------------------------------------------------


def raises(problem):
    raise ZeroDivisionError("no step left")


def exits(problem):
    sys.exit(3)


def crashes(problem):
    os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when memory runs out


def sleeps(problem):
    time.sleep(60)


def yields_numbers(problem):
    yield 3


def yields_nothing(problem):
    return
    yield


def fails_later(problem):
    weights, dual = right(problem)
    yield Iterate(0.5 * dual, weights)
    raise ArithmeticError("lost")


MISBEHAVIOUR = {
    raises: ("raised", r"ZeroDivisionError: no step left \(test_exam.py, line"),
    exits: ("raised", "SystemExit: 3"),
    crashes: ("died", "exit code -9"),
    sleeps: ("hangs", "no answer within"),
    yields_numbers: ("bad answer", "yielded a int; yield mklopt.solvers.Iterate"),
    yields_nothing: ("bad answer", "ended without a single iterate"),
    fails_later: ("raised", "ArithmeticError: lost"),
    (lambda p: "text"): ("bad answer", "it returned a str where weights"),
    (lambda p: None): ("bad answer", "expected|float|None"),
    (lambda p: right(p)[::-1]): ("bad answer", r"return \(weights, dual\)"),
    (lambda p: np.ones(99)): ("bad answer", r"an array \(99,\); expected \(\d,\)"),
    (lambda p: (-right(p)[0], right(p)[1])): ("bad answer", "weights are ≥ 0"),
    (lambda p: (right(p)[0], right(p)[1] * np.nan)): ("bad answer", "NaN or infinite"),
}


@pytest.mark.parametrize("solver", MISBEHAVIOUR, ids=lambda s: s.__name__)
def test_no_solver_can_break_the_kit(solver):
    kind, words = MISBEHAVIOUR[solver]
    asked = {"grades": ["edge"], "leave_out": [g.name for g in GRADED[-6:] if g != TWO]}
    found = check_solver(solver, time_limit=0.3 if solver is sleeps else 5, **asked)
    assert not found.passed and found.kind == kind
    assert re.search(words, found.diagnosis), found.diagnosis


TWO = next(graded for graded in GRADED if graded.name == "two samples")


def test_after_a_hang_the_next_problem_gets_a_process_of_its_own():
    def sometimes(problem):
        if problem.grams.n == 2:
            time.sleep(60)
        return right(problem)

    names = ["one against the rest", "no bias", "C = 0.001", "one C per sample"]
    found = check_solver(sometimes, grades=["edge"], leave_out=names, time_limit=0.5)
    assert [(r.problem, r.kind) for r in found.rows] == [
        ("one kernel", ""),
        ("two samples", "hangs"),
    ]


@pytest.mark.parametrize(
    "solver, asked, words",
    [
        ("nowhere:solve", {}, "no module 'nowhere' here or installed"),
        ("json:solve", {}, "module 'json' has no 'solve'"),
        ("json:__name__", {}, "is no solver; give a generator function"),
        ("analytik", {}, "neither module:name nor one of our solvers"),
        (7, {}, "7 is no solver"),
        (lambda problem, more: None, {}, "alone: missing a required argument"),
        (right, {"losses": ["hing"]}, "loss = 'hing' is not known"),
        (right, {"formulations": ["L2"]}, "formulation 'L2' is not known"),
        (right, {"formulations": ["LpNorm(p=x)"]}, "x is no plain number"),
        (right, {"formulations": ["LpNorm(p=0.1)"]}, "cannot be read: LpNorm: p = 0.1"),
        (right, {"formulations": [3]}, "give an instance such as"),
        (right, {"grades": ["hard"]}, "grade 'hard' is not known; choose from easy"),
        (right, {"leave_out": ["x"]}, "no problem 'x' to leave out"),
        (right, {"tol": 0.0}, "tol = 0.0: a relative gap between"),
        (right, {"time_limit": -1}, "give a positive number"),
        ("hessian", {"formulations": [LpNorm(2.0)]}, "hessian supports none of these"),
    ],
)
def test_wrong_input_gets_one_sentence(solver, asked, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        check_solver(solver, **asked)


def test_what_is_asked_follows_the_arguments():
    asks = plan(right, formulations=["LpNorm(p=inf)", GroupLasso()], losses=["squared"])
    assert len(asks.questions) == 2 * len(GRADED) and asks.left_out == ()
    assert {q.formulation for q in asks.questions} == {"LpNorm(p=inf)", "GroupLasso()"}
    without = plan(right, bias=False)
    assert not any(q.problem.bias for q in without.questions)
    only = plan(right, bias=True)
    assert all(q.problem.bias for q in only.questions) and only.left_out == ("no bias",)
    stated = plan(solvers()["lbfgs"])
    assert not any(q.problem.bias for q in stated.questions)
    assert {q.loss for q in stated.questions} == {"squared()"}
    promised = plan(solvers()["fista"])
    assert "twonorm, C = 100" in promised.left_out  # it promises nothing there


def test_one_question_can_be_judged_alone():
    question = plan(right, **BRIEF).questions[0]
    assert isinstance(question, Question)
    assert judge_alone(right, question).passed
    assert judge_alone(backwards, question).kind == "sign reversed"


# ---- the command and the plugin ----------------------------------------------

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


def test_the_plugin_makes_one_test_per_problem(pytester):
    pytester.makepyfile(
        mine=SOLVER,
        test_mine="""
        import pytest

        asked = {"grades": ["easy"], "leave_out": ["twonorm"]}

        @pytest.mark.mklopt_solver("mine:good", **asked)
        def test_good(mklopt_verdict):
            assert mklopt_verdict.passed, mklopt_verdict.diagnosis

        @pytest.mark.mklopt_solver("mine:bad", **asked)
        def test_bad(mklopt_verdict):
            assert mklopt_verdict.passed, mklopt_verdict.diagnosis
        """,
    )
    done = pytester.runpytest_subprocess("-W", "error", "--strict-markers", "-v")
    done.assert_outcomes(passed=3, failed=3)
    done.stdout.fnmatch_lines(["*test_good*easy: small, hinge*LpNorm(p=2)* PASSED*"])
    done.stdout.fnmatch_lines(["*they are 3 times the right ones*"])


def test_the_plugin_says_what_is_missing(pytester):
    pytester.makepyfile("def test_x(mklopt_verdict): pass")
    done = pytester.runpytest_inprocess()
    assert done.ret != 0
    done.stdout.fnmatch_lines(["*mark it with @pytest.mark.mklopt_solver(solver)*"])


def test_the_plugin_imports_nothing_heavy():
    code = (
        "import sys, mklopt.judge.exam.pytest_plugin; "
        "print([m for m in ('numpy', 'scipy', 'cvxpy', 'numba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
