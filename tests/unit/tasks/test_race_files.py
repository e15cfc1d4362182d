"""The folder of a race: the same figure from the CSV, LaTeX that compiles."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mklopt
from mklopt.tasks.race_files import script
from tests.tex import has_tex
from tests.unit.tasks.test_race_figure import problem

ROOT = Path(__file__).resolve().parents[3]
LOOK = {
    "width": 3.25,
    "labels": {"hessian": "ours_1 & 5 %", "easy": "β ≤ ½"},
    "colors": {"hessian": (0.1, 0.2, 0.3)},
    "order": ["hessian"],
    "height": np.float64(3.0),
}


@pytest.fixture(scope="module")
def found():
    both = {"easy": problem(0), "other": problem(1)}
    return mklopt.race(both, ["analytic", "hessian"], repeats=3, time_limit=10.0)


@pytest.fixture(scope="module")
def home(found, tmp_path_factory):
    folder = tmp_path_factory.mktemp("race") / "new" / "folder"
    written = found.save(folder, **LOOK)
    assert written == sorted(path.name for path in folder.iterdir())
    return folder


def test_everything_a_paper_needs_is_there(found, home):
    wanted = {"race.pdf", "race.png", "profile.pdf", "profile.png", "traces.csv"}
    assert wanted | {"table.tex", "redraw.py"} <= {path.name for path in home.iterdir()}
    rows = found.to_frame()
    assert len((home / "traces.csv").read_text().splitlines()) == 1 + len(rows)
    table = (home / "table.tex").read_text()
    assert table.count(r"\\") == 1 + len(found.problems) and r"\pm" in table


def test_the_script_draws_exactly_the_same_figures(home):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "redraw.py"]
    subprocess.run(command, cwd=home, check=True, env=environment)
    for kind in ("png", "pdf"):
        for name, again in (("race", "redrawn"), ("profile", "redrawn-profile")):
            first = (home / f"{name}.{kind}").read_bytes()
            assert first == (home / f"{again}.{kind}").read_bytes(), (name, kind)


def test_the_script_of_one_problem_has_no_profile():
    text = script(1e-6, {"venue": "icml"}, many=False)
    assert "profile_figure(" not in text and "'venue': 'icml'" in text
    compile(text, "redraw.py", "exec")
    compile(script(1e-6, LOOK, many=True), "redraw.py", "exec")


def test_a_race_that_was_stopped_has_its_data_and_no_figures(found, tmp_path):
    replace(found, stopped="stopped by Ctrl-C after 1 of 9 runs").save(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"traces.csv", "table.tex", "redraw.py"}


def test_axes_are_refused(found, tmp_path):
    with pytest.raises(ValueError, match="save takes no ax"):
        found.save(tmp_path, ax=[1])


DOCUMENT = r"""\documentclass{article}
\usepackage{booktabs,graphicx,pgf}
\setlength{\textwidth}{3.25in}\setlength{\parindent}{0pt}
\begin{document}
\includegraphics{race.pdf}\par\input{race.pgf}\par
\resizebox{\linewidth}{!}{\input{table.tex}}
\end{document}
"""


@pytest.mark.skipif(not has_tex("pdflatex"), reason="no complete TeX is installed")
def test_latex_takes_figures_and_table_at_their_size(home):
    (home / "paper.tex").write_text(DOCUMENT, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout  # exactly 3.25 inches wide
    assert (home / "paper.pdf").stat().st_size > 10_000
