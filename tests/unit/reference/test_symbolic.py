"""Every identity is proved by SymPy, and its wrong twin is refused."""

from __future__ import annotations

import time

import pytest
from click.testing import CliRunner

from mklopt.cli import main
from mklopt.reference import symbolic


@pytest.mark.parametrize("name", symbolic.names())
def test_the_derivation_holds_and_its_slip_does_not(name):
    start = time.process_time()
    assert symbolic.derive(name).holds()
    assert time.process_time() - start < 5
    assert not symbolic.derive(name, slip=True).holds()


def test_derive_prints_text_and_latex():
    run = CliRunner().invoke
    assert "theta_update" in run(main, ["derive"]).output
    text = run(main, ["derive", "theta_update"])
    assert text.exit_code == 0 and "1. stationarity" in text.output
    latex = run(main, ["derive", "vskl_gradient", "--latex"])
    assert r"\begin{align*}" in latex.output and r"\frac" in latex.output
    bad = run(main, ["derive", "theta"])
    assert bad.exit_code == 2 and "choose one of" in bad.output
