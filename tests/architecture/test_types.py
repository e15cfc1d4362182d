"""What type checkers know of mklopt: the public names, and the errors of users."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mklopt
from mklopt import formulations

ROOT = Path(__file__).resolve().parents[2]

RIGHT = """
import numpy as np

import mklopt
from mklopt import kernels
from mklopt.formulations import VSKL, LpNorm

X = np.random.default_rng(0).normal(size=(20, 2))
grams = kernels.gaussians([1, 3]).fit(X).grams()
problem = mklopt.Problem(grams, np.sign(X[:, 0]), "hinge", LpNorm(p=2.0), C=10.0)
result: mklopt.Result = mklopt.solve(problem, "analytic", tol=1e-4)
gap: float = result.relative_gap
found: mklopt.Certificate = mklopt.certify(problem, dual=result.dual)
lower: float = mklopt.reference.solve(problem).lower
print(gap, found.upper, lower, VSKL(((0, 1), (2,)), 2.0), mklopt.__version__)
model = mklopt.MKLClassifier(["linear"], C=1.0)
frame = mklopt.path(problem, points=3).to_frame()
"""
WRONG = {  # a line, and what is said about it
    "mklopt.solve(42)": 'Argument 1 to "solve" has incompatible type "int"',
    "LpNorm(q=3)": 'Unexpected keyword argument "q" for "LpNorm"',
    "mklopt.no_such_name": 'Module has no attribute "no_such_name"',
    "mklopt.formulations.NoSuchNorm": 'Module has no attribute "NoSuchNorm"',
    "kernels.no_such_kernel": 'Module has no attribute "no_such_kernel"',
    "result.no_such_part": '"Result" has no attribute "no_such_part"',
}


def imported(stub: Path, package: str) -> dict[str, str]:
    """Each name that a stub imports, and the object that it names, dotted."""
    found = {}
    for node in ast.parse(stub.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            home = ".".join(filter(None, (package, node.module)))
            for alias in node.names:
                assert alias.asname == alias.name, "without `as` it is not public"
                found[alias.name] = f"{home}.{alias.name}"
    return found


def test_the_stub_of_mklopt_has_its_public_names():
    names = imported(ROOT / "mklopt" / "__init__.pyi", "mklopt")
    assert set(names) == set(mklopt.__all__) - {"__version__"}
    for name, home in mklopt.HOMES.items():
        assert names[name] in (home, f"{home}.{name}"), name


def test_the_stub_of_formulations_has_its_public_names():
    names = imported(ROOT / "formulations" / "__init__.pyi", "mklopt.formulations")
    own = {"formulations", "losses_by_name"}
    assert set(names) | own == set(dir(formulations))
    for name, home in names.items():
        module, _, there = home.rpartition(".")
        assert getattr(formulations, name) is getattr(sys.modules[module], there)


@pytest.mark.full
def test_a_script_of_a_user_has_types(tmp_path):
    (tmp_path / "script.py").write_text(RIGHT + "\n".join(WRONG), "utf-8")
    options = ("--strict", "--follow-imports=silent", "--config-file=")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    said = dict(re.findall(r"script.py:(\d+): error: (.*)", done.stdout))
    first = RIGHT.count("\n") + 1
    assert len(said) == len(WRONG), done.stdout
    for line, words in enumerate(WRONG.values(), first):
        assert words in said[str(line)], done.stdout
