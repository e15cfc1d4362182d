"""The plugin makes one test per graded problem, and loads nothing before that."""

from __future__ import annotations

import subprocess
import sys

pytest_plugins = ["pytester"]
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
