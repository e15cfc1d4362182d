"""The benchmark of auto: what it counts, what it says of others, what it writes."""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import flagship as bench_auto
from benchmarks import rivals as competitors
from benchmarks.certificate import subset_gaussians
from benchmarks.flagship import Growth, Row
from benchmarks.rivals import EVERYONE, Arena, Attempt, Competitor
from mklopt import GramStack, Problem, solve
from mklopt.formulations import BlockL1, GroupLasso, LpNorm
from mklopt.util import style
from mklopt.util.tables import markdown, plain_table

K, Y = subset_gaussians(30, 4)
GRAMS = GramStack(K)
BY_NAME = {rival.name: rival for rival in EVERYONE}
ROW = Row(1000, 300, "LpNorm(p=2)", "hinge", 1.0, True, False, "auto", 1.0, 7.0, 1.0,
          5e-7, most=8.0)  # fmt: skip


def arena(loss, formulation, bias, C=1.0):
    problem = Problem(GRAMS, Y, loss, formulation, C, bias)
    return Arena(problem, K, solve(problem, tol=1e-8).certificate.dual)


@pytest.mark.parametrize(
    "name, loss, formulation, bias",
    [
        ("SVC analytic", "hinge", LpNorm(2.0), True),
        ("SVC analytic", "hinge", GroupLasso(), True),
        ("SVC SILP", "hinge", BlockL1(), True),
        ("CLARABEL", "logistic", GroupLasso(), True),
        ("SCS", "hinge", BlockL1(), True),
        ("skglm", "squared", GroupLasso(), False),
        ("skglm", "logistic", GroupLasso(), False),
        ("celer", "squared", GroupLasso(), False),
    ],
)
def test_a_competitor_solves_our_problem(name, loss, formulation, bias):
    """Its candidates, mapped to our problem, have a small certified gap."""
    rival, here = BY_NAME[name], arena(loss, formulation, bias)
    if not rival.installed:
        pytest.skip(f"{rival.package} is not installed; `make bench` installs it")
    assert rival.why_not(here.problem) == ""
    found = competitors.measure(rival, here, 60.0)
    assert 0 <= found.gap <= competitors.GOOD
    assert found.seconds > 0


def test_easymkl_is_above_the_optimum():
    rival, here = BY_NAME["EasyMKL"], arena("hinge", BlockL1(), True)
    if not rival.installed:
        pytest.skip("MKLpy is not installed; `make bench` installs it")
    found = competitors.measure(rival, here, 60.0)
    assert 1e-6 < found.gap < 1
    assert "another problem" in found.note


def test_a_competitor_says_what_it_does_not_take():
    lasso = Problem(GRAMS, Y, "squared", GroupLasso(), bias=False)
    taken = {r.name for r in EVERYONE if not r.why_not(lasso)}
    assert taken == {"CLARABEL", "ECOS", "SCS", "skglm", "celer"}
    logistic = lasso.with_(loss="logistic")
    assert "logistic" in BY_NAME["celer"].why_not(logistic)
    assert "bias" in BY_NAME["skglm"].why_not(logistic.with_(bias=True))
    assert "simplex" in BY_NAME["SVC SILP"].why_not(
        lasso.with_(loss="hinge", bias=True)
    )


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_group_lasso_in_the_coordinates_of_factors(loss):
    """The solution mapped to w_m = L_mᵀβ_m and back keeps its gap; another does not."""
    problem = Problem(GRAMS, Y, loss, GroupLasso(), 10.0, bias=False)
    best = solve(problem, tol=1e-9).certificate
    X = competitors.design(K)
    L = X.T.reshape(4, 30, 30)
    w = np.einsum("mji,mi->mj", L, best.expansion).ravel()
    found = competitors.lasso_certificate(problem, X, w)
    assert 0 <= found.relative_gap <= 1e-6
    np.testing.assert_allclose(found.primal, best.primal, rtol=1e-6)
    assert competitors.lasso_certificate(problem, X, 0.8 * w).relative_gap > 1e-3


def test_a_child_is_ended_at_its_limit():
    def endless():
        yield 1
        time.sleep(60)
        yield 2

    def broken():
        yield 1
        raise ValueError("no such kernel")

    begun = time.perf_counter()
    seen: list[int] = []
    with pytest.raises(TimeoutError, match="ended after"):
        for item in competitors.in_a_child(endless, 1.0):
            seen.append(item)
    assert seen == [1] and time.perf_counter() - begun < 30
    with pytest.raises(RuntimeError, match="no such kernel"):
        list(competitors.in_a_child(broken, 20.0))
    assert list(competitors.in_a_child(lambda: iter([1, 2]), 20.0)) == [1, 2]


def test_the_first_good_attempt_counts():
    def attempts(arena):
        yield Attempt(1.0, 1e-2)
        yield Attempt(2.0, 1e-4)
        yield Attempt(3.0, 1e-6)

    def poor(arena):
        yield Attempt(1.0, 1e-2)
        raise ArithmeticError("lost")

    here = Arena(Problem(GRAMS, Y, "hinge", BlockL1()), K, 0.0)
    rival = Competitor("rival", "numpy", lambda problem: "", attempts)
    assert competitors.measure(rival, here, 20.0) == Attempt(2.0, 1e-4)
    weak = replace(rival, attempts=poor, why_not=lambda p: "" if p.grams.n > 6 else "-")
    found = competitors.measure(weak, here, 20.0)
    assert found.gap == 1e-2 and "lost" in found.note


