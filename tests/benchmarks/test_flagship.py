"""The benchmark of auto: what it counts, what it says of others, what it writes."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import flagship
from benchmarks.flagship import Growth, Row
from benchmarks.rivals import EVERYONE, Competitor
from mklopt import GramStack, Problem, solve
from mklopt.formulations import GroupLasso
from mklopt.util import style

ROW = Row(1000, 300, "LpNorm(p=2)", "hinge", 1.0, True, False, "auto", 1.0, 7.0, 1.0,
          5e-7, most=8.0)  # fmt: skip


def test_requirements_pass_and_fail():
    def first(lines):
        return [line.split()[0] for line in lines]

    assert first(flagship.ratio_lines([ROW])) == ["pass"]
    assert first(flagship.ratio_lines([replace(ROW, ratio=8.1)])) == ["FAIL"]
    assert first(flagship.ratio_lines([replace(ROW, gap=2e-6)])) == ["FAIL"]
    assert flagship.ratio_lines([replace(ROW, most=None)]) == []
    slow = replace(ROW, who="SVC analytic", gap=5e-4, multiple=2.5)
    assert first(flagship.rival_lines([ROW, slow])) == ["pass"]
    assert first(flagship.rival_lines([replace(slow, multiple=1.9)])) == ["FAIL"]
    assert first(flagship.rival_lines([replace(slow, sparse=True)])) == ["FAIL"]
    assert flagship.rival_lines([replace(slow, gap=2e-3, sparse=True)]) == []
    small = replace(slow, n=200, M=10, sparse=True, multiple=1.1)
    assert first(flagship.rival_lines([small])) == ["pass"]
    assert first(flagship.rival_lines([replace(small, multiple=0.9)])) == ["FAIL"]


def test_two_cores_are_judged_by_what_a_pass_gains():
    one = replace(ROW, who="auto, one thread", seconds=1.0, one=0.16)
    many = replace(ROW, seconds=0.7, one=0.1)  # 0.27 + 0.73/1.6 = 0.726
    assert flagship.core_lines([many, one])[0].startswith("pass")
    assert flagship.core_lines([replace(many, seconds=0.8), one])[0].startswith("FAIL")
    small = [replace(r, n=500, M=100) for r in (replace(many, seconds=1.04), one)]
    assert flagship.core_lines(small)[0].startswith("pass")
    slower = [replace(small[0], seconds=1.06), small[1]]
    assert flagship.core_lines(slower)[0].startswith("FAIL")
    assert flagship.core_lines([many]) == []


def test_reads_of_sparse_formulations_are_judged():
    sparse = replace(ROW, sparse=True, reads=2.4)
    assert flagship.read_lines([sparse])[0].startswith("pass")
    assert flagship.read_lines([replace(sparse, reads=2.6)])[0].startswith("FAIL")
    assert flagship.read_lines([ROW, replace(sparse, n=500)]) == []


def test_growth_is_the_slope_between_the_ends():
    line = Growth("M", "case", (100, 300, 1000), (1.0, 2.0, 10.0), (3, 3, 3))
    square = replace(line, seconds=(1.0, 5.0, 100.0))
    assert math.isclose(line.exponent, 1.0) and math.isclose(square.exponent, 2.0)
    grown = [line, square, replace(square, axis="n")]
    verdicts = [text.split()[0] for text in flagship.growth_lines(grown)]
    assert verdicts == ["pass", "FAIL", "pass"]


def test_more_kernels_leave_the_solution_alone():
    few, y = flagship.more_kernels(40, 5, 5)
    many, same = flagship.more_kernels(40, 5, 15)
    np.testing.assert_array_equal(many[:5], few)
    np.testing.assert_array_equal(same, y)
    values = [
        solve(Problem(GramStack(S), y, "hinge", GroupLasso()), tol=1e-8)
        for S in (few, many)
    ]
    used = [np.flatnonzero(v.certificate.norms > 1e-6) for v in values]
    assert used[0].tolist() == used[1].tolist() != []
    assert math.isclose(*(v.certificate.primal for v in values), rel_tol=1e-7)


def test_the_bench_runs_from_end_to_end(monkeypatch, tmp_path, capsys):
    (analytic,) = (rival for rival in EVERYONE if rival.name == "SVC analytic")
    absent = Competitor("absent", "no_such_package", lambda p: "", lambda a: iter(()))
    monkeypatch.setattr(style, "FOLDER", tmp_path)
    monkeypatch.setattr(flagship, "EVERYONE", (analytic, absent))
    monkeypatch.setattr(flagship, "SIZES", ((20, 4), (600, 4)))
    monkeypatch.setattr(flagship, "COSTS", (1.0,))
    monkeypatch.setattr(flagship, "LEAST_SECONDS", 1.0)
    monkeypatch.setattr(flagship, "TIMES_AUTO", 1.0)
    monkeypatch.setattr(flagship, "FIXED_M", 4)
    monkeypatch.setattr(flagship, "FIXED_N", 20)
    monkeypatch.setattr(flagship, "GROWING_M", (2, 4))
    monkeypatch.setattr(flagship, "GROWING_N", (10, 20, 600))
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--rounds", "1"])
    flagship.main()
    out = capsys.readouterr().out
    assert "n = 20, M = 4" in out and "n = 600" not in out
    assert "not installed" in out and "time grows like M^" in out
    written = json.loads((tmp_path / "bench.json").read_text())
    ours = set(flagship.OURS)
    assert {r["who"] for r in written["rows"]} == ours | {"SVC analytic", "absent"}
    assert all(r["gap"] <= 1e-6 for r in written["rows"] if r["who"] in ours)
    assert written["machine"]["numpy"] == np.__version__
    text = (tmp_path / "bench.md").read_text()
    assert "| problem | solver |" in text and "* pass" in text
    assert (tmp_path / "bench.png").stat().st_size > 1000


def test_one_size_alone(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(style, "FOLDER", tmp_path)
    monkeypatch.setattr(flagship, "COSTS", (1.0,))
    words = ["bench", "--alone", "--sizes", "30x5", "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", words)
    flagship.main()
    written = json.loads((tmp_path / "bench.json").read_text())
    found = {(r["who"], r["n"], r["M"]) for r in written["rows"]}
    assert found == {(who, 30, 5) for who in flagship.OURS}
    assert written["growth"] == [] and "time grows" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong", [["--rounds", "0"], ["--rounds", "x"], ["--quik"], ["--sizes", "10"]]
)
def test_wrong_arguments_are_refused(wrong, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench", *wrong])
    with pytest.raises(SystemExit):
        flagship.main()
    assert wrong[0] in capsys.readouterr().err
