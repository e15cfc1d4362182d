"""Without an optional package mklopt works, or says in one sentence what to install."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mklopt.util.extras import (
    DISTRIBUTIONS,
    EXTRAS,
    MissingExtra,
    available,
    missing,
    need,
)

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

HIDE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

HIDDEN = set(sys.argv[1].split(","))
sys.meta_path.insert(0, Hidden())
"""
SOLVE = """
import warnings
import numpy as np, mklopt
from mklopt.formulations import LpNorm
warnings.simplefilter("error")
x = np.linspace(-1, 1, 12)
K = np.stack([np.outer(x, x), np.exp(-np.subtract.outer(x, x) ** 2)])
problem = mklopt.Problem(K, np.sign(x), "hinge", LpNorm(p=2))
result = mklopt.solve(problem, tol=1e-6, verbose=True)
assert result.status == "converged" and repr(result) and repr(result.trace)
found = mklopt.certify(problem, dual=result.dual, weights=result.weights)
assert found.relative_gap <= 1e-6 and found.lower <= found.upper
"""
MORE = """
reference = mklopt.reference.solve(problem)
assert reference.lower <= found.upper and found.lower <= reference.upper
assert mklopt.check_formulation(LpNorm(p=2))
"""
NEEDS = {  # what asks for each package, and how
    "rich": "print(mklopt.diagnose(problem, dual=0.5 * result.dual))",
    "click": "import mklopt.cli",
    "pandas": "result.trace.to_frame()",
    "matplotlib": "mklopt.plots.convergence(result)",
    "sympy": "import mklopt.reference.symbolic",
    "sklearn": "mklopt.MKLClassifier",
    "highspy": "mklopt.solve(problem, 'silp')",
    "dask": "import mklopt.kernels.cluster.workers",
    "distributed": "mklopt.ClusterStack",
    "PEPit": """
from mklopt.judge.worst_case import worst_case
worst_case("proximal point", 1)
""",
    "joblib": """
from mklopt.campaign.job import execute
next(execute([], 2, "loky"))
""",
}
NOTHING = ("ecos", "osqp", "scs")  # used where they are installed; nothing asks


def run(hidden: str, code: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", HIDE + code, hidden]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def optional() -> str:
    return ",".join([*NEEDS, *NOTHING[:1]])


def test_without_all_of_them_problems_are_solved_and_certified():
    done = run(optional(), SOLVE + MORE)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("package", NEEDS)
def test_what_needs_a_package_says_what_to_install(package):
    done = run(package, SOLVE + NEEDS[package])
    *_, last = done.stderr.strip().splitlines()
    name = DISTRIBUTIONS.get(package, package)
    sentence = rf"this needs {name}; install it with: pip install 'mklopt\[\w+\]'"
    assert done.returncode == 1 and re.search(sentence, last), done.stderr


def test_reference_solvers_that_are_not_installed_are_left_out():
    code = (SOLVE + MORE).replace('"hinge"', '"logistic"')
    done = run("ecos", f"{code}\nmklopt.reference.solve(problem, solver='ECOS')")
    assert "solver 'ECOS' is not installed; choose one of CLARABEL" in done.stderr


def test_auto_and_lists_leave_out_solvers_that_lack_a_package():
    code = "from mklopt.solvers import that_can\nprint(that_can(problem))"
    assert "'silp'" in run("nothing", SOLVE + code).stdout
    assert "'silp'" not in run("highspy", SOLVE + code).stdout


def test_the_command_says_it_without_a_traceback():
    done = run("click", "from mklopt.__main__ import main\nmain()")
    assert done.returncode == 2
    assert done.stderr == (
        "mklopt: this needs click; install it with: pip install 'mklopt[cli]'\n"
    )


def test_need_and_available(monkeypatch):
    need("numpy", "scipy")
    assert available("numpy") and not available("no_such_package")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert "mklopt[frames]" in missing("numpy", "pandas")
    with pytest.raises(MissingExtra, match="pip install"):
        need("pandas")


def test_the_extras_are_those_of_the_package():
    def names(requirements: list[str]) -> set[str]:
        found = {re.split(r"[<>=!;\[ ]", line)[0] for line in requirements}
        modules = {name: module for module, name in DISTRIBUTIONS.items()}
        return {modules.get(name, name) for name in found}

    stated = PROJECT["optional-dependencies"]
    required = names(PROJECT["dependencies"])
    for extra, packages in EXTRAS.items():
        assert set(packages) <= names(stated[extra]), extra
        assert not set(packages) & required
    assert stated["all"] == [f"mklopt[{','.join(EXTRAS)}]"]
    assert set().union(*EXTRAS.values()) == set(NEEDS)
