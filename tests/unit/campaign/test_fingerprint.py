"""What voids a cached result, and what does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mklopt.campaign.fingerprint import ONLY_SHOWN, closure, digest, fingerprint

ROOT = Path(__file__).resolve().parents[3]
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
    found = set(closure("mklopt.campaign.job"))
    for name in (
        *(
            "solvers.spicy",
            "solvers.ufo",
            "solvers.machines.svm",
            "solvers.steps.epochs",
        ),
        *("formulations.lp_norm", "formulations.mixed_prox", "grams.loops"),
        *("formulations.losses.pointwise", "judge.verdict", "reference.exact"),
    ):
        assert f"mklopt.{name}" in found
    assert not found & ONLY_SHOWN
    for name in ("cli", "plots", "tasks.race", "estimators", "claims"):
        assert not [m for m in found if m.startswith(f"mklopt.{name}")]


def test_a_new_solver_counts_and_a_new_figure_does_not(tmp_path):
    """In a copy of the tree, by a process that has seen nothing else."""

    def asked(change: dict[str, str]) -> str:
        for name, text in change.items():
            (tmp_path / name).write_text(text)
        code = "from mklopt.campaign.fingerprint import fingerprint as f; print(f())"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    copy = [
        "cp",
        "-a",
        *(str(ROOT / d) for d in ("mklopt", "formulations", "reference")),
    ]
    subprocess.run([*copy, str(tmp_path)], check=True)
    before = asked({})
    plots = (tmp_path / "mklopt/plots.py").read_text()
    assert (
        asked({"mklopt/plots.py": plots.replace("SHOWN = 30", "SHOWN = 31")}) == before
    )
    spicy = (tmp_path / "mklopt/solvers/spicy.py").read_text()
    remark = {"mklopt/solvers/spicy.py": spicy + "\n# a remark\n"}
    assert asked(remark) == before
    new = {"mklopt/solvers/brand_new.py": "STEP = 1.0\n"}
    assert asked(new) != before


def test_it_is_short_and_stable():
    assert fingerprint() == fingerprint() and len(fingerprint()) == 12
