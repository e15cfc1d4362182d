"""The report, on own problems: what is not claimed is left out, failures carry all."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import mklopt
from mklopt import GramStack, Problem
from mklopt.formulations import GroupLasso, LpNorm
from mklopt.judge.exam.report import ProblemResult, SolverReport

RNG = np.random.default_rng(4)
L = RNG.normal(size=(3, 24, 5))
Y = np.sign(L[0, :, 0] + 0.3 * RNG.normal(size=24))
FIRST = Problem(GramStack(L @ L.transpose(0, 2, 1)), Y, "hinge", LpNorm(p=2), C=0.02)
PROBLEMS = {
    "first": FIRST,
    "no bias": FIRST.with_(bias=False),
    "logistic": FIRST.with_(loss="logistic"),
    "lasso": FIRST.with_(formulation=GroupLasso()),
}


def right(problem):
    found = mklopt.solve(problem, tol=1e-9)
    return found.weights, found.dual


def picky(problem):
    if problem.loss.name != "hinge":
        raise NotImplementedError("the hinge alone")
    return right(problem)


def careless(problem):
    return right(problem.with_(C=2 * problem.C))


def asked(report: Any) -> list[str]:
    return [row.problem for row in report.rows]


def test_all_own_problems_are_asked_and_no_others():
    report = mklopt.check_solver(right, problems=PROBLEMS)
    assert report.passed and asked(report) == list(PROBLEMS)
    one = mklopt.check_solver(right, problems=FIRST, tol=1e-4)
    assert [row.tol for row in one.rows] == [1e-4]
    both = mklopt.check_solver(right, problems=[FIRST], grades=["easy"])
    assert {row.grade for row in both.rows} == {"own", "easy"}


def test_a_report_says_that_a_cause_is_not_known():
    row = ProblemResult("own", "first", "LpNorm(p=2.0)", "hinge()", 1e-6, passed=False)
    report = SolverReport("f", (row,), kind="not diagnosed")
    assert str(report).endswith(
        "0 of 1 problems certified: FAILED, the cause is not known"
    )
    other = SolverReport("f", (row,), kind="other C")
    assert str(other).endswith("FAILED, most likely: other C")


def test_the_text_of_a_report_cuts_nothing():
    """Long names go on in the next line, on a narrow terminal as well."""
    long = f"breast cancer, {'all pairs of Gaussians, ' * 4}trace one"
    report = mklopt.check_solver(right, problems={long: FIRST})
    narrow = io.StringIO()
    report.show(Console(file=narrow, width=80))
    for text in (str(report), narrow.getvalue()):
        assert "…" not in text
        head = next(line for line in text.splitlines() if "α off" in line)
        part = slice(head.index("problem"), head.index("gap") - 4)
        cells = "".join(line[part].strip() for line in text.splitlines()[3:])
        assert long.replace(" ", "") in cells.replace(" ", "")
    assert long in report._repr_html_()


@pytest.mark.parametrize(
    "claims, left",
    [
        ({"losses": ["hinge"]}, ["first", "no bias"]),
        ({"formulations": ["GroupLasso"], "losses": ["hinge"]}, ["lasso"]),
        ({"formulations": [LpNorm(p=2)], "losses": ["logistic"]}, ["logistic"]),
        ({"bias": False}, ["no bias"]),
        ({"leave_out": ["first", "lasso"]}, ["no bias", "logistic"]),
    ],
    ids=str,
)
def test_what_is_not_claimed_is_left_out(claims, left):
    report = mklopt.check_solver(right, problems=PROBLEMS, **claims)
    assert report.passed and asked(report) == left
    assert len(report.left_out) == len(PROBLEMS) - len(left)


def test_a_refusal_fails_only_what_was_claimed():
    report = mklopt.check_solver(picky, problems=PROBLEMS)
    assert report.passed and "logistic" not in asked(report)
    report = mklopt.check_solver(picky, problems=PROBLEMS, losses=["logistic"])
    assert not report.passed and report.failures[0].kind == "refused"


def test_a_failure_carries_its_problem_and_its_point():
    report = mklopt.check_solver(careless, problems={"mine": FIRST})
    (row,) = report.failures
    assert row.asked is FIRST and set(row.point) == {"dual", "weights"}
    assert mklopt.diagnose(row.asked, **row.point).causes[0].kind in row.kind
    assert list(report.to_frame()["kind"]) == [row.kind]
    assert "asked" not in report.to_frame() and '"mine"' in report.to_json()


def test_the_report_is_a_page(tmp_path):
    report = mklopt.check_solver(careless, problems={"a < b": FIRST})
    page = report.html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8") == page
    assert "a &lt; b" in page and "other C" in page
    assert report._repr_html_() in page


def test_what_is_no_problem_is_refused():
    with pytest.raises(ValueError, match="check_solver takes a Problem"):
        mklopt.check_solver(right, problems=[Y])
    with pytest.raises(ValueError, match="no problem fits"):
        mklopt.check_solver(right, problems=FIRST, losses=["squared"])
