"""`mklopt check`: what is asked of the exam, how it ends."""

from __future__ import annotations

import json

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
