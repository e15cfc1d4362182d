"""What is read from the source is what the registries hold, and nothing is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mklopt.cli import sources
from mklopt.formulations import formulations, losses_by_name
from mklopt.gmkl.families import KernelFamily
from mklopt.gmkl.regularizers import Regularizer
from mklopt.solvers import solvers

SLOW = ("numba", "scipy", "cvxpy", "sklearn", "pandas", "matplotlib", "joblib")


def first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().split("\n")[0]


def test_solvers_are_those_of_the_registry():
    found = {
        name: (one.about, one.reference) for name, one in sources.solvers().items()
    }
    assert found == {name: (s.about, s.reference) for name, s in solvers().items()}


def test_formulations_are_those_of_the_registry():
    expected = {name: first_line(kind) for name, kind in formulations().items()}
    assert sources.formulations() == expected
    assert list(sources.formulations()) == list(expected)


def test_losses_are_those_of_the_registry():
    expected = {kind.__name__: first_line(kind) for kind in losses_by_name().values()}
    assert sources.losses() == expected


@pytest.mark.parametrize(
    "root, module",
    [(KernelFamily, "gmkl/families"), (Regularizer, "gmkl/regularizers")],
)
def test_children_are_the_subclasses(root, module):
    kinds = [kind for kind in root.__subclasses__() if kind.__module__[:6] == "mklopt"]
    expected = {kind.__name__: first_line(kind) for kind in kinds}
    assert sources.children(root.__name__, module) == expected


@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["--help"]])
def test_lists_and_help_import_nothing_slow(words):
    code = (
        "import sys\nfrom mklopt.cli import main\n"
        f"main({words}, standalone_mode=False)\n"
        f"print([m for m in {SLOW} if m in sys.modules], file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.strip().split("\n")[-1] == "[]"
