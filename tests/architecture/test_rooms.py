"""The house itself: imports, the wheel, the commands."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def python(code: str, folder: Path = ROOT) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=folder
    )
    return done.stdout.strip()


def test_importing_is_quick_and_pulls_in_neither_cvxpy_nor_numba():
    code = """
import sys, time
start = time.process_time()
import mklopt
took = time.process_time() - start
print(took, *(m for m in ("cvxpy", "numba", "sklearn", "scipy") if m in sys.modules))
"""
    runs = [python(code).split() for _ in range(3)]
    assert min(float(run[0]) for run in runs) < 0.3
    assert all(run[1:] == [] for run in runs)


def test_certifying_does_not_need_cvxpy():
    code = """
import sys, numpy as np, mklopt
from mklopt.formulations import LpNorm
y = np.array([1., -1, 1, -1])
problem = mklopt.Problem(np.eye(4)[None], y, formulation=LpNorm(2))
print(mklopt.certify(problem, 0.5 * problem.y, np.ones(1)).relative_gap >= 0)
print([m for m in ("cvxpy", "sklearn", "clarabel") if m in sys.modules])
"""
    assert python(code).split("\n") == ["True", "[]"]


@pytest.mark.parametrize("room", ["formulations", "reference"])
def test_a_bare_import_of_a_room_is_refused(room):
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {room}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    assert f"import mklopt.{room}, not {room}" in done.stderr


def test_the_wheel_holds_exactly_the_tree(wheel):
    packed = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    homes = {
        "mklopt": "mklopt",
        "formulations": "mklopt/formulations",
        "reference": "mklopt/reference",
    }
    expected = {
        f"{home}/{path.relative_to(ROOT / top)}"
        for top, home in homes.items()
        for path in (ROOT / top).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == expected


def mklopt(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from mklopt.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (
            ["certify", "--loss", "hing"],
            "loss 'hing' is not known; did you mean 'hinge'?",
        ),
        (["certify", "--formulation", "L2"], "formulation 'L2' is not known"),
        (["certify", "--jobs", "0"], "0 is not in the range x>=1"),
        (["certifi"], "command 'certifi' is not known; did you mean 'certify'"),
    ],
)
def test_wrong_commands_get_one_clear_sentence(arguments, words):
    done = mklopt(*arguments)
    assert done.returncode == 2 and words in done.stderr
    assert "Traceback" not in done.stderr


def test_list_shows_the_rooms():
    shown = mklopt("list").stdout
    for name in ("GroupLasso", "VSKL", "multinomial", "[j ≠ y]", "mirror", "Product"):
        assert name in shown


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_make_target_in_the_readme_exists():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`make ([a-z-]+)`", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_no_solver_looks_at_a_clock():
    """Their iterates are the same on every machine; the loop alone keeps time."""
    solvers = sorted((ROOT / "mklopt" / "solvers").glob("*.py"))
    clocks = re.compile(r"^\s*(import|from) (time|datetime)\b", re.MULTILINE)
    assert len(solvers) > 20
    assert not [file.name for file in solvers if clocks.search(file.read_text())]
