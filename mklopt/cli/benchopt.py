"""A benchmark for the program benchopt: `mklopt export-benchopt DIR`.

Its objective certifies whatever a solver returns, outside of the clock: primal and dual
value and relative gap of (dual, coefficients), so that solvers of other people can be
added as one more file in solvers/ and are judged in the same way.

    benchopt run DIR -d "mklopt[data=wdbc]" -o "MKL[formulation=lp-1.5]" -s auto
    benchopt test DIR -k "'not install'"     # without conda; mklopt is there already

With --library the data sets are the solved problems of mklopt.library, f* is known, and
CVXPY with conic solvers is there beside ours.

The files are written from those in templates/. A solver is exported if it takes a
problem with kernels in memory and labels −1/+1, or a small problem of the library; the
first such problem is the one that `benchopt test` runs it on.
"""

import os
import re
from collections.abc import Sequence
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..util.checks import unknown
from ..util.files import write_whole
from .words import AS_JSON, echo_json, listed, usage_errors

KINDS = ("lp-2", "l1", "block_norm-1.5", "group_lasso", "elastic_net")
LOSSES = ("hinge", "logistic", "squared")
SMALL = (  # problems of the library: a solver takes one of these, or is left out
    *("tiny-hinge", "toy-p43", "toy-q3", "wdbc-vskl-hinge", "wdbc-composite-hinge"),
    *("wdbc-tikhonov-hinge", "benign-one-class"),
)


@click.command(
    "export-benchopt", epilog="Example: mklopt export-benchopt benchmark_mkl"
)
@click.argument("folder")
@click.option("--solvers", help="Names, separated by commas.  [default: all]")
@click.option("--library", is_flag=True, help="On the library of solved problems.")
@AS_JSON
def command(folder: str, solvers: str | None, library: bool, as_json: bool) -> None:
    """Write the files of a benchmark for the program benchopt."""
    with usage_errors():
        names = listed(solvers or "")
        written = export_library(folder, names) if library else export(folder, names)
    if as_json:
        echo_json({"folder": folder, "files": written})
    else:
        click.echo(f"{folder}: {len(written)} files; now: benchopt run {folder}")
        if missing := [] if solvers else _left_out(written):
            why = "they take no problem with two classes, kernels and no groups"
            why = "they take no small problem of the library" if library else why
            click.echo(f"left out: {', '.join(missing)} ({why})")


def export(folder: str | os.PathLike, names: Sequence[str] = ()) -> list[str]:
    """Write the benchmark; the files written. names: solvers, by default all."""
    from ..solvers import solvers

    _check_solvers(names)
    written = {
        "objective.py": _text("objective"),
        "datasets/mklopt.py": _text("dataset"),
    }
    for name in names or solvers():
        words = _first_problem(solvers()[name])
        if words is None and names:
            raise ValueError(
                f"{name} takes no problem with kernels in memory; leave it out"
            )
        if words is not None:
            written[f"solvers/{name}.py"] = _solver(name, {"objective": words})
    return _write(folder, written)


def export_library(folder: str | os.PathLike, names: Sequence[str] = ()) -> list[str]:
    """Write a benchmark on the solved problems of the library; the files written."""
    from ..library import names as problems
    from ..solvers import solvers

    _check_solvers(names)
    listed = _text("library_dataset").replace("{names}", repr(problems()))
    written = {
        "objective.py": _text("library_objective"),
        "datasets/library.py": listed,
        "solvers/cvxpy.py": _text("library_conic"),
    }
    for name in names or solvers():
        first = _first_of_library(solvers()[name])
        if first is None and names:
            raise ValueError(f"{name} takes no small problem of the library")
        if first is not None:
            words = {"dataset": {"problem": first}}
            written[f"solvers/{name}.py"] = _solver(name, words)
    return _write(folder, written)


def _first_of_library(solver: Any) -> str | None:
    """The first small problem of the library that a solver takes."""
    from ..library import get

    return next((name for name in SMALL if not solver.why_not(get(name))), None)


def _check_solvers(names: Sequence[str]) -> None:
    from ..solvers import solvers

    for name in names:
        if name not in solvers():
            raise ValueError(unknown("solver", name, solvers()))


def _solver(name: str, config: dict[str, Any]) -> str:
    text = _text("solver").replace("{name}", name)
    return text.replace("{test_config}", repr(config))


def _write(folder: str | os.PathLike, written: dict[str, str]) -> list[str]:
    for path, text in written.items():
        write_whole(Path(folder) / path, text.encode())
    return sorted(written)


def _left_out(written: Sequence[str]) -> list[str]:
    from ..solvers import solvers

    return [name for name in solvers() if f"solvers/{name}.py" not in written]


def _first_problem(solver: Any) -> dict[str, Any] | None:
    """The first problem that a solver takes, as parameters of the objective."""
    from ..formulations.text import formulation_from
    from ..grams.stack import GramStack
    from ..problem import Problem

    grams, y = (
        GramStack(np.stack([np.eye(4), np.ones((4, 4))])),
        np.array([1.0, -1.0, 1.0, -1.0]),
    )
    for kind, loss, bias in product(KINDS, LOSSES, (True, False)):
        formulation = formulation_from(re.sub(r"-(.*)", r"(\1)", kind))
        if not solver.why_not(Problem(grams, y, loss, formulation, bias=bias)):
            return {"formulation": kind, "loss": loss, "bias": bias}
    return None


def _text(name: str) -> str:
    """The template of a file."""
    template = files(__package__).joinpath(f"templates/{name}.py.txt")
    return template.read_text(encoding="utf-8")
