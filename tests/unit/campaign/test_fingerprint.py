"""What voids a cached result, and what does not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mklopt.campaign.fingerprint import (
    LEFT_OUT,
    RUNS,
    SCANNED,
    closure,
    digest,
    fingerprint,
)

ROOT = Path(__file__).resolve().parents[3]
NEEDED = """
solvers.spicy solvers.ufo solvers.machines.svm solvers.steps.epochs
formulations.lp_norm formulations.mixed_prox grams.loops judge.verdict
formulations.losses.pointwise reference.exact reference.contract_problems
"""
SOURCE = '''"""What it does."""

TOL = 1e-6  # relative


def double(x: float) -> float:
    """Twice x."""
    return 2 * x
'''


@pytest.mark.parametrize(
    "old, new",
    [
        ("What it does", "What it did"),
        ("Twice x", "x, twice"),
        ("  # relative", ""),
        ("2 * x", "(2 * x)"),
    ],
)
def test_words_and_layout_do_not_count(old, new):
    assert digest(SOURCE.replace(old, new)) == digest(SOURCE)


@pytest.mark.parametrize(
    "old, new", [("1e-6", "1e-7"), ("2 * x", "3 * x"), ("double", "twice")]
)
def test_code_counts(old, new):
    assert digest(SOURCE.replace(old, new)) != digest(SOURCE)


def test_everything_that_a_run_needs_is_in_its_closure():
    found = set(closure(*RUNS))
    assert {f"mklopt.{name}" for name in NEEDED.split()} <= found
    assert not found & LEFT_OUT
    assert "mklopt.campaign.job" not in found
    for name in ("cli", "plots", "tasks", "estimators", "claims", "gmkl"):
        assert not [m for m in found if m.startswith(f"mklopt.{name}")]


def test_every_module_that_a_run_loads_is_in_its_closure():
    """What Python itself has imported after a run, in a process of its own."""
    code = """
import sys, tempfile, pathlib
from mklopt.campaign.job import Campaign, Selection
chosen = Selection(data=frozenset({"small"}), loss=frozenset({"hinge", "squared"}),
                   formulation=frozenset({"BlockL1"}), quick=True)
rows = list(Campaign(tempfile.mkdtemp(), chosen).run())
assert len(rows) > 5 and all(row.holds for row in rows)
print(*(name for name in sys.modules if name.startswith("mklopt")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    executed = {"mklopt.campaign.job", "mklopt.util.workers"}  # they choose runs
    assert not set(done.stdout.split()) - set(closure(*RUNS)) - LEFT_OUT - executed


def test_what_is_left_out_or_scanned_exists():
    names = {name.removeprefix("mklopt").removeprefix(".") for name in LEFT_OUT}
    for name in names | {name.removeprefix("mklopt.") for name in SCANNED}:
        path = ROOT / "mklopt" / name.replace(".", "/")
        assert path.is_dir() or path.with_name(f"{path.name}.py").is_file(), name


# ---- how imports are followed -------------------------------------------------------


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Writes a module toy.room.start; returns what of toy and mklopt it rests on."""
    parts = ("__init__", "other", "room/__init__", "room/near", "room/deep/__init__",
             "room/deep/down")  # fmt: skip
    for name in parts:
        path = tmp_path / "toy" / f"{name}.py"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("")
    monkeypatch.syspath_prepend(tmp_path)

    def follow(text: str, name: str = "room/start") -> set[str]:
        (tmp_path / "toy" / f"{name}.py").write_text(text)
        return set(closure("toy.room.start")) - {"toy", "toy.room", "toy.room.start"}

    yield follow
    sys.modules.pop("toy", None)


@pytest.mark.parametrize(
    "text, modules",
    [
        ("from . import near", "room.near"),
        ("from .near import x", "room.near"),
        ("from .. import other", "other"),
        ("from ..other import x as y", "other"),
        ("from .deep import down", "room.deep room.deep.down"),
        ("from .deep.down import x", "room.deep room.deep.down"),
        ("import toy.room.near", "room.near"),
        ("import toy.room.deep.down as d", "room.deep room.deep.down"),
        ("from toy.room import *", ""),
        ("def f():\n    from . import near", "room.near"),
        ("try:\n    from . import fast\nexcept ImportError:\n    import toy.other",
         "other"),
        ("import numpy\nimport toy_box", ""),
        ("if TYPE_CHECKING:\n    from . import near", ""),
        ("import typing\nif typing.TYPE_CHECKING:\n    from . import near\n"
         "else:\n    from .. import other", "other"),
        ("if not TYPE_CHECKING:\n    from . import near", "room.near"),
    ],
)  # fmt: skip
def test_imports_are_followed(toy, text, modules):
    assert toy(text) == {f"toy.{name}" for name in modules.split()}


def test_packages_run_before_their_modules(toy):
    toy("from ... import other", "room/deep/__init__")
    assert toy("import toy.room.deep.down") >= {"toy.room.deep", "toy.other"}


@pytest.mark.parametrize(
    "text, there, not_there",
    [
        ("from mklopt import solve", "run.loop", "estimators.classifier"),
        ("from mklopt import kernels", "kernels", "tasks.path"),
        ("import mklopt\nmklopt.path(0)", "tasks.path", "estimators.classifier"),
        ("import mklopt as m\nm.path(0)", "tasks.path", "estimators.classifier"),
        ("import mklopt.grams.stack\nmklopt.path(0)", "tasks.path", "gmkl.problem"),
        ("import mklopt.grams as g\ng.path(g)", "grams.stack", "tasks.path"),
        ("import mklopt\ngetattr(mklopt, 'path')", "gmkl.problem", "cli.solve"),
        ("from mklopt.papers import Scale", "claims.items", "claims.run"),
        ("from mklopt.tasks.path import path", "solvers.ufo", "tasks.race"),
    ],
)
def test_names_of_the_package_count_as_their_modules(toy, text, there, not_there):
    found = toy(text)
    assert f"mklopt.{there}" in found and f"mklopt.{not_there}" not in found


# ---- a copy of the tree, edited, and a process that has seen nothing else -----------


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tree")
    parts = [str(ROOT / name) for name in ("mklopt", "formulations", "reference")]
    subprocess.run(["cp", "-a", *parts, str(folder)], check=True)
    return folder


def asked(tree: Path) -> str:
    code = "from mklopt.campaign.fingerprint import fingerprint as f; print(f())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, capture_output=True, text=True,
        env={"PYTHONPATH": str(tree)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "name, text, counts",
    [
        ("mklopt/plots.py", "SHOWN = 31\n", False),
        ("mklopt/__init__.py", "__version__ = '9'\n", False),
        ("mklopt/solvers/spicy.py", "# a remark\n", False),
        ("mklopt/solvers/spicy.py", "STEP = 1.0\n", True),
        ("mklopt/solvers/brand_new.py", "STEP = 1.0\n", True),
        ("formulations/losses/brand_new.py", "STEP = 1.0\n", True),
        ("reference/stored/small.npz", "more", True),
    ],
)
def test_what_counts_in_the_tree(tree, name, text, counts):
    path, before = tree / name, fingerprint()
    old = path.read_bytes() if path.exists() else None
    try:
        with path.open("ab") as file:
            file.write(text.encode())
        assert (asked(tree) != before) == counts
    finally:
        if old is None:
            path.unlink()
            shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
        else:
            path.write_bytes(old)


def test_a_copy_of_the_tree_has_the_same_fingerprint(tree):
    assert asked(tree) == fingerprint() and len(fingerprint()) == 12
