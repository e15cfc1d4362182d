"""A benchmark for the program benchopt: `mklopt export-benchopt DIR`.

Its objective certifies whatever a solver returns, outside of the clock: primal and dual
value and relative gap of (dual, coefficients), so that solvers of other people can be
added as one more file in solvers/ and are judged in the same way.

    benchopt run DIR -d "mklopt[data=wdbc]" -s auto -s spicy
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from ..util.files import write_whole
from .words import sentence

OBJECTIVE = '''from benchopt import BaseObjective

import mklopt
from mklopt.formulations.text import formulation_from


class Objective(BaseObjective):
    """C * sum of losses + Omega(|w_1|, ..., |w_M|), certified by mklopt."""

    name = "Multiple kernel learning"
    min_benchopt_version = "1.5"
    parameters = {"formulation": ["lp:p=2", "l1"], "loss": ["hinge"], "C": [1.0]}
    sampling_strategy = "callback"

    def set_data(self, grams, y):
        formulation = formulation_from(self.formulation)
        self.problem = mklopt.Problem(grams, y, self.loss, formulation, self.C)

    def get_objective(self):
        return dict(problem=self.problem.with_(grams=self.problem.grams.apart()))

    def evaluate_result(self, dual, coefficients):
        found = mklopt.certify(self.problem, dual, coefficients=coefficients)
        gap = found.relative_gap
        return dict(value=found.primal, dual=found.dual, relative_gap=gap)

    def get_one_result(self):
        import numpy as np

        shape = self.problem.shape
        nothing = np.zeros((self.problem.grams.M, *shape))
        return dict(dual=np.zeros(shape), coefficients=nothing)
'''
DATASET = '''from benchopt import BaseDataset

from mklopt.cli.problems import problem


class Dataset(BaseDataset):
    """Data sets of mklopt with its usual kernels, or those listed."""

    name = "mklopt"
    parameters = {
        "data": ["wdbc", "ringnorm", "twonorm"],
        "kernels": [None],
        "samples": [200],
    }
    test_parameters = {"data": ["wdbc"], "samples": [40]}

    def get_data(self):
        asked = problem(self.data, self.kernels, samples=self.samples).problem
        return dict(grams=asked.grams, y=asked.y)
'''
SOLVER = '''from benchopt import BaseSolver

import mklopt
from mklopt.solvers import solvers


class Solver(BaseSolver):
    """The solver {name} of mklopt, asked for an answer after each iterate."""

    name = "{name}"
    sampling_strategy = "callback"

    def set_objective(self, problem):
        self.problem = problem

    def skip(self, problem):
        why = solvers()["{name}"].why_not(problem)
        return bool(why), why or None

    def warm_up(self):
        mklopt.solve(self.problem, "{name}", tol=1e-3, max_iter=3, time_limit=10.0)

    def run(self, callback):
        def ask(certificate, trace):
            self.point = certificate
            return not callback()

        mklopt.solve(self.problem, "{name}", tol=1e-12, callback=ask)

    def get_result(self):
        point = self.point
        return dict(dual=point.alpha, coefficients=point.expansion)
'''


@click.command(
    "export-benchopt", epilog="Example: mklopt export-benchopt benchmark_mkl"
)
@click.argument("folder")
@click.option("--solvers", default="", help="Names with commas; by default all.")
def command(folder: str, solvers: str) -> None:
    """Write a benchmark that the program benchopt runs."""
    names = [name.strip() for name in solvers.split(",") if name.strip()]
    try:
        written = export(folder, names)
    except (ValueError, OSError) as error:
        raise click.UsageError(sentence(error)) from None
    click.echo(f"{folder}: {len(written)} files; now: benchopt run {folder}")


def export(folder: str | os.PathLike, names: Sequence[str] = ()) -> list[str]:
    """Write the benchmark; the files written. names: solvers, by default all."""
    from ..solvers import solvers

    unknown = sorted(set(names) - set(solvers()))
    if unknown:
        known = ", ".join(solvers())
        raise ValueError(f"no solver is called {', '.join(unknown)}; there are {known}")
    files = {"objective.py": OBJECTIVE, "datasets/mklopt.py": DATASET}
    for name in names or solvers():
        files[f"solvers/{name}.py"] = SOLVER.replace("{name}", name)
    for path, text in files.items():
        write_whole(Path(folder) / path, text.encode())
    return sorted(files)
