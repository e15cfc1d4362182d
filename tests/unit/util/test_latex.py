"""Text and figures for LaTeX: what is escaped, and that TeX itself takes it."""

from __future__ import annotations

import re
import shutil
import subprocess

import matplotlib
import pytest

from mklopt.util import style
from mklopt.util.latex import TEX, escaped, pgf
from tests.tex import has_tex

HARD = r"½‖w_1‖² ≤ ℓ₂ & Σθ, 100% of C̃ ^ ~ {#\} é α_m λ⁻¹ ∞ … – ∂Ω ⟨v, u⟩ ★ <a|b> $5"
DOCUMENT = r"""\documentclass{article}
\usepackage{pgf}
\begin{document}
WORDS

\input{figure.pgf}
\end{document}
"""
INSTALLED = [name for name in TEX if has_tex(name)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a_b & 5%", r"a\_b \& 5\%"),
        ("θ ≤ ½", r"\ensuremath{\theta} \ensuremath{\le} \ensuremath{\frac{1}{2}}"),
        ("ℓ₂²", r"\ensuremath{\ell}\ensuremath{_{2}}\ensuremath{^{2}}"),
        ("Σ Α λ", r"\ensuremath{\Sigma} \ensuremath{A} \ensuremath{\lambda}"),
        ("C̃", r"\ensuremath{\tilde{C}}"),
        ("é\\", r"é\textbackslash{}"),
        ("★", r"\ensuremath{?}"),
    ],
)
def test_letters_become_what_latex_takes(text, wanted):
    assert escaped(text) == wanted


def drawn():
    figure, (axis,) = style.panels(1, columns=1)
    axis.plot([1, 2, 3], [1e-3, 1e-2, 1.0], label="smo_mkl " + HARD.replace("$", ""))
    axis.set(yscale="log", xlabel=r"seconds, $\theta_m$ & more", title="‖w‖ 5%")
    axis.legend()
    return figure


@pytest.mark.skipif(not INSTALLED, reason="no TeX is installed")
def test_a_figure_is_written_for_any_document_and_stays_as_it_was(tmp_path):
    figure = drawn()
    assert pgf(figure, tmp_path / "figure.pgf")
    written = (tmp_path / "figure.pgf").read_text(encoding="utf-8")
    assert "mpl-data" not in written  # no folder of this machine
    assert figure.axes[0].get_title() == "‖w‖ 5%"
    assert re.search(r"providecommand\{\\mathdefault\}", written)


@pytest.mark.parametrize("system", TEX)
def test_tex_takes_the_figure_and_the_words(system, tmp_path):
    if system not in INSTALLED:
        pytest.skip(f"{system}, or a package it needs, is not installed")
    pgf(drawn(), tmp_path / "figure.pgf")
    page = DOCUMENT.replace("WORDS", escaped(HARD))
    (tmp_path / "page.tex").write_text(page, encoding="utf-8")
    command = [system, "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    log = (tmp_path / "page.log").read_text(errors="replace")
    assert "Missing character" not in log


def test_without_tex_no_figure_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert not pgf(drawn(), tmp_path / "figure.pgf")
    assert not (tmp_path / "figure.pgf").exists()


def test_a_tex_that_cannot_measure_text_is_as_good_as_none(
    tmp_path, monkeypatch, capsys
):
    """A small TeX lacks packages that Matplotlib needs, and ends at once."""
    for name in TEX:
        (tmp_path / name).write_text("#!/bin/sh\necho 'no underscore.sty'; exit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    figure = drawn()
    with matplotlib.rc_context({"pgf.preamble": "% no TeX was started with it before"}):
        assert not pgf(figure, tmp_path / "figure.pgf")
    assert not (tmp_path / "figure.pgf").exists()
    assert figure.axes[0].get_title() == "‖w‖ 5%"
    assert "no figure.pgf: pdflatex lacks the package" in capsys.readouterr().err
