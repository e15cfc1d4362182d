"""`mklopt check`: what is asked of the exam, how it ends."""

from __future__ import annotations

import json
import sys

import pytest
from click.testing import CliRunner

from mklopt.cli import main
from mklopt.judge.exam import exam

WORDS = [
    "--loss",
    "hinge",
    "--grade",
    "easy",
    "--leave-out",
    "twonorm",
    "--formulation",
    "BlockL1",
]


def check(*words: str):
    return CliRunner().invoke(main, ["check", *words])


def test_options_are_what_the_exam_is_asked(monkeypatch):
    asked: dict[str, object] = {}

    class Passed:
        passed = True

        def to_json(self):
            return json.dumps("passed")

    def fake(solver, **given):
        asked.update(given, solver=solver)
        return Passed()

    monkeypatch.setattr(exam, "check_solver", fake)
    words = [*WORDS, "--no-bias", "--time-limit", "3", "--seed", "7", "--quick"]
    done = check("hessian", *words, "--json")
    assert done.exit_code == 0 and json.loads(done.stdout) == "passed"
    asked.pop("progress")
    assert asked == {
        "solver": "hessian",
        "losses": ("hinge",),
        "grades": ("easy",),
        "leave_out": ("twonorm",),
        "formulations": ("BlockL1",),
        "bias": False,
        "tol": None,
        "seed": 7,
        "quick": True,
        "time_limit": 3.0,
    }
    asked.clear()
    check("hessian", "--json")
    assert {"losses", "grades", "formulations"}.isdisjoint(asked)


@pytest.mark.parametrize(
    "words, said",
    [(["nobody"], "nobody"), (["hessian", "--loss", "hing"], "hing"),
     (["hessian", "--time-limit", "0"], "positive"),
     (["hessian", "--seed", "-1"], "an integer from 0")],
)  # fmt: skip
def test_mistakes_are_one_sentence_and_exit_code_2(words, said):
    done = check(*words)
    assert done.exit_code == 2 and said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_solver_of_ours_passes():
    done = check("hessian", *WORDS)
    assert done.exit_code == 0, done.output


OWN = """
import numpy as np
import mklopt
from mklopt.formulations import LpNorm

L = np.random.default_rng(0).normal(size=(3, 20, 4))
y = np.where(L[0, :, 0] + L[1, :, 0] > 0, 1.0, -1.0)
K = L @ L.transpose(0, 2, 1)

def problems():
    return {"mine": mklopt.Problem(K, y, "hinge", LpNorm(p=2), C=1.0)}

def good(problem):
    found = mklopt.solve(problem, tol=1e-9)
    return found.weights, found.dual

def bad(problem):
    return good(problem.with_(C=problem.C / 4))
"""


def test_own_problems_give_an_exit_code_and_a_page(tmp_path, monkeypatch):
    (tmp_path / "own_for_check.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    words = ["--problems", "own_for_check:problems", "--html", "report.html"]
    assert check("own_for_check:good", *words).exit_code == 0
    done = check("own_for_check:bad", *words)
    assert done.exit_code == 1 and "C/4" in done.stdout
    assert "C/4" in (tmp_path / "report.html").read_text("utf-8")
    done = check("own_for_check:good", "--problems", "own_for_check:nothing")
    assert done.exit_code == 2 and "has no 'nothing'" in done.stderr
