"""The benchmark for benchopt, run here by a stand-in for that program."""

from __future__ import annotations

import json
import runpy
import sys
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest
from click.testing import CliRunner

from mklopt.cli import main
from mklopt.cli.benchopt import export, export_library
from mklopt.solvers import solvers


class Base:
    """What benchopt does to parameters: the first of each kind becomes an attribute."""

    parameters: ClassVar[dict] = {}

    def __init__(self, **given):
        for name, values in self.parameters.items():
            setattr(self, name, given.get(name, values[0]))


@pytest.fixture
def load(monkeypatch):
    stand_in = ModuleType("benchopt")
    for name in ("BaseObjective", "BaseDataset", "BaseSolver"):
        setattr(stand_in, name, Base)
    monkeypatch.setitem(sys.modules, "benchopt", stand_in)

    def read(path, name):
        return runpy.run_path(str(path))[name]

    return read


def test_exported_files_fit_together_and_gaps_are_certified(load, tmp_path):
    export(tmp_path, ["auto", "hessian"])
    dataset = load(tmp_path / "datasets" / "mklopt.py", "Dataset")(samples=40)
    objective = load(tmp_path / "objective.py", "Objective")()
    objective.set_data(**dataset.get_data())
    zero = objective.evaluate_result(**objective.get_one_result())
    solver = load(tmp_path / "solvers" / "auto.py", "Solver")()
    assert solver.skip(**objective.get_objective()) == (False, None)
    solver.set_objective(**objective.get_objective())
    solver.warm_up()
    gaps = []

    def callback():
        found = objective.evaluate_result(**solver.get_result())
        gaps.append(found["relative_gap"])
        return len(gaps) < 20

    solver.run(callback)
    assert gaps[-1] <= 1e-9 < 1e-2 < zero["relative_gap"]
    assert np.all(np.isfinite(gaps))
    other = load(tmp_path / "solvers" / "hessian.py", "Solver")()
    skipped, why = other.skip(**objective.get_objective())
    assert skipped and "simplex" in why


def test_a_run_stops_when_the_program_says_so(load, tmp_path):
    export(tmp_path, ["spicy"])
    dataset = load(tmp_path / "datasets" / "mklopt.py", "Dataset")(samples=40)
    objective = load(tmp_path / "objective.py", "Objective")()
    objective.set_data(**dataset.get_data())
    solver = load(tmp_path / "solvers" / "spicy.py", "Solver")()
    solver.set_objective(**objective.get_objective())
    calls = []
    solver.run(lambda: calls.append(1))  # None: no more
    assert len(calls) == 1


def test_the_command_writes_every_solver(tmp_path):
    done = CliRunner().invoke(main, ["export-benchopt", str(tmp_path / "all")])
    assert done.exit_code == 0 and "benchopt run" in done.output
    written = {path.stem for path in (tmp_path / "all" / "solvers").glob("*.py")}
    left = set(done.output.split("left out: ")[1].split(" (")[0].split(", "))
    assert written | left == set(solvers()) and not written & left
    assert left == {"composite", "mirror", "proximal_newton"}
    words = ["export-benchopt", str(tmp_path), "--solvers", "fast"]
    wrong = CliRunner().invoke(main, words)
    assert wrong.exit_code == 2 and "solver 'fast' is not known" in wrong.output
    words = ["export-benchopt", str(tmp_path), "--solvers", "mirror"]
    wrong = CliRunner().invoke(main, words)
    assert wrong.exit_code == 2 and "mirror takes no problem" in wrong.output
    words = ["export-benchopt", str(tmp_path / "b"), "--solvers", "auto", "--json"]
    shown = json.loads(CliRunner().invoke(main, words).output)
    assert "solvers/auto.py" in shown["files"]


@pytest.mark.parametrize("name", ["auto", "hessian", "lbfgs", "obscure", "pgd"])
def test_every_solver_takes_the_problem_it_is_tested_on(load, tmp_path, name):
    """`benchopt test` fails for a solver that skips all of its problems."""
    export(tmp_path, [name])
    solver = load(tmp_path / "solvers" / f"{name}.py", "Solver")()
    asked = solver.test_config["objective"]
    dataset = load(tmp_path / "datasets" / "mklopt.py", "Dataset")(samples=40)
    objective = load(tmp_path / "objective.py", "Objective")(**asked)
    objective.set_data(**dataset.get_data())
    assert solver.skip(**objective.get_objective()) == (False, None)
    assert objective.problem.loss.name == asked["loss"]


@pytest.mark.parametrize(
    "given, name", [("lp-1.5", "LpNorm(p=1.5)"), ("l1", "BlockL1()")]
)
def test_formulations_are_words_that_filters_of_benchopt_take(
    load, tmp_path, given, name
):
    export(tmp_path, ["auto"])
    dataset = load(tmp_path / "datasets" / "mklopt.py", "Dataset")(samples=40)
    objective = load(tmp_path / "objective.py", "Objective")(formulation=given)
    objective.set_data(**dataset.get_data())
    assert repr(objective.problem.formulation) == name


def test_the_library_is_one_benchmark(load, tmp_path):
    command = ["export-benchopt", str(tmp_path), "--library", "--solvers", "analytic"]
    assert CliRunner().invoke(main, command).exit_code == 0
    dataset = load(tmp_path / "datasets" / "library.py", "Dataset")
    assert len(dataset.parameters["problem"]) >= 60
    objective = load(tmp_path / "objective.py", "Objective")()
    objective.set_data(**dataset(problem="tiny-hinge").get_data())
    assert objective.evaluate_result(**objective.get_one_result())["value"] > 1.5
    for name, value in (("analytic", lambda: False), ("cvxpy", 1e-8)):
        solver = load(tmp_path / "solvers" / f"{name}.py", "Solver")()
        assert solver.skip(**objective.get_objective()) == (False, None)
        solver.set_objective(**objective.get_objective())
        solver.run(value)
        found = objective.evaluate_result(**solver.get_result())
        assert found["value"] >= 1 - 1e-12
        if name == "cvxpy":
            assert found["relative_gap"] <= 1e-6


def library_run(load, folder, name):
    """The solver at the library's problem that it is tested on, after one iterate."""
    export_library(folder, [name])
    solver = load(folder / "solvers" / f"{name}.py", "Solver")()
    asked = solver.test_config["dataset"]
    dataset = load(folder / "datasets" / "library.py", "Dataset")(**asked)
    objective = load(folder / "objective.py", "Objective")()
    objective.set_data(**dataset.get_data())
    assert solver.skip(**objective.get_objective()) == (False, None)
    solver.set_objective(**objective.get_objective())
    solver.run(lambda: False)
    return objective.evaluate_result(**solver.get_result())


@pytest.mark.parametrize("name", ["proximal_newton", "lp_newton", "ista", "mirror"])
def test_solvers_run_on_a_problem_of_the_library(load, tmp_path, name):
    """The points of proximal_newton are feature weights, those of others are not."""
    found = library_run(load, tmp_path, name)
    assert found["value"] >= 1 - 1e-9 and found["relative_gap"] < np.inf


def test_a_solver_that_takes_no_problem_of_the_library_is_left_out(tmp_path):
    command = ["export-benchopt", str(tmp_path), "--library"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0 and "left out: lbfgs (they take no small" in done.output
    wrong = CliRunner().invoke(main, [*command, "--solvers", "lbfgs"])
    assert wrong.exit_code == 2 and "lbfgs takes no small problem" in wrong.output