def test_bars_pass_and_fail():
    def first(lines):
        return [line.split()[0] for line in lines]

    assert first(bench_auto.ratio_bars([ROW])) == ["pass"]
    assert first(bench_auto.ratio_bars([replace(ROW, ratio=8.1)])) == ["FAIL"]
    assert first(bench_auto.ratio_bars([replace(ROW, gap=2e-6)])) == ["FAIL"]
    assert bench_auto.ratio_bars([replace(ROW, most=None)]) == []
    slow = replace(ROW, who="SVC analytic", gap=5e-4, multiple=2.5)
    assert first(bench_auto.rival_bars([ROW, slow])) == ["pass"]
    assert first(bench_auto.rival_bars([replace(slow, multiple=1.9)])) == ["FAIL"]
    assert first(bench_auto.rival_bars([replace(slow, sparse=True)])) == ["FAIL"]
    assert bench_auto.rival_bars([replace(slow, gap=2e-3, sparse=True)]) == []


def test_growth_is_the_slope_between_the_ends():
    line = Growth("M", "case", (100, 300, 1000), (1.0, 2.0, 10.0), (3, 3, 3))
    square = replace(line, seconds=(1.0, 5.0, 100.0))
    assert math.isclose(line.exponent, 1.0) and math.isclose(square.exponent, 2.0)
    grown = [line, square, replace(square, axis="n")]
    verdicts = [text.split()[0] for text in bench_auto.growth_bars(grown)]
    assert verdicts == ["pass", "FAIL", "pass"]


def test_more_kernels_leave_the_solution_alone():
    few, y = bench_auto.more_kernels(40, 5, 5)
    many, same = bench_auto.more_kernels(40, 5, 15)
    np.testing.assert_array_equal(many[:5], few)
    np.testing.assert_array_equal(same, y)
    values = [
        solve(Problem(GramStack(S), y, "hinge", GroupLasso()), tol=1e-8)
        for S in (few, many)
    ]
    used = [np.flatnonzero(v.certificate.norms > 1e-6) for v in values]
    assert used[0].tolist() == used[1].tolist() != []
    assert math.isclose(*(v.certificate.primal for v in values), rel_tol=1e-7)


def test_a_table_in_markdown():
    out = plain_table("title", ("a",), ("b",))
    out.add_row("x", "1")
    assert markdown(out) == "| a | b |\n|---|--:|\n| x | 1 |"


def test_the_bench_runs_from_end_to_end(monkeypatch, tmp_path, capsys):
    absent = Competitor("absent", "no_such_package", lambda p: "", lambda a: iter(()))
    monkeypatch.setattr(style, "FOLDER", tmp_path)
    monkeypatch.setattr(bench_auto, "EVERYONE", (BY_NAME["SVC analytic"], absent))
    monkeypatch.setattr(bench_auto, "SIZES", ((20, 4), (600, 4)))
    monkeypatch.setattr(bench_auto, "COSTS", (1.0,))
    monkeypatch.setattr(bench_auto, "SOME", 1.0)
    monkeypatch.setattr(bench_auto, "PATIENT", 1.0)
    monkeypatch.setattr(bench_auto, "FEW", 4)
    monkeypatch.setattr(bench_auto, "FLAT", 20)
    monkeypatch.setattr(bench_auto, "MANY", (2, 4))
    monkeypatch.setattr(bench_auto, "DEEP", (10, 20, 600))
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--rounds", "1"])
    bench_auto.main()
    out = capsys.readouterr().out
    assert "n = 20, M = 4" in out and "n = 600" not in out
    assert "not installed" in out and "time grows like M^" in out
    written = json.loads((tmp_path / "bench.json").read_text())
    assert {row["who"] for row in written["rows"]} == {"auto", "SVC analytic", "absent"}
    assert all(r["gap"] <= 1e-6 for r in written["rows"] if r["who"] == "auto")
    assert written["machine"]["numpy"] == np.__version__
    text = (tmp_path / "bench.md").read_text()
    assert "| problem | solver |" in text and "* pass" in text
    assert (tmp_path / "bench.png").stat().st_size > 1000


def test_one_size_alone(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(style, "FOLDER", tmp_path)
    monkeypatch.setattr(bench_auto, "COSTS", (1.0,))
    words = ["bench", "--alone", "--sizes", "30x5", "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", words)
    bench_auto.main()
    written = json.loads((tmp_path / "bench.json").read_text())
    assert {(r["who"], r["n"], r["M"]) for r in written["rows"]} == {("auto", 30, 5)}
    assert written["growth"] == [] and "time grows" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong", [["--rounds", "0"], ["--rounds", "x"], ["--quik"], ["--sizes", "10"]]
)
def test_wrong_arguments_are_refused(wrong, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench", *wrong])
    with pytest.raises(SystemExit):
        bench_auto.main()
    assert wrong[0] in capsys.readouterr().err
