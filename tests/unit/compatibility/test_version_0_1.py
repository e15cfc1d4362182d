"""What version 0.1 wrote or documented still works: pickles, files, imports, names."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import mklopt
from mklopt.certificates import checker
from mklopt.formulations import GroupLasso, LpNorm
from mklopt.util.moved import MODULES

HERE = Path(__file__).parent
ESTIMATORS = np.load(HERE / "estimators-0.1.0.npz")
PICKLED = sorted(k[:-7] for k in ESTIMATORS.files if k.endswith(".pickle"))

NAMES = (
    "C_zero Certificate GramStack KernelFamilyProblem LazyStack MKLClassifier "
    "MKLClassifierCV MKLOneClass MKLRegressor Problem Result StructuredProblem "
    "Trace certify check_formulation check_solver data families formulation "
    "formulations gallery gmkl inspect kernels loss one_vs_rest path plots race "
    "rates reference regularizers solve solver solvers structured variational"
)

# Every import statement of README and docs of version 0.1.
DOCUMENTED = """
import mklopt
from mklopt import data
from mklopt import data, kernels
from mklopt import kernels
from mklopt import kernels, plots
from mklopt import rates
from mklopt.formulations import ElasticNet
from mklopt.formulations import GroupLasso, Tikhonov
from mklopt import GramStack, Problem, certify
from mklopt import checker
from mklopt import checker, rates
from mklopt import data, kernels, plots
from mklopt import figures
from mklopt.families import Product
from mklopt.formulations import GroupLasso, LpNorm, VSKL
from mklopt.formulations.base import Formulation
from mklopt.gmkl import KernelFamilyProblem
from mklopt.papers import Scale, claim, decide, figure, study
from mklopt.reference import equivalences, solve_sharply
from mklopt.regularizers import Total
from mklopt.result import STATUS
from mklopt.solvers import Iterate, Solver, solver
from mklopt.solvers.base import Steps
from mklopt.solvers import that_can
from mklopt.solvers.wrapper import Machine
from mklopt.specs import formulation_from
from mklopt.asked import problem
from mklopt.structured import Chain
""".strip().split("\n")


@pytest.mark.parametrize("name", PICKLED)
def test_an_estimator_pickled_before_predicts_the_same(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's own versions may differ
        model = pickle.loads(ESTIMATORS[f"{name}.pickle"].tobytes())
    ask = getattr(model, "decision_function", model.predict)
    found = ask(ESTIMATORS["new"])
    np.testing.assert_allclose(found, ESTIMATORS[f"{name}.decision"], rtol=1e-12)
    assert model.certificate_.lower <= model.certificate_.upper


def problem(name: str) -> mklopt.Problem:
    """The problem that version 0.1 solved before it wrote the files."""
    L = np.random.default_rng(7).integers(-8, 9, size=(3, 10, 2)) / 8.0
    y = np.where(L[0, :, 0] + 0.1 > 0, 1.0, -1.0)
    if name == "factors":
        stack = mklopt.GramStack.from_factors(L)
        return mklopt.Problem(stack, y, "logistic", LpNorm(2.0), C=0.5)
    stack = mklopt.GramStack(L @ L.transpose(0, 2, 1))
    return mklopt.Problem(stack, y, "hinge", GroupLasso(), C=0.5)


@pytest.mark.parametrize("name", ["factors", "kernels"])
def test_a_certificate_written_before_still_verifies(name):
    proved = checker.check((HERE / f"{name}-0.1.0.cert").read_bytes())
    same = problem(name)
    same.grams.verify_psd()
    assert proved["problem"] == same.digest()
    assert proved["lower"] <= proved["upper"] <= proved["lower"] * (1 + 1e-7)


@pytest.mark.parametrize("name", ["factors", "kernels"])
def test_a_result_saved_before_loads(name):
    found = mklopt.Result.load(HERE / f"{name}-0.1.0.npz", problem(name))
    assert found.converged and found.relative_gap <= 1e-8


@pytest.mark.parametrize("statement", DOCUMENTED)
def test_documented_imports_work_or_warn(statement):
    code = f"import warnings; warnings.simplefilter('ignore'); {statement}"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("old", MODULES)
def test_an_old_module_warns_and_has_the_names_of_the_new_one(old):
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {MODULES[old]}"):
        found = importlib.import_module(old)
    now = importlib.import_module(MODULES[old])
    assert {k for k in vars(now) if k[0] != "_"} <= set(vars(found))


def test_public_names_are_those_of_version_0_1():
    assert set(mklopt.__all__) >= set(NAMES.split())
    for name in NAMES.split():
        assert getattr(mklopt, name) is not None


def test_an_unknown_module_is_not_found():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("mklopt.nothing")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mklopt.kernels.nothing  # noqa: B018
