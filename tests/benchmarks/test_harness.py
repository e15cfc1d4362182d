"""The benchmarks of two papers: what they need, what they draw, what they count."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from rich.console import Console

from benchmarks import obscure as bench_obscure
from benchmarks import spg as bench_spg
from benchmarks import streaming as bench_lazy
from benchmarks import vskl as bench_vskl
from benchmarks.spg import Run, Task, ratios
from mklopt import data
from mklopt.gmkl.families import Product
from mklopt.solvers import solvers
from mklopt.util import style


@pytest.mark.parametrize("bench", [bench_vskl, bench_spg, bench_lazy])
def test_missing_data_gets_a_sentence(bench, monkeypatch):
    def nowhere(name, **options):
        raise data.DataNotFound(f"{name} was not found: MKLOPT_DATA is not set")

    monkeypatch.setattr(data, "load", nowhere)
    monkeypatch.setattr(sys, "argv", ["bench"])
    with pytest.raises(SystemExit, match=r"(liver|mnist5k) was not found"):
        bench.main()


def test_figures_are_written_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(style, "FOLDER", tmp_path / "new")
    figure, axes = style.panels(3)
    assert len(axes) == 3
    axes[0].plot([1, 2], [3, 4], **style.look(0))
    paths = style.save(figure, "trial")
    assert [p.name for p in paths] == ["trial.png", "trial.pdf"]
    assert all(p.stat().st_size > 1000 for p in paths)


def test_ratios_are_over_pgd():
    nothing = (np.zeros(1), np.zeros(1))
    runs = [{"spg": Run(m, 1.0, 2.0, True, 1.9, nothing),
             "pgd": Run(10, 4.0, 2.0, True, 1.9, nothing)}
            for m in (1, 2, 9)]  # fmt: skip
    assert ratios(runs, "spg") == [0.2, 0.25]
    assert bench_spg.apart(runs, "spg") == "+0e+00"


def test_a_task_is_solved_by_every_method_to_the_same_objective():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=40))
    task = Task("product", "toy", 1.0, Product.from_features(X), y)
    found = [task.run(s, **on) for s, on in bench_spg.METHODS.values()]
    assert all(run.ended for run in found)
    values = [run.objective for run in found]
    assert max(values) - min(values) <= 1e-3 * min(values)


def test_mirror_and_the_others_solve_the_same_problem(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    toy = data.Dataset("toy", X, np.sign(X[:, 0] + 0.5 * rng.normal(size=60)))
    monkeypatch.setattr(data, "load", lambda name: toy)
    found = [
        bench_vskl.solve(p, s, tol=1e-3).certificate.primal
        for s, p in bench_vskl.problems("toy", 2, 0).items()
    ]
    assert max(found) - min(found) <= 1.1e-3 * min(found)


def toy(n=30, seed=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return data.Dataset("toy", X, np.sign(X[:, 0] + 0.5 * rng.normal(size=n)))


@pytest.mark.parametrize("bench", [bench_vskl, bench_spg])
def test_a_bench_runs_from_end_to_end(bench, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(data, "load", lambda name: toy())
    monkeypatch.setattr(style, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["bench", "--splits", "1", "--data", "sonar"])
    if bench is bench_vskl:
        monkeypatch.setattr(bench, "SETS", {"sonar": (1, 2)})
        monkeypatch.setattr(bench.theorem, "__defaults__", (5, (1.0,), (0.01,)))
    else:
        monkeypatch.setattr(bench, "PRICES", (1.0, 1.33))
        monkeypatch.setattr(bench, "LIMIT", 0.5)
    bench.main()
    out = capsys.readouterr().out
    drawn = {path.name for path in tmp_path.iterdir()}
    if bench is bench_vskl:
        assert "means over 1 split" in out and "theorem 3.1 item 3 after 5" in out
        assert {"vskl-time.png", "vskl-svms.pdf"} <= drawn
    else:
        assert out.count("SVMs of spg over those of pgd") == 4
        assert "switches one by one" in out
        assert {"spg-ratios.png", "spg-descent.pdf"} <= drawn


def test_the_theorem_can_fail(monkeypatch):
    def last(found):
        return list(found.columns[-1].cells)

    small = (10, (1.0, np.inf), (0.01,))
    assert all("holds" in cell for cell in last(bench_vskl.theorem(*small)))
    monkeypatch.setattr(bench_vskl, "lipschitz", lambda problem: 1e-9)
    assert last(bench_vskl.theorem(*small)) == ["FAILS", "FAILS"]
    assert bench_vskl.verdict(float("nan"), 1.0, 2.0) == "FAILS"
    assert bench_vskl.verdict(5.0, 1.0, 2.0) == "holds, vacuous"


def test_criteria_pass_and_fail():
    nothing = (np.zeros(1), np.zeros(1))

    def runs(machines, W):
        return [{"spg": Run(machines, 1.0, W, True, 1.9, nothing),
                 "pgd": Run(10, 4.0, 2.0, True, 1.9, nothing)}]  # fmt: skip

    good = bench_spg.criteria({("sum", 1.33, "toy"): runs(4, 2.0)})
    assert [line.split()[0] for line in good] == ["pass", "pass"]
    bad = bench_spg.criteria({("product", 2.0, "toy"): runs(6, 2.1)})
    assert [line.split()[0] for line in bad] == ["FAIL", "differs"]
    assert len(bench_spg.criteria({("sum", 2.0, "toy"): runs(9, 2.0)})) == 1


def test_sums_are_drawn_above_a_certified_bound():
    nothing = (np.zeros(1), np.zeros(1))
    sums = {str(k): Run(1, 1.0, 2.0 + k, True, 1.0 + k, nothing) for k in (0.0, 0.5)}
    products = {k: run._replace(lower=-np.inf) for k, run in sums.items()}
    assert bench_spg.floor(sums) == (1.5, "above the certified bound, relative")
    assert bench_spg.floor(products)[0] == 2.0
    assert "best of these runs" in bench_spg.floor(products)[1]


@pytest.mark.parametrize("bench", [bench_vskl, bench_spg])
@pytest.mark.parametrize("wrong", [["--splits", "0"], ["--splits", "x"], ["--data"]])
def test_wrong_arguments_are_refused(bench, wrong, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench", *wrong])
    with pytest.raises(SystemExit):
        bench.main()
    assert wrong[0] in capsys.readouterr().err


def test_on_the_fly_and_in_memory_are_compared(monkeypatch, capsys):
    rng = np.random.default_rng(4)
    y = np.arange(120) % 10
    images = np.clip(60.0 * y[:, None] + 50 * rng.normal(size=(120, 784)), 0, 255)
    digits = data.Dataset("digits", images, y, kind="classes")
    monkeypatch.setattr(data, "load", lambda name: digits)
    monkeypatch.setattr(bench_lazy, "alone", bench_lazy.run)
    monkeypatch.setattr(sys, "argv", ["bench", "--samples", "100", "--cache", "90kB"])
    monkeypatch.setattr(bench_lazy, "RUNS", {"analytic": {"tol": 1e-6}})
    bench_lazy.main()
    out = capsys.readouterr().out
    assert "analytic: objectives differ by" in out and "met;" in out
    assert "packed" in out and "lazy" in out and "MISSED" not in out
    stored, lazy = (bench_lazy.run(60, "analytic", cache) for cache in (None, "0"))
    lazy.primal *= 1 + 1e-8
    assert "MISSED" in bench_lazy.comparison(stored, lazy)


def test_obscure_against_pegasos_and_ufo_on_a_toy(monkeypatch, tmp_path):
    """Curves by epoch with certified objectives, drawn; ufo's objective is its own."""
    toy = data.load("orabona_toy", n=90, seed=0)
    monkeypatch.setattr(data, "load", lambda name: toy)
    monkeypatch.setattr(style, "FOLDER", tmp_path)
    found = bench_obscure.curves(Console(quiet=True), (1.5,), (1.0, 100.0), 8, 60)
    assert {name for *_, name in found} >= {"obscure", "pegasos", "ufo"}
    for (_, _, name), curve in found.items():
        if name not in solvers() or solvers()[name].draws:
            assert curve.epochs == [1, 2, 3, 4, 5, 7, 8]
        assert np.all(np.diff(curve.objective) <= 0)
        assert 0 < curve.lower <= curve.objective[-1]
    mine, theirs = (found[1.5, 100.0, s] for s in ("obscure", "pegasos"))
    assert mine.at(8) < theirs.at(8) and mine.at(4) == mine.objective[3]
    bench_obscure.mfeat_draw(found)
    assert len(list(tmp_path.glob("obscure-mfeat-*.png"))) == 2
    assert bench_obscure.mfeat_table(found, 8).row_count == 2


def test_the_slope_needs_the_data(monkeypatch):
    def nowhere(name, **options):
        raise data.DataNotFound(f"{name} was not found: MKLOPT_DATA is not set")

    monkeypatch.setattr(data, "load", nowhere)
    for part, name in (("scale", "mnist5k"), ("mfeat", "mfeat")):
        monkeypatch.setattr(sys, "argv", ["bench", "--only", part])
        with pytest.raises(SystemExit, match=f"{name} was not found: MKLOPT_DATA"):
            bench_obscure.main()
